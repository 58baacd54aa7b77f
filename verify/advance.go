package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// stepResult says how to go on with a document after one step.
type stepResult struct {
	goOn bool      // something changed: take the next step at once
	at   time.Time // nothing to do before; kept in memory only
}

func waitUntil(t time.Time) stepResult { return stepResult{at: t} }

func continueNow() stepResult { return stepResult{goOn: true} }

// mostSteps bounds one visit of a document, so that a fault of ours can never spin.
const mostSteps = 64

// advance takes a document as far as it goes now. It is the one way for a first send, a redelivery, a restart and a
// person's resend; the row alone says where it stands. It returns when the document wants attention again.
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
		if l := row.Lease; l != nil && l.Instance != e.o.Settings.Instance {
			free := now.Add(l.For) // a revision that the scheduler has not shown yet was watched for no time at all
			if row.Revision == seen.revision {
				free = seen.at.Add(l.For)
			}
			if now.Before(free) {
				return waitUntil(free), nil
			}
		}
		return continueNow(), e.takeOver(ctx, row)
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

// takeOver turns a send that nobody runs any more into a maybe: it may have reached the ERP, and may still be on its way.
func (e *Engine) takeOver(ctx context.Context, row *ledger.Row) error {
	now := e.o.Now()
	text := "found sending after a restart"
	if l := row.Lease; l != nil && l.Instance != e.o.Settings.Instance {
		text = "taken over: its holder gave no sign for " + l.For.String()
	} else if e.mine(l) {
		text = "the claim or the outcome could not be stored"
	}
	if a := lastAttempt(row.Work); a != nil {
		a.Ended, a.Outcome, a.Speaker, a.Text = now, flexi.Maybe.String(), flexi.NoAnswer.String(), text
	}
	if row.Work.Write == flexi.Attach {
		row.Work.Write = flexi.Create // what is in doubt is the document, not the adoption
	}
	e.opened(row, flexi.NoAnswer, now)
	return e.save(ctx, row)
}

// opened notes that the last attempt may have committed: settle time and looks start anew.
func (e *Engine) opened(row *ledger.Row, s flexi.Speaker, ended time.Time) {
	w := row.Work
	w.Open, w.Alone = true, true
	w.ByPerson = false // a decision permits one send
	w.Opens++
	w.Ended, w.Settle = ended, ended.Add(e.settleTime(s))
	w.Step, w.Absences, w.LastAbs = 0, 0, time.Time{}
	row.Sends++
	row.State, row.Reason, row.Lease = ledger.Maybe, "", nil
	row.Quiet = later(row.Quiet, w.Settle)
	row.LookOnce = true
	row.Due = e.nextLook(w, ended)
}

// settled is when no request of the row can be on its way any more: by the wall clock, and by our own clock from when we
// saw the attempt end, because clocks are set forward and those of two replicas differ. The zero time: nothing is.
func (e *Engine) settled(row *ledger.Row) time.Time {
	w := row.Work
	if row.Quiet.IsZero() || w == nil || w.Opens == 0 {
		return row.Quiet
	}
	over, ok := e.scheduler.closesAt(row)
	if !ok {
		return row.Quiet
	}
	return later(row.Quiet, over)
}

func (e *Engine) settleTime(s flexi.Speaker) time.Duration {
	switch s {
	case flexi.ServerError:
		return e.o.Settings.SettleServerError
	case flexi.Proxy:
		return e.o.Settings.SettleProxy
	}
	return e.o.Settings.SettleNoAnswer
}

func lastAttempt(w *ledger.Work) *ledger.Attempt {
	if w == nil || len(w.Story.Attempts) == 0 {
		return nil
	}
	return &w.Story.Attempts[len(w.Story.Attempts)-1]
}

// end closes the current event with an effect on nothing: dropped, repeated, superseded, or parked for good.
func (e *Engine) end(row *ledger.Row, s ledger.State, r ledger.Reason) {
	e.finish(row, s, r)
	if s == ledger.Parked {
		refuse(row)
	}
	show(row)
	shedNumbers(row)
}

