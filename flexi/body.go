package flexi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// BodyError is a body that must not be sent as it is: Path names the place, Why the reason.
type BodyError struct{ Path, Why string }

func (e *BodyError) Error() string {
	if e.Path == "" {
		return "document: " + e.Why
	}
	return "document: " + e.Path + ": " + e.Why
}

// refused reports an operation that hides in a field. What it does cannot be looked up afterwards, so a request with one
// of them could never be settled. Compared without hyphens and letter case: the ERP knows both spellings.
func refused(field string) bool {
	switch strings.ToLower(strings.ReplaceAll(field, "-", "")) {
	case "sparovani", "odparovani", "hotovostniuhrada", "realizaceobj", "odpoctyzaloh", "vytvorvazbuzdd",
		"uhradpreplatky", "uhradzapoctem", "generovanifaktur", "nactenivypisu",
		"odeslanidokladu", "automatickyodeslatneodeslane":
		return true
	}
	return false
}

// CheckBody reports the first thing in a body that this package writes itself or that must not be sent: identifiers and
// attributes of the envelope (also inside rows), a key given twice, an operation in disguise. In "id" only external ids
// of other systems than ourSystem may stand. The error is a *BodyError.
func CheckBody(evidence, ourSystem string, body json.RawMessage) error {
	if !utf8.Valid(body) {
		return &BodyError{Why: "is not UTF-8"}
	}
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) > 0 && trimmed[0] == '[' {
		return &BodyError{Why: "is a list; one event is one document of " + evidence + " (flexid push takes lists)"}
	}
	d := json.NewDecoder(bytes.NewReader(trimmed))
	d.UseNumber()
	c := checker{d: d, system: ourSystem}
	t, err := d.Token()
	if err != nil {
		return &BodyError{Why: "is not JSON: " + err.Error()}
	}
	if t != json.Delim('{') {
		return &BodyError{Why: "is not a JSON object"}
	}
	if err := c.object(""); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return &BodyError{Why: "has bytes after its end"}
	}
	return nil
}

// checker walks tokens instead of decoding into a map: a map keeps the last of two equal keys and forgets the first.
type checker struct {
	d      *json.Decoder
	system string
	depth  int
}

// maxDepth is far beyond any document and well below what the stack bears.
const maxDepth = 100

func (c *checker) object(path string) error {
	if c.depth++; c.depth > maxDepth {
		return &BodyError{Path: path, Why: "is nested too deep"}
	}
	defer func() { c.depth-- }()
	seen := make(map[string]bool)
	for c.d.More() {
		t, err := c.d.Token()
		if err != nil {
			return &BodyError{Path: path, Why: "is not JSON: " + err.Error()}
		}
		key, _ := t.(string)
		here := strings.TrimPrefix(path+"."+key, ".")
		if seen[key] {
			return &BodyError{Path: here, Why: "is given twice"}
		}
		seen[key] = true
		if err := checkKey(key, here); err != nil {
			return err
		}
		if err := c.value(key, here); err != nil {
			return err
		}
	}
	return c.end(path)
}

func (c *checker) array(key, path string) error {
	if c.depth++; c.depth > maxDepth {
		return &BodyError{Path: path, Why: "is nested too deep"}
	}
	defer func() { c.depth-- }()
	for i := 0; c.d.More(); i++ {
		if err := c.value(key, path+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	return c.end(path)
}

func (c *checker) end(path string) error {
	if _, err := c.d.Token(); err != nil {
		return &BodyError{Path: path, Why: "is not JSON: " + err.Error()}
	}
	return nil
}

func (c *checker) value(key, path string) error {
	t, err := c.d.Token()
	if err != nil {
		return &BodyError{Path: path, Why: "is not JSON: " + err.Error()}
	}
	switch t {
	case json.Delim('{'):
		if key == "id" {
			return &BodyError{Path: path, Why: "only ext: identifiers of other systems are allowed"}
		}
		return c.object(path)
	case json.Delim('['):
		return c.array(key, path)
	}
	if key == "id" {
		return c.identifier(t, path)
	}
	return nil
}

func (c *checker) identifier(t json.Token, path string) error {
	s, _ := t.(string)
	e := ExternalID(s)
	switch {
	case !strings.HasPrefix(s, "ext:") || e.System() == "" || e.Key() == "" || strings.ContainsAny(s, "[],"):
		return &BodyError{Path: path, Why: "only ext: identifiers of other systems are allowed, not " + fmt.Sprint(t)}
	case e.Of(c.system):
		return &BodyError{Path: path, Why: s + " belongs to flexid itself"}
	}
	return nil
}

func checkKey(key, path string) error {
	switch {
	case key == "winstrom":
		return &BodyError{Path: path, Why: "is an envelope; one event is one document (flexid push takes envelopes)"}
	case key == "external-ids":
		return &BodyError{Path: path, Why: "is written by flexid"}
	case refused(key):
		return &BodyError{Path: path, Why: "cannot be looked up afterwards and is not sent"}
	}
	field, attribute, has := strings.Cut(key, "@")
	if !has {
		return nil
	}
	if field == "" {
		return &BodyError{Path: path, Why: "attributes of a record are written by flexid"}
	}
	switch attribute {
	case "removeAll", "if-not-found", "encoding":
		return nil
	}
	return &BodyError{Path: path, Why: "attribute @" + attribute + " is not allowed"}
}
