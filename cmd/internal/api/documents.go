package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// HeaderMatched tells how many rows matched a list that was cut by its limit, HeaderUnreadable how many rows this version
// cannot read: those match no filter and must not be missing unsaid.
const (
	HeaderMatched    = "Flexid-Matched"
	HeaderUnreadable = "Flexid-Unreadable"
)

func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	b, err := s.backend()
	if err != nil {
		return err
	}
	f, err := ParseFilter(r.URL.Query())
	if err != nil {
		return newProblem(http.StatusBadRequest, err.Error(), "")
	}
	if f.Limit == 0 || f.Limit > maxSorted {
		return s.stream(w, r, b, f)
	}
	found, err := newest(r.Context(), b, f)
	if err != nil {
		return err
	}
	w.Header().Set(HeaderMatched, strconv.Itoa(found.matched))
	if found.unreadable > 0 {
		w.Header().Set(HeaderUnreadable, strconv.Itoa(found.unreadable))
	}
	out := newRows(w, r)
	for i := range found.rows {
		out.row(found.rows[i])
	}
	return out.end()
}

// listing is the sorted answer to a filter.
type listing struct {
	rows                []Row
	matched, unreadable int
}

// newest keeps the limit rows that changed last and counts the rest, in memory for the limit only.
func newest(ctx context.Context, b *Backend, f Filter) (listing, error) {
	var found listing
	for row, err := range b.rows(ctx, f, f.Match) {
		switch {
		case err != nil && row.ID == "":
			return found, err
		case err != nil:
			found.unreadable++
			continue
		}
		found.matched++
		if found.rows = append(found.rows, RowOf(&row)); len(found.rows) >= 2*f.Limit {
			found.rows = latest(found.rows, f.Limit)
		}
	}
	found.rows = latest(found.rows, f.Limit)
	return found, nil
}

// latest sorts by the last change and cuts. A document that changed while the list was read came twice: only its newer
// state stays.
func latest(rows []Row, limit int) []Row {
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.Key, b.Key)) })
	seen := make(map[verify.Address]bool, len(rows))
	rows = slices.DeleteFunc(rows, func(r Row) bool {
		a := verify.Address{Evidence: r.Evidence, Source: r.Source, Key: r.Key}
		twice := seen[a]
		seen[a] = true
		return twice
	})
	return rows[:min(len(rows), limit)]
}

// stream sends rows as the store yields them. The status is out when the first row is: a later failure breaks the
// connection, so that half a list cannot be taken for the whole.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, b *Backend, f Filter) error {
	out := newRows(w, r)
	sent := 0
	for row, err := range b.rows(r.Context(), f, f.Match) {
		if err != nil && row.ID != "" {
			s.o.Log.Warn().Err(err).Str("row", string(row.ID)).Msg("a document cannot be listed")
			continue
		}
		if err != nil && sent == 0 {
			return err
		}
		if err != nil {
			s.o.Log.Error().Err(err).Msg("a list of documents broke off")
			panic(http.ErrAbortHandler)
		}
		out.row(RowOf(&row))
		if sent++; f.Limit > 0 && sent == f.Limit {
			break
		}
	}
	return out.end()
}

// rowWriter writes a JSON array or NDJSON, whatever the client asked for.
type rowWriter struct {
	w      http.ResponseWriter
	lines  bool
	n      int
	failed error
}

func newRows(w http.ResponseWriter, r *http.Request) *rowWriter {
	lines := r.URL.Query().Get("format") == "ndjson" || strings.Contains(r.Header.Get("Accept"), "ndjson")
	return &rowWriter{w: w, lines: lines}
}

func (o *rowWriter) row(v any) {
	if o.failed != nil {
		return
	}
	data, err := json.Marshal(v)
	if err != nil {
		o.failed = err
		return
	}
	before := "\n"
	switch {
	case o.n == 0:
		before = o.head()
	case !o.lines:
		before = ",\n"
	}
	o.n++
	_, o.failed = o.w.Write(append([]byte(before), data...))
}

func (o *rowWriter) head() string {
	if o.lines {
		o.w.Header().Set("Content-Type", "application/x-ndjson")
		return ""
	}
	o.w.Header().Set("Content-Type", "application/json")
	return "[\n"
}

func (o *rowWriter) end() error {
	tail := "\n"
	if !o.lines {
		tail = "\n]\n"
	}
	if o.n == 0 {
		tail = o.head()
		if !o.lines {
			tail = "[]\n"
		}
	}
	if o.failed == nil {
		_, o.failed = o.w.Write([]byte(tail))
	}
	if o.failed != nil {
		// The client went away, or a row cannot be written; the status is out.
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *Server) show(w http.ResponseWriter, r *http.Request) error {
	b, err := s.backend()
	if err != nil {
		return err
	}
	a, err := s.find(r.Context(), b.Ledger, r.PathValue("evidence")+"/"+r.PathValue("key"))
	if err != nil {
		return err
	}
	story, err := ReadStory(r.Context(), b.Ledger, s.rowID(a))
	if err != nil {
		return err
	}
	row, err := b.Ledger.Get(r.Context(), s.rowID(a))
	if err != nil {
		return err
	}
	if row.State != ledger.Confirmed && row.State != ledger.Dropped {
		it := ItemOf(&row, b.Decider.Choices(&row), b.Reporter.Status().Stops, s.o.Now())
		story.Waits, story.Who, story.Can, story.Revision = it.Text, it.Owner, it.Can, it.Revision
	}
	return answer(w, story)
}

// find resolves an address by asking the ledger for each reading of it.
func (s *Server) find(ctx context.Context, l Ledger, text string) (verify.Address, error) {
	readings, ok := ParseAddress(text)
	if !ok {
		return verify.Address{}, newProblem(http.StatusBadRequest, strconv.Quote(text)+" is not an address",
			"write EVIDENCE/[SOURCE:]KEY, such as faktura-vydana/FV-2026-001")
	}
	asked := readings[len(readings)-1]
	for _, a := range readings { // a key that came from the number is kept as Flexi writes it
		if number := flexi.NormaliseNumber(a.Evidence, a.Key); number != a.Key {
			a.Key = number
			readings = append(readings, a)
		}
	}
	for _, a := range readings {
		switch _, err := l.Get(ctx, s.rowID(a)); {
		case err == nil:
			return a, nil
		case !errors.Is(err, ledger.ErrNoRow):
			return a, err
		}
	}
	for _, a := range readings { // known by its sender's key alone: it could not be stored under it
		rows, err := asideOf(ctx, l, s.rowID(a))
		if err != nil {
			return a, err
		}
		if n := len(rows); n > 0 {
			return verify.Address{Evidence: rows[n-1].Evidence, Source: rows[n-1].Source, Key: rows[n-1].Key}, nil
		}
	}
	return verify.Address{}, &verify.NotFoundError{Address: asked}
}

// asideOf lists what was set aside of a document, the newest last.
func asideOf(ctx context.Context, l Ledger, id ledger.ID) ([]Row, error) {
	ids, err := l.AsideOf(ctx, id)
	if err != nil && !ledger.Never(err) {
		return nil, fmt.Errorf("reading what was set aside: %w", err)
	}
	var rows []Row
	for _, id := range ids {
		row, err := l.Get(ctx, id)
		if errors.Is(err, ledger.ErrNoRow) {
			continue // noted, and not made yet
		}
		if err != nil {
			return nil, fmt.Errorf("reading what was set aside: %w", err)
		}
		rows = append(rows, RowOf(&row))
	}
	return rows, nil
}

func answer(w http.ResponseWriter, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n')) // a client that went away is not an error of ours
	return nil
}
