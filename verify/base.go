package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"flexid/flexi"
	"flexid/verify/compare"
	"flexid/verify/ledger"
)

// mostBase bounds how many events are read and folded to know how we left a record. Of more, the older half is folded once
// and stored: what an old event set must not be forgotten, or the record would look as if a person had changed it.
const mostBase = 50

// expected is the document as our events left it, nil where that is not known.
func (e *Engine) expected(ctx context.Context, row *ledger.Row) (json.RawMessage, error) {
	return fold(ctx, eventsOf{e.o.Ledger, row}, row.ID, row.Base)
}

// eventsOf reads the events of a row as of that row.
type eventsOf struct {
	from Events
	row  *ledger.Row
}

func (o eventsOf) Event(ctx context.Context, _ ledger.ID, n int) (ledger.Event, error) {
	return o.from.CachedEvent(ctx, o.row, n)
}

func fold(ctx context.Context, from EventReader, id ledger.ID, base []int) (json.RawMessage, error) {
	var bodies []json.RawMessage
	for _, n := range base {
		ev, err := from.Event(ctx, id, n)
		if err != nil {
			return nil, fmt.Errorf("reading event %d: %w", n, err)
		}
		if ev.Body != nil {
			bodies = append(bodies, ev.Body)
		}
	}
	if len(bodies) == 0 {
		return nil, nil
	}
	left, err := compare.Merge(bodies...)
	if err != nil {
		return nil, fmt.Errorf("folding %d events: %w", len(bodies), err)
	}
	return left, nil
}

// foldBase stores the older half of a long base under a key of its own, in place of these events: under the ordinal of the
// last of them, negative. Whoever folds the same events stores the same bytes, so a crash in between, or two replicas, do no
// harm. The shorter base becomes durable with the next change of the row.
func (e *Engine) foldBase(ctx context.Context, row *ledger.Row) error {
	if len(row.Base) <= mostBase {
		return nil
	}
	older := row.Base[:len(row.Base)/2]
	last := older[len(older)-1]
	left, err := fold(ctx, e.o.Ledger, row.ID, older)
	if err != nil {
		return err
	}
	folded := ledger.Event{N: -last, Op: flexi.Update, Body: left}
	makes, err := e.makes(ctx, row, older)
	if err != nil {
		return err
	}
	if makes {
		folded.Op = flexi.Create // it knows the document as a whole, see makes
	}
	err = e.o.Ledger.PutEvent(ctx, row.ID, folded)
	var large *ledger.TooLargeError
	switch {
	case errors.As(err, &large): // it cannot be compared with any more, which is no reason to hold the document up
		row.Base = nil
		return nil
	case err != nil:
		return fmt.Errorf("storing what the first %d events of %s/%s left: %w", last, row.Evidence, row.Key, err)
	}
	row.Base = append([]int{-last}, row.Base[len(older):]...)
	return nil
}
