package verify

import (
	"slices"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// pending is a write that ended as a maybe and whose first look has not answered. Found done it counts as accepted: an ERP that
// saves and then says 500 is at work, and would otherwise be taken for an outage. Until then it counts as bad, so that an outage
// costs no more writes than a streak.
type pending struct {
	*slot
	res     *flexi.Result
	suspect bool
	at      time.Time
	firm    bool // counted as bad: no look answered in time, or it contradicted
	took    time.Duration
}

// shown is what a look after a maybe said.
type shown uint8

const (
	shownNothing shown = iota // the look was none
	shownDone
	shownNotDone
)

// doubt takes note of a write that ended as a maybe; what shows it is one of its documents.
func (a *admission) doubt(s *slot, res *flexi.Result, suspect bool) {
	p := &pending{slot: s, res: res, suspect: suspect, at: a.now(), took: s.took}
	if s.trial != nil {
		s.trial.halfOpen = true // the trial goes on until a look has answered
	}
	a.pending = slices.DeleteFunc(a.pending, func(old *pending) bool { return a.now().Sub(old.at) > time.Hour })
	a.pending = append(a.pending, p)
}

// looked notes what a look said of a document whose write is in doubt.
func (a *admission) looked(id ledger.ID, what shown) {
	a.mu.Lock()
	defer a.unlock()
	i := slices.IndexFunc(a.pending, func(p *pending) bool { return slices.Contains(p.ids, id) })
	if i < 0 {
		return
	}
	p := a.pending[i]
	if what != shownNothing {
		a.pending = slices.Delete(a.pending, i, i+1)
	}
	switch {
	case what == shownDone:
		a.proved(p)
	case !p.firm && (what == shownNotDone || !p.res.Odd):
		a.counted(p)
	}
	a.wakeWaiters()
}

// proved counts a write that was done as good. Its answer alone was bad, so it resets what such answers have tripped.
func (a *admission) proved(p *pending) {
	a.onOutcome(p.docs(), p.res, p.took, true)
	if p.trial != nil {
		p.trial.halfOpen = false
	}
	a.good(p.slot)
	for _, name := range []string{"", p.evidence} {
		if b := a.breakers[name]; b != nil && b.Reason == "outage" && b.by == aboutNone {
			a.reset(name)
		}
	}
}

// counted counts a write that no look proved as bad.
func (a *admission) counted(p *pending) {
	p.firm = true
	a.onOutcome(p.docs(), p.res, p.took, false)
	a.limit = max(1, a.limit/2)
	if b := p.trial; b != nil {
		b.halfOpen = false
		a.trialFailed(b, p.suspect)
		a.prolong(b)
	}
	if p.suspect {
		return
	}
	if scope, stop := a.writes.bad(p.evidence, badInARow); stop && p.trial == nil {
		a.tripForOutage(scope, "Flexi did not answer "+inARow()+" writes in a row as it should", p.res.Err, aboutNone)
	}
}

// overdue counts those whose look takes long. An odd success is no sign of trouble, however long its look takes.
func (a *admission) overdue() {
	for _, p := range slices.Clone(a.pending) {
		if !p.firm && !p.res.Odd && a.now().Sub(p.at) >= a.s.Probe {
			a.counted(p)
		}
	}
}

// paused says whether writes to an evidence wait for looks: with those in doubt counted as bad its breaker would trip. until is
// when that ends at the latest.
func (a *admission) paused(evidence string) (until time.Time, yes bool) {
	if len(a.pending) == 0 {
		return time.Time{}, false
	}
	s := a.writes.clone()
	for _, p := range a.pending {
		if p.firm || p.suspect || p.res.Odd {
			continue
		}
		if end := p.at.Add(a.s.Probe); until.IsZero() || end.Before(until) {
			until = end
		}
		if scope, stop := s.bad(p.evidence, badInARow); stop && (scope == "" || scope == evidence) {
			yes = true
		}
	}
	return until, yes
}
