package verify

import (
	"slices"
	"time"
)

// held says whether a person has to open before an evidence is written to.
func (g *gate) held(evidence string) bool {
	for h := range g.holds {
		if h.evidence == "" || h.evidence == evidence {
			return true
		}
	}
	return false
}

// otherBooks: writes stand still because the books behind the address may not be those that the ledger knows.
func (g *gate) otherBooks() bool { return g.heldFor(otherBooks) }

func otherBooks(reason string) bool { return reason == "restored" || otherCompany(reason) }

// otherCompany: what stands behind the address has nothing to do with the ledger.
func otherCompany(reason string) bool { return reason == "company" }

func (g *gate) heldFor(reason func(string) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for h := range g.holds {
		if h.evidence == "" && reason(h.reason) {
			return true
		}
	}
	return false
}

// isShut says whether an evidence waits behind a closed door.
func (g *gate) isShut(evidence string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held(evidence) || g.shut(evidence) != nil
}

// trial says whether a document of the evidence may be fetched to try the doors before it; see doors. The index asks under
// its own lock, so nothing is said here.
func (g *gate) trial(evidence string, fresh bool) (may, fromEnd bool, next time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.overdue()
	if g.held(evidence) {
		return false, false, time.Time{}
	}
	may = true
	for _, name := range []string{"", evidence} {
		d := g.doors[name]
		if d == nil {
			continue
		}
		due := later(d.nextTry(g.s.Probe, fresh), d.fetched.Add(g.s.Probe/4))
		if d.lost && g.now().Sub(d.wanted) < d.pause+outageMost {
			due = later(due, d.NextTry.Add(g.s.Probe)) // one that had a bad outcome goes first this time
		}
		inLine := slices.ContainsFunc(g.line, func(x *entry) bool { return g.triedBy(x) == d })
		if d.canary || inLine || name == "" && g.flying > 0 { // it may hang for as long as a write may take
			due = later(due, g.now().Add(g.s.Probe))
		}
		may, fromEnd, next = may && !g.now().Before(due), fromEnd || d.fromEnd, later(next, due)
	}
	return may, fromEnd, next
}

// nextTry is when a door may be tried: sooner by a document that never was where one document alone may have closed it.
func (d *door) nextTry(probe time.Duration, fresh bool) time.Time {
	soon := later(d.fetched, d.Since).Add(probe)
	if fresh && d.Reason == refusedReason && soon.Before(d.NextTry) {
		return soon
	}
	return d.NextTry
}

// handedOut notes that a document is on its way to try. One that turns out to have nothing to send, or has to wait for
// something else, must not make the next ones follow at once: each asks Flexi.
func (g *gate) handedOut(evidence string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range []string{"", evidence} {
		if d := g.doors[name]; d != nil {
			d.fetched = g.now()
		}
	}
}

// mayRetry says whether a document with a bad outcome of its own has to wait for a door, and until when.
func (g *gate) mayRetry(evidence string) (until time.Time, wait bool) {
	clean := g.waiting(g.passable)
	g.mu.Lock()
	defer g.mu.Unlock()
	d, held := g.shut(evidence), g.held(evidence)
	if !held && (d == nil || g.mayTry(d, false, true, clean)) {
		return time.Time{}, false
	}
	until = g.now().Add(g.s.Probe + time.Duration(g.rand()*float64(g.s.Probe)))
	switch {
	case held:
	case d.lost && g.now().Before(d.NextTry): // its turn then
		d.wanted, until = g.now(), d.NextTry
	default:
		d.wanted, until = g.now(), later(d.NextTry, until)
	}
	return until, true
}

// mayTry: a fetched document may try a closed door, and one with a bad outcome of its own if no clean one waits, or if the
// clean one before it failed. For a minute only: clean ones that did not come by then cannot.
func (g *gate) mayTry(d *door, trial, sullied, clean bool) bool {
	now := g.now()
	switch {
	case d.canary:
		return false
	case trial:
		return true
	}
	return sullied && !now.Before(d.NextTry) && (!clean || d.lost || now.Sub(d.NextTry) >= outageMost)
}

// passable says whether a document of the evidence could be fetched to try a door.
func (g *gate) passable(evidence string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.held(evidence) && (g.doors[""] == nil || g.doors[evidence] == nil)
}
