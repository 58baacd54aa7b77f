package api

import (
	"context"
	"errors"
	"iter"
	"sync"

	"flexid/verify"
	"flexid/verify/ledger"
)

// rows delivers every row for which want is true, as Ledger.List does. What f lets pass is among what want does. Where the engine
// knows that only a few documents can match, only those are read: a list of what waits must not cost more as the ledger grows.
func (b *Backend) rows(ctx context.Context, f Filter, want func(*ledger.Row) bool) iter.Seq2[ledger.Row, error] {
	if b.Finder == nil {
		return b.Ledger.List(ctx, want)
	}
	ids, ok := b.Finder.Candidates(f.Number, f.allows)
	if !ok {
		return b.Ledger.List(ctx, want)
	}
	return b.each(ctx, ids, want)
}

// readAtOnce is how many rows are read side by side.
const readAtOnce = 32

// each reads rows by their ids. A row that is gone is left out, one that cannot be read comes with its id and the error.
func (b *Backend) each(ctx context.Context, ids []ledger.ID, want func(*ledger.Row) bool) iter.Seq2[ledger.Row, error] {
	type read struct {
		row ledger.Row
		err error
	}
	return func(yield func(ledger.Row, error) bool) {
		for len(ids) > 0 {
			some := ids[:min(readAtOnce, len(ids))]
			ids = ids[len(some):]
			got := make([]read, len(some))
			var all sync.WaitGroup
			for i, id := range some {
				all.Go(func() { got[i].row, got[i].err = b.Ledger.Get(ctx, id) })
			}
			all.Wait()
			for i, r := range got {
				switch {
				case errors.Is(r.err, ledger.ErrNoRow):
					continue
				case ledger.Never(r.err):
					r.row = ledger.Row{ID: some[i]}
				case r.err != nil:
					yield(ledger.Row{}, r.err)
					return
				case !want(&r.row):
					continue
				}
				if !yield(r.row, r.err) {
					return
				}
			}
		}
	}
}

// Finder tells which documents a list may find; *verify.Engine meets it.
type Finder interface {
	Candidates(number string, states func(verify.Standing) bool) (ids []ledger.ID, ok bool)
}
