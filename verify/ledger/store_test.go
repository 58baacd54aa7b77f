package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"flexid/flexi"
)

// Every write of the ledger, by its public name, as one step from a state in which it must succeed.
func writes() map[string]func(ctx context.Context, l *Ledger, row *Row) error {
	return map[string]func(ctx context.Context, l *Ledger, row *Row) error{
		"claim": func(ctx context.Context, l *Ledger, row *Row) error {
			row.State = Sending
			return l.Claim(ctx, []*Row{row})[0]
		},
		"settle": func(ctx context.Context, l *Ledger, row *Row) error {
			row.State = Confirmed
			return l.Settle(ctx, []*Row{row})[0]
		},
		"append": func(ctx context.Context, l *Ledger, row *Row) error {
			_, err := l.Append(ctx, *row, sampleEvent(2), nil)
			return err
		},
		"put event": func(ctx context.Context, l *Ledger, row *Row) error {
			ev := sampleEvent(1)
			ev.N, ev.State = 1, Confirmed
			return l.PutEvent(ctx, row.ID, ev)
		},
		"take number": func(ctx context.Context, l *Ledger, row *Row) error {
			holder, err := l.TakeNumber(ctx, row.Evidence, "FV-1", row.ID)
			if err == nil && holder != row.ID {
				return fmt.Errorf("holder is %q", holder)
			}
			return err
		},
		"free number": func(ctx context.Context, l *Ledger, row *Row) error {
			return l.FreeNumber(ctx, row.Evidence, "FV-0", row.ID)
		},
		"event id": func(ctx context.Context, l *Ledger, row *Row) error {
			c, err := l.TakeEventID(ctx, "ev-2", "d", row.ID, StreamRef{Seq: 2})
			if err == nil && !c.New {
				return fmt.Errorf("not new: %+v", c)
			}
			return err
		},
		"meta": func(ctx context.Context, l *Ledger, _ *Row) error { return l.SetMeta(ctx, Meta{Company: "firma"}, 0) },
	}
}

// prepared is a document with one event and one number.
func prepared(t *testing.T, kv keyValue) *Row {
	t.Helper()
	l := memLedger(kv)
	row, err := l.Append(t.Context(), sampleRow("x"), sampleEvent(1), nil)
	noErr(t, err)
	_, err = l.TakeNumber(t.Context(), row.Evidence, "FV-0", row.ID)
	noErr(t, err)
	return &row
}

// TestEveryWriteSurvivesEveryFault: whatever becomes of the first calls, the write ends stored exactly once, and the
// caller hears success with the revision that is in the store.
func TestEveryWriteSurvivesEveryFault(t *testing.T) {
	for name, write := range writes() {
		for _, f := range fates() {
			for _, times := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, f.name, times), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						mem := newMemory()
						row := prepared(t, mem)
						before := mem.seq
						l := memLedger(&disturbed{inner: mem, fate: f, hits: func(_ string, n int) bool { return n <= times }})
						l.token = func() string { return "second-" + fmt.Sprint(mem.n.Load()) }
						noErr(t, write(t.Context(), l, row))
						stored := uint64(1)
						if name == "append" {
							stored = 2 // event and row
						}
						want(t, "values stored", mem.seq-before, stored)
						if name == "claim" || name == "settle" {
							want(t, "revision", row.Revision, mem.seq)
						}
					})
				})
			}
		}
	}
}

// TestSilenceIsUndecided: a store that never answers ends in UndecidedError when the context ends, and the same bytes
// were sent each time, whether they were stored or not.
func TestSilenceIsUndecided(t *testing.T) {
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored %v", stored), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := newMemory()
				row := prepared(t, mem)
				kv := &deaf{disturbed: disturbed{inner: mem, hits: func(string, int) bool { return true },
					fate: fate{err: context.DeadlineExceeded, block: time.Second, stored: stored}}}
				l := memLedger(kv)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				revision := row.Revision
				row.State = Sending
				err := l.Claim(ctx, []*Row{row})[0]
				var u *UndecidedError
				if !errors.As(err, &u) {
					t.Fatalf("got %v", err)
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("does not show that the context ended: %v", err)
				}
				if u.Tries < 5 || !strings.Contains(err.Error(), "$KV.mem.d.") || !strings.Contains(err.Error(), "permission") {
					t.Fatalf("tries %d, text %q", u.Tries, err)
				}
				want(t, "revision of the row", row.Revision, revision)
				fresh, err := memLedger(mem).Get(t.Context(), row.ID)
				noErr(t, err)
				want(t, "the store shows the token that was tried", fresh.Token == row.Token, stored)
			})
		})
	}
}

// deaf answers no read either.
type deaf struct{ disturbed }

func (d *deaf) Get(context.Context, string) (jetstream.KeyValueEntry, error) {
	return nil, context.DeadlineExceeded
}

