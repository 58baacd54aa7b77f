package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// missingFor is how long a row must have stood still before an event that it points at and that is not there counts as
// deleted: for a moment a server that lost its leadership may not know of it yet.
const missingFor = time.Minute

// hopeless says that the step of a document which ended in err would end like that at every try. What a newer flexid wrote is
// waited for: it may be another replica, in the middle of an upgrade, and only this document waits.
func (e *Engine) hopeless(row *ledger.Row, err error) bool {
	if errors.Is(err, ledger.ErrNoEvent) {
		return e.o.Now().Sub(row.Updated) > missingFor
	}
	return ledger.Never(err) && !errors.Is(err, ledger.ErrNewer)
}

// giveUp parks the current event of a document that no step gets any further with, so that it is seen instead of being tried
// for ever in silence. What may have been written stays a question: then it is parked as unknown.
func (e *Engine) giveUp(ctx context.Context, id ledger.ID, cause error) time.Time {
	row, err := e.o.Ledger.Get(ctx, id)
	if ledger.Never(err) {
		return time.Time{} // the row itself is what cannot be read: it is left alone
	}
	if err != nil {
		return e.retrySoon(ctx, "reading a row", id, err)
	}
	if row.Work == nil || row.Work.Final {
		if !row.More() {
			return e.retrySoon(ctx, "working on "+addressOf(&row).String(), id, cause) // nothing waits: only a follow-up is late
		}
		if err := e.begin(ctx, &row); err != nil { // its event cannot be read: nothing but its place is known
			now := e.o.Now()
			row.Work = &ledger.Work{N: row.Turn(), Op: flexi.Create, Begun: now, FirstTry: now}
			row.State, row.Sends, row.Cause = ledger.Queued, 0, ""
		}
	}
	var large *ledger.TooLargeError
	if errors.As(cause, &large) && row.State == ledger.Queued && row.Work.Most != 1 {
		row.Work.Most = 1 // a claim names all that share its request: alone it may fit
		if err := e.save(ctx, &row); err == nil {
			return e.o.Now()
		}
	}
	switch {
	case row.State == ledger.Sending || row.State == ledger.Parked:
		return e.retrySoon(ctx, "working on "+addressOf(&row).String(), id, cause)
	case row.Work.Open:
		e.park(&row, ledger.Unknown, ledger.Problem{Text: "what became of it cannot be found out: " + clip(cause.Error(), 300)})
	default:
		e.park(&row, ledger.Unreadable, ledger.Problem{Text: fmt.Sprintf(
			"it cannot be carried out: %s; send it again in another form, or under a key of its own", clip(cause.Error(), 300))})
	}
	if err := e.save(ctx, &row); err != nil {
		return e.retrySoon(ctx, "parking "+addressOf(&row).String(), id, err)
	}
	return e.due(&row)
}