func (e *Engine) finish(row *ledger.Row, s ledger.State, r ledger.Reason) {
	now := e.o.Now()
	w := row.Work
	w.Final, w.Open, w.Mates = true, false, nil
	w.End = &ledger.End{State: s, Reason: r, Cause: row.Cause, Sends: row.Sends, At: now}
	row.State, row.Reason, row.Lease, row.Due = s, r, nil, time.Time{}
	e.mustNotify(row)
	if w.Opens > 0 {
		row.Late = e.lateLooks(now)
	}
	if d := row.Dropped; d != nil && w.N > d.N && !(s == ledger.Dropped && r == ledger.Repeated) {
		row.Dropped = nil
	}
	if s != ledger.Confirmed { // a confirmed one is read back, and may prove the fence then
		e.fence.forget(row.ID)
	}
}

func (e *Engine) mustNotify(row *ledger.Row) {
	if !slices.Contains(row.ToNotify, row.Work.N) {
		row.ToNotify = append(row.ToNotify, row.Work.N)
	}
}

func (e *Engine) lateLooks(now time.Time) []time.Time {
	var at []time.Time
	for _, d := range e.o.Settings.LateLooks {
		// A common moment, so that the documents of one trouble are looked at in few requests.
		at = append(at, now.Add(d+time.Minute).Truncate(time.Minute))
	}
	return at
}

// effect is what an event that took effect left behind.
type effect struct {
	flexiID string
	number  string // told by the ERP, "" = not told
	reason  ledger.Reason
	sent    bool // by an accepted request: read back later. Otherwise a look has compared it already
	own     bool // found under our own external id
}

// confirm closes the current event as having taken effect.
func (e *Engine) confirm(row *ledger.Row, ev *ledger.Event, x effect) {
	now := e.o.Now()
	w := row.Work
	w.Story.Problem, w.Reject = nil, nil
	// A create found under our own external id whose only attempt it was: nothing of it can still be on its way.
	if w.Write == flexi.Create && w.Opens == 1 && w.Attempt == 1 && x.own && !x.sent {
		row.Quiet, row.LookOnce = time.Time{}, false
	}
	row.Cause = ""
	e.finish(row, ledger.Confirmed, x.reason)
	settleRefused(row, row.Last == nil && ev.Op != flexi.Delete)
	defer func() { show(row); shedNumbers(row) }()
	learnVersion(row, ev.Version)
	if ev.Op == flexi.Delete {
		if ev.Version == nil {
			row.Known = nil // the next document under this key begins anew
		}
		forgetRecord(row)
		e.looker.gone(row.Evidence)
		return
	}
	if x.flexiID != "" {
		row.FlexiID = x.flexiID
	}
	if !x.sent {
		row.Marked = x.own
	} else if w.Write == flexi.Create {
		row.Marked = false // not seen yet
	}
	if x.number != "" && row.Number == "" {
		row.Number = x.number
	}
	if row.Last == nil {
		row.Base = nil
	}
	row.Last = e.left(row, ev, x)
	switch {
	case len(ev.Whole) > 0:
		row.Base = slices.Clone(ev.Whole)
	case ev.Op != flexi.Storno && !slices.Contains(row.Base, w.N):
		row.Base = append(row.Base, w.N)
	}
	e.o.Budget.Maybes.Pay(1)
	if !x.sent {
		e.fence.forget(row.ID)
	} else {
		row.ReadBack = e.readBackAt(row.Evidence, now)
	}
}

// park hands the current event to a person, or ends it for good where it had no effect.
func (e *Engine) park(row *ledger.Row, r ledger.Reason, p ledger.Problem) {
	row.Work.Story.Problem = &p
	e.parking(row, r, p.Text)
	switch r {
	case ledger.Rejected, ledger.Unreadable, ledger.IDReused:
		e.end(row, ledger.Parked, r)
		return
	}
	row.State, row.Reason, row.Lease, row.Due = ledger.Parked, r, nil, time.Time{}
	if row.Cause = p.Cause; r == ledger.Unknown {
		row.Due = e.o.Now().Add(unknownEvery)
	}
	if row.Work.Opens > 0 && len(row.Late) == 0 {
		row.Late = e.lateLooks(e.o.Now())
	}
	e.mustNotify(row)
}

// unknownEvery is how often a document parked as unknown is looked at on its own.
const unknownEvery = time.Hour
