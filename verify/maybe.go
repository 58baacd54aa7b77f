package verify

import (
	"context"
	"slices"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// nextLook is when a maybe is looked at again: the schedule counts from the end of the attempt, one look falls on the end of
// the settle time, then every last step.
func (e *Engine) nextLook(w *ledger.Work, now time.Time) time.Time {
	looks := e.o.Settings.Looks
	jitter := func(d time.Duration) time.Duration { return d + time.Duration(w.Shake*0.2*float64(d)) }
	var next time.Time
	if w.Step < len(looks) {
		next = w.Ended.Add(jitter(looks[w.Step]))
	} else {
		next = now.Add(jitter(looks[len(looks)-1]))
	}
	for _, end := range []time.Time{w.Settle, resendAt(w)} {
		if now.Before(end) && end.Before(next) {
			next = end
		}
	}
	return later(next, now)
}

// maybe settles what became of an attempt.
//
// 1. Wait for the fence, for the next look, or for a breaker and a token where a send is all that is missing.
// 2. Look.
// 3. An invalid look counts for nothing and is repeated.
// 4. Judge what it shows; admission hears whether the write was done.
// 5. Confirm (found, gone), park, or count an absence (notDone, in resend.go).
func (e *Engine) maybe(ctx, work context.Context, row *ledger.Row) (stepResult, error) {
	w, now := row.Work, e.o.Now()
	if e.waitsForFence(row, now) {
		return waitUntil(now.Add(fencePause(now.Sub(w.Ended)))), nil
	}
	if now.Before(row.Due) {
		return waitUntil(row.Due), nil
	}
	if w.Absences >= enoughAbsences && e.endsInASend(w) && !now.Before(later(e.settledFor(row), resendAt(w))) {
		// All that is missing is a breaker that lets it go and a token; one more look before there are both would be too old by then.
		if until, wait := e.admission.mayRetry(row.Evidence); wait {
			return waitUntil(until), nil
		}
		if wait := e.resendWait(w); wait > 0 {
			return waitUntil(now.Add(wait)), nil
		}
	}
	t, err := e.maybeTask(ctx, row)
	if err != nil {
		e.admission.looked(row.ID, shownNothing)
		return waitUntil(now.Add(e.o.Settings.Probe)), nil
	}
	ans, err := e.lookUp(ctx, t)
	if err != nil {
		return stepResult{}, err
	}
	if !ans.valid {
		e.admission.looked(row.ID, shownNothing)
		// It uses nothing up. The first and the youngest reason are kept, a long outage does not fill the story.
		if n := len(w.Story.Looks); e.noLook(ctx, row, ans) || n == 0 || w.Story.Looks[n-1].Verdict != "invalid" {
			e.note(t, "settle", finding{verdict: "invalid", problem: ledger.Problem{Text: ans.why}}, ans)
			if err := e.save(ctx, row); err != nil {
				return stepResult{}, err
			}
		}
		return waitUntil(e.afterInvalid(row, now)), nil
	}
	takeBack(w, cannotLook)
	f, err := e.judge(ctx, t, ans)
	if err != nil {
		return stepResult{}, err
	}
	if (f.verdict == verdictGone) != goneBefore(w) {
		w.Absences = 0 // a delete shows either the record or nothing: only those alike in a row count
	}
	e.note(t, "settle", f, ans)
	what := shownNotDone
	if f.verdict == verdictDone || f.verdict == verdictGone {
		what = shownDone
	}
	e.admission.looked(row.ID, what)
	switch f.verdict {
	case verdictDone:
		w.LastAbs = ans.at
		return e.found(ctx, work, t, f)
	case verdictConflict, verdictNothing:
		e.park(row, ledger.Conflict, f.problem)
		return continueNow(), e.save(ctx, row)
	case verdictDuplicate:
		e.park(row, ledger.Duplicate, f.problem)
		return continueNow(), e.save(ctx, row)
	case verdictGone: // a delete: not there, and the record may only have been hidden; three looks past the settle time say so
		return e.gone(ctx, t, ans)
	}
	return e.notDone(ctx, work, t, f, ans)
}

// goneBefore says that the look before showed that what is to be deleted is not there.
func goneBefore(w *ledger.Work) bool {
	for _, l := range slices.Backward(w.Story.Looks) {
		if v := verdict(l.Verdict); v == verdictGone || v == verdictSend {
			return v == verdictGone
		}
	}
	return false
}

// maybeTask is the task of an event in doubt: its operation is the one that was sent.
func (e *Engine) maybeTask(ctx context.Context, row *ledger.Row) (*task, error) {
	t, err := e.task(ctx, row)
	if err != nil {
		return nil, err
	}
	if row.Work.Write != "" && row.Work.Write != flexi.Attach {
		t.op = row.Work.Write
	}
	if ends(t.op) {
		if t.left, err = e.expected(ctx, row); err != nil {
			return nil, err
		}
	}
	return t, e.dated(ctx, t)
}

// afterInvalid is when to look again while the ERP cannot be read: at most every last step of the schedule.
func (e *Engine) afterInvalid(row *ledger.Row, now time.Time) time.Time {
	pause := min(max(now.Sub(row.Work.Ended)/4, e.o.Settings.Probe), e.o.Settings.Looks[len(e.o.Settings.Looks)-1])
	if pause <= 0 {
		pause = e.o.Settings.Probe
	}
	return now.Add(pause)
}

// found goes on after a look that shows the wanted state.
//
// 1. A record without our external id gets it while an attempt is open: it is the fence against that attempt.
// 2. Attached and not shown, it waits for the end of the settle time.
// 3. Else the event is confirmed, adopted where the record is not by our request.
func (e *Engine) found(ctx, work context.Context, t *task, f finding) (stepResult, error) {
	row, w := t.row, t.row.Work
	x := effect{flexiID: f.target, number: f.number, own: f.own}
	create := w.Write == flexi.Create || w.Write == flexi.Attach
	switch {
	case create && !f.own && w.Open && w.Adopt == "":
		w.Adopt = f.target
		attempt := w.Attempt
		next, err := e.send(ctx, work, t)
		if w.Attempt == attempt { // no slot, no connection: the next look comes here again
			w.Adopt = ""
		}
		return next, err
	case create && !f.own && w.Open && e.o.Now().Before(e.settled(row)):
		// Attached and not shown. Only time ends the attempt; the last look falls on the end of it.
		if attachedByAnswer(w) {
			e.fence.set(row.Evidence, fenceDisproved)
		}
		w.Step++
		row.Due = e.nextLook(w, e.o.Now())
		return waitUntil(row.Due), e.save(ctx, row)
	case create && (!f.own || w.Adopt != ""):
		x.reason = ledger.Adopted
		if !f.own && attachedByAnswer(w) {
			e.fence.set(row.Evidence, fenceDisproved)
		}
	}
	a := lastAttempt(w)
	e.confirm(row, t.ev, x)
	if !create && a != nil && a.Odd && w.Opens == 1 && w.Attempt == a.N {
		row.Quiet, row.LookOnce = time.Time{}, false // its answer was whole, and what it said is shown
	}
	if create {
		e.ownDrawn(ctx, row, f.number)
	}
	return continueNow(), e.save(ctx, row)
}

// attachedByAnswer says that Flexi answered that it gave an adopted record our external id. Where the record does not show it,
// external ids are not kept. An attempt that ended otherwise may simply not have been done, which says nothing about that.
func attachedByAnswer(w *ledger.Work) bool {
	a := lastAttempt(w)
	return a != nil && a.Op == flexi.Attach && a.Outcome == flexi.Accepted.String()
}

// attached applies the outcome of the update without fields that gives an adopted record our external id. It is tried once; the
// next looks say whether the id is there. A request that did nothing for a reason that is ours was no try.
func (e *Engine) attached(row *ledger.Row, res *flexi.Result, now time.Time) {
	w := row.Work
	w.Write = flexi.Create
	row.State, row.Reason = ledger.Maybe, ""
	row.Due = now
	switch res.Outcome {
	case flexi.NotSent, flexi.Refused, flexi.Blocked:
		w.Adopt = ""
		row.Due = now.Add(max(res.Wait, time.Second))
	case flexi.Accepted:
		row.Sends++
	case flexi.Maybe: // it may still take effect
		row.Sends++
		w.Ended, w.Step = now, 0
		w.Settle = later(w.Settle, now.Add(e.settleTime(res.Speaker)))
		row.Quiet = later(row.Quiet, w.Settle)
	}
}

// gone goes on after a delete that shows nothing at a valid look; the last of three must come after the settle time.
func (e *Engine) gone(ctx context.Context, t *task, ans answer) (stepResult, error) {
	row, w, now := t.row, t.row.Work, e.o.Now()
	w.Absences++
	w.LastAbs = ans.at
	if w.Absences >= enoughAbsences && !ans.at.Before(e.settledFor(row)) {
		e.confirm(row, t.ev, effect{})
		return continueNow(), e.save(ctx, row)
	}
	w.Step++
	row.Due = e.nextLook(w, now)
	return waitUntil(row.Due), e.save(ctx, row)
}

// lookAtUnknown keeps looking at a document parked as unknown: it may turn up, and then nobody has to do anything.
func (e *Engine) lookAtUnknown(ctx context.Context, row *ledger.Row) (stepResult, error) {
	t, err := e.maybeTask(ctx, row)
	if err != nil {
		return waitUntil(e.o.Now().Add(e.o.Settings.Probe)), nil
	}
	ans, err := e.lookUp(ctx, t)
	if err != nil {
		return stepResult{}, err
	}
	if !ans.valid {
		return waitUntil(e.o.Now().Add(unknownEvery / 4)), nil
	}
	f, err := e.judge(ctx, t, ans)
	if err != nil {
		return stepResult{}, err
	}
	e.note(t, "late", f, ans)
	row.Due = e.o.Now().Add(unknownEvery)
	switch f.verdict {
	case verdictDone:
		x := effect{flexiID: f.target, number: f.number, own: f.own}
		if row.Work.Write == flexi.Create && !f.own {
			x.reason = ledger.Adopted
		}
		e.confirm(row, t.ev, x)
		if row.Work.Write == flexi.Create {
			e.ownDrawn(ctx, row, f.number)
		}
	case verdictGone:
		if row.Work.Absences++; row.Work.Absences >= enoughAbsences {
			e.confirm(row, t.ev, effect{})
		}
	case verdictSend:
		row.Work.Absences = 0
	case verdictDuplicate:
		e.park(row, ledger.Duplicate, f.problem)
	case verdictConflict:
		if t.op != flexi.Update && t.op != flexi.Storno && t.op != flexi.Delete {
			e.park(row, ledger.Conflict, f.problem)
		}
	}
	return continueNow(), e.save(ctx, row)
}
