package verify_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// hook is a ledger whose calls a test may disturb; a nil function leaves the call alone.
type hook struct {
	verify.Ledger
	get    func(ctx context.Context, id ledger.ID) (ledger.Row, error)
	claim  func(ctx context.Context, rows []*ledger.Row) []error
	settle func(ctx context.Context, rows []*ledger.Row) []error
	watch  func(ctx context.Context) (<-chan ledger.Change, error)
	holder func(ctx context.Context, evidence, number string) (ledger.ID, bool, error)
	free   func(ctx context.Context, evidence, number string, owner ledger.ID) error
	gets   atomic.Int64
}

// under puts the hook between engine and ledger.
func (h *hook) under(b *bench) {
	b.wrap = func(l verify.Ledger) verify.Ledger { h.Ledger = l; return h }
}

func (h *hook) Get(ctx context.Context, id ledger.ID) (ledger.Row, error) {
	h.gets.Add(1)
	if h.get != nil {
		return h.get(ctx, id)
	}
	return h.Ledger.Get(ctx, id)
}

func (h *hook) Cached(ctx context.Context, id ledger.ID, least uint64) (ledger.Row, bool, error) {
	if h.get == nil {
		h.gets.Add(1)
		return h.Ledger.Cached(ctx, id, least)
	}
	row, err := h.Get(ctx, id)
	return row, false, err
}

func (h *hook) Claim(ctx context.Context, rows []*ledger.Row) []error {
	if h.claim != nil {
		return h.claim(ctx, rows)
	}
	return h.Ledger.Claim(ctx, rows)
}

func (h *hook) Settle(ctx context.Context, rows []*ledger.Row) []error {
	if h.settle != nil {
		return h.settle(ctx, rows)
	}
	return h.Ledger.Settle(ctx, rows)
}

func (h *hook) Watch(ctx context.Context) (<-chan ledger.Change, error) {
	if h.watch != nil {
		return h.watch(ctx)
	}
	return h.Ledger.Watch(ctx)
}

func (h *hook) HolderOf(ctx context.Context, evidence, number string) (ledger.ID, bool, error) {
	if h.holder != nil {
		return h.holder(ctx, evidence, number)
	}
	return h.Ledger.HolderOf(ctx, evidence, number)
}

func (h *hook) FreeNumber(ctx context.Context, evidence, number string, owner ledger.ID) error {
	if h.free != nil {
		return h.free(ctx, evidence, number, owner)
	}
	return h.Ledger.FreeNumber(ctx, evidence, number, owner)
}

// each is the same error for every row of a group.
func each(rows []*ledger.Row, err error) []error {
	errs := make([]error, len(rows))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// budget is a quota that is used up after so many requests, until its reset.
type budget struct {
	mu    sync.Mutex
	left  int
	reset time.Time
}

func (q *budget) Take(context.Context, string) (func(), error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Now().Before(q.reset) {
		if q.left == 0 {
			return nil, &flexi.QuotaError{Until: q.reset}
		}
		q.left--
	}
	return func() {}, nil
}
