package ledger

import (
	"context"
	"slices"
)

// mostAside bounds how many rows set aside a document remembers; the ledger keeps and lists the others all the same.
const mostAside = 20

// aside is the value under a document, or under an event id, of which something was set aside.
type aside struct {
	Format int    `json:"format"`
	Rows   []ID   `json:"rows"` // the newest last
	Token  string `json:"token"`
}

// NoteAside notes that an event which names document meant lies in row: whoever looks for the document or for the event id
// finds it there. It is called before the row is made, so one that is not there is no fault.
func (l *Ledger) NoteAside(ctx context.Context, meant ID, eventID string, row ID) error {
	for _, key := range []string{asideKey(meant), asideEventKey(eventID)} {
		if err := l.noteAside(ctx, key, row); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) noteAside(ctx context.Context, key string, row ID) error {
	for {
		var have aside
		rev, err := l.load(ctx, key, &have)
		if err != nil || slices.Contains(have.Rows, row) {
			return err
		}
		rows := append(have.Rows, row)
		next := aside{Format: Format, Rows: rows[max(0, len(rows)-mostAside):], Token: l.token()}
		if err = l.save(ctx, key, next, rev); !lostRace(err) {
			return err
		}
	}
}

// AsideOf gives the rows of events that name a document and were set aside, the newest last.
func (l *Ledger) AsideOf(ctx context.Context, meant ID) ([]ID, error) {
	return l.asides(ctx, asideKey(meant))
}

// AsideEvent gives the rows in which events with an id were set aside, the newest last.
func (l *Ledger) AsideEvent(ctx context.Context, eventID string) ([]ID, error) {
	return l.asides(ctx, asideEventKey(eventID))
}

func (l *Ledger) asides(ctx context.Context, key string) ([]ID, error) {
	var have aside
	_, err := l.load(ctx, key, &have)
	return have.Rows, err
}
