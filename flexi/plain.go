package flexi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// What is written here is, byte for byte, what encoding/json writes of the same values with nothing escaped for HTML and the names of an
// object sorted. Digests of documents that are stored were made of it.

// plainJSON writes any value.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// appendRecord writes a record whose values are JSON.
func appendRecord(b []byte, rec map[string]json.RawMessage) []byte {
	b = append(b, '{')
	for i, name := range sortedKeys(rec) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, name), ':')
		b = appendCompact(b, rec[name])
	}
	return append(b, '}')
}

// appendCompact writes JSON without the blanks in it.
func appendCompact(b []byte, raw json.RawMessage) []byte {
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			b = append(b, c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			continue
		}
		b = append(b, raw[i])
	}
	return b
}

func appendString(b []byte, s string) []byte {
	for _, c := range []byte(s) {
		if c < ' ' || c == '"' || c == '\\' {
			return appendEncoded(b, s)
		}
	}
	if !isASCII(s) && (!utf8.ValidString(s) || strings.ContainsAny(s, "\u2028\u2029")) {
		return appendEncoded(b, s)
	}
	return append(append(append(b, '"'), s...), '"')
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func appendEncoded(b []byte, s string) []byte {
	out, err := plainJSON(s)
	if err != nil { // no string is one
		return append(b, `""`...)
	}
	return append(b, out...)
}

// appendCanonical writes the value that a scanner comes to with the names of every object sorted; of one that is there twice the last
// one counts.
func appendCanonical(b []byte, s *scanner) ([]byte, bool) {
	switch s.next() {
	case '{':
		return appendSorted(b, s)
	case '[':
		b = append(b, '[')
		ok := s.items(func(i int) (ok bool) {
			if i > 0 {
				b = append(b, ',')
			}
			b, ok = appendCanonical(b, s)
			return ok
		})
		return append(b, ']'), ok
	}
	raw, ok := s.value()
	if ok && raw[0] == '"' {
		return appendString(b, unquoted(raw)), true
	}
	return append(b, raw...), ok
}

// member is one of an object that is being written.
type member struct {
	name     string
	from, to int // where it is
}

func appendSorted(b []byte, s *scanner) ([]byte, bool) {
	b = append(b, '{')
	begin := len(b)
	var all []member
	sorted := true
	ok := s.members(func(name string) (ok bool) {
		if len(all) > 0 {
			sorted = sorted && all[len(all)-1].name < name
			b = append(b, ',')
		}
		m := member{name: name, from: len(b)}
		b, ok = appendCanonical(append(appendString(b, name), ':'), s)
		m.to = len(b)
		all = append(all, m)
		return ok
	})
	if !ok || sorted {
		return append(b, '}'), ok
	}
	slices.SortStableFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	was := slices.Clone(b[begin:])
	b = b[:begin]
	for i, m := range all {
		if i+1 < len(all) && all[i+1].name == m.name {
			continue
		}
		if len(b) > begin {
			b = append(b, ',')
		}
		b = append(b, was[m.from-begin:m.to-begin]...)
	}
	return append(b, '}'), true
}
