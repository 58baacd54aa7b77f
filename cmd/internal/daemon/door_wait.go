package daemon

import (
	"context"
	"encoding/json"
	"time"

	"flexid/cmd/internal/api"
	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
	"flexid/webhook"
)

// waitPause is between two looks at a document that is waited for.
const waitPause = 150 * time.Millisecond

// Wait looks at the ledger until the event is over. Results on flexi.done are not waited for: of a delivery that came
// before, the result was told before.
func (o *door) Wait(ctx context.Context, d webhook.Document) (json.RawMessage, bool) {
	id := ledger.RowID(o.cfg.Flexi.Company, d.Evidence, flexi.NewExternalID(o.cfg.Flexi.System, d.Source, d.Key))
	for {
		if l := o.ledger.Load(); l != nil {
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

// outcome is what became of one event; ok is false while that is open or cannot be read.
func outcome(ctx context.Context, l api.Ledger, id ledger.ID, eventID string) (t verify.Told, ok bool) {
	row, err := l.Get(ctx, id)
	if err != nil {
		return t, false
	}
	for n := row.Tail; n >= max(1, row.Tail-lookBack); n-- {
		ev, err := l.Event(ctx, id, n)
		if err != nil || ev.EventID != eventID {
			continue
		}
		t = toldOf(&row, &ev)
		return t, t.State == ledger.Confirmed || t.State == ledger.Parked || t.State == ledger.Dropped
	}
	return t, false
}

// toldOf is an event's result in the form of flexi.done.
func toldOf(row *ledger.Row, ev *ledger.Event) verify.Told {
	t := verify.Told{
		Evidence: row.Evidence, Source: row.Source, Key: row.Key, Number: row.Number, FlexiID: row.FlexiID,
		State: ev.State, Reason: ev.Reason, Cause: ev.Cause, Sends: ev.Sends, Updated: row.Updated.UTC(),
		EventID: ev.EventID, Op: ev.Op, Errors: []flexi.Message{},
	}
	problem := ev.Problem
	if ev.Story != nil && ev.Story.Problem != nil {
		problem = ev.Story.Problem
	}
	if w := row.Work; w != nil && w.N == ev.N {
		t.State, t.Reason, t.Cause, t.Sends = row.State, row.Reason, row.Cause, row.Sends
		if w.Story.Problem != nil {
			problem = w.Story.Problem
		}
	}
	if problem != nil && t.State != ledger.Confirmed {
		if t.Errors = problem.Errors; len(t.Errors) == 0 {
			t.Errors = []flexi.Message{{Text: problem.Text}}
		}
	}
	return t
}