func TestAnotherWriterIsAConflict(t *testing.T) {
	for _, f := range append(fates(), fate{name: "no fault"}) {
		t.Run(f.name, func(t *testing.T) {
			if f.stored || f.late {
				t.Skip("then we are the first")
			}
			synctest.Test(t, func(t *testing.T) {
				mem := newMemory()
				row := prepared(t, mem)
				other := row.Clone()
				l := memLedger(&disturbed{inner: mem, fate: f, hits: func(_ string, n int) bool {
					if n == 1 {
						other.State = Sending
						noErr(t, memLedger(mem).Claim(context.Background(), []*Row{&other})[0])
					}
					return n == 1 && f.err != nil
				}})
				l.token = func() string { return "mine" }
				err := l.Claim(t.Context(), []*Row{row})[0]
				var c *ConflictError
				if !errors.As(err, &c) || c.Found != other.Revision || c.Deleted {
					t.Fatalf("got %v", err)
				}
			})
		})
	}
}

// TestStoredThenOverwritten: our write was stored, its answer lost, and somebody built on it. That is no claim any more.
func TestStoredThenOverwritten(t *testing.T) {
	mem := newMemory()
	row := prepared(t, mem)
	kv := &hook{keyValue: mem}
	kv.update = func(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
		if rev, err := mem.Update(ctx, key, value, revision); err == nil {
			_, _ = mem.Update(ctx, key, []byte(`{"format":1,"token":"theirs"}`), rev)
			return 0, context.DeadlineExceeded
		}
		return 0, wrongLast(10071)
	}
	var c *ConflictError
	if err := memLedger(kv).Claim(t.Context(), []*Row{row})[0]; !errors.As(err, &c) {
		t.Fatalf("got %v", err)
	}
}

type hook struct {
	keyValue
	update func(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
}

func (h *hook) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return h.update(ctx, key, value, revision)
}

func TestRefusals(t *testing.T) {
	api := func(code jetstream.ErrorCode, text string) error {
		return fmt.Errorf("nats: %w", &jetstream.APIError{Code: 400, ErrorCode: code, Description: text})
	}
	cases := map[string]struct {
		err  error
		want any
	}{
		"stream full":       {api(10077, "maximum bytes exceeded"), new(*FullError)},
		"account full":      {api(10002, "resource limits exceeded for account"), new(*FullError)},
		"storage full":      {api(10047, "insufficient storage resources available"), new(*FullError)},
		"server full":       {api(10023, "insufficient resources"), new(*FullError)},
		"too large, server": {api(10054, "message size exceeds maximum allowed"), new(*TooLargeError)},
		"too large, store":  {api(10077, "message too large"), new(*TooLargeError)},
		"too large, client": {nats.ErrMaxPayload, new(*TooLargeError)},
		"no stream":         {jetstream.ErrStreamNotFound, new(*MissingError)},
		"closed":            {nats.ErrConnectionClosed, new(*UndecidedError)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mem := newMemory()
			row := prepared(t, mem)
			kv := &hook{keyValue: mem, update: func(context.Context, string, []byte, uint64) (uint64, error) { return 0, c.err }}
			err := memLedger(kv).Claim(t.Context(), []*Row{row})[0]
			if !errors.As(err, c.want) {
				t.Fatalf("got %T %v", err, err)
			}
		})
	}
}

// TestFullAfterLostAnswer: the first call was stored and its answer lost, then the store is full. The claim is ours.
func TestFullAfterLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newMemory()
		row := prepared(t, mem)
		calls := 0
		kv := &hook{keyValue: mem}
		kv.update = func(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
			if calls++; calls == 1 {
				_, _ = mem.Update(ctx, key, value, revision)
				return 0, context.DeadlineExceeded
			}
			return 0, fmt.Errorf("nats: %w", &jetstream.APIError{ErrorCode: 10077, Description: "maximum bytes exceeded"})
		}
		noErr(t, memLedger(kv).Claim(t.Context(), []*Row{row})[0])
		want(t, "revision", row.Revision, mem.seq)
	})
}

// TestDeletedByHand: a row that a person deleted is not made again in silence.
func TestDeletedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newMemory()
		kv := &hook{keyValue: mem, update: func(_ context.Context, key string, _ []byte, _ uint64) (uint64, error) {
			if key[0] == 'd' {
				return 0, wrongLast(10071) // the marker has a revision that no read shows
			}
			return 1, nil
		}}
		_, err := memLedger(kv).Append(t.Context(), sampleRow("x"), sampleEvent(1), nil)
		var c *ConflictError
		if !errors.As(err, &c) || !c.Deleted {
			t.Fatalf("got %v", err)
		}
	})
}

