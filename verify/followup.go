package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"flexid/flexi"
	"flexid/verify/compare"
	"flexid/verify/ledger"
)

// readBackAt rounds up to a common moment, so that documents confirmed about the same time are read back in one request.
// Where a document waits to learn whether the fence holds the read-back comes at once: it settles that question.
func (e *Engine) readBackAt(evidence string, now time.Time) time.Time {
	if e.fence.asked(evidence) {
		return now
	}
	return now.Add(e.o.Settings.ReadBack).Truncate(e.o.Settings.ReadBack / 4).Add(e.o.Settings.ReadBack / 4)
}

// followUp does what comes after an event whatever its state: the read-back of a confirmed document, late looks after an attempt
// that was ever open.
func (e *Engine) followUp(ctx context.Context, row *ledger.Row) (stepResult, error) {
	now := e.o.Now()
	idle := row.Work != nil && row.Work.Final && !row.More()
	late := len(row.Late) > 0 && !now.Before(row.Late[0])
	back := !row.ReadBack.IsZero() && !now.Before(row.ReadBack)
	switch {
	case !late && !back:
		return stepResult{}, nil
	case !idle && row.State != ledger.Parked:
		// The current event reads the record anyway; a late look waits until it is over.
		row.ReadBack = time.Time{}
		if late {
			row.Late[0] = now.Add(time.Minute)
		}
		return stepResult{}, e.save(ctx, row)
	}
	return e.check(ctx, row, late)
}

// mustCheckFirst says that a follow-up comes before the current event: the document was confirmed before the ERP was set back,
// and the event was not sent yet. What it builds on may be gone, also if it would cost no write. A delete looks for itself.
func (e *Engine) mustCheckFirst(row *ledger.Row) bool {
	w := row.Work
	return row.LookOnce && row.Last != nil && e.followUpDue(row) && w.Attempt == 0 && w.Op != flexi.Delete
}

// followUpDue says that a read-back or late look is due now.
func (e *Engine) followUpDue(row *ledger.Row) bool {
	now := e.o.Now()
	return len(row.Late) > 0 && !now.Before(row.Late[0]) || !row.ReadBack.IsZero() && !now.Before(row.ReadBack)
}

// check looks at a document whose last event is over (or parked) and compares the books with what our events left.
//
// 1. Look; an invalid look, or an empty one too soon after the event, is repeated later.
// 2. The follow-up is done: take it off the row.
// 3. Compare with what our events left (audit).
// 4. What is not as it was left parks the document, unless a person has it already.
func (e *Engine) check(ctx context.Context, row *ledger.Row, late bool) (stepResult, error) {
	t, err := e.checkTask(ctx, row)
	if err != nil {
		return waitUntil(e.o.Now().Add(e.followUpPause(row, late))), nil
	}
	ans, err := e.lookUp(ctx, t)
	if err != nil {
		return stepResult{}, err
	}
	if !ans.valid || ans.doubtful && len(ans.records) == 0 {
		return waitUntil(e.o.Now().Add(e.followUpPause(row, late))), nil
	}
	if soon := e.tooSoonUntil(row); !late && len(ans.records) == 0 && e.o.Now().Before(soon) {
		return waitUntil(soon), nil
	}
	why := "read_back"
	if late {
		why = "late"
		row.Late = row.Late[1:]
	}
	lenient := late && row.ReadBack.IsZero() // a read-back that is due is done along with the late look
	row.ReadBack = time.Time{}
	reason, p, err := e.audit(ctx, t, ans, lenient)
	if err != nil {
		return stepResult{}, err
	}
	if row.Work.Final {
		e.fence.forget(row.ID)
	}
	e.learnID(ctx, t, ans)
	f := finding{verdict: "as_left", problem: p}
	if reason != "" {
		f.verdict = verdict(reason)
	}
	if row.Work.End != nil && row.Work.End.State == ledger.Confirmed || late {
		e.note(t, why, f, ans)
	}
	if w := row.Work; reason == "" || row.State == ledger.Parked && !w.Final {
		return continueNow(), e.save(ctx, row) // nothing is wrong, or a person has it already
	}
	// confirmed -> parked, or a rejected or dropped document that is there after all: a person must know.
	w := row.Work
	w.Final = false
	p.Whole = true
	e.park(row, reason, p)
	return continueNow(), e.save(ctx, row)
}

// tooSoonUntil is until when an empty read-back says nothing: an ERP whose reads lag does not show yet what it has just accepted,
// and a person would hear of a loss that is none. The first read-back comes at once where the fence is not known. Where a person
// accepted the books since, no lag explains the gap. The time counts from when the read-back was due, if that is earlier: the
// event may have taken effect while the clock was ahead.
func (e *Engine) tooSoonUntil(row *ledger.Row) time.Time {
	if row.Last == nil || row.Last.At.Before(e.marks.accepted()) {
		return time.Time{}
	}
	soon := row.Last.At.Add(e.o.Settings.ReadBack)
	if due := row.ReadBack.Add(e.o.Settings.ReadBack); due.Before(soon) {
		return due
	}
	return soon
}

// followUpPause is how long a follow-up waits after a look that was invalid: the longer the ERP cannot be read, the longer.
func (e *Engine) followUpPause(row *ledger.Row, late bool) time.Duration {
	since := row.ReadBack
	if late {
		since = row.Late[0]
	}
	return min(max(e.o.Now().Sub(since)/4, e.o.Settings.Probe, 5*time.Second), unknownEvery/4)
}

