package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"flexid/verify/ledger"
)

// stepResult says how to go on with a document after one step.
type stepResult struct {
	goOn bool      // something changed: take the next step at once
	at   time.Time // nothing to do before; kept in memory only
}

// waitUntil is a step that has nothing to do before a moment.
func waitUntil(t time.Time) stepResult { return stepResult{at: t} }

// continueNow is a step that changed something: the next one follows at once.
func continueNow() stepResult { return stepResult{goOn: true} }

// mostSteps bounds one visit of a document, so that a fault of ours can never spin.
const mostSteps = 64

// advance takes a document as far as it goes now. It is the one way for a first send, a redelivery, a restart and a person's
// resend; the row alone says where it stands. It returns when the document wants attention again.
//
// 1. Read the row, in hand or from the leader, and bring its instants to our clock.
// 2. A row in hand that acts before it stores is read from the leader first.
// 3. Take one step; after a conflict begin anew with the leader's row.
// 4. Go on while steps change something.
func (e *Engine) advance(ctx, work context.Context, id ledger.ID, seen observation) time.Time {
	var row *ledger.Row
	least := seen.revision // a row in hand that is older than what the scheduler has seen would be put away with what it lacks
	var hint uint64        // revision of a row in hand that no compare-and-set has proved yet
	moved := false
	for range mostSteps {
		if ctx.Err() != nil {
			return e.o.Now()
		}
		if row == nil {
			got, inHand, err := e.o.Ledger.Cached(ctx, id, least)
			switch {
			case errors.Is(err, ledger.ErrNewer):
				return time.Time{}
			case err != nil:
				return e.retrySoon(ctx, "reading a row", id, err)
			}
			row, hint, least = &got, 0, fromLeader
			moved = e.present(row)
			e.forgetOld(row)
			if inHand {
				hint = row.Revision
			} else {
				// What another replica has just done is known here before the watch tells of it. Without it the scheduler would give
				// the document out again at once, for as long as the watch is late.
				e.put(row, e.due(row), true)
			}
		}
		if row.Revision == hint && actsFirst(row) {
			row = nil
			continue
		}
		var t stepResult
		var err error
		if moved && row.State != ledger.Sending {
			t, err = continueNow(), e.save(ctx, row)
		} else {
			t, err = e.step(ctx, work, row, seen)
		}
		moved = false
		var conflict *ledger.ConflictError
		switch {
		case errors.As(err, &conflict):
			row = nil // somebody else wrote: what we know is old
		case err != nil:
			if e.hopeless(row, err) && ctx.Err() == nil {
				return e.giveUp(ctx, id, err)
			}
			return e.retrySoon(ctx, "working on "+row.Evidence+"/"+row.Key, id, err)
		case t.goOn:
		case !t.at.IsZero():
			return t.at
		default:
			return e.due(row)
		}
	}
	return e.o.Now().Add(time.Second)
}

// fromLeader as the least revision asks the leader.
const fromLeader = math.MaxUint64

// actsFirst says that the next step of a row notifies somebody, or writes another key of the ledger, before it stores the row. On
// a row in hand that somebody has changed it would notify twice of what became of an event, or leave an older story of it.
func actsFirst(row *ledger.Row) bool {
	w := row.Work
	return len(row.ToNotify) > 0 || len(row.Parkings) > 0 || w != nil && w.Final && row.More()
}

// retrySoon logs what hindered a step and has it tried again soon: nothing is lost, the row is as it was.
func (e *Engine) retrySoon(ctx context.Context, doing string, id ledger.ID, err error) time.Time {
	e.noteTrouble(err)
	if ctx.Err() == nil {
		e.o.Log.Warn().Err(err).Str("row", string(id)).Msg(doing)
	}
	return e.o.Now().Add(time.Second + time.Duration(e.o.Rand()*float64(4*time.Second)))
}