// TestClaimRace: many goroutines over two connections claim the same rows; each row has exactly one winner and the store
// shows the winner's token.
func TestClaimRace(t *testing.T) {
	b := newBox(t)
	l1, _ := b.ledger()
	l2 := mustOpen(t, b.connect(), Options{})
	const rows, claimers = 20, 12
	for i := range rows {
		row := sampleRow(fmt.Sprint(i))
		row.ID = RowID("firma", "faktura-vydana", flexi.ExternalID(fmt.Sprintf("ext:FLEXID:%d", i)))
		noErr(t, l1.Claim(t.Context(), []*Row{&row})[0])
		var wins atomic.Int64
		var winner atomic.Value
		var wg sync.WaitGroup
		for c := range claimers {
			mine := row.Clone()
			wg.Go(func() {
				l := []*Ledger{l1, l2}[c%2]
				mine.State = Sending
				err := l.Claim(t.Context(), []*Row{&mine})[0]
				var conflict *ConflictError
				switch {
				case err == nil:
					wins.Add(1)
					winner.Store(mine.Token)
				case !errors.As(err, &conflict):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		want(t, "winners", wins.Load(), 1)
		now, err := l2.Get(t.Context(), row.ID)
		noErr(t, err)
		want(t, "token in the store", now.Token, winner.Load().(string))
	}
}

// TestGroup: of a group each row gets its own answer.
func TestGroup(t *testing.T) {
	b := newBox(t)
	l, _ := b.ledger()
	var rows []*Row
	for i := range 40 {
		row := sampleRow(fmt.Sprint(i))
		row.ID = ID(fmt.Sprintf("row%d", i))
		rows = append(rows, &row)
	}
	for i, err := range l.Claim(t.Context(), rows) {
		if err != nil || rows[i].Revision == 0 || rows[i].Token == "" || rows[i].Updated.IsZero() {
			t.Fatalf("row %d: %v %+v", i, err, rows[i])
		}
	}
	rows[7].Revision--
	for i, err := range l.Settle(t.Context(), rows) {
		var c *ConflictError
		if errors.As(err, &c) != (i == 7) {
			t.Fatalf("row %d: %v", i, err)
		}
	}
	want(t, "empty group", len(l.Claim(t.Context(), nil)), 0)
}

// TestDeniedWriteNamesTheSubject: a permission that is missing looks like a time-out; the text must say what to grant.
func TestDeniedWriteNamesTheSubject(t *testing.T) {
	b := newBox(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "owner", Password: "x"},
			{Username: "poor", Password: "x", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Deny: []string{"$KV.flexid_ledger.d.>"}}}},
		}
	})
	mustOpen(t, b.connect(nats.UserInfo("owner", "x")), Options{Create: true})
	l := mustOpen(t, b.connect(nats.UserInfo("poor", "x")), Options{Timeout: 50 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	row := sampleRow("x")
	err := l.Claim(ctx, []*Row{&row})[0]
	var u *UndecidedError
	if !errors.As(err, &u) || u.Tries < 2 || !strings.Contains(err.Error(), "permission for subject $KV.flexid_ledger.d."+string(row.ID)) {
		t.Fatalf("got %v", err)
	}
}

// TestCancelled: a stop in the middle of a silent call is told as a stop, and at once.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newMemory()
		row := prepared(t, mem)
		ctx, cancel := context.WithCancel(t.Context())
		kv := &hook{keyValue: mem, update: func(call context.Context, _ string, _ []byte, _ uint64) (uint64, error) {
			cancel()
			<-call.Done()
			return 0, call.Err()
		}}
		began := time.Now()
		err := memLedger(kv).Claim(ctx, []*Row{row})[0]
		var u *UndecidedError
		if !errors.As(err, &u) || !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		want(t, "tries", u.Tries, 1)
		want(t, "time taken", time.Since(began), 0)
	})
}

// swapped answers reads of one key with the value of another.
type swapped struct {
	keyValue
	key, with string
}

func (s *swapped) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if key == s.key {
		key = s.with
	}
	return s.keyValue.Get(ctx, key)
}

// TestAnotherAnswerIsNone: what was read under one name and says that it is something else is an error, not the thing asked
// for: an event that is not the one asked for would be carried out.
func TestAnotherAnswerIsNone(t *testing.T) {
	mem := newMemory()
	l := memLedger(mem)
	a, b := sampleRow("a"), sampleRow("b")
	b.ID = RowID("firma", "faktura-vydana", "ext:FLEXID:b")
	for i := range 2 {
		var err error
		if a, err = l.Append(t.Context(), a, sampleEvent(i+1), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Append(t.Context(), b, sampleEvent(3), nil); err != nil {
		t.Fatal(err)
	}
	l = memLedger(&swapped{mem, eventKey(a.ID, 1), eventKey(a.ID, 2)})
	if ev, err := l.Event(t.Context(), a.ID, 1); err == nil {
		t.Errorf("event 1 reads as %+v", ev)
	}
	if ev, err := l.Event(t.Context(), a.ID, 2); err != nil || ev.N != 2 {
		t.Errorf("event 2: %+v, %v", ev, err)
	}
	l = memLedger(&swapped{mem, rowKey(a.ID), rowKey(b.ID)})
	if r, err := l.Get(t.Context(), a.ID); err == nil {
		t.Errorf("row a reads as %+v", r)
	}
}
