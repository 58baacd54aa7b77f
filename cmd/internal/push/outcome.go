package push

import (
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// Outcome is what became of one event, in the words of the report.
type Outcome uint8

// The outcomes.
const (
	Unsent     Outcome = iota // not published
	Waiting                   // published; the daemon has not got to an end with it
	Confirmed                 // written
	Adopted                   // it was there already, equal
	Repeated                  // the same content again: no write
	Superseded                // the sender's version is older than the last one
	Rejected                  // the ERP, or flexid, said no; nothing was written
	Conflict                  // parked(conflict, duplicate): the books hold something else, a person decides
	Maybe                     // not known whether it was written
	Dropped                   // a person dropped it
	numOutcomes
)

// String gives the word.
func (o Outcome) String() string {
	return [...]string{"unsent", "waiting", "confirmed", "adopted", "repeated", "superseded", "rejected", "conflict", "maybe", "dropped"}[o]
}

// MarshalText writes the word.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// OutcomeOf reads a state of the ledger. over says that flexid has told all it will by itself soon: published events that
// are not over are waited for.
func OutcomeOf(s ledger.State, r ledger.Reason) (o Outcome, over bool) {
	switch s {
	case ledger.Confirmed:
		switch r {
		case ledger.Adopted:
			return Adopted, true
		case ledger.Repeated:
			return Repeated, true
		case ledger.Superseded:
			return Superseded, true
		}
		return Confirmed, true
	case ledger.Parked:
		switch r {
		case ledger.Conflict, ledger.Duplicate:
			return Conflict, true
		case ledger.Unknown:
			return Maybe, true
		}
		return Rejected, true
	case ledger.Dropped:
		return Dropped, true
	case ledger.Maybe:
		return Maybe, false
	}
	return Waiting, false
}

// Result is what flexid says about one event.
type Result struct {
	State   ledger.State    `json:"state,omitempty"`
	Reason  ledger.Reason   `json:"reason,omitempty"`
	Cause   string          `json:"cause,omitempty"`
	Number  string          `json:"number,omitempty"`
	Sends   int             `json:"sends"`
	FlexiID string          `json:"flexi_id,omitempty"`
	Updated time.Time       `json:"updated,omitzero"`
	Errors  []flexi.Message `json:"errors,omitempty"`

	// Held: an earlier event of the document waits for a person, and this one behind it. flexid gets no further by itself.
	Held bool `json:"held,omitempty"`
}

// Counts is how many events stand where.
type Counts [numOutcomes]int

// Map gives the counts by word, zeros too.
func (c Counts) Map() map[string]int {
	m := make(map[string]int, len(c))
	for o, n := range c {
		m[Outcome(o).String()] = n
	}
	return m
}
