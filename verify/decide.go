package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexid/flexi"
	"flexid/verify/compare"
	"flexid/verify/ledger"
)

// Decide carries out what a person decided about one document. It is the one way out of parked that is a person's, and it
// is written into the history with name and reason. A *DecisionError means that nothing was changed.
func (e *Engine) Decide(ctx context.Context, a Address, d Decision) (ledger.Row, error) {
	if d.By == "" || d.Why == "" && d.What != DecideLook {
		return ledger.Row{}, &DecisionError{Text: "a decision needs a name and a reason"}
	}
	id := ledger.RowID(e.o.Settings.Company, a.Evidence, flexi.NewExternalID(e.o.Settings.System, a.Source, a.Key))
	if err := e.reserve(ctx, id); err != nil {
		return ledger.Row{}, err
	}
	due := e.o.Now()
	defer func() { e.scheduler.end(id, due, e.o.Now()) }()
	row, err := e.o.Ledger.Get(ctx, id)
	if errors.Is(err, ledger.ErrNoRow) {
		due = time.Time{}
		return row, &NotFoundError{a}
	}
	if err != nil {
		return row, fmt.Errorf("reading %s: %w", a, e.storeError(err))
	}
	e.forgetOld(&row)
	if d.Revision != 0 && row.Revision != d.Revision {
		due = e.due(&row)
		return row, &DecisionError{Changed: true, Text: fmt.Sprintf("it changed since it was listed and is %s now: look at it and decide again", stateText(&row))}
	}
	e.present(&row)
	if err := e.decide(ctx, &row, d); err != nil {
		// due stays: the row in hand may already show what was not stored, only the schedule's own read can tell.
		var conflict *ledger.ConflictError
		if errors.As(err, &conflict) {
			return row, &DecisionError{Text: "the document changed at the same moment: look at it and decide again", Retry: true}
		}
		return row, err
	}
	due = e.due(&row)
	return row, nil
}

