package verify

import (
	"context"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// This file says what happens on a restart, and when a replica dies. The row decides: what was queued, maybe or confirmed goes on
// as it stands, since every step begins with the row. Only a send is tied to a process:
//
//	sending by an earlier run of ours     a maybe at once: nobody runs it any more
//	sending by another instance           a maybe when its lease is over, watched on our own monotonic clock
//
// Before anything is sent, Run reads the stored stops (storedstops.go), the marks of the books (restore.go) and every row once, so
// that the scheduler knows what is due; instants of rows are turned to our own clock (clock.go).

// unattended takes over a send that nobody here runs, or says when that may be done.
func (e *Engine) unattended(ctx context.Context, row *ledger.Row, seen observation) (stepResult, error) {
	now := e.o.Now()
	if l := row.Lease; l != nil && l.Instance != e.o.Settings.Instance {
		free := now.Add(l.For) // a revision that the scheduler has not shown yet was watched for no time at all
		if row.Revision == seen.revision {
			free = seen.at.Add(l.For)
		}
		if now.Before(free) {
			return waitUntil(free), nil
		}
	}
	return continueNow(), e.takeOver(ctx, row)
}

// takeOver turns a send that nobody runs any more into a maybe: it may have reached the ERP, and may still be on its way.
func (e *Engine) takeOver(ctx context.Context, row *ledger.Row) error {
	now := e.o.Now()
	text := "found sending after a restart"
	if l := row.Lease; l != nil && l.Instance != e.o.Settings.Instance {
		text = "taken over: its holder gave no sign for " + l.For.String()
	} else if e.mine(l) {
		text = "the claim or the outcome could not be stored"
	}
	if a := lastAttempt(row.Work); a != nil {
		a.Ended, a.Outcome, a.Speaker, a.Text = now, flexi.Maybe.String(), flexi.NoAnswer.String(), text
	}
	if row.Work.Write == flexi.Attach {
		row.Work.Write = flexi.Create // what is in doubt is the document, not the adoption
	}
	e.opened(row, flexi.NoAnswer, now)
	return e.save(ctx, row)
}

// remember takes over what a row from before this start says about the books as they are now.
func (e *Engine) remember(row *ledger.Row) {
	if row.FlexiID == "" || row.Era < e.marks.era() || row.Last == nil || row.Last.At.Before(e.marks.accepted()) {
		return
	}
	e.looker.knows(row.Evidence, sentBefore(row))
	e.marks.raise(row.Evidence, row.FlexiID)
}

// sentBefore is the Flexi id of a record that an accepted request of ours left, "" if a person may have made it.
func sentBefore(r *ledger.Row) string {
	if r.Last == nil || r.Last.Sends == 0 {
		return ""
	}
	return r.FlexiID
}

// mine says that a lease is of this run of this process.
func (e *Engine) mine(l *ledger.Lease) bool {
	return l != nil && l.Instance == e.o.Settings.Instance && l.Run == e.o.Settings.Run
}
