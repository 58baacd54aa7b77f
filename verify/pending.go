package verify

import (
	"slices"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// pending is a write that ended as a maybe and whose first look has not answered. Found done it counts as accepted: an ERP
// that saves and then says 500 is at work, and would otherwise be taken for an outage. Until then it is held against Flexi
// as if it were bad, so that an outage costs no more writes than a streak.
type pending struct {
	*pass
	res     *flexi.Result
	sullied bool
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
func (g *gate) doubt(p *pass, res *flexi.Result, sullied bool) {
	d := &pending{pass: p, res: res, sullied: sullied, at: g.now(), took: p.took}
	if p.canary != nil {
		p.canary.canary = true // it goes on trying until a look has answered
	}
	g.pending = slices.DeleteFunc(g.pending, func(old *pending) bool { return g.now().Sub(old.at) > time.Hour })
	g.pending = append(g.pending, d)
}

// looked tells the gate what a look said of a document whose write is in doubt.
func (g *gate) looked(id ledger.ID, what shown) {
	g.mu.Lock()
	defer g.unlock()
	i := slices.IndexFunc(g.pending, func(d *pending) bool { return slices.Contains(d.ids, id) })
	if i < 0 {
		return
	}
	d := g.pending[i]
	if what != shownNothing {
		g.pending = slices.Delete(g.pending, i, i+1)
	}
	switch {
	case what == shownDone:
		g.proved(d)
	case !d.firm && (what == shownNotDone || !d.res.Odd):
		g.counted(d)
	}
	g.wake()
}

// proved: the write was done. Its answer alone was bad, so it opens what such answers have closed.
func (g *gate) proved(d *pending) {
	g.learnt(d.docs(), d.res, d.took, true)
	if d.canary != nil {
		d.canary.canary = false
	}
	g.good(d.pass)
	for _, name := range []string{"", d.evidence} {
		if shut := g.doors[name]; shut != nil && shut.Reason == "outage" && shut.by == aboutNone {
			g.open(name)
		}
	}
}

// counted: no look proved the write, so it was bad.
func (g *gate) counted(d *pending) {
	d.firm = true
	g.learnt(d.docs(), d.res, d.took, false)
	g.limit = max(1, g.limit/2)
	if shut := d.canary; shut != nil {
		shut.canary = false
		g.turned(shut, d.sullied)
		g.grow(shut)
	}
	if d.sullied {
		return
	}
	if scope, stop := g.writes.bad(d.evidence, badInARow); stop && d.canary == nil {
		g.outage(scope, "Flexi did not answer "+inARow()+" writes in a row as it should", d.res.Err, aboutNone)
	}
}

// overdue counts those whose look takes long. An odd success is no sign of trouble, however long its look takes.
func (g *gate) overdue() {
	for _, d := range slices.Clone(g.pending) {
		if !d.firm && !d.res.Odd && g.now().Sub(d.at) >= g.s.Probe {
			g.counted(d)
		}
	}
}

// paused says whether writes to an evidence wait for looks: with those in doubt counted as bad it would be closed. until is
// when that ends at the latest.
func (g *gate) paused(evidence string) (until time.Time, yes bool) {
	if len(g.pending) == 0 {
		return time.Time{}, false
	}
	s := g.writes.clone()
	for _, d := range g.pending {
		if d.firm || d.sullied || d.res.Odd {
			continue
		}
		if end := d.at.Add(g.s.Probe); until.IsZero() || end.Before(until) {
			until = end
		}
		if scope, stop := s.bad(d.evidence, badInARow); stop && (scope == "" || scope == evidence) {
			yes = true
		}
	}
	return until, yes
}
