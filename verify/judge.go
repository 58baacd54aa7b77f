package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"flexid/flexi"
	"flexid/verify/compare"
	"flexid/verify/ledger"
)

// verdict is what a look says about the current event.
type verdict string

const (
	verdictSend      verdict = "not_done"  // absent, or the before-image is shown
	verdictDone      verdict = "done"      // the wanted state is shown
	verdictGone      verdict = "gone"      // a delete finds nothing
	verdictNothing   verdict = "nothing"   // update, storno or delete of what nobody knows
	verdictConflict  verdict = "conflict"  // something else is shown
	verdictDuplicate verdict = "duplicate" // more than one record, or another document's
)

// finding is a verdict with what it rests on.
type finding struct {
	verdict    verdict
	op         flexi.Op // what to send, where the look decides it
	target     string   // Flexi id
	number     string
	own        bool // it stands under our own external id
	before     map[string]string
	lastUpdate string
	problem    ledger.Problem
	record     flexi.Record
}

// lookUp asks Flexi for the current event's document, and says whose the records of the answer are.
func (e *Engine) lookUp(ctx context.Context, t *task) (answer, error) {
	if e.admission.stoppedFor(otherCompany) { // its books would have everything parked as gone
		now := e.o.Now()
		return answer{why: "another company is behind the address", at: now, since: now}, nil
	}
	var err error
	if t.know, err = e.knowledge(ctx, t); err != nil {
		return answer{}, err
	}
	ans, err := e.looker.ask(ctx, e.question(t))
	switch {
	case err != nil:
	case !ans.valid:
		e.looked("invalid")
	default:
		ans.matches, err = e.recognise(ctx, t, ans.records)
	}
	return ans, err
}

func (e *Engine) looked(verdict string) {
	if e.o.Observer != nil {
		e.o.Observer.Looked(verdict)
	}
}

// note adds a look to the story, in memory.
func (e *Engine) note(t *task, why string, f finding, ans answer) {
	l := ledger.Look{Time: ans.at, Why: why, Verdict: string(f.verdict), Text: clip(f.problem.Text, 200)}
	for _, r := range ans.matches.all() {
		l.Found = append(l.Found, r.ID())
	}
	for _, r := range ans.matches.mine {
		l.Ours = append(l.Ours, r.ID())
	}
	if all := ans.matches.all(); len(all) == 1 {
		l.Shown = e.shownAs(t, all[0])
	}
	t.row.Work.Story.Looks = append(t.row.Work.Story.Looks, l)
	e.looked(string(f.verdict))
}

// judge applies the table of DESIGN 4.8 to a valid look.
func (e *Engine) judge(ctx context.Context, t *task, ans answer) (finding, error) {
	row, w := t.row, t.row.Work
	s := ans.matches
	known := row.Last != nil
	if t.op == flexi.Delete && known {
		// A record that somebody made under the number since is not what is deleted.
		s.others = slices.DeleteFunc(s.others, func(r flexi.Record) bool { return r.ID() != s.taken })
	}
	mine, others := s.mine, s.others
	e.stillBound(t, s)

	// Two records under our own identifiers, or ours and a stranger with the number.
	if len(mine)+len(others) > 1 {
		return finding{verdict: verdictDuplicate, problem: ledger.Problem{Text: fmt.Sprintf(
			"Flexi has %d records for this document: ids %s", len(mine)+len(others), ids(s.all()))}}, nil
	}
	if s.rival != "" {
		return finding{verdict: verdictDuplicate, problem: ledger.Problem{Link: s.rival, Text: fmt.Sprintf(
			"record %s belongs to another document of ours as well, %s: take the external id of one of them from it in Flexi", ids(mine), s.rival)}}, nil
	}
	if f, is := e.likeness(t, ans.records, mine, others); is {
		return f, nil
	}
	// A record with the number only can be this document if nobody knew it before; not if it is another document of ours.
	if len(mine) == 0 && len(others) == 1 {
		if f, ok, err := e.numberOnly(ctx, t, s); err != nil || !ok {
			return f, err
		}
		mine = others
	}
	if len(mine) == 0 {
		return e.absent(t, s), nil
	}

	rec := mine[0]
	if carries(rec, row.Ext) {
		e.fence.came(row.Evidence, row.ID)
	}
	f := finding{target: rec.ID(), record: rec, number: shownNumber(row.Evidence, rec), lastUpdate: rec.Text("lastUpdate"), own: carries(rec, row.Ext)}
	op := t.op
	if w.Opens > 0 && w.Write != "" && w.Write != flexi.Attach {
		op = w.Write // an attempt was made: what was sent decides
	}
	switch op {
	case flexi.Create, flexi.Upsert:
		return e.judgeCreate(ctx, t, f, op)
	case flexi.Storno:
		if truth(rec, "storno") {
			f.before, f.verdict = e.image(t, rec), verdictDone
			return f, nil
		}
		return e.judgeEnding(ctx, t, f, op)
	case flexi.Delete:
		return e.judgeEnding(ctx, t, f, op)
	}
	return e.judgeUpdate(ctx, t, f)
}

