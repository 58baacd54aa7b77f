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

// task is what a step knows of the current event: the row, the event, and what reads showed.
type task struct {
	row   *ledger.Row
	ev    *ledger.Event
	props *flexi.Properties
	body  json.RawMessage // the event's document as it is sent: days where Flexi keeps days
	op    flexi.Op        // what the event comes to for this document: never upsert once it is decided
	left  json.RawMessage // of a storno or delete: the document as our events left it
	know  *knowledge      // what identifies it besides our external id; set by lookUp
	trial bool            // it was fetched as the trial of a breaker
}

// task reads the current event of a row.
func (e *Engine) task(ctx context.Context, row *ledger.Row) (*task, error) {
	ev, err := e.o.Ledger.CachedEvent(ctx, row, row.Work.N)
	if err != nil {
		return nil, fmt.Errorf("reading event %d: %w", row.Work.N, err)
	}
	if len(ev.Whole) > 0 {
		if err := e.inWhole(ctx, row, &ev); err != nil {
			return nil, err
		}
	}
	return &task{row: row, ev: &ev, body: ev.Body, op: ev.Op}, nil
}

// dated reads the fields of the evidence and turns times in date fields into days. The story keeps what was turned, so that
// people are shown what Flexi got.
func (e *Engine) dated(ctx context.Context, t *task) (err error) {
	if t.props, err = e.metadata.properties(ctx, t.row.Evidence); err != nil {
		return err
	}
	body, days, err := e.comparer(ctx, t).Days(t.ev.Body)
	if err != nil {
		return nil // no JSON object: preparing the request says so
	}
	for n, field := range slices.Sorted(maps.Keys(days)) {
		if n >= mostDays {
			delete(days, field)
		}
	}
	t.body, t.row.Work.Story.Days = body, days
	return nil
}

// AsSent is an event's document as Flexi got it, for people to see.
func AsSent(body json.RawMessage, s *ledger.Story) json.RawMessage {
	return compare.WithDays(body, s.Days)
}

// mostDays bounds how many turned times a row remembers; a document with more shows the rest as they came.
const mostDays = 40

// queued judges the current event and sends it if it has to be sent. Its steps are numbered in the order in which their answers
// are cheap.
func (e *Engine) queued(ctx, work context.Context, row *ledger.Row, trial bool) (stepResult, error) {
	t, err := e.task(ctx, row)
	if err != nil {
		return stepResult{}, err
	}
	t.trial = trial

	// 1. The look that a restore asks for, and what needs no ERP.
	if e.mustCheckFirst(row) {
		return e.check(ctx, row, false)
	}
	if knows(row) && e.admission.otherBooks() {
		return e.blocked(ctx, row)
	}
	if done := e.endedAtOnce(t); done {
		return continueNow(), e.save(ctx, row)
	}
	if row.Due.After(e.o.Now()) {
		return waitUntil(row.Due), nil
	}
	if !trial && e.admission.isStopped(row.Evidence) {
		return e.blocked(ctx, row)
	}

	// 2. Evidence and fields.
	if ok, err := e.describable(ctx, t); err != nil {
		return e.unreadableERP(ctx, row, err)
	} else if !ok {
		return continueNow(), e.save(ctx, row)
	}

	// 3. What it refers to comes first. While it waits nothing is asked of Flexi: it comes by here every two seconds.
	if wait, err := e.waitsFor(ctx, t); err != nil || !wait.IsZero() {
		return waitUntil(wait), err
	}

	// 4. The number belongs to one document only.
	number, err := e.numberName(ctx, t)
	if err != nil {
		return e.unreadableERP(ctx, row, err)
	}
	if next, ok, err := e.ownNumber(ctx, t, number); err != nil || !ok {
		return next, err
	}

	takeBack(row.Work, cannotRead)

	// 5. Look before the first send.
	switch {
	case e.seenJustNow(row):
		t.op = row.Work.Write // as the look decided
	case t.op != flexi.Create || e.o.Settings.LookFirst || row.LookOnce || e.marks.unchecked() || t.trial || t.ev.Replayed:
		if next, send, err := e.firstLook(ctx, t); err != nil || !send {
			return next, err
		}
	}

	// 6. What may have been carried out before a restore is a person's to send.
	if t.ev.Replayed && row.Work.Attempt == 0 {
		row.Work.Write = t.op
		e.park(row, ledger.Unknown, ledger.Problem{Text: "the ledger or the stream was restored, and this event may have been carried out before; Flexi does not show it: " +
			"send it by `flexid maybe resend`, or give it up by `flexid maybe drop`"})
		return continueNow(), e.save(ctx, row)
	}
	return e.send(ctx, work, t)
}

// knows says that the ledger knows something about the document in Flexi by which an event could be over without a look.
func knows(row *ledger.Row) bool { return row.Last != nil || row.Known != nil || row.Dropped != nil }

// seenJustNow says that a look not long ago permitted a request that was taken back whole. The next one may build on it.
func (e *Engine) seenJustNow(row *ledger.Row) bool {
	w := row.Work
	seen := e.seenAt(w)
	return w.Splits > 0 && !row.LookOnce && !seen.IsZero() && e.o.Now().Sub(seen) < e.o.Settings.Fresh/2
}

