package verify

import (
	"slices"
	"time"

	"flexid/verify/ledger"
)

// end closes the current event, which had no effect: dropped, repeated, superseded, or parked for good.
func (e *Engine) end(row *ledger.Row, s ledger.State, r ledger.Reason) {
	e.finish(row, s, r)
	if s == ledger.Parked {
		refuse(row)
	}
	show(row)
	shedNumbers(row)
}

// finish notes how the current event ended, that it has to be notified, and the late looks where an attempt was ever open.
func (e *Engine) finish(row *ledger.Row, s ledger.State, r ledger.Reason) {
	now := e.o.Now()
	w := row.Work
	w.Final, w.Open, w.Mates = true, false, nil
	w.End = &ledger.End{State: s, Reason: r, Cause: row.Cause, Sends: row.Sends, At: now}
	row.State, row.Reason, row.Lease, row.Due = s, r, nil, time.Time{}
	e.mustNotify(row)
	if w.Opens > 0 {
		row.Late = e.lateLooks(now)
	}
	if d := row.Dropped; d != nil && w.N > d.N && !(s == ledger.Dropped && r == ledger.Repeated) {
		row.Dropped = nil
	}
	if s != ledger.Confirmed { // a confirmed one is read back, and may prove the fence then
		e.fence.forget(row.ID)
	}
}

// mustNotify notes that a notice of the current event is to be published.
func (e *Engine) mustNotify(row *ledger.Row) {
	if !slices.Contains(row.ToNotify, row.Work.N) {
		row.ToNotify = append(row.ToNotify, row.Work.N)
	}
}

// lateLooks are when a document that was in doubt is looked at again.
func (e *Engine) lateLooks(now time.Time) []time.Time {
	var at []time.Time
	for _, d := range e.o.Settings.LateLooks {
		// At a common moment, so that the documents of one trouble are looked at in few requests.
		at = append(at, now.Add(d+time.Minute).Truncate(time.Minute))
	}
	return at
}

// park hands the current event to a person, or ends it for good where it had no effect.
func (e *Engine) park(row *ledger.Row, r ledger.Reason, p ledger.Problem) {
	row.Work.Story.Problem = &p
	e.parking(row, r, p.Text)
	switch r {
	case ledger.Rejected, ledger.Unreadable, ledger.IDReused:
		e.end(row, ledger.Parked, r)
		return
	}
	row.State, row.Reason, row.Lease, row.Due = ledger.Parked, r, nil, time.Time{}
	if row.Cause = p.Cause; r == ledger.Unknown {
		row.Due = e.o.Now().Add(unknownEvery)
	}
	if row.Work.Opens > 0 && len(row.Late) == 0 {
		row.Late = e.lateLooks(e.o.Now())
	}
	e.mustNotify(row)
}

// unknownEvery is how often a document parked as unknown is looked at on its own.
const unknownEvery = time.Hour
