package read

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// scanner finds where JSON values begin and end, by brackets and quotes alone. It keeps one value in memory.
type scanner struct {
	in    *bufio.Reader
	line  int
	yield func(Event) bool
	buf   []byte
}

// stop tells why the rest of the file cannot be understood.
func (s *scanner) stop(format string, args ...any) error {
	s.yield(Event{Line: s.line, Problem: fmt.Sprintf(format, args...)})
	return errStop
}

// next gives the next byte and counts lines.
func (s *scanner) next() (byte, error) {
	c, err := s.in.ReadByte()
	if c == '\n' && err == nil {
		s.line++
	}
	return c, err
}

// peek skips white space and gives the byte after it without taking it; io.EOF at the end.
func (s *scanner) peek() (byte, error) {
	for {
		c, err := s.next()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, s.in.UnreadByte()
		}
	}
}

// take skips white space and takes one byte, which must be among want.
func (s *scanner) take(want, where string) (byte, error) {
	c, err := s.peek()
	if errors.Is(err, io.EOF) {
		return 0, s.stop("the file ends %s", where)
	}
	if err != nil {
		return 0, err
	}
	for i := range len(want) {
		if want[i] == c {
			return s.next()
		}
	}
	return 0, s.stop("%q stands %s, where one of %q must be", c, where, want)
}

// value reads one value whose first byte is the next one. What is longer than an event may be is read and not kept.
func (s *scanner) value() (raw []byte, err error) {
	s.buf = s.buf[:0]
	begin, depth, quoted := s.line, 0, false
	for {
		c, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil, s.open(begin, quoted)
		}
		if err != nil {
			return nil, err
		}
		if depth == 0 && !quoted && len(s.buf) > 0 && (c == ',' || c == ']' || c == '}' || c <= ' ') {
			if c == '\n' {
				s.line--
			}
			return s.buf, s.in.UnreadByte() // the end of a number or a word
		}
		s.keep(c)
		switch {
		case quoted && c == '\n':
			return nil, s.open(begin, quoted)
		case quoted && c == '\\':
			if c, err = s.next(); err != nil {
				return nil, s.open(begin, quoted)
			}
			s.keep(c)
			continue
		case c == '"':
			quoted = !quoted
		case quoted:
			continue
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 && !quoted && (c == '"' || c == '}' || c == ']') {
			return s.buf, nil
		}
	}
}

func (s *scanner) keep(c byte) {
	if len(s.buf) < limit {
		s.buf = append(s.buf, c)
	}
}

// open is a value that does not end.
func (s *scanner) open(begin int, quoted bool) error {
	what := "a bracket"
	if quoted {
		what = "a quotation mark"
	}
	at := s.line
	s.line = begin
	return s.stop("%s of the event that begins here is not closed; seen in line %d", what, at)
}

// event reads one value as an event.
func (s *scanner) event(evidence string) error {
	line := s.line
	raw, err := s.value()
	if err != nil {
		return err
	}
	e := Event{Line: line, Evidence: evidence, Raw: raw}
	if len(raw) >= limit {
		e.Raw, e.Problem = nil, tooLong("event")
	}
	if !s.yield(e) {
		return errStop
	}
	return nil
}

// list reads the elements of a list as events, and with evidence "" the end of the file after it.
func (s *scanner) list(evidence string) error {
	if _, err := s.take("[", "before the list"); err != nil {
		return err
	}
	for n := 0; ; n++ {
		c, err := s.peek()
		switch {
		case errors.Is(err, io.EOF):
			return s.stop("the file ends inside the list")
		case err != nil:
			return err
		case c == ',' || c == '}' || c == ':':
			return s.stop("%q stands where an event of the list must begin", c)
		case c == ']' && n > 0:
			return s.stop("a comma stands before the end of the list")
		case c != ']':
			if err := s.event(evidence); err != nil {
				return err
			}
			if c, err = s.take(",]", "after an event of the list"); err != nil {
				return err
			}
		default:
			_, err = s.next()
		}
		if err != nil {
			return err
		}
		if c == ']' {
			break
		}
	}
	if evidence != "" {
		return nil
	}
	return s.end("the list")
}

func (s *scanner) end(what string) error {
	c, err := s.peek()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.stop("the file goes on after %s, with %q", what, c)
}

// objects reads objects that follow each other.
func (s *scanner) objects() error {
	for {
		c, err := s.peek()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c != '{':
			return s.stop("%q stands where an event must begin: a file is NDJSON, a list, an object or a winstrom envelope", c)
		}
		if err := s.event(""); err != nil {
			return err
		}
	}
}

// envelope reads {"winstrom":{"@version":"1.0","<evidence>":[…]}}.
func (s *scanner) envelope() error {
	if _, err := s.take("{", "before the envelope"); err != nil {
		return err
	}
	if _, err := s.key(); err != nil {
		return err
	}
	if _, err := s.take("{", "after winstrom"); err != nil {
		return err
	}
	for c := byte(','); c == ','; {
		if first, err := s.peek(); err == nil && first == '}' {
			_, _ = s.next() // was peeked
			break
		}
		key, err := s.key()
		if err != nil {
			return err
		}
		if err := s.member(key); err != nil {
			return err
		}
		if c, err = s.take(",}", "after "+key); err != nil {
			return err
		}
	}
	if _, err := s.take("}", "after the envelope"); err != nil {
		return err
	}
	return s.end("the envelope")
}

// member is what stands beside one key of the envelope: documents of an evidence, or an attribute.
func (s *scanner) member(key string) error {
	c, err := s.peek()
	switch {
	case errors.Is(err, io.EOF):
		return s.stop("the file ends after %q", key)
	case err != nil:
		return err
	case key == "" || key[0] == '@':
		if key == "@atomic" || key == "@globalVersion" || key == "@version" {
			_, err = s.value()
			return err
		}
		return s.stop("the envelope has %q, which flexid does not pass on: remove it", key)
	case c == '[':
		return s.list(key)
	case c == '{':
		return s.event(key)
	}
	return s.stop("beside %q stands neither a document nor a list", key)
}

// key reads "name":.
func (s *scanner) key() (string, error) {
	c, err := s.peek()
	if errors.Is(err, io.EOF) || err == nil && c != '"' {
		return "", s.stop("a name in quotation marks must stand here")
	}
	if err != nil {
		return "", err
	}
	raw, err := s.value()
	if err != nil {
		return "", err
	}
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		return "", s.stop("a name cannot be read: %v", err)
	}
	_, err = s.take(":", "after a name")
	return name, err
}
