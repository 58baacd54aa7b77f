package verify

import (
	"context"
	"slices"
	"time"

	"flexid/verify/ledger"
)

// pass is the right to send one group of documents.
type pass struct {
	evidence string
	canary   *door
	ids      []ledger.ID   // of the documents that went
	took     time.Duration // until the answer came
	others   bool          // others of the evidence were accepted since what went was refused first
}

// entry is who asks for a pass.
type entry struct {
	*parcel
	sullied bool      // it had a bad outcome of its own
	trial   bool      // it was fetched to try a closed door
	again   time.Time // when it has to be looked at again, zero = never
}

// enter waits for a free place among the writes. The one whose event came first gets it, not the one that stands there
// longest: who waited until it had to be looked at again would begin anew each time. ok is false when a door is closed: ask
// again at the time given; without a time it has to be looked at again, or the process stops. A nil pass with ok means that
// somebody took the document along. Through a closed door goes one that was fetched to try it, before all others, or, where
// no such one waits, one that had a bad outcome of its own.
func (g *gate) enter(ctx context.Context, x *entry) (p *pass, at time.Time, ok bool) {
	defer g.leaveLine(x)
	var again <-chan time.Time
	if !x.again.IsZero() {
		t := time.NewTimer(x.again.Sub(g.now()))
		defer t.Stop()
		again = t.C
	}
	for {
		clean := x.sullied && g.waiting(g.passable)
		p, at, freed := g.turn(x, clean)
		if freed == nil {
			return p, at, p != nil
		}
		overdue := time.NewTimer(time.Hour)
		if !at.IsZero() {
			overdue.Reset(at.Sub(g.now()))
		}
		select {
		case <-freed:
			overdue.Stop()
		case <-overdue.C:
		case <-x.taken:
			return nil, time.Time{}, true
		case <-again:
			return nil, time.Time{}, false
		case <-ctx.Done():
			return nil, time.Time{}, false
		}
	}
}

// turn gives a pass, or the time to ask again, or, while neither can be said, what to wait for, and until when at most.
func (g *gate) turn(x *entry, clean bool) (p *pass, at time.Time, freed <-chan struct{}) {
	g.mu.Lock()
	defer g.unlock()
	g.overdue()
	g.standInLine(x)
	evidence := x.write.Evidence
	d, held := g.shut(evidence), g.held(evidence)
	switch {
	case held || d != nil && !g.mayTry(d, x.trial, x.sullied, clean):
		return nil, g.askAgain(x, d, held), nil
	case g.first() == x && g.room(d):
		if until, yes := g.paused(evidence); yes && d == nil {
			return nil, until, g.freed
		}
		if d != nil {
			d.canary = true
			if d.Evidence != "" {
				g.trials++
			}
		}
		g.flying++
		return &pass{evidence: evidence, canary: d}, time.Time{}, nil
	}
	return nil, time.Time{}, g.freed
}

// first is whose turn it is: the oldest whose evidence does not wait for a look. One that tries a closed door does not wait for
// older events: what stands behind the door may be older still, and would wait until all that was let go is written. Who is
// first depends on the doors, so whatever moves one has to wake the line.
func (g *gate) first() *entry {
	for _, x := range g.line {
		if d := g.triedBy(x); d != nil && !d.canary {
			return x
		}
	}
	if len(g.pending) > 0 {
		for _, x := range g.line {
			if _, yes := g.paused(x.write.Evidence); !yes {
				return x
			}
		}
	}
	return g.line[0]
}

// triedBy is the closed door that an entry was fetched to try; nil if it was not, or if nothing is closed any more.
func (g *gate) triedBy(x *entry) *door {
	if !x.trial {
		return nil
	}
	return g.shut(x.write.Evidence)
}

// room says whether one more write may go, through door d if that is not nil. What tries the door of everything is the only
// write there is. What tries the door of one evidence may hang there, and takes no place that others could have.
func (g *gate) room(d *door) bool {
	switch {
	case d != nil && d.Evidence == "":
		return g.flying == 0
	case d != nil:
		return g.flying < g.s.Concurrency
	}
	return g.flying-g.trials < int(g.limit) && g.flying < g.s.Concurrency
}

// askAgain is when somebody who was turned away may come again.
func (g *gate) askAgain(x *entry, d *door, held bool) time.Time {
	switch {
	case !x.sullied: // the index keeps it until the door opens
		return g.now()
	case held:
		return g.now().Add(time.Minute)
	}
	return later(d.NextTry, g.now().Add(g.s.Probe/4))
}

// standInLine does nothing for one that stands there already.
func (g *gate) standInLine(x *entry) {
	at, there := slices.BinarySearchFunc(g.line, x, func(y, x *entry) int { return y.compare(x.parcel) })
	if !there {
		g.line = slices.Insert(g.line, at, x)
	}
}

// leaveLine lets the next one look whether its turn has come. Whoever is first now may be one that tries a closed door, for
// which there is room where there is none for others.
func (g *gate) leaveLine(x *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.line = slices.DeleteFunc(g.line, func(y *entry) bool { return y == x })
	if len(g.line) > 0 && g.room(g.shut(g.first().write.Evidence)) {
		g.wake()
	}
}

// wake has everyone who stands in line look again.
func (g *gate) wake() {
	close(g.freed)
	g.freed = make(chan struct{})
}
