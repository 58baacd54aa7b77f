package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// This file decides whether a write may be sent again. All of this must hold:
//
//	notDone     three valid looks in a row show "not done", the last one after the settle time
//	resendAt    from the third send on twice the wait of the one before is over
//	mayResend   for a create the fence is proved, so that the server would refuse a second record
//	resend      a token of the budget; none of the documents that shared the request is in Flexi
//
// sendGroup then refuses what was seen too long ago, and claims. A person's resend needs the looks, not fence, budget and wait.

// notDone goes on after a look that shows no effect: absent, or the before-image.
//
// 1. A look that proves nothing, since the evidence shows no record at all, only waits.
// 2. Count the absence.
// 3. A rejection becomes final; an "exists" that shows nothing, and too many sends, park.
// 4. Enough absences, late enough: resend.
// 5. Else the next look of the schedule.
func (e *Engine) notDone(ctx, work context.Context, t *task, f finding, ans answer) (stepResult, error) {
	row, w, now := t.row, t.row.Work, e.o.Now()
	if ans.doubtful {
		w.Step++
		row.Due = e.nextLook(w, now)
		return waitUntil(row.Due), e.save(ctx, row)
	}
	w.Absences++
	w.LastAbs = ans.at
	w.Adopt = "" // what was to be adopted is gone
	if f.before != nil {
		w.Before, w.BeforeU, w.BeforeT = f.before, f.lastUpdate, ans.at
	}
	settled := !ans.at.Before(e.settledFor(row))
	scheduleOver := w.Step >= len(e.o.Settings.Looks)-1
	w.Step++
	switch {
	case w.Reject != nil && (!w.Open || w.Absences >= enoughAbsences && settled):
		p := *w.Reject
		e.park(row, ledger.Rejected, p)
		return continueNow(), e.save(ctx, row)
	case w.Absences < enoughAbsences || !settled:
	case w.Exists:
		if scheduleOver {
			e.park(row, ledger.Unknown, ledger.Problem{Text: "Flexi said that a record with our external id exists, and shows none: look for it in Flexi, then confirm or resend"})
			return continueNow(), e.save(ctx, row)
		}
	case w.Opens >= e.o.Settings.Sends && !w.ByPerson:
		e.park(row, ledger.Unknown, ledger.Problem{Text: fmt.Sprintf("sent %d times without an answer that tells, and not found each time: see what is wrong, then resend or drop", w.Opens)})
		return continueNow(), e.save(ctx, row)
	case !now.Before(resendAt(w)):
		return e.resend(ctx, work, t)
	}
	row.Due = e.nextLook(w, now)
	return waitUntil(row.Due), e.save(ctx, row)
}

// enoughAbsences closes an open attempt, together with the settle time and the fence.
const enoughAbsences = 3

// endsInASend says that a document in doubt, once its absences are complete, is sent again. Else one more look is all it needs,
// whether writes may go or not.
func (e *Engine) endsInASend(w *ledger.Work) bool {
	return !goneBefore(w) && w.Reject == nil && !w.Exists && (w.Opens < e.o.Settings.Sends || w.ByPerson)
}

// resendAt is when the next send of the event may leave at the earliest: after the settle time of the last attempt; from the
// third send on after twice the wait of the one before. An ERP that fails for an hour is then asked a few times, and a
// document that no ERP takes does not take the slots of others. A person's resend waits for the settle time alone.
func resendAt(w *ledger.Work) time.Time {
	if w.ByPerson || w.Opens < 2 {
		return w.Settle
	}
	return w.Ended.Add(max(w.Settle.Sub(w.Ended), 0) << min(w.Opens-1, mostDoublings))
}

// mostDoublings keeps the wait a number; the limit of sends is below it.
const mostDoublings = 12

// mayResend asks the fence. For an update, storno or delete the before-image is proof enough; a person's resend needs the
// absences only. Without an answer yet the document waits for it, at most 24 h.
func (e *Engine) mayResend(ctx context.Context, row *ledger.Row, now time.Time) (stepResult, bool, error) {
	w := row.Work
	if w.Write != flexi.Create || w.ByPerson {
		return stepResult{}, true, nil
	}
	f := e.fence.stateFor(row.Evidence, row.ID, w.Drawn)
	switch {
	case f == fenceProved:
		return stepResult{}, true, nil
	case f == fenceDisproved:
		e.park(row, ledger.Unknown, ledger.Problem{Text: "Flexi does not keep our external ids in " + row.Evidence +
			", so nothing would refuse a second record: look for it in Flexi, then confirm, or resend knowing that"})
		return continueNow(), false, e.save(ctx, row)
	case now.Sub(w.FirstTry) > waitMost:
		which := "record of ours"
		if w.Drawn {
			which = "record that was made after the last send"
		}
		e.park(row, ledger.Unknown, ledger.Problem{Text: "for 24 h no " + which + " came back from " + row.Evidence +
			" with its external id, so it is not known whether Flexi would refuse a second record"})
		return continueNow(), false, e.save(ctx, row)
	}
	row.Due = now.Add(e.o.Settings.Looks[len(e.o.Settings.Looks)-1])
	return continueNow(), false, e.save(ctx, row)
}

// waitsForFence says that everything but the fence is there for a resend. Nothing is asked of the ERP until another document has
// settled that question; then the absence is seen once more, because it must be young.
func (e *Engine) waitsForFence(row *ledger.Row, now time.Time) bool {
	w := row.Work
	if w.Write != flexi.Create || w.ByPerson || w.Exists || w.Reject != nil || w.Adopt != "" ||
		w.Absences < enoughAbsences || w.LastAbs.Before(w.Settle) || w.Opens >= e.o.Settings.Sends {
		return false
	}
	if e.fence.stateFor(row.Evidence, row.ID, w.Drawn) != fenceUnknown || now.Sub(w.FirstTry) > waitMost {
		if row.Due.After(now) {
			row.Due = now
		}
		return false
	}
	return now.Before(row.Due)
}

