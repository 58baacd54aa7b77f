package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// Decide carries out what a person decided about one document. It is the one way out of parked that is a person's, and it
// is written into the history with name and reason. A *DecisionError means that nothing was changed.
func (e *Engine) Decide(ctx context.Context, a Address, d Decision) (ledger.Row, error) {
	if d.By == "" || d.Why == "" && d.What != DecideLook {
		return ledger.Row{}, &DecisionError{Text: "a decision needs a name and a reason"}
	}
	id := ledger.RowID(e.o.Settings.Company, a.Evidence, flexi.NewExternalID(e.o.Settings.System, a.Source, a.Key))
	if err := e.hold1(ctx, id); err != nil {
		return ledger.Row{}, err
	}
	due := e.o.Now()
	defer func() { e.index.end(id, due, e.o.Now()) }()
	row, err := e.o.Ledger.Get(ctx, id)
	if errors.Is(err, ledger.ErrNoRow) {
		due = time.Time{}
		return row, &NotFoundError{a}
	}
	if err != nil {
		return row, fmt.Errorf("reading %s: %w", a, e.storeError(err))
	}
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

// hold1 keeps the scheduler off a document while a person decides.
func (e *Engine) hold1(ctx context.Context, id ledger.ID) error {
	for range 200 {
		if e.index.begin(id) {
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

func (e *Engine) decide(ctx context.Context, row *ledger.Row, d Decision) error {
	w := row.Work
	if w == nil {
		return &DecisionError{Text: "the document's first event has not been begun yet: try again in a moment", Retry: true}
	}
	if row.State == ledger.Sending {
		return &DecisionError{Text: "it is being sent just now: try again when the attempt is over", Retry: true}
	}
	acts := d.What == DecideConfirm || d.What == DecideResend || d.What == DecideDrop
	if quiet := e.settled(row); acts && e.o.Now().Before(quiet) {
		// A person may have seen what a request that still runs is about to change.
		return &DecisionError{Retry: true, Text: fmt.Sprintf(
			"the last attempt may still take effect until %s: decide then", quiet.UTC().Format(time.RFC3339))}
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
	if row.Work.Final {
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

func (e *Engine) decideLook(ctx context.Context, row *ledger.Row) (string, error) {
	t, ans, err := e.lookForPerson(ctx, row)
	if err != nil {
		return "", err
	}
	var f finding
	if row.Work.Final { // what the event asked for is over: the question is whether the record is as it was left
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
	e.note(row, "person", f, ans)
	if row.State == ledger.Maybe || row.State == ledger.Parked && row.Reason == ledger.Unknown {
		row.Due = e.o.Now()
	}
	return string(f.verdict), nil
}

func waitsForPerson(row *ledger.Row) bool {
	return row.State == ledger.Maybe || row.State == ledger.Parked && !row.Work.Final
}

func (e *Engine) decideConfirm(ctx context.Context, row *ledger.Row) (string, error) {
	if !waitsForPerson(row) {
		return "", &DecisionError{Text: fmt.Sprintf("it is %s: there is nothing to confirm", stateText(row))}
	}
	t, ans, err := e.lookForPerson(ctx, row)
	if err != nil {
		return "", err
	}
	mine, others := e.sort(t, ans.records)
	all := append(append([]flexi.Record{}, mine...), others...)
	if t.op == flexi.Delete && len(all) == 0 {
		e.confirm(row, t.ev, effect{})
		return "deleted", nil
	}
	switch {
	case len(all) == 0:
		return "", &DecisionError{Text: "Flexi shows no record of this document: resend or drop it"}
	case len(all) > 1:
		return "", &DecisionError{Text: "Flexi shows several records (ids " + ids(all) + "): delete the wrong ones there first"}
	case len(mine) == 0 && e.otherOfOurs(t, all[0]) != "":
		return "", &DecisionError{Text: "record " + all[0].ID() + " is another document of ours, " + e.otherOfOurs(t, all[0]) + ": drop this one, or correct its number"}
	}
	e.note(row, "person", finding{verdict: verdictDone}, ans)
	e.confirm(row, t.ev, effect{flexiID: all[0].ID(), number: shownNumber(row.Evidence, all[0]), reason: ledger.Adopted, own: carries(all[0], row.Ext)})
	rec := ledger.Event{Number: row.Number, Body: shownFields(all[0])}
	describe(row, &rec, e.o.Settings.Zone)
	// As it stands now is as the person wants it: later changes are judged against that, not against what was sent.
	row.Base = nil
	return "record " + all[0].ID(), nil
}

func (e *Engine) decideResend(ctx context.Context, row *ledger.Row) (string, error) {
	w, now := row.Work, e.o.Now()
	last := row.Head == row.Tail
	switch {
	case row.State == ledger.Maybe, row.State == ledger.Parked && row.Reason == ledger.Unknown:
		row.State, row.Reason = ledger.Maybe, ""
		w.ByPerson, w.Exists, w.Reject = true, false, nil
		w.Absences, w.LastAbs, w.Step, w.Ended = 0, time.Time{}, 0, now
		row.Due = now
		return "it is sent again after three looks that show that it is not done", nil
	case row.State == ledger.Parked && (row.Reason == ledger.Conflict || row.Reason == ledger.Duplicate),
		row.State == ledger.Parked && row.Reason == ledger.Rejected && last:
		_, ans, err := e.lookForPerson(ctx, row)
		if err != nil {
			return "", err
		}
		if row.Last != nil && len(ans.records) == 0 {
			row.Last, row.Base, row.FlexiID = nil, nil, "" // the record is gone: the key is unknown again
		}
		story := w.Story
		story.Problem = nil
		row.Work = &ledger.Work{N: w.N, Op: w.Op, Begun: w.Begun, FirstTry: now, Attempt: w.Attempt, Pass: row.Reason == ledger.Conflict, Story: story}
		row.State, row.Reason, row.Cause, row.Due = ledger.Queued, "", "", now
		return "it is judged and sent again", nil
	}
	return "", &DecisionError{Text: fmt.Sprintf("it is %s: send a new event instead", stateText(row))}
}

func (e *Engine) decideDrop(ctx context.Context, row *ledger.Row) (string, error) {
	w := row.Work
	if w.Final || row.State != ledger.Maybe && row.State != ledger.Parked && row.State != ledger.Queued {
		return "", &DecisionError{Text: fmt.Sprintf("it is %s: there is nothing to drop", stateText(row))}
	}
	if w.Attempt > 0 || row.State == ledger.Parked {
		t, ans, err := e.lookForPerson(ctx, row)
		if err != nil {
			return "", err
		}
		mine, _ := e.sort(t, ans.records)
		if len(mine) > 0 && row.Last == nil {
			return "", &DecisionError{Text: "Flexi shows record " + ids(mine) + " of this document: confirm it, or delete it there first"}
		}
		if f, err := e.judge(ctx, t, ans); err == nil && w.Opens > 0 && f.verdict == verdictDone {
			return "", &DecisionError{Text: "Flexi shows the change as done: confirm it"}
		}
		e.note(row, "person", finding{verdict: verdictSend}, ans)
	}
	e.end(row, ledger.Dropped, "")
	return "dropped", nil
}

func stateText(row *ledger.Row) string {
	if row.Reason != "" {
		return string(row.State) + " (" + string(row.Reason) + ")"
	}
	return string(row.State)
}
