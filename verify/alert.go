package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"flexid/verify/ledger"
)

// Alert is one message on flexi.alert: what needs a person. Document is empty where it is about all writes or an evidence.
type Alert struct {
	Time     time.Time     `json:"time"`
	Kind     string        `json:"kind"` // why a document parked, or why writes stopped
	Text     string        `json:"text"`
	Remedy   string        `json:"remedy,omitempty"`
	Document string        `json:"document,omitempty"` // evidence/[source:]key
	Evidence string        `json:"evidence,omitempty"`
	Source   string        `json:"source,omitempty"`
	Key      string        `json:"key,omitempty"`
	Number   string        `json:"number,omitempty"`
	State    ledger.State  `json:"state,omitempty"`
	Reason   ledger.Reason `json:"reason,omitempty"`
	Cause    string        `json:"cause,omitempty"`
}

// mostParkings bounds what one row keeps of them while they cannot be published.
const mostParkings = 8

// parking notes that the current event is about to be parked. It is published until the stream has stored it, so that
// no parking goes unheard over a restart; one that says the same of the same event is none.
func (e *Engine) parking(row *ledger.Row, r ledger.Reason, text string) {
	if row.State == ledger.Parked && row.Reason == r && !row.Work.Final {
		return
	}
	if n := len(row.Parkings); n >= mostParkings {
		row.Parkings = row.Parkings[n-mostParkings+1:]
	}
	row.Parkings = append(row.Parkings, ledger.Parking{N: row.Work.N, At: e.o.Now().UTC(), Reason: r, Text: clip(text, 300), Fresh: true})
}

// logParkings writes the line of each parking that was just stored: here and not with the alert, which is repeated until
// it is stored and would repeat the line.
func (e *Engine) logParkings(row *ledger.Row) {
	for i := range row.Parkings {
		p := &row.Parkings[i]
		if !p.Fresh {
			continue
		}
		p.Fresh = false
		e.say("document parked", [2]string{"document", addressOf(row).String()}, [2]string{"number", row.Number},
			[2]string{"reason", string(p.Reason)}, [2]string{"cause", causeOf(row, p)}, [2]string{"text", p.Text})
	}
}

// causeOf is the cause of a parking while the row still shows it: it is decided after the parking.
func causeOf(row *ledger.Row, p *ledger.Parking) string {
	if row.State == ledger.Parked && row.Reason == p.Reason {
		return row.Cause
	}
	return ""
}

func addressOf(row *ledger.Row) Address { return Address{row.Evidence, row.Source, row.Key} }

// alertParking publishes one parking; its id is the same after a restart, so that who hears it twice can know.
func (e *Engine) alertParking(ctx context.Context, row *ledger.Row, p ledger.Parking) error {
	a := Alert{Time: p.At.UTC(), Kind: string(p.Reason), Text: p.Text, Document: addressOf(row).String(), Evidence: row.Evidence,
		Source: row.Source, Key: row.Key, Number: row.Number, State: ledger.Parked, Reason: p.Reason, Cause: causeOf(row, &p)}
	id := fmt.Sprintf("alert.%s.%d.%d", row.ID, p.N, p.At.UnixNano())
	if err := e.publishAlert(ctx, id, a); err != nil {
		return fmt.Errorf("alerting that event %d is parked: %w", p.N, err)
	}
	return nil
}

// alertStop publishes that writes stopped. It is a convenience: the status says the same for as long as they are, and the line in
// the log was written when they stopped.
func (e *Engine) alertStop(ctx context.Context, st Stop) {
	if e.o.Notifier == nil {
		return
	}
	a := Alert{Time: e.o.Now().UTC(), Kind: st.Reason, Text: st.Text, Remedy: st.Remedy, Evidence: st.Evidence}
	if err := e.publishAlert(ctx, "", a); err != nil {
		e.o.Log.Warn().Err(err).Str("kind", st.Reason).Msg("an alert could not be published")
	}
}

func (e *Engine) publishAlert(ctx context.Context, id string, a Alert) error {
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("writing an alert: %w", err)
	}
	return e.o.Notifier.Notify(ctx, "alert", a.Kind, id, body)
}
