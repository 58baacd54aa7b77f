package flexi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Canonical is the body in one form, whatever order and spacing the sender used: keys sorted, numbers as they were
// written, nothing escaped for HTML. Two bodies with equal canonical forms ask for the same document.
func Canonical(body json.RawMessage) ([]byte, error) {
	s := scanner{text: body}
	form, ok := appendCanonical(make([]byte, 0, len(body)), &s)
	if ok && s.over() {
		return form, nil
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil { // which has the words for it
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return nil, errors.New("canonical form: the body cannot be read")
}

// Digest is the SHA-256 of the canonical form, hex; of the raw bytes where there is no canonical form.
func Digest(body json.RawMessage) string {
	form, err := Canonical(body)
	if err != nil {
		form = body
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:])
}
