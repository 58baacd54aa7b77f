package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// enoughAbsences closes an open attempt, together with the settle time and the fence.
const enoughAbsences = 3

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
	if now.Before(w.Settle) && w.Settle.Before(next) {
		next = w.Settle
	}
	return later(next, now)
}

// maybe settles what became of an attempt: look, then confirm, park, wait or send again.
func (e *Engine) maybe(ctx, work context.Context, row *ledger.Row) (turn, error) {
	w, now := row.Work, e.o.Now()
	if e.waitsForFence(row, now) {
		return at(now.Add(min(e.o.Settings.Probe, time.Second))), nil
	}
	if now.Before(row.Due) {
		return at(row.Due), nil
	}
	if w.Absences >= enoughAbsences && !now.Before(e.settledFor(row)) {
		// All that is missing is an open door and a token; one more look before there are both would be too old by then.
		if until, wait := e.gate.mayRetry(row.Evidence); wait {
			return at(until), nil
		}
		if wait := e.turnToSendAgain(w); wait > 0 {
			return at(now.Add(wait)), nil
		}
	}
	t, err := e.maybeTask(ctx, row)
	if err != nil {
		e.gate.read(row.Evidence, err)
		return at(now.Add(e.o.Settings.Probe)), nil
	}
	ans, err := e.lookUp(ctx, t)
	if err != nil {
		return turn{}, err
	}
	if !ans.valid {
		// It uses nothing up. The first and the youngest reason are kept, a long outage does not fill the story.
		if n := len(w.Story.Looks); n == 0 || w.Story.Looks[n-1].Verdict != "invalid" {
			e.note(row, "settle", finding{verdict: "invalid", problem: ledger.Problem{Text: ans.why}}, ans)
			if err := e.save(ctx, row); err != nil {
				return turn{}, err
			}
		}
		return at(e.afterInvalid(row, now)), nil
	}
	f, err := e.judge(ctx, t, ans)
	if err != nil {
		return turn{}, err
	}
	e.note(row, "settle", f, ans)
	switch f.verdict {
	case verdictDone:
		w.LastAbs = ans.at
		return e.found(ctx, work, t, f)
	case verdictConflict, verdictNothing:
		e.park(row, ledger.Conflict, f.problem)
		return again(), e.save(ctx, row)
	case verdictDuplicate:
		e.park(row, ledger.Duplicate, f.problem)
		return again(), e.save(ctx, row)
	case verdictGone: // a delete: not there, and the record may only have been hidden; three looks past the settle time say so
		return e.gone(ctx, t, ans)
	}
	return e.notDone(ctx, work, t, f, ans)
}

func (e *Engine) maybeTask(ctx context.Context, row *ledger.Row) (*task, error) {
	t, err := e.task(ctx, row)
	if err != nil {
		return nil, err
	}
	if row.Work.Write != "" && row.Work.Write != flexi.Attach {
		t.op = row.Work.Write
	}
	if t.op == flexi.Delete {
		if t.left, err = e.expected(ctx, row); err != nil {
			return nil, err
		}
	}
	t.props, err = e.books.properties(ctx, row.Evidence)
	return t, err
}

// afterInvalid: while the ERP cannot be read looks go on, at most every last step of the schedule.
func (e *Engine) afterInvalid(row *ledger.Row, now time.Time) time.Time {
	pause := min(max(now.Sub(row.Work.Ended)/4, e.o.Settings.Probe), e.o.Settings.Looks[len(e.o.Settings.Looks)-1])
	if pause <= 0 {
		pause = e.o.Settings.Probe
	}
	return now.Add(pause)
}

// found: the wanted state is shown. A record that does not carry our external id gets it while an attempt is open: it is
// the fence against that attempt.
func (e *Engine) found(ctx, work context.Context, t *task, f finding) (turn, error) {
	row, w := t.row, t.row.Work
	x := effect{flexiID: f.target, number: f.number, own: f.own}
	create := w.Write == flexi.Create || w.Write == flexi.Attach
	switch {
	case create && !f.own && w.Open && w.Adopt == "":
		w.Adopt = f.target
		attempt := w.Attempt
		tn, err := e.send(ctx, work, t)
		if w.Attempt == attempt { // no place, no connection: the next look comes here again
			w.Adopt = ""
		}
		return tn, err
	case create && !f.own && w.Open && e.o.Now().Before(e.settled(row)):
		// Attached and not shown. Only time ends the attempt; the last look falls on the end of it.
		if attachedByAnswer(w) {
			e.fence.set(row.Evidence, fenceDisproved)
		}
		w.Step++
		row.Due = e.nextLook(w, e.o.Now())
		return at(row.Due), e.save(ctx, row)
	case create && (!f.own || w.Adopt != ""):
		x.reason = ledger.Adopted
		if !f.own && attachedByAnswer(w) {
			e.fence.set(row.Evidence, fenceDisproved)
		}
	}
	e.confirm(row, t.ev, x)
	if create {
		e.ownDrawn(ctx, row, f.number)
	}
	return again(), e.save(ctx, row)
}