// reserve keeps the scheduler off a document while a person decides.
func (e *Engine) reserve(ctx context.Context, id ledger.ID) error {
	for range 200 {
		if e.scheduler.begin(id) {
			return nil
		}
		t := time.NewTimer(50 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
	return &DecisionError{Text: "the document is being worked on: try again in a moment", Retry: true}
}

// decide carries one decision out on a row that nobody else works on.
//
// 1. Nothing is decided while the document is being sent, or may still be changed by a request that runs.
// 2. Each decision looks for itself, and refuses what the look shows to be wrong.
// 3. The decision goes into the history, and the row is stored.
func (e *Engine) decide(ctx context.Context, row *ledger.Row, d Decision) error {
	w := row.Work
	if w == nil {
		return &DecisionError{Text: "the document's first event has not been begun yet: try again in a moment", Retry: true}
	}
	if row.State == ledger.Sending {
		return &DecisionError{Text: "it is being sent just now: try again when the attempt is over", Retry: true}
	}
	acts := d.What != DecideLook && d.What != DecideNote
	if quiet := e.settled(row); acts && e.o.Now().Before(quiet) {
		// A person may have seen what a request that still runs is about to change.
		return &DecisionError{Retry: true, Text: fmt.Sprintf(
			"the last attempt may still take effect until %s: decide then", e.wall(quiet).UTC().Format(time.RFC3339))}
	}
	result := ""
	var err error
	switch d.What {
	case DecideNote:
	case DecideLook:
		result, err = e.decideLook(ctx, row)
	case DecideConfirm:
		result, err = e.decideConfirm(ctx, row)
	case DecideResend:
		result, err = e.decideResend(ctx, row)
	case DecideDrop:
		result, err = e.decideDrop(ctx, row)
	default:
		err = &DecisionError{Text: fmt.Sprintf("%q is not a decision: confirm, resend, drop, look or note", d.What)}
	}
	if err != nil {
		return err
	}
	row.Work.Story.Decisions = append(row.Work.Story.Decisions, ledger.Decision{
		Time: e.o.Now().UTC(), By: d.By, What: string(d.What), Why: d.Why, Result: result,
	})
	return e.save(ctx, row)
}

// lookForPerson is the fresh look that every decision rests on.
func (e *Engine) lookForPerson(ctx context.Context, row *ledger.Row) (*task, answer, error) {
	ask := e.maybeTask
	if over(row.Work) {
		ask = e.checkTask
	}
	t, err := ask(ctx, row)
	if err != nil {
		return nil, answer{}, fmt.Errorf("reading Flexi for the decision: %w", err)
	}
	ans, err := e.lookUp(ctx, t)
	if err != nil {
		return nil, ans, err
	}
	if !ans.valid {
		return nil, ans, &DecisionError{Retry: true, Text: "Flexi cannot be looked at now: " + ans.why}
	}
	return t, ans, nil
}

// over says that the event had ended, whatever a look has found since.
func over(w *ledger.Work) bool { return w.Final || w.End != nil }

// decideLook looks and notes what is there; a document in doubt goes on from that at once.
func (e *Engine) decideLook(ctx context.Context, row *ledger.Row) (string, error) {
	t, ans, err := e.lookForPerson(ctx, row)
	if err != nil {
		return "", err
	}
	var f finding
	if over(row.Work) { // what the event asked for is over: the question is whether the record is as it was left
		reason, p, err := e.audit(ctx, t, ans, true)
		if err != nil {
			return "", err
		}
		if f = (finding{verdict: "as_left", problem: p}); reason != "" {
			f.verdict = verdict(reason)
		}
	} else if f, err = e.judge(ctx, t, ans); err != nil {
		return "", err
	}
	e.note(t, "person", f, ans)
	if row.Reason == ledger.Conflict || row.Reason == ledger.Duplicate {
		refresh(row, f.problem)
	}
	if row.State == ledger.Maybe || row.State == ledger.Parked && row.Reason == ledger.Unknown {
		row.Due = e.o.Now()
	}
	return string(f.verdict), nil
}

// decideConfirm takes the record that Flexi shows as the document, if it is the only one, is no other document of ours, and is as
// the person saw it.
func (e *Engine) decideConfirm(ctx context.Context, row *ledger.Row) (string, error) {
	if !waitsForPerson(row) {
		return "", &DecisionError{Text: confirmRefused(row)}
	}
	t, ans, err := e.lookForPerson(ctx, row)
	if err != nil {
		return "", err
	}
	s := ans.matches
	all, other := s.all(), s.rival
	if len(s.mine) == 0 && len(all) == 1 {
		if other = e.otherOfOurs(t, all[0]); other == "" {
			if other, err = e.ownedBy(ctx, row, all[0].ID()); err != nil {
				return "", err
			}
		}
	}
	if err := e.sameBooks(); err != nil {
		return "", err
	}
	if err := e.asSeen(t, s); err != nil {
		return "", err
	}
	if t.op == flexi.Delete && len(all) == 0 {
		e.confirm(row, t.ev, effect{})
		return "deleted", nil
	}
	e.note(t, "person", finding{verdict: verdictDone}, ans)
	if why := confirmRefused(row); why != "" {
		return "", &DecisionError{Text: why}
	}
	if other != "" {
		return "", &DecisionError{Text: "record " + all[0].ID() + " is another document of ours, " + other + ": drop this one, or correct its number"}
	}
	as, err := e.asSent(ctx, t, all[0])
	if err != nil {
		return "", err
	}
	e.confirm(row, t.ev, effect{flexiID: all[0].ID(), number: shownNumber(row.Evidence, all[0]), reason: ledger.Adopted, own: carries(all[0], row.Ext)})
	e.keep(row, all[0], as)
	rec := ledger.Event{Number: row.Number, Body: shownFields(all[0])}
	describe(row, &rec, e.o.Settings.Zone)
	// As it stands now is as the person wants it: later changes are judged against that, not against what was sent.
	row.Base = nil
	if row.Last != nil && !row.Marked {
		fields, err := compare.FieldNames(t.ev.Body)
		if err != nil {
			return "", fmt.Errorf("fields of the event: %w", err)
		}
		row.Last.Picture = e.picture(t, fields, all[0])
	}
	return "record " + all[0].ID(), nil
}

// asSent says whether a record shows what the event wants.
func (e *Engine) asSent(ctx context.Context, t *task, rec flexi.Record) (bool, error) {
	if t.ev.Op == flexi.Storno || t.ev.Op == flexi.Delete || t.ev.Body == nil {
		return true, nil
	}
	res, err := e.comparer(ctx, t).Compare(ctx, t.ev.Body, rec)
	if err != nil {
		return false, fmt.Errorf("comparing with record %s: %w", rec.ID(), err)
	}
	return res.Equal(false), nil // free texts too: a person kept them
}

// keep notes that a person took the record as the document. Its number is what the record shows, and where its content is not
// what was sent, nobody may later hear that it is.
func (e *Engine) keep(row *ledger.Row, rec flexi.Record, asSent bool) {
	last := row.Last
	if last == nil {
		return
	}
	if pairless(row.Evidence) {
		if n := shownNumber(row.Evidence, rec); n != "" {
			last.Number = n
		}
	} else {
		last.Number, last.Year = cisDosle(rec), flexi.Year(rec.Issued(e.o.Settings.Zone))
	}
	if !asSent {
		last.Kept, last.Digest = last.Digest, ""
	}
	shedNumbers(row)
}

// decideResend has the event sent again, by the way that fits how it stands: judged anew where it never may have been sent, after
// three looks where it may.
func (e *Engine) decideResend(ctx context.Context, row *ledger.Row) (string, error) {
	if row.Aside != nil {
		return e.resendAside(ctx, row)
	}
	w, now := row.Work, e.o.Now()
	if why := resendRefused(row); why != "" {
		return "", &DecisionError{Text: why}
	}
	if row.Missing() != nil {
		return e.redoRefused(row), nil
	}
	switch row.Reason {
	case ledger.Unreadable, ledger.IDReused:
		forgive(row, w.N)
		return e.resendUnread(ctx, row)
	case ledger.Conflict, ledger.Duplicate, ledger.Rejected:
		return e.resendJudged(ctx, row)
	}
	forgive(row, w.N)
	row.State, row.Reason = ledger.Maybe, ""
	w.ByPerson, w.Exists, w.Reject = true, false, nil
	w.Absences, w.LastAbs, w.Step, w.Ended = 0, time.Time{}, 0, now
	row.Due = now
	return "it is sent again after three looks that show that it is not done", nil
}

// redoRefused gives all that was refused its turn again, in the order in which it came.
func (e *Engine) redoRefused(row *ledger.Row) string {
	for _, r := range row.Refused {
		row.Redo = append(row.Redo, r.N)
	}
	slices.Sort(row.Redo)
	row.Refused = nil
	show(row)
	row.Due = e.o.Now()
	return "what was refused is judged and sent again"
}

// anew puts the current event back into the queue as if it had just come, with its history.
func (e *Engine) anew(row *ledger.Row) {
	w, now := row.Work, e.o.Now()
	story := w.Story
	story.Problem = nil
	row.Work = &ledger.Work{N: w.N, Op: w.Op, Begun: w.Begun, FirstTry: now, Attempt: w.Attempt, Pass: row.Reason == ledger.Conflict, Story: story,
		Version: w.Version, Digest: w.Digest, Fields: w.Fields, Redone: w.Redone}
	row.Numbers = nil // while the event was over, others may have taken them: their keys say whose they are
	row.State, row.Reason, row.Cause, row.Due = ledger.Queued, "", "", now
}

// resendUnread takes an event as a person says it is meant: one whose id was used before as one of its own, one that named
// an evidence which was not there as it stands. Bytes that are no document cannot become one.
func (e *Engine) resendUnread(ctx context.Context, row *ledger.Row) (string, error) {
	ev, err := e.o.Ledger.Event(ctx, row.ID, row.Work.N)
	if err != nil {
		return "", fmt.Errorf("reading event %d: %w", row.Work.N, err)
	}
	if ev.Body == nil {
		return "", &DecisionError{Text: "its bytes are no document, at any time: have the sender send it again, corrected, and drop this one"}
	}
	if ev.Born != "" {
		ev.Born, ev.Problem = "", nil
		if err := e.o.Ledger.PutEvent(ctx, row.ID, ev); err != nil {
			return "", fmt.Errorf("changing event %d: %w", ev.N, err)
		}
	}
	e.anew(row)
	row.LookOnce = true
	return "it is judged as an event of its own and sent", nil
}

// decideDrop gives the current event up. What was never sent needs no look: nothing of it can be in Flexi.
func (e *Engine) decideDrop(ctx context.Context, row *ledger.Row) (string, error) {
	w := row.Work
	if !droppable(row) {
		return "", &DecisionError{Text: dropRefused(row)}
	}
	if w.Opens > 0 || !w.Final && (w.Attempt > 0 || row.State == ledger.Parked) {
		t, ans, err := e.lookForPerson(ctx, row)
		if err != nil {
			return "", err
		}
		f := finding{verdict: verdictSend}
		if !w.Final {
			if f, err = e.judge(ctx, t, ans); err != nil {
				return "", err
			}
		}
		e.note(t, "person", f, ans)
		if err := e.sameBooks(); err != nil {
			return "", err
		}
		gone, err := e.isGone(ctx, t, ans.matches)
		if err != nil {
			return "", err
		}
		if gone && row.Last != nil { // what comes next would build on nothing, and a sender who begins anew is not outdated
			forgetRecord(row)
			row.Known = nil
		}
	}
	if why := dropRefused(row); why != "" {
		return "", &DecisionError{Text: why}
	}
	missing := row.Missing() != nil
	drop(row)
	if missing {
		show(row) // the last event stays as it ended
		return "closed", nil
	}
	e.end(row, ledger.Dropped, "")
	return "dropped", nil
}
