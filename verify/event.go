package verify

import (
	"encoding/json"
	"time"

	"flexid/flexi"
)

// Event asks for one document to be created, updated, cancelled or deleted. Package batch makes it from a message; the
// engine makes it durable (Accept) before the message is acknowledged.
type Event struct {
	EventID  string // never empty; made of stream, sequence and time when the sender gave none
	Given    bool   // the sender gave EventID
	Evidence string
	Source   string // webhook source; "" for NATS and files
	Key      string // "" only for an unreadable event
	Derived  bool   // Key was made from the document's number: it proves less than one that the sender gave
	Op       flexi.Op
	Version  string // sender's version, "" = none
	Body     json.RawMessage
	Received time.Time
	Subject  string

	Stream     string // where the message lies
	Seq        uint64
	StreamTime time.Time
	// Replayed: it may have been taken before the ledger or the stream was set back. It is looked up, and never sent by itself.
	Replayed bool

	// Problem is why the event cannot be read; then Raw holds its bytes and Body is nil.
	Problem string
	Raw     []byte
}

// Receipt says what Accept did. The event is durable when Accept returned no error.
type Receipt struct {
	Evidence, Source, Key string // the document's address: evidence/[source:]key
	State                 string
	Reason                string
	Known                 bool // the same event was there already
}