// fencePause is how often one that waits for the fence asks for it: the longer nobody has settled that, the less often.
func fencePause(waited time.Duration) time.Duration {
	return min(max(waited/100, time.Second), 30*time.Second)
}

// resend sends a document whose last attempt is proved not to have taken effect, within the budget for such sends. A person's
// resend is paid for by the person.
//
// 1. The fence must permit it.
// 2. A token of the budget, given back where Flexi did well or nothing was sent.
// 3. None of the documents of the same request may be in Flexi: then something is wrong that another send might make worse.
// 4. Send.
func (e *Engine) resend(ctx, work context.Context, t *task) (stepResult, error) {
	row, w := t.row, t.row.Work
	if next, ok, err := e.mayResend(ctx, row, e.o.Now()); !ok {
		return next, err
	}
	budget, attempt := e.o.Budget.Maybes, w.Attempt
	if !w.ByPerson {
		if _, ok := budget.Take(e.o.Now()); !ok {
			return waitUntil(e.o.Now().Add(e.resendWait(w))), e.save(ctx, row)
		}
		defer func() {
			if a := lastAttempt(w); w.Attempt == attempt || a.Outcome == flexi.Accepted.String() || a.Outcome == flexi.Rejected.String() {
				budget.Return() // nothing was sent, or Flexi is well: only sends that fail again use the budget up
			}
		}()
	}
	if torn, err := e.torn(ctx, row); err != nil || torn {
		return continueNow(), err
	}
	next, err := e.send(ctx, work, t)
	if err == nil && w.Attempt == attempt && !next.goOn && row.State == ledger.Maybe {
		err = e.save(ctx, row) // the absence: the next visit waits for the breaker without a look
	}
	return next, err
}

// resendWait is how long a document waits for a token to be sent again, 0 when there is one. Those that wait come by as often as
// tokens do, not all for each, but never much later than mostResendSpread. One that was in doubt before leaves the last tokens to
// those that were not: what shared a request with a document that Flexi chokes on needs just one.
func (e *Engine) resendWait(w *ledger.Work) time.Duration {
	if w.ByPerson || w.Adopt != "" {
		return 0
	}
	wait := e.o.Budget.Maybes.Wait(e.o.Now(), max(w.Opens, 1))
	spread := min(float64(wait)*float64(e.scheduler.inDoubt()), float64(mostResendSpread))
	return wait + time.Duration(e.o.Rand()*spread)
}

// mostResendSpread is the longest time over which documents that wait for a token are spread. Sends that Flexi answers give
// theirs back, so there may be many long before time alone would have brought them, and nobody shall sleep beside a full bucket.
const mostResendSpread = 30 * time.Second

// torn parks a document where others that shared the request of its last attempt are in Flexi by that request, and it is not. A
// request is one transaction, so something is wrong that another send might make worse; a person must see it.
func (e *Engine) torn(ctx context.Context, row *ledger.Row) (bool, error) {
	w := row.Work
	a := lastAttempt(w)
	if a == nil || a.Group == "" || w.ByPerson {
		return false, nil
	}
	for _, m := range w.Mates {
		if m.ID == row.ID {
			continue
		}
		found, err := e.foundBy(ctx, m, a.Group, len(w.Mates))
		if err != nil {
			return false, err
		}
		if found == "" {
			continue
		}
		text := fmt.Sprintf("it was sent in one request, and so in one transaction, with %s, which is in Flexi while this one is not: "+
			"look for it in Flexi, then confirm or resend", found)
		e.park(row, ledger.Unknown, ledger.Problem{Text: text, Link: found})
		return true, e.save(ctx, row)
	}
	return false, nil
}

// foundBy is the address of a document that a request of the group's name made or changed, "" if that is not known, or if
// not all of its size documents were in it: then it may well have left without ours, whose claim nobody heard of.
func (e *Engine) foundBy(ctx context.Context, m ledger.Mate, group string, size int) (string, error) {
	row, err := e.o.Ledger.Get(ctx, m.ID)
	if errors.Is(err, ledger.ErrNoRow) || errors.Is(err, ledger.ErrNewer) {
		return "", nil // deleted by hand, or a newer flexid's: it will never say, and asking on would stop ours for ever
	}
	if err != nil {
		return "", fmt.Errorf("reading a document of the same request: %w", err)
	}
	story, end := ledger.Story{}, ledger.End{}
	if w := row.Work; w != nil && w.N == m.N {
		if story = w.Story; w.End != nil {
			end = *w.End
		}
	} else {
		ev, err := e.o.Ledger.Event(ctx, m.ID, m.N)
		if errors.Is(err, ledger.ErrNoEvent) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("reading an event of the same request: %w", err)
		}
		if end = (ledger.End{State: ev.State, Reason: ev.Reason}); ev.Story != nil {
			story = *ev.Story
		}
	}
	if len(story.Attempts) == 0 {
		return "", nil
	}
	// By hand under the number, or by a later request of its own: that says nothing of the one they shared.
	a := story.Attempts[len(story.Attempts)-1]
	if a.Group != group || a.Size != size || end.State != ledger.Confirmed || end.Reason != "" {
		return "", nil
	}
	return Address{row.Evidence, row.Source, row.Key}.String(), nil
}
