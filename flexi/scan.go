package flexi

import (
	"encoding/json"
	"unicode/utf8"
)

// scanner goes through JSON where it lies. A document is read many times in its life, each time for some of its fields, and a library
// that decodes all of them costs several times as much. It takes for JSON what encoding/json takes for it, neither more nor less. The
// values that it gives are parts of the text: nobody may change them.
//
// Its methods give false where the text goes on otherwise than JSON does; what was read by then is worth nothing.
type scanner struct {
	text  []byte
	at    int
	depth int
}

// mostNested is how deep encoding/json goes.
const mostNested = 10_000

// next is the first byte of what comes after blanks, 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.text); s.at++ {
		if c := s.text[s.at]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// take passes over one byte, after blanks.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

// over says that only blanks are left.
func (s *scanner) over() bool { s.next(); return s.at == len(s.text) }

// value passes over a value.
func (s *scanner) value() (value json.RawMessage, ok bool) {
	c := s.next()
	from := s.at
	switch c {
	case '{':
		ok = s.members(nil)
	case '[':
		ok = s.items(nil)
	case '"':
		ok = s.quoted()
	case 't':
		ok = s.word("true")
	case 'f':
		ok = s.word("false")
	case 'n':
		ok = s.word("null")
	default:
		ok = s.number()
	}
	return s.text[from:s.at:s.at], ok
}

// members passes over an object. each is called with the name of every member and passes over its value; nil for whoever wants none.
func (s *scanner) members(each func(name string) bool) bool {
	if !s.open('{') {
		return false
	}
	if s.take('}') {
		s.depth--
		return true
	}
	for {
		if s.next() != '"' {
			return false
		}
		from := s.at
		if !s.quoted() {
			return false
		}
		name := s.text[from:s.at]
		if !s.take(':') || !s.member(name, each) {
			return false
		}
		if s.take('}') {
			s.depth--
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) member(name []byte, each func(string) bool) bool {
	if each != nil {
		return each(unquoted(name))
	}
	_, ok := s.value()
	return ok
}

// items passes over a list. each is called for every item and passes over it; nil for whoever wants none.
func (s *scanner) items(each func(i int) bool) bool {
	if !s.open('[') {
		return false
	}
	if s.take(']') {
		s.depth--
		return true
	}
	for i := 0; ; i++ {
		ok := false
		if each != nil {
			ok = each(i)
		} else {
			_, ok = s.value()
		}
		switch {
		case !ok:
			return false
		case s.take(']'):
			s.depth--
			return true
		case !s.take(','):
			return false
		}
	}
}

func (s *scanner) open(c byte) bool {
	s.depth++
	return s.take(c) && s.depth <= mostNested
}

// quoted passes over a string. Bytes that are no UTF-8 are left to whoever reads it, as encoding/json does.
func (s *scanner) quoted() bool {
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return true
		case c < ' ':
			return false
		case c == '\\':
			if s.at++; !s.escape() {
				return false
			}
		}
	}
	return false
}

// escape stands after the back-slash, and stays on the last byte of what belongs to it.
func (s *scanner) escape() bool {
	if s.at >= len(s.text) {
		return false
	}
	switch s.text[s.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.at++; s.at >= len(s.text) || !isHex(s.text[s.at]) {
				return false
			}
		}
		return true
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (s *scanner) word(w string) bool {
	if len(s.text)-s.at < len(w) || string(s.text[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

func (s *scanner) number() bool {
	s.passes('-')
	if !s.passes('0') && !s.digits() {
		return false
	}
	if s.passes('.') && !s.digits() {
		return false
	}
	if s.passes('e') || s.passes('E') {
		if !s.passes('-') {
			s.passes('+')
		}
		return s.digits()
	}
	return true
}

// passes is take without blanks.
func (s *scanner) passes(c byte) bool {
	if s.at >= len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

// unquoted is the text of a string that was scanned.
func unquoted(raw []byte) string {
	plain := raw[1 : len(raw)-1]
	ascii := true
	for _, c := range plain {
		if c == '\\' {
			return resolved(raw)
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if !ascii && !utf8.Valid(plain) {
		return resolved(raw)
	}
	return string(plain)
}

// resolved resolves escapes and what is no UTF-8.
func resolved(raw []byte) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// ParseRecord reads a JSON object for its fields; nil for anything else. Of a field that is there twice it gives the last one. Values
// are parts of raw, as they are written there: nobody may change them.
func ParseRecord(raw json.RawMessage) Record {
	s := scanner{text: raw}
	if s.next() != '{' {
		return nil
	}
	r := Record{}
	ok := s.members(func(name string) bool {
		value, ok := s.value()
		r[name] = value
		return ok
	})
	if !ok || !s.over() {
		return nil
	}
	return r
}

// ParseList reads a JSON list for its items, as ParseRecord does; ok is false for anything else.
func ParseList(raw json.RawMessage) (items []json.RawMessage, ok bool) {
	s := scanner{text: raw}
	if s.next() != '[' {
		return nil, false
	}
	items = []json.RawMessage{}
	ok = s.items(func(int) bool {
		item, ok := s.value()
		items = append(items, item)
		return ok
	})
	if !ok || !s.over() {
		return nil, false
	}
	return items, true
}

// ParseString reads a JSON string; ok is false for anything else.
func ParseString(raw json.RawMessage) (text string, ok bool) {
	s := scanner{text: raw}
	if s.next() != '"' {
		return "", false
	}
	from := s.at
	if !s.quoted() {
		return "", false
	}
	to := s.at
	return unquoted(raw[from:to]), s.over()
}
