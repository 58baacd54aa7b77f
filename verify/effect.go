package verify

import (
	"flexid/flexi"
	"flexid/verify/ledger"
	"slices"
	"time"
)

// effect is what an event that took effect left behind.
type effect struct {
	flexiID string
	number  string // told by the ERP, "" = not told
	reason  ledger.Reason
	sent    bool // by an accepted request: read back later. Otherwise a look has compared it already
	own     bool // found under our own external id
}

// confirm closes the current event as having taken effect.
func (e *Engine) confirm(row *ledger.Row, ev *ledger.Event, x effect) {
	now := e.o.Now()
	w := row.Work
	w.Story.Problem, w.Reject = nil, nil
	// A create found under our own external id whose only attempt it was: nothing of it can still be on its way.
	if w.Write == flexi.Create && w.Opens == 1 && w.Attempt == 1 && x.own && !x.sent {
		row.Quiet, row.LookOnce = time.Time{}, false
	}
	row.Cause = ""
	e.finish(row, ledger.Confirmed, x.reason)
	settleRefused(row, row.Last == nil && ev.Op != flexi.Delete)
	defer func() { show(row); shedNumbers(row) }()
	learnVersion(row, ev.Version)
	if ev.Op == flexi.Delete {
		if ev.Version == nil {
			row.Known = nil // the next document under this key begins anew
		}
		forgetRecord(row)
		e.looker.gone(row.Evidence)
		return
	}
	if x.flexiID != "" {
		row.FlexiID = x.flexiID
	}
	if !x.sent {
		row.Marked = x.own
	} else if w.Write == flexi.Create {
		row.Marked = false // not seen yet
	}
	if x.number != "" && row.Number == "" {
		row.Number = x.number
	}
	if row.Last == nil {
		row.Base = nil
	}
	row.Last = e.left(row, ev, x)
	switch {
	case len(ev.Whole) > 0:
		row.Base = slices.Clone(ev.Whole)
	case ev.Op != flexi.Storno && !slices.Contains(row.Base, w.N):
		row.Base = append(row.Base, w.N)
	}
	e.o.Budget.Maybes.Pay(1)
	if !x.sent {
		e.fence.forget(row.ID)
	} else {
		row.ReadBack = e.readBackAt(row.Evidence, now)
	}
}

// left is what the document is known by once the current event has taken effect. What the event does not say stays as the
// events before left it.
func (e *Engine) left(row *ledger.Row, ev *ledger.Event, x effect) *ledger.Effect {
	w := row.Work
	last := ledger.Effect{N: w.N, Op: ev.Op, Digest: ev.Digest, Sends: row.Sends, Shaky: w.Opens > 0}
	// Not before the acceptance that it came after, whatever the clock was when a person accepted: else it would not count.
	last.At = later(e.o.Now(), e.marks.accepted())
	if was := row.Last; was != nil {
		last.Number, last.Partner, last.Year = was.Number, was.Partner, was.Year
	}
	if ev.Op == flexi.Storno {
		return &last
	}
	if ev.Number != "" {
		last.Number = ev.Number
	}
	if pairless(row.Evidence) {
		if last.Number == "" {
			last.Number = flexi.NormaliseNumber(row.Evidence, x.number)
		}
		return &last
	}
	if w.Partner != "" {
		last.Partner = w.Partner
	}
	if year := flexi.Year(flexi.Issued(ev.Body, e.o.Settings.Zone)); year != "" {
		last.Year = year
	}
	return &last
}
