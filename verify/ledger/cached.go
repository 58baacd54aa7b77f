package ledger

import (
	"context"
	"maps"
	"slices"
)

// Cached is Get for a caller who stores this very row by compare-and-set before acting on it. It gives the row in hand if that is
// of revision least or newer, and asks the leader otherwise; held says which. A row in hand lacks what other processes wrote
// in the last moment.
func (l *Ledger) Cached(ctx context.Context, id ID, least uint64) (row Row, held bool, err error) {
	if value, revision := l.cache.row(id, least, l.linked()); value != nil {
		if row, err = rowOf(value, revision, id); err == nil {
			return row, true, nil
		}
	}
	life := l.cache.asking()
	row, value, err := l.row(ctx, id)
	if err == nil {
		l.cache.keepRow(id, value, row.Revision, life)
	}
	return row, false, err
}

// CachedEvent is Event for one that a row points at, as of that row: where nobody else has changed the row since the event was
// read or written here, the leader is not asked.
func (l *Ledger) CachedEvent(ctx context.Context, row *Row, n int) (Event, error) {
	have := l.cache.event(row.ID, n, row.Revision, l.linked())
	life := l.cache.asking()
	switch {
	case have.event != nil:
		return have.event.clone(), nil
	case have.value != nil:
		if ev, err := unmarshalEvent(have.value); err == nil && ev.N == n {
			own := ev.clone()
			l.cache.keepEvent(row.ID, n, row.Revision, cachedEvent{revision: have.revision, event: &own}, life)
			return ev, nil
		}
	}
	ev, revision, err := l.event(ctx, row.ID, n)
	if err == nil {
		own := ev.clone()
		l.cache.keepEvent(row.ID, n, row.Revision, cachedEvent{revision: revision, event: &own}, life)
	}
	return ev, err
}

// linked counts the connections to NATS that were made: after a new one the server may be another one, with another bucket, and
// the watch takes seconds to notice.
func (s *store) linked() uint64 {
	if s.js == nil || s.js.Conn() == nil {
		return 0
	}
	return s.js.Conn().Stats().Reconnects
}

// clone copies an event so deeply that no change of one shows in the other.
func (e *Event) clone() Event {
	c := *e
	c.Version = pointTo(e.Version)
	c.Whole = slices.Clone(e.Whole)
	c.Body, c.Raw = slices.Clone(e.Body), slices.Clone(e.Raw)
	c.Problem = e.Problem.clone()
	if e.Story != nil {
		story := e.Story.clone()
		c.Story = &story
	}
	c.Extra = maps.Clone(e.Extra) // raw values are never changed in place
	return c
}
