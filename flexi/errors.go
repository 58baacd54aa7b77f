package flexi

import (
	"errors"
	"strconv"
	"strings"
)

// Error is a request that did not end as asked. For reads Outcome is never Maybe, since a read commits nothing: NotSent,
// Refused (asking again later may help), Blocked (login, licence, rights) or Rejected (the question is wrong).
type Error struct {
	Op       string // what was being done: "create faktura-vydana", "list banka"
	Method   string
	URL      string // path and query, without host or secrets
	Status   int    // 0 without an answer
	Outcome  Outcome
	Messages []Message
	Err      error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.URL != "" {
		b.WriteString(": " + e.Method + " " + e.URL)
	}
	if e.Status != 0 {
		b.WriteString(": status " + strconv.Itoa(e.Status))
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	for _, m := range e.Messages {
		b.WriteString(": " + m.String())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// MaybeCommitted reports whether the request may have changed the ERP without our knowing.
func (e *Error) MaybeCommitted() bool { return e.Outcome == Maybe }

// OutcomeOf is the outcome that an error stands for: Maybe for every error that nobody classified, Accepted for nil.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Accepted
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return Maybe
}

// statusOf is the status in an error, 0 without one.
func statusOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// String is the message as people read it: the field in front, the code behind.
func (m Message) String() string {
	s := m.Text
	if m.For != "" {
		s = m.For + ": " + s
	}
	if m.Code != "" {
		s += " (" + m.Code + ")"
	}
	return s
}

// CertError is a certificate that does not fit. The connection was not used.
type CertError struct {
	Fingerprint string // SHA-256 of the certificate that the server showed, hex
	Hint        string // the settings line that would accept exactly this certificate
	Err         error
}

func (e *CertError) Error() string {
	return "certificate of the ERP does not fit: " + e.Err.Error() + "; if " + e.Fingerprint + " is its fingerprint, set " + e.Hint
}

func (e *CertError) Unwrap() error { return e.Err }
