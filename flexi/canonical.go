package flexi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
)

// Canonical is the body in one form, whatever order and spacing the sender used: keys sorted, numbers as they were
// written, nothing escaped for HTML. Two bodies with equal canonical forms ask for the same document.
func Canonical(body json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // 0.10 must stay 0.10: a float would turn an amount into another one
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("canonical form: bytes after the document")
	}
	return plainJSON(v)
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

func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
