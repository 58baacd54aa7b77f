package flexi

import "time"

// Outcome is what became of one write request. The zero value is Maybe on purpose: what nobody classified may have been
// committed.
type Outcome uint8

// The six outcomes of DESIGN 3.
const (
	Maybe    Outcome = iota // the write may have been committed
	NotSent                 // no byte of the request reached the connection
	Refused                 // the server said no before doing anything; may be sent again after Result.Wait
	Rejected                // the server refused this document for its content
	Blocked                 // a refusal about us, not about the document
	Accepted                // a complete envelope says success
)

func (o Outcome) String() string {
	return [...]string{"maybe", "not_sent", "refused", "rejected", "blocked", "accepted"}[o]
}

// Speaker says who ended an attempt whose outcome is a maybe; the settle time depends on it.
type Speaker uint8

// Speakers, from the least to the most informative.
const (
	NoAnswer    Speaker = iota // connection lost, deadline, half an answer, 502, 504, anything else
	Proxy                      // a 503 without the ERP's envelope
	ServerError                // a 500 or 503 with the ERP's envelope: its handler has ended
)

func (s Speaker) String() string { return [...]string{"no_answer", "proxy", "server_error"}[s] }

// Scope is what a Blocked outcome stops the writes of.
type Scope uint8

// Scopes of a blocked write.
const (
	ScopeNone     Scope = iota
	ScopeEvidence       // this evidence only (403 to 406, 400 with only a message)
	ScopeAll            // all writes (401, 402, quota)
)

// Refresh is what must be renewed before a Refused write is sent again.
type Refresh uint8

// What may be stale.
const (
	RefreshNone Refresh = iota
	RefreshUser         // end our user's context at the server: stale role (400) or login (401)
)

// Message is one error of the ERP, in its words.
type Message struct {
	Text  string `json:"message"`
	For   string `json:"for,omitempty"`  // field
	Path  string `json:"path,omitempty"` // evidence[id].field
	Value string `json:"value,omitempty"`
	Code  string `json:"code,omitempty"` // code, messageCode or message@messageCode
}

// DocResult is the part of an answer that belongs to one document of the request.
type DocResult struct {
	FlexiID string // the id the ERP gave or confirmed, "" if none was told
	Number  string // code-in-response, "" if none was told
	Errors  []Message
}

// Result is what became of one Conn.Send. Docs has one entry for each document sent, in order.
type Result struct {
	Outcome  Outcome
	Speaker  Speaker       // of a Maybe
	Scope    Scope         // of a Blocked
	Refresh  Refresh       // of a Refused
	Wait     time.Duration // of a Refused: least wait before the next send, jitter included
	Status   int           // HTTP status, 0 without one
	Exists   bool          // the fence spoke: a record with our external id exists already (Outcome is then Rejected)
	Whole    bool          // a Rejected that holds for every document of the request: nothing is told apart
	NeedLook bool          // a Rejected that counts only after a look: about id, kod, cisDosle or no named field
	// Odd: a Maybe that says success in a way of its own. One look settles it; it is no sign of trouble unless the look
	// contradicts it.
	Odd bool
	// FenceBroken: a create was answered as updated or skipped. The outcome is Maybe and writes to the evidence must stop.
	FenceBroken bool
	Docs        []DocResult
	Errors      []Message // of the whole request: top-level message and errors of all records
	Cause       Cause     // of a Rejected: why, for people; never decides anything
	Remedy      string    // of a Blocked: what the operator has to do
	Request     Request   // the wire record
	Err         error     // the reason in words, wrapped; nil for Accepted. errors.As finds *Error
}

// Request is the record of one wire request, for the story of a document and for counting.
type Request struct {
	Time     time.Time     `json:"time"`
	Kind     string        `json:"kind"` // read, write, lookup, probe
	Method   string        `json:"method"`
	URL      string        `json:"url"` // path and query, without host or secrets
	Status   int           `json:"status"`
	Outcome  string        `json:"outcome"`
	Sent     int64         `json:"bytes_sent"`
	Received int64         `json:"bytes_received"`
	Duration time.Duration `json:"-"`
	Millis   int64         `json:"duration_ms"`
	Error    string        `json:"error,omitempty"`
}