// attachedByAnswer: Flexi said that it gave an adopted record our external id. Where the record does not show it, external
// ids are not kept. An attempt that ended otherwise may simply not have been done, which says nothing about that.
func attachedByAnswer(w *ledger.Work) bool {
	a := lastAttempt(w)
	return a != nil && a.Op == flexi.Attach && a.Outcome == flexi.Accepted.String()
}

// attached: the update without fields that gives an adopted record our external id ended. It is tried once; the next looks
// say whether the id is there. A request that did nothing for a reason that is ours was no try.
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

// gone: a delete shows nothing at valid looks; the last one must come after the settle time.
func (e *Engine) gone(ctx context.Context, t *task, ans answer) (turn, error) {
	row, w, now := t.row, t.row.Work, e.o.Now()
	w.Absences++
	w.LastAbs = ans.at
	if w.Absences >= enoughAbsences && !ans.at.Before(e.settledFor(row)) {
		e.confirm(row, t.ev, effect{})
		return again(), e.save(ctx, row)
	}
	w.Step++
	row.Due = e.nextLook(w, now)
	return at(row.Due), e.save(ctx, row)
}

// notDone: absent, or the before-image is shown. Enough of that, late enough, permits the next send where a fence holds.
func (e *Engine) notDone(ctx, work context.Context, t *task, f finding, ans answer) (turn, error) {
	row, w, now := t.row, t.row.Work, e.o.Now()
	if ans.doubtful {
		w.Step++
		row.Due = e.nextLook(w, now)
		return at(row.Due), e.save(ctx, row)
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
		w.End.Cause = row.Cause
		return again(), e.save(ctx, row)
	case w.Absences < enoughAbsences || !settled:
	case w.Exists:
		if scheduleOver {
			e.park(row, ledger.Unknown, ledger.Problem{Text: "Flexi said that a record with our external id exists, and shows none: look for it in Flexi, then confirm or resend"})
			return again(), e.save(ctx, row)
		}
	case w.Opens >= e.o.Settings.Sends && !w.ByPerson:
		e.park(row, ledger.Unknown, ledger.Problem{Text: fmt.Sprintf("sent %d times without an answer that tells, and not found: see what is wrong, then resend or drop", w.Opens)})
		return again(), e.save(ctx, row)
	default:
		return e.sendAgain(ctx, work, t)
	}
	row.Due = e.nextLook(w, now)
	return at(row.Due), e.save(ctx, row)
}

// sendAgain sends a document whose last attempt is proved not to have taken effect, within the budget for such sends. A
// person's resend is paid for by the person.
func (e *Engine) sendAgain(ctx, work context.Context, t *task) (turn, error) {
	row, w := t.row, t.row.Work
	if tn, ok, err := e.mayResend(ctx, row, e.o.Now()); !ok {
		return tn, err
	}
	budget, attempt := e.o.Budget.Maybes, w.Attempt
	if !w.ByPerson {
		if _, ok := budget.Take(e.o.Now()); !ok {
			return at(e.o.Now().Add(e.turnToSendAgain(w))), e.save(ctx, row)
		}
		defer func() {
			if w.Attempt == attempt {
				budget.Return()
			}
		}()
	}
	if torn, err := e.torn(ctx, row); err != nil || torn {
		return again(), err
	}
	tn, err := e.send(ctx, work, t)
	if err == nil && w.Attempt == attempt && !tn.again && row.State == ledger.Maybe {
		err = e.save(ctx, row) // the absence: the next visit waits for the door without a look
	}
	return tn, err
}

// turnToSendAgain is how long a document waits for a token to be sent again, 0 when there is one. Those that wait come by as
// often as tokens do, not all for each. One that was in doubt before leaves the last tokens to those that were not: what
// shared a request with a document that Flexi chokes on needs just one.
func (e *Engine) turnToSendAgain(w *ledger.Work) time.Duration {
	if w.ByPerson || w.Adopt != "" {
		return 0
	}
	wait := e.o.Budget.Maybes.Wait(e.o.Now(), max(w.Opens, 1))
	return time.Duration(float64(wait) * (1 + e.o.Rand()*float64(e.index.inDoubt())))
}

