package verify

import (
	"slices"
	"time"
)

// trial says whether a document of the evidence may be fetched as the trial of the breakers that stop it; see breakers. The
// scheduler asks under its own lock, so nothing is called here.
func (a *admission) trial(evidence string, fresh bool) (may, fromEnd bool, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.overdue()
	if a.manuallyStopped(evidence) {
		return false, false, time.Time{}
	}
	may = true
	for _, name := range []string{"", evidence} {
		b := a.breakers[name]
		if b == nil {
			continue
		}
		due := later(b.nextTry(a.s.Probe, fresh), b.fetched.Add(a.s.Probe/4))
		if b.lost && a.now().Sub(b.wanted) < b.pause+outageMost {
			due = later(due, b.NextTry.Add(a.s.Probe)) // a suspect document goes first this time
		}
		inLine := slices.ContainsFunc(a.waiters, func(w *waiter) bool { return a.breakerTriedBy(w) == b })
		if b.halfOpen || inLine || name == "" && a.inFlight > 0 { // that one may take as long as a write may
			due = later(due, a.now().Add(a.s.Probe))
		}
		may, fromEnd, next = may && !a.now().Before(due), fromEnd || b.fromEnd, later(next, due)
	}
	return may, fromEnd, next
}

// nextTry is when a breaker may be tried: sooner by a document that never was its trial, where one document alone may have
// tripped it.
func (b *breaker) nextTry(probe time.Duration, fresh bool) time.Time {
	soon := later(b.fetched, b.Since).Add(probe)
	if fresh && b.Reason == refusedReason && soon.Before(b.NextTry) {
		return soon
	}
	return b.NextTry
}

// trialBegun notes that a document was fetched for a trial. One that turns out to have nothing to send, or has to wait for
// something else, must not make the next ones follow at once: each asks Flexi.
func (a *admission) trialBegun(evidence string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range []string{"", evidence} {
		if b := a.breakers[name]; b != nil {
			b.fetched = a.now()
		}
	}
}

// mayRetry says whether a suspect document has to wait for a breaker, and until when.
func (a *admission) mayRetry(evidence string) (until time.Time, wait bool) {
	clean := a.candidateWaits(a.mayBeTried)
	a.mu.Lock()
	defer a.mu.Unlock()
	b, manual := a.tripped(evidence), a.manuallyStopped(evidence)
	if !manual && (b == nil || a.mayTry(b, false, true, clean)) {
		return time.Time{}, false
	}
	until = a.now().Add(a.s.Probe + time.Duration(a.rand()*float64(a.s.Probe)))
	switch {
	case manual:
	case b.lost && a.now().Before(b.NextTry): // its turn then
		b.wanted, until = a.now(), b.NextTry
	default:
		b.wanted, until = a.now(), later(b.NextTry, until)
	}
	return until, true
}

// mayTry says whether a document may be the trial of a breaker: one that was fetched for it, or a suspect one if no clean one
// waits, or if the clean one before it failed. It waits a minute for clean ones: those that did not come by then cannot.
func (a *admission) mayTry(b *breaker, trial, suspect, clean bool) bool {
	now := a.now()
	switch {
	case b.halfOpen:
		return false
	case trial:
		return true
	}
	return suspect && !now.Before(b.NextTry) && (!clean || b.lost || now.Sub(b.NextTry) >= outageMost)
}

// mayBeTried says whether a document of the evidence could be fetched for a trial.
func (a *admission) mayBeTried(evidence string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.manuallyStopped(evidence) && (a.breakers[""] == nil || a.breakers[evidence] == nil)
}