// numberOnly judges the one record that has the document's number, or another identifier that was asked for, and nothing
// that proves it ours. ok: it is this document all the same, since nobody knew it before.
func (e *Engine) numberOnly(ctx context.Context, t *task, s matches) (f finding, ok bool, err error) {
	r := s.others[0]
	other := e.otherOfOurs(t, r)
	if other == "" {
		if other, err = e.ownedBy(ctx, t.row, r.ID()); err != nil {
			return f, false, err
		}
	}
	f = finding{verdict: verdictDuplicate}
	switch {
	case other != "":
		f.problem = ledger.Problem{Link: other, Text: fmt.Sprintf(
			"number %s stands in Flexi under another document of ours: %s (id %s)", t.ev.Number, other, r.ID())}
	case t.row.Last == nil, t.op == flexi.Create:
		return f, true, nil
	case s.taken == r.ID() && !t.row.Marked && t.row.Work.Pass: // a person has seen it and said so
		return f, true, nil
	case s.taken == r.ID() && !t.row.Marked:
		f.verdict = verdictConflict
		f.problem, err = e.changedUnmarked(ctx, t, r)
	default:
		f.problem = s.missing(t.row)
	}
	return f, false, err
}

// changedUnmarked is the problem where the record has the number of ours and stands where ours stood, but not the content that we
// know, and it never carried an external id of ours. A person may have changed it, or it may be another one.
func (e *Engine) changedUnmarked(ctx context.Context, t *task, r flexi.Record) (ledger.Problem, error) {
	text := "record " + r.ID() + " carries no external id of ours and is not as our last event left it: somebody changed it, or it is another " +
		"document under the same number; `flexid maybe resend` if it is ours"
	left, err := e.expected(ctx, t.row)
	if err != nil || left == nil {
		return ledger.Problem{Text: text}, err
	}
	res, err := e.comparer(ctx, t).Compare(ctx, left, r)
	if err != nil {
		return ledger.Problem{}, fmt.Errorf("comparing record %s with what our events left: %w", r.ID(), err)
	}
	return differs(res, false, text), nil
}

// absent is the verdict on no record at all.
func (e *Engine) absent(t *task, s matches) finding {
	known := t.row.Last != nil
	switch {
	case known && t.row.Last.Kept != "" && t.row.Work.Opens == 0 && t.op == flexi.Create:
	case t.op == flexi.Create, t.op == flexi.Upsert && !known, t.row.Work.Opens > 0 && t.row.Work.Write == flexi.Create:
		return finding{verdict: verdictSend, op: flexi.Create}
	case t.op == flexi.Delete && (known || t.row.Work.Opens > 0):
		return finding{verdict: verdictGone}
	case !known && t.row.Work.Opens == 0:
		return finding{verdict: verdictNothing, problem: ledger.Problem{Text: fmt.Sprintf(
			"nothing to change: neither flexid nor Flexi knows this document; send it as create or upsert to make it (%s was asked)", t.ev.Op)}}
	}
	return finding{verdict: verdictConflict, problem: s.missing(t.row)}
}

