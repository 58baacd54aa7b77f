package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// What may be decided about a row is said by the functions of this file alone: lists ask them to offer a decision, and the
// engine asks them again, after a fresh look, to carry it out. What was offered is then refused only for what that look
// shows, and with the same words.

// Choices are the decisions worth offering now.
func (e *Engine) Choices(row *ledger.Row) []What {
	settled := row.Quiet
	if row.Work != nil {
		settled = e.settled(row)
	}
	return choices(row, settled, e.o.Now())
}

// choices offers only a look and a note before settled: nobody knows what a request still changes.
func choices(row *ledger.Row, settled, now time.Time) []What {
	var can []What
	if row.Work == nil {
		return can
	}
	if row.State != ledger.Sending && row.Reason != ledger.Unreadable {
		can = append(can, DecideLook)
	}
	if !now.Before(settled) {
		for _, c := range []struct {
			what    What
			refused func(*ledger.Row) string
		}{{DecideConfirm, confirmRefused}, {DecideResend, resendRefused}, {DecideDrop, dropRefused}} {
			if c.refused(row) == "" {
				can = append(can, c.what)
			}
		}
	}
	if row.State != ledger.Sending {
		can = append(can, DecideNote)
	}
	return can
}

// waitsForPerson says that the event is not over, and a person may say what it came to.
func waitsForPerson(row *ledger.Row) bool {
	return row.Work != nil && !row.Work.Final && (row.State == ledger.Maybe || row.State == ledger.Parked)
}

// closable is an event that had no effect and is the document's last. It is over, and stays in the lists until a person closes it
// or sends it again.
func closable(row *ledger.Row) bool {
	return row.Work != nil && row.Work.Final && row.State == ledger.Parked && !row.More()
}

// droppable says that there is something to give up.
func droppable(row *ledger.Row) bool {
	return closable(row) || waitsForPerson(row) || row.Work != nil && !row.Work.Final && row.State == ledger.Queued
}

// lastLook is the last one that showed anything.
func lastLook(row *ledger.Row) *ledger.Look {
	if row.Work == nil {
		return nil
	}
	for i, l := range slices.Backward(row.Work.Story.Looks) {
		if l.Verdict != "invalid" {
			return &row.Work.Story.Looks[i]
		}
	}
	return nil
}

// confirmRefused says why the record in Flexi cannot be taken as the document, "" if it may by what the last look shows.
func confirmRefused(row *ledger.Row) string {
	if !waitsForPerson(row) {
		return fmt.Sprintf("it is %s: there is nothing to confirm", stateText(row))
	}
	l := lastLook(row)
	switch {
	case l == nil || len(l.Found) == 0 && row.Work.Op == flexi.Delete:
		return ""
	case len(l.Found) == 0:
		return "Flexi shows no record of this document: resend or drop it"
	case len(l.Found) > 1:
		return "Flexi shows several records (ids " + strings.Join(l.Found, ", ") + "): delete the wrong ones there first"
	}
	return ""
}

// resendRefused says why the event cannot be sent again, "" if it may.
func resendRefused(row *ledger.Row) string {
	if waitsForPerson(row) || closable(row) {
		return ""
	}
	return fmt.Sprintf("it is %s: send a new event instead", stateText(row))
}

// dropRefused says why the event may not be given up, "" if it may. Where the last look shows a record that this event
// made, dropping would hide a document that is there.
func dropRefused(row *ledger.Row) string {
	if !droppable(row) {
		return fmt.Sprintf("it is %s: there is nothing to drop", stateText(row))
	}
	l := lastLook(row)
	switch {
	case l == nil:
	case len(l.Ours) > 0 && row.Last == nil:
		return "Flexi shows record " + strings.Join(l.Ours, ", ") + " of this document: confirm it, or delete it there first"
	case row.Work.Opens > 0 && !row.Work.Final && l.Verdict == string(verdictDone):
		return "Flexi shows the change as done: confirm it"
	}
	return ""
}

func stateText(row *ledger.Row) string {
	if row.Reason != "" {
		return string(row.State) + " (" + string(row.Reason) + ")"
	}
	return string(row.State)
}
