package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// cursorAt is a cursor behind the first seq messages of a stream.
func cursorAt(c Cursor, seq uint64) *Cursor {
	c.Stream, c.Seq = "FLEXID_PUSH", seq
	return &c
}

// nothing is known: every row, id and number is taken to be new.
func unknown(ID) bool { return false }

// put one event of a document into a batch, as intake does.
func (b *Batch) event(ctx context.Context, key string, n int, id string) (EventClaim, Row, error) {
	row := sampleRow(key)
	row.ID = ID(key)
	ev := sampleEvent(n)
	ev.EventID = id
	claim, err := b.TakeEventID(ctx, id, key, row.ID, ev.Stream)
	if err != nil || !claim.New {
		return claim, Row{}, err
	}
	row, err = b.Append(ctx, row, ev, nil)
	return claim, row, err
}

// TestBatchReadsWhatItHolds: two events of a document, an id and a number used twice in one batch are what they would be one after
// the other, and each key is stored once.
func TestBatchReadsWhatItHolds(t *testing.T) {
	for name, known := range map[string]func(ID) bool{"quick": unknown, "careful": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped()
				b := g.Begin(known)
				_, first, err := b.event(t.Context(), "a", 1, "id1")
				noErr(t, err)
				_, second, err := b.event(t.Context(), "a", 2, "id2")
				noErr(t, err)
				want(t, "first ordinal", first.Tail, 1)
				want(t, "second ordinal", second.Tail, 2)
				claim, _, err := b.event(t.Context(), "b", 3, "id1")
				noErr(t, err)
				want(t, "the id is new", claim.New, false)
				want(t, "the id's document", claim.Row, "a")
				for _, owner := range []ID{"a", "b"} {
					holder, err := b.TakeNumber(t.Context(), "faktura-vydana", "FV-1", owner)
					noErr(t, err)
					want(t, "owner", holder, "a")
				}
				if g.mem.seq != 0 {
					t.Fatal("something was stored before the commit")
				}
				rows, err := b.Commit(t.Context(), cursorAt(Cursor{}, 3))
				noErr(t, err)
				want(t, "values stored", g.mem.seq, 7) // cursor, 2 ids, 2 events, row, number
				want(t, "rows", len(rows), 1)
				have, err := g.Ledger.Get(t.Context(), "a")
				noErr(t, err)
				want(t, "revision", rows[0].Revision, have.Revision)
				want(t, "token", rows[0].Token, have.Token)
				c, err := g.Cursor(t.Context(), "FLEXID_PUSH")
				noErr(t, err)
				want(t, "cursor", c.Seq, 3)
				noErr(t, g.Claim(t.Context(), []*Row{&rows[0]})[0]) // the revision is good for a claim

				// The next batch builds on what is there now.
				b = g.Begin(func(ID) bool { return true })
				_, third, err := b.event(t.Context(), "a", 4, "id4")
				noErr(t, err)
				want(t, "third ordinal", third.Tail, 3)
				_, err = b.Commit(t.Context(), cursorAt(c, 4))
				noErr(t, err)
			})
		})
	}
}

// TestBatchOnOldKnowledgeIsRefused: whatever the batch took to be new or unchanged and is not refuses all of it, and the careful one
// that follows is right.
func TestBatchOnOldKnowledgeIsRefused(t *testing.T) {
	for name, there := range map[string]func(t *testing.T, l *Ledger){
		"an id that is known": func(t *testing.T, l *Ledger) {
			_, err := l.TakeEventID(t.Context(), "id1", "other", "z", StreamRef{Seq: 77})
			noErr(t, err)
		},
		"a row that is known": func(t *testing.T, l *Ledger) {
			row := sampleRow("a")
			row.ID = "a"
			_, err := l.Append(t.Context(), row, sampleEvent(77), nil)
			noErr(t, err)
		},
		"an event left by an append that was cut short": func(t *testing.T, l *Ledger) {
			_, err := l.writeEvent(t.Context(), "a", Event{N: 1, EventID: "left"}, 0)
			noErr(t, err)
		},
		"a cursor that moved": func(t *testing.T, l *Ledger) {
			noErr(t, l.SetCursor(t.Context(), Cursor{Stream: "FLEXID_PUSH", Seq: 9}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped()
				there(t, memLedger(g.mem))
				before := g.mem.seq
				fill := func(known func(ID) bool) *Batch {
					b := g.Begin(known)
					for n, key := range []string{"x", "a", "y"} {
						_, _, err := b.event(t.Context(), key, n+1, fmt.Sprint("id", n))
						noErr(t, err)
					}
					return b
				}
				_, err := fill(unknown).Commit(t.Context(), cursorAt(Cursor{}, 3))
				var conflict *ConflictError
				if !errors.As(err, &conflict) || conflict.OfCursor() != (name == "a cursor that moved") {
					t.Fatalf("got %v", err)
				}
				want(t, "values stored", g.mem.seq, before)
				c, err := g.Cursor(t.Context(), "FLEXID_PUSH")
				noErr(t, err)
				rows, err := fill(nil).Commit(t.Context(), cursorAt(c, 3))
				noErr(t, err)
				if len(rows) < 2 {
					t.Errorf("%d rows", len(rows))
				}
			})
		})
	}
}