// judgeCreate compares the record with what a create or upsert wants.
func (e *Engine) judgeCreate(ctx context.Context, t *task, f finding, op flexi.Op) (finding, error) {
	res, err := e.comparer(ctx, t).Compare(ctx, t.ev.Body, f.record)
	if err != nil {
		return f, fmt.Errorf("comparing with record %s: %w", f.target, err)
	}
	strict := t.row.Last != nil && t.row.Last.Kept != "" // a person decided about every difference
	switch {
	case res.Equal(f.own && !strict):
		f.verdict = verdictDone
	case op == flexi.Upsert:
		return e.judgeUpdate(ctx, t, f)
	default:
		f.verdict = verdictConflict
		f.problem = differs(res, f.own && !strict, "record "+f.target+" in Flexi is not as this event says")
	}
	return f, nil
}

// judgeUpdate compares the record with what an update wants.
//
// 1. Every field sent is shown: done.
// 2. After an attempt the before-image decides.
// 3. A record that is locked, paid or posted, that a person kept, that is another document's, or that somebody changed since our
// last event is a conflict.
func (e *Engine) judgeUpdate(ctx context.Context, t *task, f finding) (finding, error) {
	w := t.row.Work
	f.op = flexi.Update
	cmp := e.comparer(ctx, t)
	res, err := cmp.Compare(ctx, t.ev.Body, f.record)
	if err != nil {
		return f, fmt.Errorf("comparing with record %s: %w", f.target, err)
	}
	f.before = e.image(t, f.record)
	if res.Shown() { // every field sent; one that cannot be compared is no proof
		f.verdict = verdictDone
		return f, nil
	}
	if w.Opens > 0 && w.Before != nil { // after an attempt the before-image decides
		f.verdict = verdictSend
		if !sameImage(w.Before, f.before) {
			f.verdict = verdictConflict
			f.problem = differs(res, false, "record "+f.target+" shows neither what was there before nor what was sent")
		}
		return f, nil
	}
	if why := frozen(f.record); why != "" && !w.Pass {
		f.verdict = verdictConflict
		f.problem = differs(res, false, "record "+f.target+" is "+why+": change it in Flexi, or undo that and send again")
		return f, nil
	}
	if last := t.row.Last; last != nil && last.Kept != "" && last.Kept == t.ev.Digest && !w.Pass {
		f.verdict = verdictConflict
		f.problem = differs(res, false, "a person kept record "+f.target+" as it is when this content came before: `flexid maybe resend` puts this one, `flexid maybe drop` gives it up for good")
		return f, nil
	}
	f.verdict = verdictSend
	if f, err = e.notAnothers(ctx, t, f); err != nil || f.verdict != verdictSend {
		return f, err
	}
	return e.asWeLeftIt(ctx, t, f)
}

// judgeEnding compares a record before it is cancelled or deleted, as before an update: what a person has changed since is
// for a person to end.
func (e *Engine) judgeEnding(ctx context.Context, t *task, f finding, op flexi.Op) (finding, error) {
	w := t.row.Work
	f.before, f.op = e.image(t, f.record), op
	f.verdict = verdictSend
	if w.Before != nil && w.Opens > 0 {
		if !sameImage(w.Before, f.before) {
			f.verdict = verdictConflict
			f.problem = ledger.Problem{Text: fmt.Sprintf("record %s was changed by somebody while its %s was under way", f.target, op)}
		}
		return f, nil
	}
	f, err := e.notAnothers(ctx, t, f)
	if err != nil || f.verdict != verdictSend {
		return f, err
	}
	return e.asWeLeftIt(ctx, t, f)
}

