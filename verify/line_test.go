package verify

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// TestNobodySleepsBesideAFreePlace: whatever happens to writes, reads and doors, while nothing moves the one whose turn it
// is has no free place to take, and in the end everyone has had a place, was turned away or taken along.
func TestNobodySleepsBesideAFreePlace(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) { crowd(t, seed) })
	}
}

// crowd lets a seed choose who comes, how writes end, and which doors reads close and open at the same moments.
func crowd(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	s := Settings{Concurrency: 1 << r.IntN(4)}
	s.defaults()
	g := newGate(s, time.Now, func() float64 { return 0.5 }, func(string, ...[2]string) {})
	begun, came, ended := time.Now(), 0, make(chan struct{}, 4096)
	for range 100 {
		for range r.IntN(8) {
			x := newcomer(r, begun, came)
			came++
			go func(hold time.Duration, res *flexi.Result) {
				defer func() { ended <- struct{}{} }()
				if p, _, _ := g.enter(t.Context(), x); p != nil {
					time.Sleep(hold)
					g.leave(p, res, x.sullied)
				}
			}(time.Duration(1+r.IntN(8))*time.Second, ending(r))
			if r.IntN(8) == 0 {
				close(x.taken)
			}
		}
		time.Sleep(time.Duration(r.IntN(3)) * time.Second) // whole seconds: writes end while the doors below move
		for n := range 2 * r.IntN(4) {
			for range r.IntN(150) { // into the midst of those who look whether their turn has come
				runtime.Gosched()
			}
			if n%2 == 0 {
				g.read("a", &flexi.Error{Status: 403})
			} else {
				g.read("a", nil)
			}
		}
		nobodySleeps(t, g, seed)
	}
	for wait := 0; len(ended) < came && wait < 4000; wait++ {
		time.Sleep(time.Second)
		nobodySleeps(t, g, seed)
	}
	if len(ended) != came || g.flying != 0 || len(g.line) != 0 {
		t.Fatalf("seed %d: %d of %d ended, %d writes, %d in line", seed, len(ended), came, g.flying, len(g.line))
	}
}

// newcomer asks for a place. Many events have the same time, or none, and the same number in their streams.
func newcomer(r *rand.Rand, begun time.Time, n int) *entry {
	ev := &ledger.Event{Stream: ledger.StreamRef{Seq: uint64(r.IntN(4))}}
	if r.IntN(5) > 0 {
		ev.Received = begun.Add(time.Duration(r.IntN(20)) * time.Second)
	}
	id := ledger.ID(fmt.Sprint("row", n))
	return &entry{
		parcel: &parcel{
			id: id, t: &task{ev: ev, row: &ledger.Row{ID: id}},
			write: flexi.Write{Evidence: string(rune('a' + r.IntN(3)))}, taken: make(chan struct{}),
		},
		sullied: r.IntN(5) == 0, trial: r.IntN(3) == 0,
	}
}

func ending(r *rand.Rand) *flexi.Result {
	err := errors.New("no")
	switch r.IntN(30) {
	case 0:
		return nil
	case 1:
		return &flexi.Result{Outcome: flexi.Maybe, Err: err}
	case 2:
		return &flexi.Result{Outcome: flexi.NotSent, Err: err}
	case 3:
		return &flexi.Result{Outcome: flexi.Blocked, Scope: flexi.ScopeEvidence, Status: 403, Err: err}
	}
	return &flexi.Result{Outcome: flexi.Accepted}
}

func nobodySleeps(t *testing.T, g *gate, seed uint64) {
	t.Helper()
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flying < 0 || g.flying > g.s.Concurrency {
		t.Fatalf("seed %d: %d writes at once, at most %d are allowed", seed, g.flying, g.s.Concurrency)
	}
	if len(g.line) == 0 {
		return
	}
	x := g.first()
	d := g.shut(x.write.Evidence)
	if _, paused := g.paused(x.write.Evidence); paused && d == nil {
		return // for a look to answer, or to be overdue
	}
	if may := d == nil || g.mayTry(d, x.trial, x.sullied, false); g.flying == 0 || may && g.room(d) {
		t.Fatalf("seed %d: %d stand in line beside %d writes, %d are allowed", seed, len(g.line), g.flying, int(g.limit))
	}
}

// TestWhatAnOpenedDoorTells: about Flexi as a whole only the door of everything tells something, and an answer to a
// document tells nothing about a door that was shut after it had left.
func TestWhatAnOpenedDoorTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Settings{Concurrency: 4}
		s.defaults()
		g := newGate(s, time.Now, func() float64 { return 0.5 }, func(string, ...[2]string) {})
		g.limit = 4
		g.read("a", &flexi.Error{Status: 403})
		g.read("a", nil)
		if g.isShut("a") || g.limit != 4 {
			t.Errorf("shut %v, at most %v writes; want open and 4", g.isShut("a"), g.limit)
		}

		licence := &flexi.Error{Status: 402}
		g.read("", licence)
		time.Sleep(time.Minute)
		x := &entry{parcel: &parcel{id: "row", t: &task{ev: &ledger.Event{}, row: &ledger.Row{}}, write: flexi.Write{Evidence: "a"}}, trial: true}
		p, _, _ := g.enter(t.Context(), x)
		if p == nil || p.canary == nil {
			t.Fatal("a fetched document may not try the door")
		}
		g.read("", nil)
		if g.isShut("a") || g.limit != 1 {
			t.Errorf("shut %v, at most %v writes; want open and 1", g.isShut("a"), g.limit)
		}
		g.read("", licence)
		g.leave(p, &flexi.Result{Outcome: flexi.Accepted}, false)
		if !g.isShut("a") {
			t.Error("a door that was shut anew was opened by what had left before")
		}
	})
}
