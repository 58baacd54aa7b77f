package push

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"flexid/verify/ledger"
)

// Row is one event in the report.
type Row struct {
	Entry
	Outcome Outcome `json:"outcome"`
	EventID string  `json:"event_id"`
	Result
}

// Text is why it stands there: the ERP's words, else ours.
func (r *Row) Text() string {
	texts := make([]string, len(r.Errors))
	for i, m := range r.Errors {
		texts[i] = m.String()
	}
	return strings.Join(texts, "; ")
}

// Good outcomes need nobody's attention.
func (o Outcome) Good() bool {
	return o == Confirmed || o == Adopted || o == Repeated || o == Superseded
}

// Good says that the event needs nobody's attention: also one whose content a person had dropped before it came again.
func (r *Row) Good() bool {
	return r.Outcome.Good() || r.Outcome == Dropped && r.Reason == ledger.Repeated
}

// Rows gives every event with what became of it, in the order of the input, until each returns an error.
func (s *Spool) Rows(run string, each func(*Row) error) error {
	const many, bytes = 500, 1 << 20 // that are read at once
	for i := 0; i < s.Len(); {
		entries, err := s.Entries(i, many, bytes)
		if err != nil {
			return err
		}
		for _, e := range entries {
			o, _, result, err := s.Standing(i)
			if err != nil {
				return err
			}
			if err := each(&Row{Entry: e, Outcome: o, EventID: eventID(run, i), Result: result}); err != nil {
				return err
			}
			i++
		}
	}
	return nil
}

// Report writes the run as one JSON object: run, events, counts and the rows. It is written row by row, whatever its length.
func Report(w io.Writer, run string, s *Spool) error {
	counts, _ := s.Counts()
	head, err := json.Marshal(counts.Map())
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "{\"run\":%q,\"events\":%d,\"counts\":%s,\"documents\":[", run, s.Len(), head); err != nil {
		return err
	}
	before := "\n"
	err = s.Rows(run, func(row *Row) error {
		line, err := json.Marshal(row)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s%s", before, line)
		}
		before = ",\n"
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}
