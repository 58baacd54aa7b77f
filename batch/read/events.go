package read

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"

	"flexid/batch"
)

// Event is one event of a file, before anybody has judged it.
type Event struct {
	Line     int    // where it begins, from 1
	Evidence string // said by an envelope; "" in the other forms
	Raw      []byte // valid until the next event is asked for
	Problem  string // why it cannot be taken out of the file; then Raw is nil
}

// Formats that a caller may insist on; "" = look at name and content.
const (
	NDJSON = "ndjson"
	JSON   = "json"
)

// limit is how much of one event is kept; a longer one is reported and skipped.
const limit = batch.MaxEvent + 1

// Events reads one file; name is used for its extension only. A problem of the file is an Event with Problem; the error is
// of reading, and ends the sequence.
func Events(r io.Reader, name, format string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		// The first line is looked at as a whole, hence the size.
		s := &scanner{in: bufio.NewReaderSize(r, limit+4<<10), line: 1}
		err := s.file(name, format, func(e Event) bool { return yield(e, nil) })
		if err != nil && !errors.Is(err, errStop) {
			yield(Event{Line: s.line}, fmt.Errorf("reading line %d: %w", s.line, err))
		}
	}
}

// errStop: the caller wants no more, or the rest of the file cannot be understood and that was said.
var errStop = errors.New("stop")

func (s *scanner) file(name, format string, yield func(Event) bool) error {
	s.yield = yield
	head, err := s.in.Peek(s.in.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if plain := batch.Unmarked(head); len(plain) < len(head) {
		_, _ = s.in.Discard(len(head) - len(plain)) // was peeked
		head = plain
	}
	if what := batch.OtherFormat(head); what != "" {
		return s.stop("the file is %s", what)
	}
	body := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(body) == 0 && len(head) < limit:
		return nil
	case len(body) > 0 && body[0] == '[' && format != NDJSON:
		return s.list("")
	case isEnvelope(body) && format != NDJSON:
		return s.envelope()
	case format == NDJSON, format == "" && byLine(name, body):
		return s.lines()
	}
	return s.objects()
}

// byLine: the extension says so, or the first line is an event by itself.
func byLine(name string, body []byte) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".ndjson", ".jsonl":
		return true
	}
	first, _, _ := bytes.Cut(body, []byte("\n"))
	return json.Valid(first)
}

func isEnvelope(body []byte) bool {
	rest, ok := bytes.CutPrefix(body, []byte("{"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(`"winstrom"`))
}

// lines reads NDJSON. Empty lines are skipped; people put them in.
func (s *scanner) lines() error {
	for {
		text, err := s.in.ReadSlice('\n')
		line := s.line
		s.line++
		e := Event{Line: line, Raw: bytes.TrimSpace(text)}
		if errors.Is(err, bufio.ErrBufferFull) {
			e = Event{Line: line, Problem: tooLong("line")}
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = s.in.ReadSlice('\n')
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if (len(e.Raw) > 0 || e.Problem != "") && !s.yield(e) {
			return errStop
		}
		if err != nil {
			return nil
		}
	}
}

func tooLong(what string) string {
	return fmt.Sprintf("the %s has more than the %d bytes that an event may have", what, batch.MaxEvent)
}
