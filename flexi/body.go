package flexi

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	c := checker{scanner: scanner{text: bytes.TrimSpace(body)}, system: ourSystem}
	switch c.next() {
	case '[':
		return &BodyError{Why: "is a list; one event is one document of " + evidence + " (flexid push takes lists)"}
	case '{':
		if !c.object(place{}) {
			return c.error()
		}
	default:
		if _, ok := c.value(); !ok {
			return c.error()
		}
		return &BodyError{Why: "is not a JSON object"}
	}
	if !c.over() {
		return &BodyError{Why: "has bytes after its end"}
	}
	return nil
}

// checker scans a document instead of decoding it: who decodes keeps the last of two equal keys and forgets the first.
type checker struct {
	scanner
	system string
	fault  *BodyError // why it stopped; nil: what comes is not JSON
	at     place      // that it has come to
}

// maxDepth is far beyond any document and well below what the stack bears.
const maxDepth = 100

// place is where in a document something stands.
type place struct {
	in     *place // nil: it is the document
	name   string
	isItem bool // of a list
	item   int
}

func (p place) String() string {
	switch {
	case p.in == nil:
		return ""
	case p.isItem:
		return p.in.String() + "[" + strconv.Itoa(p.item) + "]"
	}
	return strings.TrimPrefix(p.in.String()+"."+p.name, ".")
}

func (c *checker) error() error {
	if c.fault != nil {
		return c.fault
	}
	var v any
	err := json.Unmarshal(c.text, &v) // which has the words for it
	return &BodyError{Path: c.at.String(), Why: fmt.Sprint("is not JSON: ", err)}
}

func (c *checker) refuse(why string) bool {
	c.fault = &BodyError{Path: c.at.String(), Why: why}
	return false
}

func (c *checker) object(in place) bool {
	c.at = in
	if c.depth >= maxDepth {
		return c.refuse("is nested too deep")
	}
	var seen names
	ok := c.members(func(key string) bool {
		c.at = place{in: &in, name: key}
		if seen.again(key) {
			return c.refuse("is given twice")
		}
		if why := badKey(key); why != "" {
			return c.refuse(why)
		}
		ok := c.field(key)
		if ok {
			c.at = in
		}
		return ok
	})
	return ok
}

func (c *checker) list(key string, in place) bool {
	if c.depth >= maxDepth {
		return c.refuse("is nested too deep")
	}
	return c.items(func(i int) bool {
		c.at = place{in: &in, isItem: true, item: i}
		ok := c.field(key)
		if ok {
			c.at = in
		}
		return ok
	})
}

// field checks the value of a key, or an item of a list that is one.
func (c *checker) field(key string) bool {
	switch c.next() {
	case '{':
		if key == "id" {
			return c.refuse("only ext: identifiers of other systems are allowed")
		}
		return c.object(c.at)
	case '[':
		return c.list(key, c.at)
	}
	raw, ok := c.value()
	if ok && key == "id" {
		return c.identifier(raw)
	}
	return ok
}

func (c *checker) identifier(raw json.RawMessage) bool {
	s, isString := ParseString(raw)
	e := ExternalID(s)
	switch {
	case !isString:
		return c.refuse("only ext: identifiers of other systems are allowed, not " + string(raw))
	case !strings.HasPrefix(s, "ext:") || e.System() == "" || e.Key() == "" || strings.ContainsAny(s, "[],"):
		return c.refuse("only ext: identifiers of other systems are allowed, not " + s)
	case e.Of(c.system):
		return c.refuse(s + " belongs to flexid itself")
	}
	return true
}

// badKey is why a key must not stand in a document, "" if it may.
func badKey(key string) string {
	switch {
	case key == "winstrom":
		return "is an envelope; one event is one document (flexid push takes envelopes)"
	case key == "external-ids":
		return "is written by flexid"
	case refused(key):
		return "cannot be looked up afterwards and is not sent"
	}
	field, attribute, has := strings.Cut(key, "@")
	if !has {
		return ""
	}
	if field == "" {
		return "attributes of a record are written by flexid"
	}
	switch attribute {
	case "removeAll", "if-not-found", "encoding":
		return ""
	}
	return "attribute @" + attribute + " is not allowed"
}
