package ledger

import (
	"context"
	"errors"
	"maps"
)

// Append adds an event to the end of a document's queue and makes the row if there is none; template gives ID, Evidence,
// Source, Key and Ext of a new row. When it returns without error, event and row are durable. modify, if not nil, sets
// further fields of the row in the same compare-and-set; it sees the row with the new Tail, and it is called again with a
// fresh row when somebody else was faster, so it must only touch the row.
//
// An event with the same EventID from the same place in the same stream is not added again: the row comes back with
// ErrHave, and its message is done. Events of a row that is being sent may be appended: the sender's next write conflicts
// and it reads again. Other errors are those of Get and Claim.
func (l *Ledger) Append(ctx context.Context, template Row, ev Event, modify func(*Row)) (Row, error) {
	for {
		row, err := l.Get(ctx, template.ID)
		if errors.Is(err, ErrNoRow) {
			row = freshRow(template)
		} else if err != nil {
			return row, err
		}
		have, err := l.has(ctx, &row, ev)
		if err != nil {
			return row, err
		}
		if have {
			return row, ErrHave
		}
		err = l.appendTo(ctx, &row, ev, modify)
		if !lostRace(err) {
			return row, err
		}
	}
}

func freshRow(t Row) Row {
	return Row{
		Format: Format, ID: t.ID, Evidence: t.Evidence, Source: t.Source, Key: t.Key, Ext: t.Ext,
		State: Queued,
	}
}

// appendTo is steps 2 and 3 of the package comment.
func (l *Ledger) appendTo(ctx context.Context, row *Row, ev Event, modify func(*Row)) error {
	ev.N = row.Tail + 1
	if err := l.roomFor(row.ID, &ev); err != nil {
		return err
	}
	if err := l.place(ctx, row, ev); err != nil {
		return err
	}
	row.Tail = ev.N
	if ev.Stream.Seq > 0 {
		row.Seen = maps.Clone(row.Seen)
		if row.Seen == nil {
			row.Seen = map[string]uint64{}
		}
		row.Seen[ev.Stream.Stream] = max(row.Seen[ev.Stream.Stream], ev.Stream.Seq)
	}
	if modify != nil {
		modify(row)
	}
	most, _, bare := limits(l.payload())
	if err := row.bare(bare); err != nil {
		return err
	}
	return l.writeRow(ctx, row, most)
}

// roomFor checks that the event can be stored, and stored again with the story of its end: one that only just fits could
// never be closed.
func (l *Ledger) roomFor(id ID, ev *Event) error {
	payload := l.payload()
	if payload <= 0 {
		return nil
	}
	const head = 4 << 10 // names and subject
	size := head + len(ev.Body) + len(ev.Raw)*4/3 + int(min(maxRow, payload/4))
	if int64(size) > payload {
		return &TooLargeError{Key: eventKey(id, ev.N), Bytes: size}
	}
	return nil
}

// place stores the event that the row does not point at yet. What lies there is left from an append that was cut short,
// or belongs to one that is running.
func (l *Ledger) place(ctx context.Context, row *Row, ev Event) error {
	_, err := l.writeEvent(ctx, row.ID, ev, 0)
	if !lostRace(err) {
		return err
	}
	other, rev, err := l.event(ctx, row.ID, ev.N)
	if err != nil && rev == 0 {
		return err
	}
	if err != nil || !sameEvent(other, ev) {
		most, _, _ := limits(l.payload())
		if err := l.writeRow(ctx, row, most); err != nil {
			return err
		}
	}
	_, err = l.writeEvent(ctx, row.ID, ev, rev)
	return err
}

// has looks for the event among those of the row. All that was appended is at or below Seen, so the usual event, the
// newest of its stream, costs no read.
func (l *Ledger) has(ctx context.Context, row *Row, ev Event) (bool, error) {
	if ref := ev.Stream; ref.Seq > row.Seen[ref.Stream] {
		return false, nil
	}
	for n := row.Tail; n >= 1; n-- {
		old, err := l.Event(ctx, row.ID, n)
		if errors.Is(err, ErrNoEvent) {
			continue
		}
		if err != nil {
			return false, err
		}
		if sameEvent(old, ev) {
			return true, nil
		}
	}
	return false, nil
}

// sameEvent says that it is the same message, not only the same id; a sender may use one id twice.
func sameEvent(a, b Event) bool { return a.EventID == b.EventID && sameRef(a.Stream, b.Stream) }

// sameRef compares time and sequence: sequences can be used again after a power cut, so the time of storing counts too.
func sameRef(a, b StreamRef) bool {
	return a.Stream == b.Stream && a.Seq == b.Seq && a.Time.Equal(b.Time)
}
