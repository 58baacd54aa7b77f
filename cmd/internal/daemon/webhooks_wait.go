package daemon

import (
	"context"
	"encoding/json"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
	"flexid/webhook"
)

// waitPause is between two looks at a document that is waited for.
const waitPause = 150 * time.Millisecond

// Wait looks at the ledger until the event is over. Results on flexi.done are not waited for: of a delivery that came
// before, the result was told before.
func (h *webhooks) Wait(ctx context.Context, d webhook.Document) (json.RawMessage, bool) {
	for {
		if l := h.ledger.Load(); l != nil {
			id := ledger.RowID(l.RowsUnder(), d.Evidence, flexi.NewExternalID(h.cfg.Flexi.System, d.Source, d.Key))
			if told, ok := outcome(ctx, l, id, d.EventID); ok {
				body, err := json.Marshal(told)
				return body, err == nil
			}
		}
		if !sleep(ctx, waitPause) {
			return nil, false
		}
	}
}

// lookBack is how many of a document's last events are searched for the one that is waited for.
const lookBack = 50

// events is where outcome looks; met by *ledger.Ledger.
type events interface {
	Get(ctx context.Context, id ledger.ID) (ledger.Row, error)
	Event(ctx context.Context, id ledger.ID, n int) (ledger.Event, error)
	AsideEvent(ctx context.Context, eventID string) ([]ledger.ID, error)
}

// outcome is what became of one event, under the document it names or where it was set aside; ok is false while that is open
// or cannot be read.
func outcome(ctx context.Context, l events, id ledger.ID, eventID string) (t verify.Notice, ok bool) {
	if t, found := placeOf(ctx, l, id, eventID); found {
		return t, over(t.State)
	}
	aside, err := l.AsideEvent(ctx, eventID)
	if err != nil || len(aside) == 0 {
		return t, false
	}
	t, found := placeOf(ctx, l, aside[len(aside)-1], eventID)
	return t, found && over(t.State)
}

func over(s ledger.State) bool {
	return s == ledger.Confirmed || s == ledger.Parked || s == ledger.Dropped
}

// placeOf says where an event stands in a row; found is false where the row does not have it, or cannot be read.
func placeOf(ctx context.Context, l events, id ledger.ID, eventID string) (t verify.Notice, found bool) {
	row, err := l.Get(ctx, id)
	if err != nil {
		return t, false
	}
	for n := row.Tail; n >= max(1, row.Tail-lookBack); n-- {
		ev, err := l.Event(ctx, id, n)
		if err == nil && ev.EventID == eventID {
			return verify.NoticeOf(&row, &ev), true
		}
	}
	return t, false
}
