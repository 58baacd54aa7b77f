package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// grouped is a ledger over a store in memory whose every call takes 10 ms, so that callers wait for each other; fate befalls
// the batches that hits chooses, counted from 1.
type grouped struct {
	*Ledger
	mem *memory

	fate fate
	hits func(n int) bool

	mu            sync.Mutex
	batches, puts int // committed or tried, by batches
	singles       int
	later         func()
}

func newGrouped() *grouped {
	g := &grouped{mem: newMemory(), hits: func(int) bool { return false }}
	g.Ledger = memLedger(g)
	g.group = &group{one: g.update, batch: g, timeout: g.timeout}
	return g
}

func (g *grouped) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	e, err := g.mem.Get(ctx, key)
	g.flush()
	return e, err
}

func (g *grouped) flush() {
	g.mu.Lock()
	later := g.later
	g.later = nil
	g.mu.Unlock()
	if later != nil {
		later()
	}
}

func (g *grouped) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	g.flush()
	g.mu.Lock()
	g.singles++
	g.mu.Unlock()
	wait(ctx, 10*time.Millisecond)
	return g.mem.Update(ctx, key, value, revision)
}

func (g *grouped) Commit(ctx context.Context, puts []put) (uint64, error) {
	g.flush()
	wait(ctx, 10*time.Millisecond)
	g.mu.Lock()
	g.batches++
	g.puts += len(puts)
	hit := g.hits(g.batches)
	g.mu.Unlock()
	if !hit {
		return g.mem.Commit(ctx, puts)
	}
	store := func() { _, _ = g.mem.Commit(context.WithoutCancel(ctx), puts) }
	switch {
	case g.fate.stored:
		store()
	case g.fate.late:
		g.mu.Lock()
		g.later = store
		g.mu.Unlock()
	}
	wait(ctx, g.fate.block)
	return 0, g.fate.err
}

// claimAll claims n new rows, each in a call of its own, all at once.
func (g *grouped) claimAll(t *testing.T, n int) ([]Row, []error) {
	t.Helper()
	rows, errs := make([]Row, n), make([]error, n)
	var all sync.WaitGroup
	for i := range rows {
		rows[i] = Row{ID: ID(fmt.Sprintf("row%04d", i)), Evidence: "faktura-vydana", Key: fmt.Sprint(i), State: Sending}
		all.Go(func() { errs[i] = g.Claim(t.Context(), []*Row{&rows[i]})[0] })
	}
	all.Wait()
	return rows, errs
}

// TestManyWaitForFewSyncs: a thousand claims at once go to the disk in a few batches, and each knows its revision.
func TestManyWaitForFewSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped()
		begun := time.Now()
		rows, errs := g.claimAll(t, 1000)
		for i, err := range errs {
			noErr(t, err)
			want(t, "revision of "+string(rows[i].ID), rows[i].Revision, g.mem.keys[rowKey(rows[i].ID)].revision)
		}
		if g.batches > 4 || g.singles > 2*leastBatch {
			t.Errorf("%d batches, %d plain writes", g.batches, g.singles)
		}
		if d := time.Since(begun); d > 60*time.Millisecond {
			t.Errorf("it took %v, that is %d trips one after the other", d, d/(10*time.Millisecond))
		}
	})
}

// TestFewGoAlone: a lone write, or a handful, is no batch.
func TestFewGoAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped()
		for range 5 {
			_, errs := g.claimAll(t, 1)
			noErr(t, errs[0])
			g.mem.keys = map[string]memEntry{}
		}
		want(t, "batches", g.batches, 0)
		want(t, "plain writes", g.singles, 5)
	})
}