// TestBatchIsBounded: it says when it is full, with room for the last message.
func TestBatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped()
		b := g.Begin(unknown)
		n := 0
		for ; !b.Full(); n++ {
			_, _, err := b.event(t.Context(), fmt.Sprint("doc", n), n+1, fmt.Sprint("id", n))
			noErr(t, err)
		}
		if n < 200 || n > 260 { // id, event, row
			t.Errorf("%d events", n)
		}
		_, err := b.Commit(t.Context(), cursorAt(Cursor{}, uint64(n)))
		noErr(t, err)
		want(t, "batches", g.batches, 1)
	})
}

// TestBatchOfAKeyDeletedByHand: a key that somebody deleted refuses the batch, and the careful one names it.
func TestBatchOfAKeyDeletedByHand(t *testing.T) {
	l, js := newBox(t).ledger()
	row := sampleRow("a")
	row.ID = "a"
	_, err := l.Append(t.Context(), row, sampleEvent(1), nil)
	noErr(t, err)
	kv, err := js.KeyValue(t.Context(), "flexid_ledger")
	noErr(t, err)
	noErr(t, kv.Delete(t.Context(), rowKey("a")))
	b := l.Begin(unknown)
	_, _, err = b.event(t.Context(), "a", 2, "id2")
	noErr(t, err)
	var conflict *ConflictError
	if _, err = b.Commit(t.Context(), cursorAt(Cursor{}, 2)); !errors.As(err, &conflict) || conflict.OfCursor() {
		t.Fatalf("got %v", err)
	}
	b = l.Begin(nil)
	begun := time.Now()
	if _, _, err = b.event(t.Context(), "a", 2, "id2"); !errors.As(err, &conflict) || !conflict.Deleted || !Never(err) {
		t.Fatalf("got %v", err)
	}
	if d := time.Since(begun); d > pause {
		t.Errorf("it took %v: many such events would hold up all others", d)
	}
	// Nothing of another document is held up.
	_, _, err = b.event(t.Context(), "b", 3, "id3")
	noErr(t, err)
	_, err = b.Commit(t.Context(), cursorAt(Cursor{}, 3))
	noErr(t, err)
}

// TestBatchWithoutBatches: where the server stores one key at a time a batch takes one message, and one that died before its cursor
// moved is recognised when it comes again.
func TestBatchWithoutBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newMemory()
		l := memLedger(mem)
		b := l.Begin(unknown)
		want(t, "full", b.Full(), false)
		_, _, err := b.event(t.Context(), "a", 1, "id1")
		noErr(t, err)
		want(t, "full", b.Full(), true)
		// It dies here. The message comes again.
		b = l.Begin(unknown)
		row := sampleRow("a")
		row.ID = "a"
		ev := sampleEvent(1)
		ev.EventID = "id1"
		claim, err := b.TakeEventID(t.Context(), "id1", "a", "a", ev.Stream)
		noErr(t, err)
		want(t, "its own claim", claim.Ref == ev.Stream, true)
		_, err = b.Append(t.Context(), row, ev, nil)
		if !errors.Is(err, ErrHave) {
			t.Fatalf("got %v", err)
		}
		_, err = b.Commit(t.Context(), cursorAt(Cursor{}, 1))
		noErr(t, err)
		c, err := l.Cursor(t.Context(), "FLEXID_PUSH")
		noErr(t, err)
		want(t, "cursor", c.Seq, 1)
		have, err := l.Get(t.Context(), "a")
		noErr(t, err)
		want(t, "events", have.Tail, 1)
	})
}

// TestABatchThatIsAlwaysGivenUp: a server that never stores it, its disk is full or its time for batches too short, is told to the
// caller, who tells people.
func TestABatchThatIsAlwaysGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped()
		g.fate = fate{err: fmt.Errorf("nats: %w", &jetstream.APIError{Code: 400, ErrorCode: 10176, Description: "batch is incomplete"})}
		g.hits = func(int) bool { return true }
		b := g.Begin(unknown)
		_, _, err := b.event(t.Context(), "a", 1, "id1")
		noErr(t, err)
		if _, err = b.Commit(t.Context(), cursorAt(Cursor{}, 1)); err == nil || !strings.Contains(err.Error(), "batch is incomplete") {
			t.Errorf("got %v", err)
		}
	})
}

