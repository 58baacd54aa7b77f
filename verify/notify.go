package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// Notice is one message on flexi.done: a row of `docs list` with the event it is about.
type Notice struct {
	Evidence string          `json:"evidence"`
	Source   string          `json:"source,omitempty"`
	Key      string          `json:"key"`
	Number   string          `json:"number,omitempty"`
	State    ledger.State    `json:"state"`
	Reason   ledger.Reason   `json:"reason,omitempty"`
	Cause    string          `json:"cause,omitempty"`
	Sends    int             `json:"sends"`
	FlexiID  string          `json:"flexi_id,omitempty"`
	Updated  time.Time       `json:"updated"`
	EventID  string          `json:"event_id"`
	Op       flexi.Op        `json:"op"`
	Errors   []flexi.Message `json:"errors"`

	SenderKey string `json:"sender_key,omitempty"` // of an event that could not be stored under it
}

// notify publishes what became of events, and alerts of those that parked. The row keeps both until the stream has stored the
// message, so that one may be published twice and none is forgotten.
func (e *Engine) notify(ctx context.Context, row *ledger.Row) (stepResult, error) {
	if e.o.Notifier == nil {
		row.ToNotify, row.Parkings = nil, nil
		return continueNow(), e.save(ctx, row)
	}
	for _, n := range slices.Clone(row.ToNotify) {
		ev, err := e.o.Ledger.CachedEvent(ctx, row, n)
		if err != nil && e.hopeless(row, err) {
			ev, err = ledger.Event{N: n}, nil // what became of it is known all the same
		}
		if err != nil {
			return stepResult{}, fmt.Errorf("reading event %d: %w", n, err)
		}
		body, err := json.Marshal(NoticeOf(row, &ev))
		if err != nil {
			return stepResult{}, fmt.Errorf("writing what became of event %d: %w", n, err)
		}
		id := fmt.Sprintf("%s.%d.%d", row.ID, n, row.Revision)
		if err := e.o.Notifier.Notify(ctx, "done", row.Evidence, id, body); err != nil {
			return stepResult{}, fmt.Errorf("telling what became of event %d: %w", n, err)
		}
	}
	for _, p := range row.Parkings {
		if err := e.alertParking(ctx, row, p); err != nil {
			return stepResult{}, err
		}
	}
	row.ToNotify, row.Parkings = nil, nil
	return continueNow(), e.save(ctx, row)
}

// NoticeOf says what became of one event of a document, whatever else the document is at.
func NoticeOf(row *ledger.Row, ev *ledger.Event) Notice {
	at := row.Standing(ev)
	t := Notice{
		Evidence: row.Evidence, Source: row.Source, Key: row.Key, Number: row.Number, FlexiID: row.FlexiID,
		State: at.State, Reason: at.Reason, Cause: at.Cause, Sends: at.Sends, Updated: row.Updated.UTC(),
		EventID: ev.EventID, Op: ev.Op, Errors: []flexi.Message{},
	}
	if row.Aside != nil {
		t.SenderKey = row.Aside.Key
	}
	p, story := ev.Problem, ev.Story
	if w := row.Work; w != nil && w.N == ev.N {
		story = &w.Story
	}
	if story != nil && story.Problem != nil {
		p = story.Problem
	}
	if p != nil && t.State != ledger.Confirmed {
		if t.Errors = p.Errors; len(t.Errors) == 0 {
			t.Errors = []flexi.Message{{Text: p.Text}}
		}
	}
	return t
}