// TestBatchesAreBounded: neither number nor size of what goes together is beyond what the server takes.
func TestBatchesAreBounded(t *testing.T) {
	g := &group{batch: newGrouped(), timeout: time.Second}
	for i := range 3000 {
		g.waiting = append(g.waiting, &unit{puts: []put{{key: fmt.Sprint(i), value: make([]byte, 20<<10)}}})
	}
	g.running, g.waiting = 1, append(g.waiting, &unit{puts: []put{{key: "big", value: make([]byte, 2*mostBytes)}}})
	took := 0
	for {
		units, n := g.take()
		if units == nil {
			break
		}
		took += n
		if n > mostPuts || n > mostBytes/(20<<10) {
			t.Fatalf("%d puts in a batch", n)
		}
		if units[0].puts[0].key == "big" {
			want(t, "units beside the large one", len(units), 1)
		}
	}
	want(t, "puts", took, 3001)
	want(t, "running", g.running, 0)
}

// TestSameKeyWaits: what two callers store under one key is never in one batch, and exactly one of them wins.
func TestSameKeyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped()
		won := 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				row := Row{ID: ID(fmt.Sprintf("row%d", i/2)), State: Sending}
				err := g.Claim(t.Context(), []*Row{&row})[0]
				var conflict *ConflictError
				if err != nil && !errors.As(err, &conflict) {
					t.Error(err)
				}
				if err == nil {
					mu.Lock()
					won++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		want(t, "winners", won, 30)
	})
}

// TestOneThatDoesNotFit: a row that somebody changed meanwhile takes its batch down; the others are stored within the same second,
// and it alone conflicts.
func TestOneThatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped()
		for _, i := range []int{3, 77} {
			g.mem.keys[rowKey(ID(fmt.Sprintf("row%04d", i)))] = memEntry{value: []byte("theirs"), revision: 7}
		}
		begun := time.Now()
		_, errs := g.claimAll(t, 100)
		for i, err := range errs {
			var conflict *ConflictError
			if moved := i == 3 || i == 77; errors.As(err, &conflict) != moved || err != nil && !moved {
				t.Errorf("row %d: %v", i, err)
			}
		}
		if d := time.Since(begun); d > time.Second {
			t.Errorf("it took %v", d)
		}
		if g.batches == 0 {
			t.Error("there was no batch that could be refused")
		}
	})
}

// TestEveryFaultOfABatch: whatever becomes of a batch, each of its rows ends stored once, by the claim that was made.
func TestEveryFaultOfABatch(t *testing.T) {
	more := []fate{
		{name: "incomplete", err: fmt.Errorf("nats: %w", &jetstream.APIError{Code: 400, ErrorCode: 10176})},
		{name: "id used twice", err: fmt.Errorf("nats: %w", &jetstream.APIError{Code: 400, ErrorCode: 10201})},
		{name: "too many batches", err: fmt.Errorf("nats: %w", &jetstream.APIError{Code: 429, ErrorCode: 10210})},
		{name: "too large", err: fmt.Errorf("nats: %w", &jetstream.APIError{Code: 400, ErrorCode: 10199})},
		{name: "switched off", err: fmt.Errorf("nats: %w", &jetstream.APIError{Code: 400, ErrorCode: 10174})},
	}
	for _, f := range append(fates(), more...) {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped()
				g.fate, g.hits = f, func(n int) bool { return n%2 == 1 }
				rows, errs := g.claimAll(t, 200)
				for i, err := range errs {
					noErr(t, err)
					e := g.mem.keys[rowKey(rows[i].ID)]
					want(t, "revision", rows[i].Revision, e.revision)
					have, err := Unmarshal(e.value)
					noErr(t, err)
					want(t, "token", have.Token, rows[i].Token)
				}
				want(t, "values stored", g.mem.seq, uint64(len(rows)))
			})
		})
	}
}

// pair is a unit of two keys.
func pair(n int, first, second uint64) []put {
	return []put{{"x.first", fmt.Append(nil, "first ", n), first}, {"x.second", fmt.Append(nil, "second ", n), second}}
}

