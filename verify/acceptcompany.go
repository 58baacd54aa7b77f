package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexid/verify/ledger"
)

// acceptWaits is how long an acceptance waits for the ledger to be read.
const acceptWaits = 20 * time.Second

// AcceptCompany lets writes go on after the company behind the address changed. restored: every document that is over has to be
// looked at before its next event, because the books may lack it, or have again what was deleted. new: nothing that the ledger
// says about Flexi counts any more; rows are not touched until their next event, and stay readable.
func (e *Engine) AcceptCompany(ctx context.Context, how, by, why string) error {
	if by == "" || why == "" {
		return &DecisionError{Text: "say who accepts the company and why"}
	}
	switch how {
	case "new":
	case "restored":
		select {
		case <-e.ready: // before that nobody knows which documents there are
		case <-time.After(acceptWaits):
			return &DecisionError{Retry: true, Text: "the ledger is still being read: accept the company in a moment"}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := e.requestChecks(ctx); err != nil {
			return err
		}
	default:
		return &DecisionError{Text: "accept the company as --new or as --restored"}
	}
	if err := e.markAccepted(ctx, how == "new"); err != nil {
		return err
	}
	if e.o.Accepted != nil {
		if err := e.o.Accepted(ctx); err != nil {
			return err
		}
	}
	err := e.changeStops(ctx, nil, func(st Stop) bool {
		return st.Evidence == "" && otherBooks(st.Reason)
	})
	if err != nil {
		return err
	}
	e.o.Log.Info().Str("by", by).Str("why", why).Str("how", how).Msg("company accepted")
	return nil
}

// markAccepted begins the marks anew, durably, before any write may go.
func (e *Engine) markAccepted(ctx context.Context, other bool) error {
	for {
		stored, rev, err := e.o.Ledger.Marks(ctx)
		if err != nil {
			return fmt.Errorf("reading how far the books were seen: %w", e.storeError(err))
		}
		next := ledger.Marks{Era: max(stored.Era, e.marks.era()), Accepted: acceptedAt(e.o.Now(), stored.Accepted, e.marks.accepted()), Extra: stored.Extra}
		if other {
			next.Era++
		}
		err = e.o.Ledger.SetMarks(ctx, next, rev)
		var conflict *ledger.ConflictError
		switch {
		case err == nil:
			e.marks.set(next)
			e.startOver(other)
			return nil
		case !errors.As(err, &conflict):
			return fmt.Errorf("storing that the company was accepted: %w", e.storeError(err))
		}
	}
}

// acceptedAt is the time of an acceptance: after those before it, also where the clock was set back since. The latest one counts,
// and one that seemed older would be void.
func acceptedAt(now time.Time, before ...time.Time) time.Time {
	at := now.UTC().Round(0)
	for _, t := range before {
		if !at.After(t.Round(0)) {
			at = t.UTC().Round(0).Add(time.Millisecond)
		}
	}
	return at
}

// requestChecks asks for a look at every document, whatever became of its last event.
func (e *Engine) requestChecks(ctx context.Context) error {
	for _, id := range e.scheduler.all() {
		err := e.requestCheck(ctx, id)
		if ledger.Never(err) { // it would fail each time, and nobody could ever accept
			e.o.Log.Error().Err(err).Str("row", string(id)).Msg("this document cannot be marked for a look: see in Flexi that it is there")
			continue
		}
		if err != nil {
			return fmt.Errorf("marking every document for a look: %w", err)
		}
	}
	return nil
}

// requestCheck marks one document for a look, as often as somebody else is faster.
func (e *Engine) requestCheck(ctx context.Context, id ledger.ID) error {
	for {
		row, err := e.o.Ledger.Get(ctx, id)
		if errors.Is(err, ledger.ErrNoRow) || errors.Is(err, ledger.ErrNewer) {
			return nil
		}
		if err != nil {
			return err
		}
		if row.Era < e.marks.era() || row.Last == nil && (row.Work == nil || !row.Work.Final) {
			return nil // of another company, or its event in hand looks for itself
		}
		e.present(&row)
		row.ReadBack, row.LookOnce, row.Updated = e.o.Now(), true, e.o.Now()
		if last := row.Last; last != nil && last.At.After(row.Updated) { // the clock was ahead: it comes before the acceptance all the same
			before := *last
			before.At = row.Updated.Add(-time.Second)
			row.Last = &before
		}
		e.express(&row)
		err = e.o.Ledger.Settle(ctx, []*ledger.Row{&row})[0]
		var conflict *ledger.ConflictError
		switch {
		case err == nil:
			e.arrived(&row) // a worker that has the row does not know of this yet
			return nil
		case !errors.As(err, &conflict):
			return err
		}
	}
}