// torn: documents that shared the request of our last attempt are there by that request, and ours is not. A request is one
// transaction, so something is wrong that another send might make worse; a person must see it.
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
		if err := e.save(ctx, row); err != nil {
			return false, err
		}
		e.alert(ctx, string(ledger.Unknown), row, text)
		return true, nil
	}
	return false, nil
}

// foundBy is the address of a document that a request of the group's name made or changed, "" if that is not known, or if
// not all of its size documents were in it: then it may well have left without ours, whose claim nobody heard of.
func (e *Engine) foundBy(ctx context.Context, m ledger.Mate, group string, size int) (string, error) {
	row, err := e.o.Ledger.Get(ctx, m.ID)
	if errors.Is(err, ledger.ErrNoRow) || errors.Is(err, ledger.ErrNewer) {
		return "", nil // deleted by hand, or a newer flexid's: it will never tell, and asking on would hold ours up for ever
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
	// By hand under the number, or by a later request of its own: that tells nothing of the one they shared.
	a := story.Attempts[len(story.Attempts)-1]
	if a.Group != group || a.Size != size || end.State != ledger.Confirmed || end.Reason != "" {
		return "", nil
	}
	return Address{row.Evidence, row.Source, row.Key}.String(), nil
}

// settledFor is when an absence begins to count: not before the settle time of the attempt is over.
func (e *Engine) settledFor(row *ledger.Row) time.Time {
	return later(row.Work.Settle, e.settled(row))
}

// mayResend asks the fence. For an update, storno or delete the before-image is proof enough; a person's resend needs the
// absences only.
func (e *Engine) mayResend(ctx context.Context, row *ledger.Row, now time.Time) (turn, bool, error) {
	w := row.Work
	if w.Write != flexi.Create || w.ByPerson {
		return turn{}, true, nil
	}
	f := e.fence.of(row.Evidence)
	switch {
	case f == fenceProved:
		return turn{}, true, nil
	case f == fenceDisproved:
		e.park(row, ledger.Unknown, ledger.Problem{Text: "Flexi does not keep our external ids in " + row.Evidence +
			", so nothing would refuse a second record: look for it in Flexi, then confirm, or resend knowing that"})
		return again(), false, e.save(ctx, row)
	case now.Sub(w.FirstTry) > waitMost:
		e.park(row, ledger.Unknown, ledger.Problem{Text: "for 24 h no record of ours came back from " + row.Evidence +
			" with its external id, so it is not known whether Flexi would refuse a second record"})
		return again(), false, e.save(ctx, row)
	}
	row.Due = now.Add(e.o.Settings.Looks[len(e.o.Settings.Looks)-1])
	return again(), false, e.save(ctx, row)
}

// waitsForFence: everything but the fence is there for a resend. Nothing is asked of the ERP until another document has
// settled that question; then the absence is seen once more, because it must be young.
func (e *Engine) waitsForFence(row *ledger.Row, now time.Time) bool {
	w := row.Work
	if w.Write != flexi.Create || w.ByPerson || w.Exists || w.Reject != nil || w.Adopt != "" ||
		w.Absences < enoughAbsences || w.LastAbs.Before(w.Settle) || w.Opens >= e.o.Settings.Sends {
		return false
	}
	if e.fence.of(row.Evidence) != fenceUnknown || now.Sub(w.FirstTry) > waitMost {
		if row.Due.After(now) {
			row.Due = now
		}
		return false
	}
	return now.Before(row.Due)
}

// lookAtUnknown keeps looking at a document parked as unknown: it may turn up, and then nobody has to do anything.
func (e *Engine) lookAtUnknown(ctx context.Context, row *ledger.Row) (turn, error) {
	t, err := e.maybeTask(ctx, row)
	if err != nil {
		return at(e.o.Now().Add(e.o.Settings.Probe)), nil
	}
	ans, err := e.lookUp(ctx, t)
	if err != nil {
		return turn{}, err
	}
	if !ans.valid {
		return at(e.o.Now().Add(unknownEvery / 4)), nil
	}
	f, err := e.judge(ctx, t, ans)
	if err != nil {
		return turn{}, err
	}
	e.note(row, "late", f, ans)
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
	return again(), e.save(ctx, row)
}