// TestEveryFaultOfACommit: whatever becomes of the commit, taking again until it is done stores every event once, in order.
func TestEveryFaultOfACommit(t *testing.T) {
	for _, f := range fates() {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped()
				g.fate, g.hits = f, func(n int) bool { return n%3 != 0 }
				for taken, known := uint64(0), func(ID) bool { return false }; taken < 9; {
					c, err := g.Cursor(t.Context(), "FLEXID_PUSH")
					noErr(t, err)
					taken = c.Seq
					b := g.Begin(known)
					n := int(c.Seq)
					for ; n < min(int(c.Seq)+4, 9); n++ {
						_, _, err := b.event(t.Context(), fmt.Sprint("doc", n%2), n+1, fmt.Sprint("id", n))
						noErr(t, err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					_, err = b.Commit(ctx, cursorAt(c, uint64(n)))
					cancel()
					if known = unknown; err != nil {
						known = nil
					}
				}
				for i, wanted := range []int{5, 4} {
					row, err := g.Ledger.Get(t.Context(), ID(fmt.Sprint("doc", i)))
					noErr(t, err)
					want(t, "events", row.Tail, wanted)
					for n := 1; n <= row.Tail; n++ {
						ev, err := g.Event(t.Context(), row.ID, n)
						noErr(t, err)
						want(t, "event", ev.EventID, fmt.Sprint("id", 2*(n-1)+i))
					}
				}
			})
		})
	}
}

// TestCursorIsKept: a cursor comes back as it was set, and one stream's is not another's.
func TestCursorIsKept(t *testing.T) {
	l, js := newBox(t).ledger()
	at := time.Date(2026, 11, 30, 10, 0, 0, 5, time.UTC)
	c := Cursor{Stream: "FLEXID_PUSH", Made: at, Seq: 7, Time: at, Digest: "d", GivenUp: 3, Replayed: 9}
	noErr(t, l.SetCursor(t.Context(), c))
	have, err := l.Cursor(t.Context(), "FLEXID_PUSH")
	noErr(t, err)
	c.Format, c.Token, c.Revision = have.Format, have.Token, have.Revision
	want(t, "cursor", have, c)
	side, err := CursorOf(t.Context(), js, "", "FLEXID_PUSH")
	noErr(t, err)
	want(t, "read from beside", side, c)
	none, err := l.Cursor(t.Context(), "FLEXID_INBOX")
	noErr(t, err)
	want(t, "another stream's", none.Revision, 0)
	if err := l.SetCursor(t.Context(), Cursor{Stream: "FLEXID_PUSH"}); !lostRace(err) {
		t.Errorf("an old one replaced it: %v", err)
	}
	if err := l.SetCursor(t.Context(), Cursor{}); err == nil {
		t.Error("a cursor of no stream was stored")
	}
	noErr(t, js.DeleteStream(t.Context(), "KV_flexid_ledger"))
	if _, err := CursorOf(t.Context(), js, "", "FLEXID_PUSH"); err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) {
		t.Error(err)
	}
}

// TestAServerOfSmallBatches: more keys than the server takes together are refused at once, which is no fault of any of them, and
// fewer are stored.
func TestAServerOfSmallBatches(t *testing.T) {
	l, _ := newBox(t, func(o *server.Options) { o.JetStreamLimits.MaxBatchSize = 10 }).ledger()
	fill := func(n int) *Batch {
		b := l.Begin(unknown)
		for i := range n {
			_, _, err := b.event(t.Context(), fmt.Sprint("doc", i), i+1, fmt.Sprint("id", i))
			noErr(t, err)
		}
		return b
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := fill(20).Commit(ctx, cursorAt(Cursor{}, 20))
	var many *TooManyError
	if !errors.As(err, &many) || Never(err) {
		t.Fatalf("got %v", err)
	}
	_, err = fill(2).Commit(t.Context(), cursorAt(Cursor{}, 2))
	noErr(t, err)
}

// racing is a bucket in which another process makes a key right after a read found none.
type racing struct {
	keyValue
	key  string
	make func()
}

func (r *racing) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	e, err := r.keyValue.Get(ctx, key)
	if key == r.key && r.make != nil {
		r.make()
		r.make = nil
	}
	return e, err
}

// TestARowMadeWhileItIsLookedAt was not deleted by hand: its event is not to be put aside. The batch is refused, and the next one
// sees the row.
func TestARowMadeWhileItIsLookedAt(t *testing.T) {
	l, js := newBox(t).ledger()
	other := mustOpen(t, js, Options{Company: "firma", System: "FLEXID"})
	store := *l.store
	store.kv = &racing{l.store.kv, rowKey("a"), func() {
		row := sampleRow("a")
		row.ID = "a"
		_, err := other.Append(t.Context(), row, sampleEvent(7), nil)
		noErr(t, err)
	}}
	racer := *l
	racer.store = &store
	b := racer.Begin(nil)
	if _, _, err := b.event(t.Context(), "a", 1, "id1"); Never(err) {
		t.Fatalf("it would be put aside: %v", err)
	}
	var conflict *ConflictError
	if _, err := b.Commit(t.Context(), cursorAt(Cursor{}, 1)); !errors.As(err, &conflict) || conflict.Deleted {
		t.Fatalf("got %v", err)
	}
	b = racer.Begin(nil)
	_, row, err := b.event(t.Context(), "a", 1, "id1")
	noErr(t, err)
	want(t, "ordinal", row.Tail, 2)
	_, err = b.Commit(t.Context(), cursorAt(Cursor{}, 1))
	noErr(t, err)
}
