package verify

import (
	"context"
	"slices"
	"time"

	"flexid/verify/ledger"
)

// slot is the right to send one group of documents in one request.
type slot struct {
	evidence       string
	trial          *breaker      // the breaker whose half-open trial this is, nil = none
	ids            []ledger.ID   // of the documents that went
	took           time.Duration // until the answer came
	othersAccepted bool          // others of the evidence were accepted since what went was refused first
}

// waiter is a job that waits for a slot.
type waiter struct {
	*job
	suspect bool      // it had a bad outcome of its own
	trial   bool      // it was fetched as the trial of a breaker
	lookAt  time.Time // when it has to be looked at again, zero = never
}

// acquire waits for a free slot. The waiter whose event came first gets it, not the one that has waited longest: a job that gave
// up to be looked at again would begin anew each time. What it returns:
//
//	a slot and ok         send now
//	no slot and ok        somebody took the document along in a request of his own
//	not ok, with a time   a breaker is tripped: ask again then
//	not ok, no time       the document has to be looked at again, or the process stops
//
// Through a tripped breaker goes a document that was fetched as its trial, before all others; where none was, a suspect one.
func (a *admission) acquire(ctx context.Context, w *waiter) (s *slot, at time.Time, ok bool) {
	defer a.dequeue(w)
	var lookAgain <-chan time.Time
	if !w.lookAt.IsZero() {
		t := time.NewTimer(w.lookAt.Sub(a.now()))
		defer t.Stop()
		lookAgain = t.C
	}
	for {
		clean := w.suspect && a.candidateWaits(a.mayBeTried)
		s, at, freed := a.tryAcquire(w, clean)
		if freed == nil {
			return s, at, s != nil
		}
		overdue := time.NewTimer(time.Hour)
		if !at.IsZero() {
			overdue.Reset(at.Sub(a.now()))
		}
		select {
		case <-freed:
			overdue.Stop()
		case <-overdue.C:
		case <-w.taken:
			return nil, time.Time{}, true
		case <-lookAgain:
			return nil, time.Time{}, false
		case <-ctx.Done():
			return nil, time.Time{}, false
		}
	}
}

// tryAcquire gives a slot, or the time to ask again, or, while neither can be said, what to wait for, and until when at most.
func (a *admission) tryAcquire(w *waiter, clean bool) (s *slot, at time.Time, freed <-chan struct{}) {
	a.mu.Lock()
	defer a.unlock()
	a.overdue()
	a.enqueue(w)
	evidence := w.write.Evidence
	b, manual := a.tripped(evidence), a.manuallyStopped(evidence)
	switch {
	case manual || b != nil && !a.mayTry(b, w.trial, w.suspect, clean):
		return nil, a.retryAt(w, b, manual), nil
	case a.first() == w && a.room(b):
		if until, yes := a.paused(evidence); yes && b == nil {
			return nil, until, a.freed
		}
		if b != nil {
			b.halfOpen = true
			if b.Evidence != "" {
				a.trials++
			}
		}
		a.inFlight++
		return &slot{evidence: evidence, trial: b}, time.Time{}, nil
	}
	return nil, time.Time{}, a.freed
}

// first is the waiter that comes next: the oldest whose evidence does not wait for a look. A trial does not wait for older
// events: what waits for its breaker may be older still, and would wait until all that was let go is written. Since the order
// depends on the breakers, whatever moves one has to wake the waiters.
func (a *admission) first() *waiter {
	for _, w := range a.waiters {
		if b := a.breakerTriedBy(w); b != nil && !b.halfOpen {
			return w
		}
	}
	if len(a.pending) > 0 {
		for _, w := range a.waiters {
			if _, yes := a.paused(w.write.Evidence); !yes {
				return w
			}
		}
	}
	return a.waiters[0]
}

// breakerTriedBy is the tripped breaker whose trial a waiter was fetched for; nil if it was not, or if nothing is tripped any
// more.
func (a *admission) breakerTriedBy(w *waiter) *breaker {
	if !w.trial {
		return nil
	}
	return a.tripped(w.write.Evidence)
}

// room says whether one more write may go, as the trial of breaker b if that is not nil. The trial of the breaker of all
// evidences is the only write there is. The trial of one evidence may take as long as a write may, so it takes no slot from
// others.
func (a *admission) room(b *breaker) bool {
	switch {
	case b != nil && b.Evidence == "":
		return a.inFlight == 0
	case b != nil:
		return a.inFlight < a.s.Concurrency
	}
	return a.inFlight-a.trials < int(a.limit) && a.inFlight < a.s.Concurrency
}

// retryAt is when a waiter that was turned away may ask again.
func (a *admission) retryAt(w *waiter, b *breaker, manual bool) time.Time {
	switch {
	case !w.suspect: // the scheduler keeps it until the breaker is reset
		return a.now()
	case manual:
		return a.now().Add(time.Minute)
	}
	return later(b.NextTry, a.now().Add(a.s.Probe/4))
}

// enqueue does nothing for a waiter that is in the queue already.
func (a *admission) enqueue(w *waiter) {
	at, there := slices.BinarySearchFunc(a.waiters, w, func(other, w *waiter) int { return other.compare(w.job) })
	if !there {
		a.waiters = slices.Insert(a.waiters, at, w)
	}
}

// dequeue lets the next waiter see whether its turn has come. The first may now be a trial, for which there is room where there
// is none for others.
func (a *admission) dequeue(w *waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiters = slices.DeleteFunc(a.waiters, func(other *waiter) bool { return other == w })
	if len(a.waiters) > 0 && a.room(a.tripped(a.first().write.Evidence)) {
		a.wakeWaiters()
	}
}

// wakeWaiters has every waiter try again.
func (a *admission) wakeWaiters() {
	close(a.freed)
	a.freed = make(chan struct{})
}
