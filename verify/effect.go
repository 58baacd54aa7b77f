package verify

import (
	"flexid/flexi"
	"flexid/verify/ledger"
)

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
