package verify

import (
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// opened notes that the last attempt may have committed: the row is a maybe, settle time and looks begin.
func (e *Engine) opened(row *ledger.Row, s flexi.Speaker, ended time.Time) {
	w := row.Work
	w.Open, w.Alone = true, true
	w.ByPerson = false // a decision permits one send
	w.Opens++
	w.Ended, w.Settle = ended, ended.Add(e.settleTime(s))
	w.Step, w.Absences, w.LastAbs = 0, 0, time.Time{}
	row.Sends++
	row.State, row.Reason, row.Lease = ledger.Maybe, "", nil
	row.Quiet = later(row.Quiet, w.Settle)
	row.LookOnce = true
	row.Due = e.nextLook(w, ended)
}

// settled is when no request of the row can be on its way any more: by the wall clock, and by our own clock from when we
// saw the attempt end, because clocks are set forward and those of two replicas differ. The zero time: nothing is.
func (e *Engine) settled(row *ledger.Row) time.Time {
	w := row.Work
	if row.Quiet.IsZero() || w == nil || w.Opens == 0 {
		return row.Quiet
	}
	over, ok := e.scheduler.closesAt(row)
	if !ok {
		return row.Quiet
	}
	return later(row.Quiet, over)
}

// settleTime is how long a request may still be alive after it ended in that way.
func (e *Engine) settleTime(s flexi.Speaker) time.Duration {
	switch s {
	case flexi.ServerError:
		return e.o.Settings.SettleServerError
	case flexi.Proxy:
		return e.o.Settings.SettleProxy
	}
	return e.o.Settings.SettleNoAnswer
}

// settledFor is when an absence begins to count: not before the settle time of the attempt is over.
func (e *Engine) settledFor(row *ledger.Row) time.Time {
	return later(row.Work.Settle, e.settled(row))
}