// step does the next thing a row wants. Every change of state in it is one compare-and-set.
func (e *Engine) step(ctx, work context.Context, row *ledger.Row, seen observation) (stepResult, error) {
	now := e.o.Now()

	// 1. A send that nobody here runs: by an earlier run of ours it is over, by somebody else only after his lease.
	if row.State == ledger.Sending {
		return e.unattended(ctx, row, seen)
	}

	// 2. Notifications that the stream has not stored yet.
	if len(row.ToNotify) > 0 || len(row.Parkings) > 0 {
		return e.notify(ctx, row)
	}

	// 3. The next event of the queue, once the current one is over and no follow-up is due: a look may find that what the next one
	// builds on is gone.
	if (row.Work == nil || row.Work.Final) && row.More() {
		if row.Work != nil && e.followUpDue(row) {
			return e.check(ctx, row, len(row.Late) > 0 && !now.Before(row.Late[0]))
		}
		if quiet := e.settled(row); now.Before(quiet) {
			return e.showNext(ctx, row, quiet)
		}
		if err := e.foldBase(ctx, row); err != nil {
			return stepResult{}, err
		}
		if err := e.begin(ctx, row); err != nil {
			return stepResult{}, err
		}
	}

	// 4. The current event.
	if w := row.Work; w != nil && !w.Final {
		switch {
		case row.State == ledger.Queued:
			return e.queued(ctx, work, row, seen.trial)
		case row.State == ledger.Maybe:
			return e.maybe(ctx, work, row)
		case row.State == ledger.Parked && row.Reason == ledger.Unknown && !now.Before(row.Due):
			return e.lookAtUnknown(ctx, row)
		}
	}

	// 5. Follow-ups, whatever the state.
	return e.followUp(ctx, row)
}

// begin makes the next event the current one, in memory: the first compare-and-set that it leads to stores it. The story
// of the event before goes to its own key first.
func (e *Engine) begin(ctx context.Context, row *ledger.Row) error {
	if w := row.Work; w != nil {
		if err := e.keepStory(ctx, row, w); err != nil {
			return err
		}
	}
	ev, err := e.o.Ledger.CachedEvent(ctx, row, row.Next())
	if err != nil {
		return fmt.Errorf("reading event %d: %w", row.Next(), err)
	}
	now := e.o.Now()
	row.Turn()
	row.Work = begun(&ev, now)
	row.Work.Pass = len(ev.Whole) > 0 && (row.Marked || row.Last == nil) // a person decided, about what proves to be ours
	row.State, row.Reason, row.Cause, row.Sends, row.Due = ledger.Queued, "", "", 0, now
	describe(row, &ev, e.o.Settings.Zone)
	return nil
}

// showNext lets a row that waits for the settle time of the event before show the event that waits.
func (e *Engine) showNext(ctx context.Context, row *ledger.Row, quiet time.Time) (stepResult, error) {
	if row.State == ledger.Queued && row.Reason == ledger.Waiting {
		return waitUntil(quiet), nil
	}
	ev, err := e.o.Ledger.CachedEvent(ctx, row, row.Next())
	if err != nil {
		return stepResult{}, fmt.Errorf("reading event %d: %w", row.Next(), err)
	}
	describe(row, &ev, e.o.Settings.Zone)
	row.State, row.Reason, row.Cause, row.Sends, row.Due = ledger.Queued, ledger.Waiting, "", 0, quiet
	return waitUntil(quiet), e.save(ctx, row)
}

// keepStory writes what became of an event that is over beside its body. Doing it twice is harmless.
func (e *Engine) keepStory(ctx context.Context, row *ledger.Row, w *ledger.Work) error {
	ev, err := e.o.Ledger.CachedEvent(ctx, row, w.N)
	if err != nil && e.hopeless(row, err) {
		return nil // there is nothing any more that the story could stand beside
	}
	if err != nil {
		return fmt.Errorf("reading event %d: %w", w.N, err)
	}
	if ev.State != "" && ev.Story != nil && !w.Redone {
		return nil
	}
	story := w.Story
	at := row.Standing(&ev)
	ev.State, ev.Reason, ev.Cause, ev.Sends, ev.Done, ev.Story = at.State, at.Reason, at.Cause, at.Sends, at.At, &story
	if err := e.o.Ledger.PutEvent(ctx, row.ID, ev); err != nil && !ledger.Never(err) {
		return fmt.Errorf("keeping the story of event %d: %w", w.N, err)
	}
	return nil
}

// save stores one row under compare-and-set, then updates scheduler and metrics.
func (e *Engine) save(ctx context.Context, row *ledger.Row) error {
	row.Updated = e.o.Now()
	e.express(row)
	if err := e.o.Ledger.Settle(ctx, []*ledger.Row{row})[0]; err != nil {
		return fmt.Errorf("storing %s/%s: %w", row.Evidence, row.Key, err)
	}
	e.noted(row)
	return nil
}

func lastAttempt(w *ledger.Work) *ledger.Attempt {
	if w == nil || len(w.Story.Attempts) == 0 {
		return nil
	}
	return &w.Story.Attempts[len(w.Story.Attempts)-1]
}
