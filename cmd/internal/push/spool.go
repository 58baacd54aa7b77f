package push

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"flexid/verify"
)

// Entry is one event of the input.
type Entry struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Evidence string `json:"evidence"`
	Source   string `json:"source,omitempty"`
	Key      string `json:"key"`
	Derived  bool   `json:"derived,omitempty"` // the key was made from the number
	Op       string `json:"op"`
	Version  string `json:"version,omitempty"`
	Body     []byte `json:"-"`
}

// given is the key as the sender gave it, "" where it was made from the number: the daemon makes the same one, and knows that
// nobody gave it.
func (e *Entry) given() string {
	if e.Derived {
		return ""
	}
	return e.Key
}

// address is the document that the event is about.
func (e *Entry) address() verify.Address {
	return verify.Address{Evidence: e.Evidence, Source: e.Source, Key: e.Key}
}

// record is the fixed part of an event; it alone is rewritten.
type record struct {
	At      int64  // of the entry in the data file
	Head    uint32 // its length
	Body    uint32 // length of the document after it
	Words   int64  // of the result in the words file
	Length  uint32 // of it; 0 = none
	Outcome Outcome
	Over    bool
	_       [2]byte
}

const recordSize = 32

// Spool keeps the input and what became of it on disk. Appending is for one goroutine and ends with Flush; everything else
// may be called by several.
type Spool struct {
	data, index, words *os.File
	dataOut, indexOut  *bufio.Writer
	at                 int64

	mu      sync.Mutex
	n       int
	counts  Counts
	open    int // events that are not over
	wordsAt int64
}

// NewSpool makes a spool in dir, "" = the system's directory for temporary files.
func NewSpool(dir string) (*Spool, error) {
	s := &Spool{}
	for _, f := range []**os.File{&s.data, &s.index, &s.words} {
		file, err := os.CreateTemp(dir, "flexid-push-*")
		if err == nil {
			*f = file
			err = os.Remove(file.Name())
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("making a temporary file (TMPDIR says where): %w", err), s.Close())
		}
	}
	s.dataOut, s.indexOut = bufio.NewWriterSize(s.data, 64<<10), bufio.NewWriter(s.index)
	return s, nil
}

