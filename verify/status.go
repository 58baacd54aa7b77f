package verify

import (
	"cmp"
	"context"
	"time"

	"flexid/verify/ledger"
)

// Status is what an operator sees at a glance.
type Status struct {
	Stops     []Stop            `json:"gates"`
	Documents map[string]int    `json:"documents"` // by state
	Standings []Standing        `json:"standings"` // the same by state, reason and cause
	Waiting   int               `json:"waiting"`   // documents that wait to be sent
	MaybeBy   map[string]int    `json:"maybe_by"`  // maybe and parked(unknown) by reason
	Oldest    time.Time         `json:"oldest_maybe,omitzero"`
	Fence     map[string]string `json:"fence"`     // evidence -> proved, disproved, unknown
	InFlight  int               `json:"in_flight"` // write requests
	Limit     int               `json:"limit"`     // most of them now
	Pack      int               `json:"pack"`      // most documents in one of them now
	Tokens    map[string]int    `json:"tokens"`    // left of the budgets for sending again: reads, refusals, maybes
}

// Standing is how many documents stand alike. Cause is kept of those that are parked.
type Standing struct {
	State     ledger.State  `json:"state"`
	Reason    ledger.Reason `json:"reason,omitempty"`
	Cause     string        `json:"cause,omitempty"`
	Documents int           `json:"documents"`
}

func (s Standing) compare(o Standing) int {
	return cmp.Or(cmp.Compare(s.State, o.State), cmp.Compare(s.Reason, o.Reason), cmp.Compare(s.Cause, o.Cause))
}

// Notifier stores what the outside must hear. It returns nil only when the stream has stored it.
type Notifier interface {
	// Notify publishes body under the subject of kind (done, alert) and token (evidence, or the alert's kind).
	Notify(ctx context.Context, kind, token, id string, body []byte) error
}

// Observer counts for metrics; every method must be cheap and safe for concurrent use.
type Observer interface {
	Call(kind string)                      // one logical call: read write lookup
	Entered(state string)                  // a document entered a state
	Looked(verdict string)                 // a look-up ended
	WriteTook(seconds float64)             // one write, first byte to outcome
	Log(event string, fields ...[2]string) // a line for the operator: writes stopped, writes go on, alert
}

// Status is what an operator sees at a glance.
func (e *Engine) Status() Status {
	stops, inFlight, limit := e.admission.status()
	if len(stops) == 0 {
		stops = []Stop{{Open: true}}
	}
	s := Status{Stops: stops, Fence: e.fence.all(), InFlight: inFlight, Limit: limit, Pack: e.packs.now()}
	s.Standings, s.Documents = e.scheduler.counts()
	now, b := e.o.Now(), e.o.Budget
	s.Tokens = map[string]int{"reads": int(b.Reads.Tokens(now)), "refusals": int(b.Refusals.Tokens(now)), "maybes": int(b.Maybes.Tokens(now))}
	s.Waiting = s.Documents[string(ledger.Queued)]
	s.MaybeBy, s.Oldest = e.scheduler.maybes()
	return s
}

// status is all that stops writes, how many requests are in flight, and how many may be.
func (a *admission) status() (stops []Stop, inFlight, limit int) {
	a.mu.Lock()
	defer a.unlock()
	a.overdue()
	for _, st := range a.manual {
		stops = append(stops, st)
	}
	for _, b := range a.breakers {
		stops = append(stops, b.Stop)
	}
	return stops, a.inFlight, int(a.limit)
}
