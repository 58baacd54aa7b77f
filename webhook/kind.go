package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind is one sort of sender.
type Kind interface {
	Rules() Rules
	// Ping says that a request asks only whether we are there. It is answered without proof, and nothing comes of it.
	Ping(r *Request) bool
	// Verify checks the sender's proof over the raw bytes. Its error is a *Refusal, 400 or 401.
	Verify(r *Request) error
	// Read says what a verified request asks for. Its error is a *Refusal, 400 or 422.
	Read(r *Request) (Delivery, error)
}

// Rules are what the sender of a kind expects of the receiver.
type Rules struct {
	Evidence   bool     // the path names the evidence
	Types      []string // media types that are taken; empty = any, since the body is not read
	Wakes      bool     // a delivery only says that something changed: nothing is stored
	Accepted   int      // status of what is stored
	Clash      int      // status of an id that came before with another body
	Quarantine bool     // keep the other body for a person: such a sender does not send it again under a new id
	Waits      bool     // ?wait= is understood
}

// Request is one delivery as it came.
type Request struct {
	Header   http.Header
	Evidence string // of the path
	Body     []byte
	Now      time.Time
}

// Kinds lists what KIND of a source may be.
func Kinds() []string { return []string{"flexi", "standard", "token"} }

// newKind makes the kind of a source. Its error names what is wrong with the settings, never a secret.
func newKind(s Source) (Kind, error) {
	secrets := []string{s.Secret}
	if s.PreviousSecret != "" {
		secrets = append(secrets, s.PreviousSecret)
	}
	if s.Secret == "" {
		// An empty secret would be matched by a request without one.
		return nil, &SettingError{"SECRET", errors.New("is empty")}
	}
	switch s.Kind {
	case "token":
		return &token{secrets: secrets}, nil
	case "standard":
		return newStandard(secrets, s.Tolerance)
	case "flexi":
		return &hook{secrets: secrets}, nil
	}
	return nil, &SettingError{"KIND", fmt.Errorf("%q is not one of %s", s.Kind, strings.Join(Kinds(), ", "))}
}

// SettingError is a setting of a source that cannot be used.
type SettingError struct {
	Name string // KIND, SECRET, PREVIOUS_SECRET
	Err  error
}

func (e *SettingError) Error() string { return e.Name + " " + e.Err.Error() }

func (e *SettingError) Unwrap() error { return e.Err }

// only gives the one value of a header; ok is false when there is none or several: which of two would count cannot be
// known.
func only(h http.Header, name string) (value string, ok bool) {
	values := h.Values(name)
	if len(values) != 1 {
		return "", false
	}
	return values[0], values[0] != ""
}
