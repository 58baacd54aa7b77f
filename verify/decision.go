package verify

import "fmt"

// Address names a document for people: evidence/[source:]key.
type Address struct{ Evidence, Source, Key string }

func (a Address) String() string {
	if a.Source != "" {
		return a.Evidence + "/" + a.Source + ":" + a.Key
	}
	return a.Evidence + "/" + a.Key
}

// What is what a person decides about a document that waits for one.
type What string

// The decisions.
const (
	DecideConfirm What = "confirm" // the record in Flexi is the document: take it as done
	DecideResend  What = "resend"  // send again, after the absences that a resend needs
	DecideDrop    What = "drop"    // the event is given up; see dropRefused
	DecideLook    What = "look"    // look now
	DecideNote    What = "note"    // write a sentence into the history
)

// Decision is a person's act, with name and reason.
type Decision struct {
	What What
	By   string // required
	Why  string // required for confirm, resend, drop and note

	Revision uint64 // of the row that the person saw; 0 = whatever it says now
}

// Decisions lists what a person may decide.
func Decisions() []What {
	return []What{DecideLook, DecideConfirm, DecideResend, DecideDrop, DecideNote}
}

// DecisionError says why a decision was not taken; nothing was changed. Retry is set when it would be taken later.
type DecisionError struct {
	Text    string
	Retry   bool
	Changed bool // the row is another one than the person saw
	Writes  bool // it is about writes as such, not about a document
}

func (e *DecisionError) Error() string { return e.Text }

// NotFoundError is a document that the ledger does not know.
type NotFoundError struct{ Address Address }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no document %s in the ledger", e.Address)
}
