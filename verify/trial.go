package verify

import (
	"context"
	"time"
)

// pass is the right to send one group of documents.
type pass struct {
	evidence string
	canary   *door
}

// entry is who asks for a pass.
type entry struct {
	evidence string
	sullied  bool            // it had a bad outcome of its own
	trial    bool            // it was fetched to try a closed door
	taken    <-chan struct{} // closed when it goes in somebody's request and needs no pass
}

// held says whether a person has to open before an evidence is written to.
func (g *gate) held(evidence string) bool {
	for h := range g.holds {
		if h.evidence == "" || h.evidence == evidence {
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

// trial says whether a document of the evidence may be fetched to try the doors before it; see doors.
func (g *gate) trial(evidence string) (may, fromEnd bool, next time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held(evidence) {
		return false, false, time.Time{}
	}
	may = true
	for _, name := range []string{"", evidence} {
		d := g.doors[name]
		if d == nil {
			continue
		}
		due := later(d.NextTry, d.fetched.Add(g.s.Probe/4))
		if d.canary || name == "" && g.flying > 0 { // it may hang for as long as a write may take
			due = later(due, g.now().Add(g.s.Probe))
		}
		may, fromEnd, next = may && !g.now().Before(due), fromEnd || d.fromEnd, later(next, due)
	}
	return may, fromEnd, next
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

// enter waits for a free place among the writes. ok is false when a door is closed: ask again at the time given. A nil pass
// with ok means that somebody took the document along. Through a closed door goes one that was fetched to try it, or, where
// no such one waits, one that had a bad outcome of its own.
func (g *gate) enter(ctx context.Context, x entry) (p *pass, at time.Time, ok bool) {
	evidence := x.evidence
	for {
		clean := x.sullied && g.waiting(g.passable)
		g.mu.Lock()
		d := g.shut(evidence)
		held := g.held(evidence)
		switch {
		case held || d != nil && !g.mayTry(d, x, clean):
			at := g.now()
			if x.sullied { // it is no document of the queue, which the index keeps until the door opens
				at = at.Add(time.Minute)
				if !held {
					at = later(d.NextTry, g.now().Add(g.s.Probe/4))
				}
			}
			g.mu.Unlock()
			return nil, at, false
		case d != nil && g.flying == 0:
			d.canary = true
			g.flying++
			g.mu.Unlock()
			return &pass{evidence, d}, time.Time{}, true
		case d == nil && g.flying < int(g.limit):
			g.flying++
			g.mu.Unlock()
			return &pass{evidence, nil}, time.Time{}, true
		}
		freed := g.freed
		g.mu.Unlock()
		select {
		case <-freed:
		case <-x.taken:
			return nil, time.Time{}, true
		case <-ctx.Done():
			return nil, time.Time{}, false
		}
	}
}

// mayRetry says whether a document with a bad outcome of its own has to wait for a door, and until when.
func (g *gate) mayRetry(evidence string) (until time.Time, wait bool) {
	clean := g.waiting(g.passable)
	g.mu.Lock()
	defer g.mu.Unlock()
	d, held := g.shut(evidence), g.held(evidence)
	if !held && (d == nil || g.mayTry(d, entry{sullied: true}, clean)) {
		return time.Time{}, false
	}
	until = g.now().Add(g.s.Probe + time.Duration(g.rand()*float64(g.s.Probe)))
	if !held {
		until = later(d.NextTry, until)
	}
	return until, true
}

// mayTry: a fetched document may try a closed door, and one with a bad outcome of its own if no clean one waits. For a
// minute only: clean ones that did not come by then cannot.
func (g *gate) mayTry(d *door, x entry, clean bool) bool {
	now := g.now()
	switch {
	case d.canary:
		return false
	case x.trial:
		return true
	}
	return x.sullied && !now.Before(d.NextTry) && (!clean || now.Sub(d.NextTry) >= outageMost)
}

// passable says whether a document of the evidence could be fetched to try a door.
func (g *gate) passable(evidence string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.held(evidence) && (g.doors[""] == nil || g.doors[evidence] == nil)
}
