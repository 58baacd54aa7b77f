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

// TestNobodySleepsBesideAFreeSlot: whatever happens to writes, reads and breakers, while nothing moves the one whose turn it
// is has no free place to take, and in the end everyone has had a place, was turned away or taken along.
func TestNobodySleepsBesideAFreeSlot(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) { crowd(t, seed) })
	}
}

// crowd lets a seed choose who comes, how writes end, and which breakers reads trip and reset at the same moments.
func crowd(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	s := Settings{Concurrency: 1 << r.IntN(4)}
	s.defaults()
	a := newAdmission(s, time.Now, func() float64 { return 0.5 }, func(string, ...[2]string) {})
	begun, came, ended := time.Now(), 0, make(chan struct{}, 4096)
	for range 100 {
		for range r.IntN(8) {
			w := newcomer(r, begun, came)
			came++
			go func(hold time.Duration, res *flexi.Result) {
				defer func() { ended <- struct{}{} }()
				if s, _, _ := a.acquire(t.Context(), w); s != nil {
					time.Sleep(hold)
					a.release(s, res, w.suspect)
				}
			}(time.Duration(1+r.IntN(8))*time.Second, ending(r))
			if r.IntN(8) == 0 {
				close(w.taken)
			}
		}
		time.Sleep(time.Duration(r.IntN(3)) * time.Second) // whole seconds: writes end while the breakers below move
		for n := range 2 * r.IntN(4) {
			for range r.IntN(150) { // into the midst of those who look whether their turn has come
				runtime.Gosched()
			}
			if n%2 == 0 {
				a.recordsRead("a", &flexi.Error{Status: 403})
			} else {
				a.recordsRead("a", nil)
			}
		}
		nobodySleeps(t, a, seed)
	}
	for wait := 0; len(ended) < came && wait < 4000; wait++ {
		time.Sleep(time.Second)
		nobodySleeps(t, a, seed)
	}
	if len(ended) != came || a.inFlight != 0 || len(a.waiters) != 0 {
		t.Fatalf("seed %d: %d of %d ended, %d writes, %d in line", seed, len(ended), came, a.inFlight, len(a.waiters))
	}
}

// newcomer asks for a place. Many events have the same time, or none, and the same number in their streams.
func newcomer(r *rand.Rand, begun time.Time, n int) *waiter {
	ev := &ledger.Event{Stream: ledger.StreamRef{Seq: uint64(r.IntN(4))}}
	if r.IntN(5) > 0 {
		ev.Received = begun.Add(time.Duration(r.IntN(20)) * time.Second)
	}
	id := ledger.ID(fmt.Sprint("row", n))
	return &waiter{
		job: &job{
			id: id, t: &task{ev: ev, row: &ledger.Row{ID: id}},
			write: flexi.Write{Evidence: string(rune('a' + r.IntN(3)))}, taken: make(chan struct{}),
		},
		suspect: r.IntN(5) == 0, trial: r.IntN(3) == 0,
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

func nobodySleeps(t *testing.T, a *admission, seed uint64) {
	t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inFlight < 0 || a.inFlight > a.s.Concurrency {
		t.Fatalf("seed %d: %d writes at once, at most %d are allowed", seed, a.inFlight, a.s.Concurrency)
	}
	if len(a.waiters) == 0 {
		return
	}
	w := a.first()
	b := a.tripped(w.write.Evidence)
	if _, paused := a.paused(w.write.Evidence); paused && b == nil {
		return // for a look to answer, or to be overdue
	}
	if may := b == nil || a.mayTry(b, w.trial, w.suspect, false); a.inFlight == 0 || may && a.room(b) {
		t.Fatalf("seed %d: %d stand in line beside %d writes, %d are allowed", seed, len(a.waiters), a.inFlight, int(a.limit))
	}
}

// TestWhatAResetTells: about Flexi as a whole only the breaker of all evidences tells something, and an answer to a
// document tells nothing about a breaker that tripped after it had left.
func TestWhatAResetTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := Settings{Concurrency: 4}
		set.defaults()
		a := newAdmission(set, time.Now, func() float64 { return 0.5 }, func(string, ...[2]string) {})
		a.limit = 4
		a.recordsRead("a", &flexi.Error{Status: 403})
		a.recordsRead("a", nil)
		if a.isStopped("a") || a.limit != 4 {
			t.Errorf("shut %v, at most %v writes; want open and 4", a.isStopped("a"), a.limit)
		}

		licence := &flexi.Error{Status: 402}
		a.recordsRead("", licence)
		time.Sleep(time.Minute)
		w := &waiter{job: &job{id: "row", t: &task{ev: &ledger.Event{}, row: &ledger.Row{}}, write: flexi.Write{Evidence: "a"}}, trial: true}
		s, _, _ := a.acquire(t.Context(), w)
		if s == nil || s.trial == nil {
			t.Fatal("a fetched document may not be the trial")
		}
		a.recordsRead("", nil)
		if a.isStopped("a") || a.limit != 1 {
			t.Errorf("shut %v, at most %v writes; want open and 1", a.isStopped("a"), a.limit)
		}
		a.recordsRead("", licence)
		a.release(s, &flexi.Result{Outcome: flexi.Accepted}, false)
		if !a.isStopped("a") {
			t.Error("a breaker that tripped again was reset by what had left before")
		}
	})
}
