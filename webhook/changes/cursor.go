package changes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// cursorKey is where the cursor lies in the store.
const cursorKey = "changes.cursor"

// cursor is what is stored. Next is the version from which on nothing has been read.
type cursor struct {
	Next int64     `json:"next"`
	At   time.Time `json:"at"`

	revision uint64
}

func (r *Reader) load(ctx context.Context) (cursor, error) {
	var at cursor
	value, revision, err := r.o.Store.Get(ctx, cursorKey)
	if err != nil {
		return at, fmt.Errorf("reading the cursor of changes: %w", err)
	}
	if revision == 0 {
		return at, nil
	}
	if err := json.Unmarshal(value, &at); err != nil || at.Next < 1 {
		return at, fmt.Errorf("the cursor of changes (%s in the state bucket) cannot be read: %q", cursorKey, value)
	}
	at.revision = revision
	return at, nil
}

// move stores the cursor; a cursor that stands still is not written.
func (r *Reader) move(ctx context.Context, at *cursor, next int64) error {
	if next != at.Next || at.revision == 0 {
		to := cursor{Next: next, At: r.o.Now().UTC()}
		value, err := json.Marshal(to)
		if err != nil {
			return fmt.Errorf("writing the cursor of changes: %w", err)
		}
		if to.revision, err = r.o.Store.Update(ctx, cursorKey, value, at.revision); err != nil {
			return fmt.Errorf("moving the cursor of changes to %d: %w", next, err)
		}
		*at = to
	}
	r.o.Read(at.Next)
	return nil
}