// learnID takes over id and number of a record that was made in a request whose answer did not say which was whose, or said it
// wrong: the external id shows it. A notification that lacked them is sent again.
func (e *Engine) learnID(ctx context.Context, t *task, ans answer) {
	row := t.row
	mine := slices.DeleteFunc(slices.Clone(ans.records), func(r flexi.Record) bool { return !carries(r, row.Ext) })
	if row.Last == nil || len(mine) != 1 || row.FlexiID == mine[0].ID() {
		return
	}
	row.FlexiID = mine[0].ID()
	n := shownNumber(row.Evidence, mine[0])
	if _, given, err := flexi.NumberOf(row.Evidence, t.left); n != "" && (row.Number == "" || !given && err == nil) { // Flexi drew it
		row.Number, row.Last.Number = n, ""
		e.ownDrawn(ctx, row, n)
	}
	if row.Work.Final {
		e.mustNotify(row)
	}
}

// checkTask asks for the document as a whole, by what our events left.
func (e *Engine) checkTask(ctx context.Context, row *ledger.Row) (*task, error) {
	t, err := e.task(ctx, row)
	if err != nil {
		return nil, err
	}
	if t.left, err = e.expected(ctx, row); err != nil {
		return nil, err
	}
	if t.ev.Body == nil {
		t.ev.Body = json.RawMessage("{}")
	}
	t.props, err = e.metadata.properties(ctx, row.Evidence)
	return t, err
}

// audit compares what a look shows with what the last effective event left. "" means that nothing is wrong.
func (e *Engine) audit(ctx context.Context, t *task, ans answer, late bool) (ledger.Reason, ledger.Problem, error) {
	row := t.row
	s := ans.matches
	mine, others := s.mine, s.others
	if row.Last == nil && len(mine) == 0 {
		// Nothing of ours is expected. A record with the number only is a person's, unless it never was before an attempt.
		return "", ledger.Problem{}, nil
	}
	switch {
	case row.Last == nil:
		return ledger.Duplicate, ledger.Problem{Text: "record " + ids(mine) + " stands under our external id, though no event of ours left one"}, nil
	case len(mine)+len(others) > 1:
		return ledger.Duplicate, ledger.Problem{Text: "Flexi has more than one record for this document: ids " + ids(s.all())}, nil
	case len(mine) == 0 && len(others) == 1 && others[0].ID() == s.taken && !row.Marked:
		p, err := e.changedUnmarked(ctx, t, others[0])
		return ledger.Conflict, p, err
	case len(mine) == 0:
		return ledger.Conflict, s.missing(row), nil
	case s.rival != "":
		return ledger.Duplicate, ledger.Problem{Link: s.rival, Text: "record " + ids(mine) + " belongs to another document of ours as well, " + s.rival}, nil
	}
	rec := mine[0]
	if carries(rec, row.Ext) {
		e.fence.came(row.Evidence, row.ID)
	} else if row.Work.End != nil && row.Work.End.Reason != ledger.Adopted && row.Work.Write == flexi.Create {
		e.fence.set(row.Evidence, fenceDisproved)
	}
	if row.Last.Op == flexi.Storno && !truth(rec, "storno") {
		return ledger.Conflict, ledger.Problem{Text: "record " + rec.ID() + " is not cancelled"}, nil
	}
	if t.left == nil {
		return "", ledger.Problem{}, nil
	}
	res, err := e.comparerOf(ctx, t, t.left).Compare(ctx, t.left, rec)
	if err != nil {
		return "", ledger.Problem{}, fmt.Errorf("comparing record %s with what our events left: %w", rec.ID(), err)
	}
	if res.Equal(true) && (!late || res.Equal(false)) {
		return "", ledger.Problem{}, nil
	}
	p := differs(res, !late, "record "+rec.ID()+" is not as our last event left it")
	if late && !e.anOlderEvent(ctx, t, rec, res) {
		return "", p, nil // a person went on with it: theirs
	}
	return ledger.Conflict, p, nil
}

// anOlderEvent says that a record which is not as our events left it has the content of an event of ours that is not the last
// effective one. Then a request that was given up took effect late.
func (e *Engine) anOlderEvent(ctx context.Context, t *task, rec flexi.Record, res compare.Result) bool {
	changed := map[string]bool{}
	for _, d := range slices.Concat(res.Differ, res.Noted) {
		field, _, _ := strings.Cut(d.Field, "[")
		field, _, _ = strings.Cut(field, ".")
		changed[field] = true
	}
	for n := max(1, t.row.Tail-mostCompared); n <= t.row.Tail; n++ {
		if t.row.Last != nil && n == t.row.Last.N {
			continue
		}
		ev, err := e.o.Ledger.Event(ctx, t.row.ID, n)
		if err != nil || ev.Body == nil {
			continue
		}
		body := only(changed, ev.Body)
		if body == nil {
			continue
		}
		res, err := e.comparerOf(ctx, t, body).Compare(ctx, body, rec)
		if err == nil && res.Shown() {
			return true
		}
	}
	return false
}

// mostCompared bounds how many events of a document a late look compares with.
const mostCompared = 50

// only keeps some fields of a document, nil when it has none of them.
func only(fields map[string]bool, body json.RawMessage) json.RawMessage {
	doc := flexi.ParseRecord(body)
	maps.DeleteFunc(doc, func(name string, _ json.RawMessage) bool { return !fields[name] })
	if len(doc) == 0 {
		return nil
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return nil
	}
	return b
}
