package api

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"flexid/verify/ledger"
)

func (s *Server) queue(w http.ResponseWriter, r *http.Request) error {
	b, err := s.backend()
	if err != nil {
		return err
	}
	f, err := ParseFilter(r.URL.Query())
	if err != nil {
		return newProblem(http.StatusBadRequest, err.Error(), "")
	}
	items, matched, err := s.waiting(r.Context(), b, f)
	if err != nil {
		return err
	}
	if len(items) < matched {
		w.Header().Set(HeaderMatched, strconv.Itoa(matched))
	}
	out := newRows(w, r)
	for i := range items {
		out.row(items[i])
	}
	return out.end()
}

// waiting lists what of the queue a filter lets pass, the oldest first. Of more than a list may sort the rest is only
// counted.
func (s *Server) waiting(ctx context.Context, b *Backend, f Filter) (items []Item, matched int, err error) {
	now := s.o.Now()
	stops := b.Reporter.Status().Stops
	byID := map[ledger.ID]Item{} // a document that changes meanwhile comes twice, the newer state last
	want := func(r *ledger.Row) bool { return Queued(r, now) && f.Match(r) }
	waits := f
	if len(waits.States) == 0 {
		waits.States = []string{string(ledger.Maybe), string(ledger.Parked), string(ledger.Queued)} // see Queued
	}
	for row, err := range b.rows(ctx, waits, want) {
		switch {
		case err != nil && row.ID == "":
			return nil, 0, err
		case err != nil:
			s.o.Log.Warn().Err(err).Str("row", string(row.ID)).Msg("a document cannot be listed")
			continue
		}
		if _, have := byID[row.ID]; !have {
			if matched++; matched > maxQueue {
				continue
			}
		}
		byID[row.ID] = ItemOf(&row, b.Decider.Choices(&row), stops, now)
	}
	items = slices.Collect(maps.Values(byID))
	slices.SortFunc(items, func(a, b Item) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key)) })
	return items, matched, nil
}

// maxQueue bounds the memory of one list of the queue.
const maxQueue = 50_000
