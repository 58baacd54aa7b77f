package verify

import (
	"container/heap"
	"time"
)

// breakers is what the scheduler asks of admission. It is asked under the scheduler's lock, so admission never calls the
// scheduler under its own.
type breakers interface {
	isStopped(evidence string) bool
	// trial says whether one document of an evidence may be the trial of the breakers that stop it now, and from which end of the
	// queue; fresh: one of those that wait was never a trial. next is when to ask again.
	trial(evidence string, fresh bool) (may, fromEnd bool, next time.Time)
	// trialBegun says that a document of the evidence was fetched for a trial.
	trialBegun(evidence string)
}

// fetch takes a document whose evidence is stopped and may be tried, from the end of the queue that admission names, and lets
// those go whose breaker was reset. One that was fetched before comes after those that were not: it may wait for something else,
// or be what Flexi refuses, and must not be all that ever tries. Without one it says when to ask again.
func (sc *scheduler) fetch(now time.Time) (*item, time.Duration) {
	wait := time.Hour
	var first, last *item
	end := false
	for evidence, set := range sc.stopped {
		if !sc.breakers.isStopped(evidence) {
			for _, it := range set {
				sc.move(it, now, laneSend)
			}
			continue
		}
		fresh := false
		for _, it := range set {
			fresh = fresh || it.tried == 0
		}
		may, fromEnd, next := sc.breakers.trial(evidence, fresh)
		if !may {
			if d := next.Sub(now); !next.IsZero() {
				wait = min(wait, max(d, time.Millisecond))
			}
			continue
		}
		end = end || fromEnd
		for _, it := range set {
			if first == nil || it.tried < first.tried || it.tried == first.tried && it.before(first) {
				first = it
			}
			if last == nil || it.tried < last.tried || it.tried == last.tried && last.before(it) {
				last = it
			}
		}
	}
	if end {
		first = last
	}
	if first != nil {
		sc.start(first)
		first.trying = true
		first.tried++
		sc.trying++
		sc.breakers.trialBegun(first.evidence)
	}
	return first, wait
}

// hurry makes everything that waits to be sent due now: a breaker was reset.
func (sc *scheduler) hurry(now time.Time) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for _, it := range sc.due[laneSend].items {
		if it.due.After(now) {
			it.due = now
		}
	}
	heap.Init(&sc.due[laneSend])
	sc.poke(laneSend)
}

// candidates says whether a stopped document could be a trial, or one runs as such.
func (sc *scheduler) candidates(passable func(evidence string) bool) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.trying > 0 {
		return true
	}
	for evidence := range sc.stopped {
		if passable(evidence) {
			return true
		}
	}
	return false
}
