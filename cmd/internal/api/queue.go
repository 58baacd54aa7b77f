package api

import (
	"strings"
	"time"

	"flexid/verify"
	"flexid/verify/ledger"
)

// Item is one document of the queue: what waits for an answer of Flexi or of a person.
type Item struct {
	Row
	Owner   string    `json:"owner"` // who has to act: a name, "operator" when nobody took it, "flexid" when it heals by itself
	Since   time.Time `json:"since"`
	AgeMS   int64     `json:"age_ms"`
	Text    string    `json:"text"` // why it waits
	Next    time.Time `json:"next,omitzero"`
	Settled time.Time `json:"settled,omitzero"` // before it, no decision takes effect
	Link    string    `json:"link,omitempty"`   // the document it waits for, or that holds its number
	Can     []string  `json:"can"`              // decisions that make sense now; the engine has the last word
	// Revision is of the row as it is shown: a decision that names it is not carried out on what the row became since.
	Revision uint64 `json:"revision"`
}

// Owners that are not a person's name.
const (
	OwnerOperator = "operator"
	OwnerFlexid   = "flexid"
)

// LongWait is when a queued document is shown in the queue although nothing is wrong with it yet.
const LongWait = time.Hour

// Queued says whether a row belongs into the queue: its outcome is not known, a person has to decide or to close it, or it
// has been waiting for so long that somebody should know.
func Queued(r *ledger.Row, now time.Time) bool {
	switch r.State {
	case ledger.Maybe, ledger.Parked:
		return true
	case ledger.Queued:
		return now.Sub(since(r)) >= LongWait
	}
	return false
}

// since is when the shown event began to wait. Updated is no help: every look writes the row.
func since(r *ledger.Row) time.Time {
	if w := r.Work; w != nil {
		if r.State == ledger.Maybe && !w.Ended.IsZero() {
			return w.Ended
		}
		if r.State == ledger.Parked && w.End != nil {
			return w.End.At
		}
		if !w.Begun.IsZero() {
			return w.Begun
		}
	}
	return r.Updated
}

// ItemOf is the queue's view of a row; can is what may be decided, now dates its age, stops say what stands in the way of a
// blocked one.
func ItemOf(r *ledger.Row, can []verify.What, stops []verify.Stop, now time.Time) Item {
	at := since(r).UTC()
	it := Item{Row: RowOf(r), Since: at, AgeMS: now.Sub(at).Milliseconds(), Settled: r.Quiet.UTC(), Next: r.Due.UTC(), Revision: r.Revision, Can: []string{}}
	if p := r.Problem(); p != nil {
		it.Text, it.Link = p.Text, p.Link
	}
	if it.Text == "" {
		it.Text = sentence(r)
	}
	it.Owner = owner(r)
	if r.State == ledger.Queued {
		it.addStop(stops)
	}
	for _, what := range can {
		it.Can = append(it.Can, string(what))
	}
	return it
}

// addStop says what keeps a document from being sent, and makes it the operator's if only a person can end that.
func (it *Item) addStop(stops []verify.Stop) {
	for _, g := range stops {
		if g.Open || g.Evidence != "" && g.Evidence != it.Evidence {
			continue
		}
		it.Text = strings.TrimSuffix(it.Text+": "+g.Text+"; "+g.Remedy, "; ")
		if g.NeedsYou && it.Owner == OwnerFlexid {
			it.Owner = OwnerOperator
		}
		return
	}
}

func owner(r *ledger.Row) string {
	switch {
	case r.Owner != "":
		return r.Owner
	case r.State == ledger.Parked:
		return OwnerOperator
	}
	return OwnerFlexid
}

func sentence(r *ledger.Row) string {
	switch r.State {
	case ledger.Maybe:
		return "the write may have been committed; it is looked up until that is known"
	case ledger.Queued:
		switch r.Reason {
		case ledger.Behind:
			return "an earlier event of this document holds it back"
		case ledger.Blocked:
			return "writes are stopped"
		case ledger.WaitsFor:
			return "a document it refers to is not confirmed yet"
		}
		return "it waits to be sent"
	}
	switch r.Reason {
	case ledger.Conflict:
		return "Flexi shows something else than was sent"
	case ledger.Duplicate:
		return "several records, or another key, claim to be this document"
	case ledger.Rejected:
		return "Flexi, or flexid, refused it; nothing was written"
	case ledger.Unreadable:
		return "it cannot be read"
	case ledger.IDReused:
		return "its event id was used before for something else"
	}
	return "whether it was written could not be found out"
}