// blocked leaves a document queued while writes of its evidence are stopped. The row says so once, then the scheduler keeps it
// until it is fetched for a trial or the stop is over. One that waits for another document goes on saying that for a while.
func (e *Engine) blocked(ctx context.Context, row *ledger.Row) (stepResult, error) {
	now := e.o.Now()
	if free := row.Updated.Add(outageMost); row.Reason == ledger.WaitsFor && now.Before(free) {
		return waitUntil(free), nil
	}
	if row.Reason != ledger.Blocked {
		row.Reason = ledger.Blocked
		if err := e.save(ctx, row); err != nil {
			return stepResult{}, err
		}
	}
	return waitUntil(now), nil
}

const cannotRead = "waits until Flexi can be read: "

// unreadableERP waits for an ERP that cannot be read. Admission heard of the failed read already. What could not be read may be
// of another evidence than the document's, whose own breaker is not tripped: so the row says once why it waits.
func (e *Engine) unreadableERP(ctx context.Context, row *ledger.Row, err error) (stepResult, error) {
	if row.Reason != ledger.Waiting {
		row.Reason = ledger.Waiting
		row.Work.Story.Problem = &ledger.Problem{Text: cannotRead + clip(err.Error(), 300)}
		if err := e.save(ctx, row); err != nil {
			return stepResult{}, err
		}
	}
	return waitUntil(e.o.Now().Add(e.o.Settings.Probe/2 + time.Duration(e.o.Rand()*float64(e.o.Settings.Probe)))), nil
}

// endedAtOnce closes events that need neither ERP nor look. It reports whether the row changed.
func (e *Engine) endedAtOnce(t *task) bool {
	row, ev := t.row, t.ev
	switch {
	case ev.Born == ledger.Repeated:
		if row.Last != nil && row.Last.Digest == ev.Digest {
			learnVersion(row, ev.Version)
		}
		e.end(row, ledger.Confirmed, ledger.Repeated)
	case ev.Born != "":
		p := ledger.Problem{Text: "this event cannot be read"}
		if ev.Problem != nil {
			p = *ev.Problem
		}
		e.park(row, ev.Born, p)
	case older(ev.Version, row.Known):
		row.Work.Story.Problem = &ledger.Problem{Text: fmt.Sprintf("version %s came after version %s had taken effect", ev.Version.Text, row.Known.Text)}
		e.end(row, ledger.Confirmed, ledger.Superseded)
	case droppedBefore(row, ev):
		row.Work.Story.Problem = &ledger.Problem{Text: "a person dropped this content, and nothing else came since: `flexid maybe resend` sends it"}
		e.end(row, ledger.Dropped, ledger.Repeated)
	case !e.allowed(row.Evidence, ev.Op):
		row.Cause = string(flexi.RightMissing)
		e.park(row, ledger.Rejected, ledger.Problem{Text: fmt.Sprintf(
			"operation %s is not allowed for %s: add it to FLEXID_FLEXI_ALLOW and send the event again", ev.Op, row.Evidence)})
	case repeats(row, ev) && !row.Work.Pass:
		learnVersion(row, ev.Version)
		e.end(row, ledger.Confirmed, ledger.Repeated)
	case ev.Op == flexi.Create && row.Last != nil && row.Last.Kept == "" && !row.Work.Pass:
		e.park(row, ledger.Conflict, ledger.Problem{Text: "this document was created before with other content: `flexid maybe confirm` keeps Flexi's, `flexid maybe resend` puts this one; send changes as update or upsert"})
	default:
		if row.Last != nil && (ev.Op == flexi.Upsert || ev.Op == flexi.Create && row.Work.Pass) {
			t.op = flexi.Update
		}
		return false
	}
	return true
}

// describable makes sure that the evidence exists, and reads its fields.
func (e *Engine) describable(ctx context.Context, t *task) (bool, error) {
	row := t.row
	info, ok, err := e.metadata.surely(ctx, row.Evidence)
	if err != nil {
		return false, err
	}
	if !ok && (flexi.Standard(row.Evidence) || e.looker.met(row.Evidence)) {
		e.admission.readEnded(row.Evidence, aboutFields, &unlistedError{row.Evidence})
		return false, &unlistedError{row.Evidence}
	}
	if !ok {
		e.park(t.row, ledger.Unreadable, ledger.Problem{Text: fmt.Sprintf("Flexi has no evidence %q for our user: check the name that the event gives (on NATS: its subject) and the rights of the user", t.row.Evidence)})
		return false, nil
	}
	if !info.Importable() {
		row.Cause = string(flexi.NotImportable)
		e.park(row, ledger.Rejected, ledger.Problem{Text: fmt.Sprintf("Flexi takes no import into %s (importNotAllowed; its list of evidences says %s): %s",
			row.Evidence, info.ImportStatus, flexi.NotImportable.Hint("en"))})
		return false, nil
	}
	if !info.ExtIDs {
		e.fence.set(t.row.Evidence, fenceDisproved)
	}
	return true, e.dated(ctx, t)
}