// asWeLeftIt parks a change of what a person has changed since our last event, in fields that both carry.
func (e *Engine) asWeLeftIt(ctx context.Context, t *task, f finding) (finding, error) {
	if e.o.Settings.Overwrite || t.row.Work.Pass || t.row.Last == nil {
		return f, nil
	}
	left, err := e.leftBy(ctx, t)
	if err != nil || left == nil {
		return f, err
	}
	res, err := e.comparer(ctx, t).Compare(ctx, left, f.record)
	if err != nil {
		return f, fmt.Errorf("comparing with what the last event left: %w", err)
	}
	// A note that a person added is no reason to keep a cancelled document.
	if own := t.op == flexi.Storno && f.own; !res.Equal(own) {
		f.verdict = verdictConflict
		f.problem = differs(res, own, "somebody changed record "+f.target+" since the last event; in \"sent\" is how flexid left it")
	}
	return f, nil
}

// leftBy folds the events that took effect and keeps the fields that the current event carries too (all, for a storno or delete).
func (e *Engine) leftBy(ctx context.Context, t *task) (json.RawMessage, error) {
	expected, err := e.expected(ctx, t.row)
	if err != nil || expected == nil || ends(t.op) {
		return expected, err
	}
	have, now := flexi.ParseRecord(expected), flexi.ParseRecord(t.ev.Body)
	for k := range have {
		if _, both := now[k]; !both {
			delete(have, k)
		}
	}
	if len(have) == 0 {
		return nil, nil
	}
	return json.Marshal(have)
}

// ends says that an operation takes no fields and acts on the document as a whole.
func ends(op flexi.Op) bool { return op == flexi.Storno || op == flexi.Delete }

func carries(r flexi.Record, ext flexi.ExternalID) bool {
	return slices.Contains(r.ExternalIDs(), string(ext))
}

// otherOfOurs is the external id by which a record belongs to another document of this installation.
func (e *Engine) otherOfOurs(t *task, r flexi.Record) string {
	for _, x := range r.ExternalIDs() {
		if e.fence.ours(x) && x != string(t.row.Ext) {
			return x
		}
	}
	return ""
}

// comparer compares by the metadata of the evidence, of its rows where Flexi gives any.
func (e *Engine) comparer(ctx context.Context, t *task) compare.Comparer {
	return e.comparerOf(ctx, t, t.ev.Body)
}

func (e *Engine) comparerOf(ctx context.Context, t *task, body json.RawMessage) compare.Comparer {
	return compare.Comparer{Props: t.props, Resolve: e.metadata, Items: e.items(ctx, t.row, body), Zone: e.o.Settings.Zone}
}

func (e *Engine) items(ctx context.Context, row *ledger.Row, body json.RawMessage) map[string]*flexi.Properties {
	items := map[string]*flexi.Properties{}
	for _, field := range flexi.ItemsField(body) {
		if p := e.metadata.rowProperties(ctx, row.Evidence); p != nil {
			items[field] = p
		}
	}
	return items
}

// shownNumber is what people call the record.
func shownNumber(evidence string, r flexi.Record) string {
	field, pair := flexi.NumberField(evidence)
	if n := flexi.NormaliseNumber(evidence, r.Text(field)); n != "" || !pair {
		return n
	}
	return r.Text("kod")
}

func ids(records []flexi.Record) string {
	var s []string
	for _, r := range records {
		s = append(s, r.ID())
	}
	return strings.Join(s, ", ")
}

// differs puts a comparison into words.
func differs(res compare.Result, own bool, what string) ledger.Problem {
	p := ledger.Problem{Text: what}
	add := func(ds []compare.Difference) {
		for _, d := range ds {
			if len(p.Differ) < 12 {
				p.Differ = append(p.Differ, ledger.Difference{Field: d.Field, Sent: clip(d.Sent, 120), Found: clip(d.Found, 120)})
			}
		}
	}
	add(res.Differ)
	if !own {
		add(res.Noted)
	}
	return p
}