// Close gives the space back.
func (s *Spool) Close() error {
	var errs []error
	for _, f := range []*os.File{s.data, s.index, s.words} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Add appends an event that can be read.
func (s *Spool) Add(file string, line int, e *verify.Event) error {
	head, err := json.Marshal(Entry{File: file, Line: line, Evidence: e.Evidence, Source: e.Source, Key: e.Key, Derived: e.Derived, Op: string(e.Op), Version: e.Version})
	if err != nil {
		return fmt.Errorf("spooling an event: %w", err)
	}
	rec := record{At: s.at, Head: uint32(len(head)), Body: uint32(len(e.Body))}
	_, err1 := s.dataOut.Write(head)
	_, err2 := s.dataOut.Write(e.Body)
	if err := errors.Join(err1, err2, binary.Write(s.indexOut, binary.LittleEndian, &rec)); err != nil {
		return fmt.Errorf("spooling an event (TMPDIR says where): %w", err)
	}
	s.at += int64(len(head) + len(e.Body))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.open++
	s.counts[Unsent]++
	return nil
}

// Flush ends the appending.
func (s *Spool) Flush() error {
	if err := errors.Join(s.dataOut.Flush(), s.indexOut.Flush()); err != nil {
		return fmt.Errorf("spooling the input (TMPDIR says where): %w", err)
	}
	return nil
}

// Len is how many events there are.
func (s *Spool) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// Counts says how many events stand where, and how many of all are not over.
func (s *Spool) Counts() (c Counts, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts, s.open
}

func (s *Spool) record(i int) (rec record, err error) {
	recs, err := s.records(i, 1)
	if err != nil {
		return rec, err
	}
	return recs[0], nil
}

// records reads n of them at once.
func (s *Spool) records(i, n int) ([]record, error) {
	raw := make([]byte, n*recordSize)
	if _, err := s.index.ReadAt(raw, int64(i)*recordSize); err != nil {
		return nil, fmt.Errorf("reading the spool: %w", err)
	}
	recs := make([]record, n)
	_, err := binary.Decode(raw, binary.LittleEndian, recs)
	return recs, err
}

// Entry reads event i, counted from 0.
func (s *Spool) Entry(i int) (Entry, error) {
	entries, err := s.Entries(i, 1, 0)
	if err != nil {
		return Entry{}, err
	}
	return entries[0], nil
}

// Entries reads events from i on: at most count, and at least one, with bodies of at most so many bytes together.
func (s *Spool) Entries(i, count, bytes int) ([]Entry, error) {
	recs, err := s.records(i, max(1, min(count, s.Len()-i)))
	if err != nil {
		return nil, err
	}
	n, sum := 1, int(recs[0].Body)
	for n < len(recs) && sum+int(recs[n].Body) <= bytes {
		sum += int(recs[n].Body)
		n++
	}
	recs = recs[:n]
	begin, last := recs[0].At, recs[n-1]
	raw := make([]byte, last.At+int64(last.Head)+int64(last.Body)-begin)
	if _, err := s.data.ReadAt(raw, begin); err != nil {
		return nil, fmt.Errorf("reading the spool: %w", err)
	}
	entries := make([]Entry, n)
	for k, rec := range recs {
		head := raw[rec.At-begin:][:rec.Head]
		if err := json.Unmarshal(head, &entries[k]); err != nil {
			return nil, fmt.Errorf("reading the spool: %w", err)
		}
		entries[k].Body = raw[rec.At-begin+int64(rec.Head):][:rec.Body:rec.Body]
	}
	return entries, nil
}

// Standing says what is known of event i.
func (s *Spool) Standing(i int) (o Outcome, over bool, r Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, err := s.record(i)
	if err != nil || rec.Length == 0 {
		return rec.Outcome, rec.Over, r, err
	}
	raw := make([]byte, rec.Length)
	if _, err := s.words.ReadAt(raw, rec.Words); err != nil && !errors.Is(err, io.EOF) {
		return rec.Outcome, rec.Over, r, fmt.Errorf("reading the spool: %w", err)
	}
	return rec.Outcome, rec.Over, r, json.Unmarshal(raw, &r)
}

// Published notes that the stream has event i. A result may have come before the acknowledgement; it stays.
func (s *Spool) Published(i int) error { return s.AllPublished(i, 1) }

// AllPublished is Published for n events from i on.
func (s *Spool) AllPublished(i, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	recs, err := s.records(i, n)
	if err != nil {
		return err
	}
	for k := range recs {
		if recs[k].Outcome == Unsent {
			s.turn(&recs[k], Waiting, false)
		}
	}
	return s.write(i, recs...)
}

// Set notes what flexid says about event i and whether that was news. An event that is over is not opened again, and one
// that was confirmed does not become a repeated one: that is a second delivery of the same event.
func (s *Spool) Set(i int, r Result) (news bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i < 0 || i >= s.n {
		return false, nil
	}
	rec, err := s.record(i)
	if err != nil {
		return false, err
	}
	o, over := OutcomeOf(r.State, r.Reason)
	over = over || r.Held
	good := rec.Outcome == Confirmed || rec.Outcome == Adopted || rec.Outcome == Superseded
	if rec.Over && (!over || good && o == Repeated || rec.Outcome == o) {
		return false, nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	if _, err := s.words.WriteAt(raw, s.wordsAt); err != nil {
		return false, fmt.Errorf("spooling a result (TMPDIR says where): %w", err)
	}
	// The same state told again is no news, or an event that waits would be waited for without end.
	news = rec.Outcome != o || rec.Over != over
	rec.Words, rec.Length = s.wordsAt, uint32(len(raw))
	s.wordsAt += int64(len(raw))
	s.turn(&rec, o, over)
	return news, s.write(i, rec)
}

// turn changes where an event stands, and the counts with it.
func (s *Spool) turn(rec *record, o Outcome, over bool) {
	s.counts[rec.Outcome]--
	s.counts[o]++
	if over && !rec.Over {
		s.open--
	}
	rec.Outcome, rec.Over = o, over
}

// write stores the records of events from i on.
func (s *Spool) write(i int, recs ...record) error {
	raw := make([]byte, 0, len(recs)*recordSize)
	raw, err := binary.Append(raw, binary.LittleEndian, recs)
	if err != nil {
		return err
	}
	if _, err := s.index.WriteAt(raw, int64(i)*recordSize); err != nil {
		return fmt.Errorf("writing the spool (TMPDIR says where): %w", err)
	}
	return nil
}