// question asks for the current event's document.
func (e *Engine) question(t *task) question {
	q := question{
		evidence: t.row.Evidence, exts: []flexi.ExternalID{t.row.Ext},
		number: t.ev.Number, partner: t.row.Work.Partner, id: t.row.FlexiID,
	}
	if q.number == "" && t.row.Last != nil {
		q.number, q.partner = t.row.Last.Number, t.row.Last.Partner
	}
	if t.row.Work.Target != "" {
		q.id = t.row.Work.Target
	}
	q.exts = append(q.exts, foreignIDs(t.ev.Body)...)
	if fields, err := compare.Fields(t.ev.Body); err == nil {
		q.fields = append(q.fields, fields...)
	}
	if fields, err := compare.Fields(t.left); err == nil && t.left != nil {
		q.fields = append(q.fields, fields...)
	}
	q.fields = append(q.fields, t.know.askFor()...)
	q.fields = append(q.fields, "storno", "zamekK", "stavUhrK", "zuctovano")
	q.fields = append(q.fields, identityFields(t)...)
	return q
}

// foreignIDs are external ids of other systems that the sender wants attached.
func foreignIDs(body json.RawMessage) []flexi.ExternalID {
	id := flexi.ParseRecord(body)["id"]
	if one, ok := flexi.ParseString(id); ok && strings.HasPrefix(one, "ext:") {
		return []flexi.ExternalID{flexi.ExternalID(one)}
	}
	items, _ := flexi.ParseList(id)
	var many []flexi.ExternalID
	for _, item := range items {
		x, ok := flexi.ParseString(item)
		if !ok {
			return nil
		}
		many = append(many, flexi.ExternalID(x))
	}
	return many
}

// firstLook reads what is there and judges it. send is true when the event still has to be sent.
func (e *Engine) firstLook(ctx context.Context, t *task) (next stepResult, send bool, err error) {
	row := t.row
	if ends(t.op) {
		if t.left, err = e.expected(ctx, row); err != nil {
			return stepResult{}, false, err
		}
	}
	ans, err := e.lookUp(ctx, t)
	if err != nil {
		return stepResult{}, false, err
	}
	if !ans.valid {
		if e.noLook(ctx, row, ans) {
			row.Reason = ledger.Waiting
			err = e.save(ctx, row)
		}
		return waitUntil(e.o.Now().Add(e.lookPause(ans))), false, err
	}
	takeBack(row.Work, cannotLook)
	v, err := e.judge(ctx, t, ans)
	if err != nil {
		return stepResult{}, false, err
	}
	e.note(t, "first", v, ans)
	row.LookOnce = false
	switch v.verdict {
	case verdictSend:
		row.Work.Target, row.Work.Before, row.Work.BeforeU, row.Work.BeforeT = v.target, v.before, v.lastUpdate, ans.at
		row.Work.Absences = 0
		if v.op != "" {
			t.op = v.op
		}
		return stepResult{}, true, nil
	case verdictDone:
		x := effect{flexiID: v.target, number: v.number, own: v.own}
		if t.op != flexi.Delete || v.target != "" {
			x.reason = ledger.Adopted
		}
		e.confirm(row, t.ev, x)
		e.ownDrawn(ctx, row, v.number)
	case verdictGone: // a delete of what is not there any more: absent through the schedule
		row.Work.Absences++
		if row.Work.Absences < 3 || row.Work.Step < len(e.o.Settings.Looks)-1 {
			row.Reason, row.Due = ledger.Waiting, e.o.Now().Add(e.stepWait(row.Work))
			row.Work.Step++
			return waitUntil(row.Due), false, e.save(ctx, row)
		}
		e.confirm(row, t.ev, effect{reason: ledger.Adopted})
	case verdictNothing:
		row.Work.Unknown = true
		row.Cause = string(flexi.OtherCause)
		e.park(row, ledger.Rejected, v.problem)
	case verdictConflict:
		e.park(row, ledger.Conflict, v.problem)
	case verdictDuplicate:
		e.park(row, ledger.Duplicate, v.problem)
	}
	return continueNow(), false, e.save(ctx, row)
}

// stepWait is the pause to the next step of the schedule, for looks without an attempt.
func (e *Engine) stepWait(w *ledger.Work) time.Duration {
	looks := e.o.Settings.Looks
	i := min(w.Step+1, len(looks)-1)
	return max(looks[i]-looks[max(i-1, 0)], 0)
}

// older says whether a sender's version lies before the one that took effect.
func older(v, known *ledger.Version) bool {
	if v == nil || known == nil {
		return false
	}
	a, aTime, okA := versionKey(v.Text)
	b, bTime, okB := versionKey(known.Text)
	if !okA || !okB || aTime.IsZero() != bTime.IsZero() {
		return false // not comparable: stream order decides
	}
	if !aTime.IsZero() {
		return aTime.Before(bTime)
	}
	return len(a) < len(b) || len(a) == len(b) && a < b
}

func versionKey(s string) (digits string, t time.Time, ok bool) {
	if d := strings.TrimLeft(s, "0"); strings.Trim(s, "0123456789") == "" && s != "" {
		return d, time.Time{}, true
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return "", t, err == nil
}