// TestUnitIsWhole: what belongs together is stored together or not at all, whatever becomes of the batch, and a unit of which
// one key moved is a conflict.
func TestUnitIsWhole(t *testing.T) {
	for _, f := range append(fates(), fate{}) {
		t.Run("fault "+f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped()
				g.fate, g.hits = f, func(n int) bool { return n == 1 && f.err != nil }
				last, err := g.commit(t.Context(), pair(1, 0, 0))
				noErr(t, err)
				want(t, "revision of the last key", last, g.mem.keys["x.second"].revision)
				want(t, "values stored", g.mem.seq, 2)

				g.mem.keys["x.second"] = memEntry{value: []byte("theirs"), revision: 9}
				g.hits = func(n int) bool { return f.err != nil && n%3 != 0 }
				_, err = g.commit(t.Context(), pair(2, last-1, last))
				var conflict *ConflictError
				if !errors.As(err, &conflict) || conflict.Key != "x.second" {
					t.Fatalf("got %v", err)
				}
				want(t, "the first key", string(g.mem.keys["x.first"].value), "first 1")
			})
		})
	}
}

// TestUnitWithoutBatches: where the server stores one key at a time, several as a whole are refused at once, and nothing is stored.
func TestUnitWithoutBatches(t *testing.T) {
	off := fmt.Errorf("nats: %w", &jetstream.APIError{Code: 400, ErrorCode: 10174})
	for _, c := range []struct {
		name   string
		change func(*grouped)
	}{
		{"an old server", func(g *grouped) { g.group.batch = nil }},
		{"switched off", func(g *grouped) { g.fate, g.hits = fate{err: off}, func(int) bool { return true } }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped()
				c.change(g)
				for range 2 {
					if _, err := g.commit(t.Context(), pair(1, 0, 0)); !errors.Is(err, ErrNoBatches) {
						t.Fatalf("got %v", err)
					}
				}
				want(t, "values stored", g.mem.seq, 0)
				want(t, "says so", g.Batches(), false)
				_, errs := g.claimAll(t, 100)
				noErr(t, errors.Join(errs...))
			})
		})
	}
}

// TestUndecidedBatch: callers that give up while nobody answers are told that it is not known.
func TestUndecidedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped()
		g.fate, g.hits = fate{err: context.DeadlineExceeded, block: time.Hour}, func(int) bool { return true }
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := g.commit(ctx, pair(1, 0, 0))
		var undecided *UndecidedError
		if !errors.As(err, &undecided) {
			t.Fatalf("got %v", err)
		}
	})
}

// TestBatchesAtAServer: a real server stores batches whole, refuses one whose row moved, and the callers get on.
func TestBatchesAtAServer(t *testing.T) {
	l, js := newBox(t).ledger()
	want(t, "batches", l.Batches(), true)
	rows := make([]Row, 500)
	claim := func() (errs []error) {
		ptrs := make([]*Row, len(rows))
		for i := range rows {
			rows[i].ID, rows[i].State = ID(fmt.Sprintf("row%04d", i)), Sending
			ptrs[i] = &rows[i]
		}
		return l.Claim(t.Context(), ptrs)
	}
	noErr(t, errors.Join(claim()...))
	noErr(t, errors.Join(claim()...))
	moved := rows[17]
	noErr(t, l.Claim(t.Context(), []*Row{&moved})[0])
	for i, err := range claim() {
		var conflict *ConflictError
		if errors.As(err, &conflict) != (i == 17) || err != nil && i != 17 {
			t.Fatalf("row %d: %v", i, err)
		}
	}
	for i := range rows {
		have, err := l.Get(t.Context(), rows[i].ID)
		noErr(t, err)
		if i != 17 {
			want(t, "revision", have.Revision, rows[i].Revision)
		}
	}
	last, err := l.commit(t.Context(), pair(1, 0, 0))
	noErr(t, err)
	_, err = l.commit(t.Context(), pair(2, last-1, 0))
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("got %v", err)
	}

	// Somebody switches batches off: everything goes on one by one.
	s, err := js.Stream(t.Context(), "KV_flexid_ledger")
	noErr(t, err)
	c := s.CachedInfo().Config
	c.AllowAtomicPublish = false
	_, err = js.UpdateStream(t.Context(), c)
	noErr(t, err)
	for i, err := range claim() {
		if err != nil && i != 17 {
			t.Fatal(err)
		}
	}
	want(t, "batches", l.Batches(), false)
}
