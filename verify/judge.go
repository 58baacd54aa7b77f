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

// lookUp asks Flexi for the current event's document.
func (e *Engine) lookUp(ctx context.Context, t *task) (answer, error) {
	ans, err := e.look.ask(ctx, e.question(t))
	if err == nil && !ans.valid {
		e.looked("invalid")
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
	for _, r := range ans.records {
		l.Found = append(l.Found, r.ID())
	}
	mine, _ := e.sort(t, ans.records)
	for _, r := range mine {
		l.Ours = append(l.Ours, r.ID())
	}
	t.row.Work.Story.Looks = append(t.row.Work.Story.Looks, l)
	e.looked(string(f.verdict))
}

// judge applies the table of DESIGN 4.8 to a valid look.
func (e *Engine) judge(ctx context.Context, t *task, ans answer) (finding, error) {
	row, w := t.row, t.row.Work
	mine, others := e.sort(t, ans.records)
	known := row.Last != nil
	if t.op == flexi.Delete && (known || w.Target != "") {
		others = nil // a record that somebody made under the number since is not what is deleted
	}

	// Two records under our own identifiers, or ours and a stranger with the number.
	if len(mine)+len(others) > 1 {
		return finding{verdict: verdictDuplicate, problem: ledger.Problem{Text: fmt.Sprintf(
			"Flexi has %d records for this document: ids %s", len(mine)+len(others), ids(append(slices.Clone(mine), others...)))}}, nil
	}
	if f, is := e.likeness(t, ans.records, mine, others); is {
		return f, nil
	}
	// A record with the number only can be this document if nobody knew it before; not if it is another document of ours.
	if len(mine) == 0 && len(others) == 1 {
		if x := e.otherOfOurs(t, others[0]); x != "" {
			return finding{verdict: verdictDuplicate, problem: ledger.Problem{Text: fmt.Sprintf(
				"number %s stands in Flexi under another document of ours: %s (id %s)", t.ev.Number, x, others[0].ID())}}, nil
		}
		if !known || t.op == flexi.Create {
			mine, others = others, nil
		} else {
			return finding{verdict: verdictDuplicate, problem: ledger.Problem{Text: fmt.Sprintf(
				"number %s stands in Flexi under record %s, which is not this document", t.ev.Number, others[0].ID())}}, nil
		}
	}
	if len(mine) == 0 {
		return e.absent(t), nil
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
		f.before, f.verdict = e.image(t, rec), verdictSend
		if truth(rec, "storno") {
			f.verdict = verdictDone
			return f, nil
		}
		return e.notAnothers(ctx, t, f)
	case flexi.Delete:
		return e.judgeDelete(ctx, t, f)
	}
	return e.judgeUpdate(ctx, t, f)
}

// absent is the verdict on no record at all.
func (e *Engine) absent(t *task) finding {
	known := t.row.Last != nil
	switch {
	case t.op == flexi.Create, t.op == flexi.Upsert && !known, t.row.Work.Opens > 0 && t.row.Work.Write == flexi.Create:
		return finding{verdict: verdictSend, op: flexi.Create}
	case t.op == flexi.Delete && (known || t.row.Work.Opens > 0):
		return finding{verdict: verdictGone}
	case !known && t.row.Work.Opens == 0:
		return finding{verdict: verdictNothing, problem: ledger.Problem{Text: fmt.Sprintf(
			"nothing to change: neither flexid nor Flexi knows this document; send it as create or upsert to make it (%s was asked)", t.ev.Op)}}
	}
	return finding{verdict: verdictConflict, problem: ledger.Problem{Text: "the record is not in Flexi any more: somebody deleted it"}}
}

func (e *Engine) judgeCreate(ctx context.Context, t *task, f finding, op flexi.Op) (finding, error) {
	res, err := e.comparer(ctx, t).Compare(ctx, t.ev.Body, f.record)
	if err != nil {
		return f, fmt.Errorf("comparing with record %s: %w", f.target, err)
	}
	switch {
	case res.Equal(f.own):
		f.verdict = verdictDone
	case op == flexi.Upsert:
		return e.judgeUpdate(ctx, t, f)
	default:
		f.verdict = verdictConflict
		f.problem = differs(res, f.own, "record "+f.target+" in Flexi is not as this event says")
	}
	return f, nil
}

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
	f.verdict = verdictSend
	if f, err = e.notAnothers(ctx, t, f); err != nil || f.verdict != verdictSend {
		return f, err
	}
	return e.asWeLeftIt(ctx, t, f)
}

func (e *Engine) judgeDelete(ctx context.Context, t *task, f finding) (finding, error) {
	w := t.row.Work
	f.before, f.op = e.image(t, f.record), flexi.Delete
	f.verdict = verdictSend
	if w.Before != nil && w.Opens > 0 {
		if !sameImage(w.Before, f.before) {
			f.verdict = verdictConflict
			f.problem = ledger.Problem{Text: "record " + f.target + " was changed by somebody while its deletion was under way"}
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
	if !res.Equal(false) {
		f.verdict = verdictConflict
		f.problem = differs(res, false, "somebody changed record "+f.target+" since the last event; in \"sent\" is how flexid left it")
	}
	return f, nil
}

// leftBy folds the events that took effect and keeps the fields that the current event carries too (all, for a delete).
func (e *Engine) leftBy(ctx context.Context, t *task) (json.RawMessage, error) {
	expected, err := e.expected(ctx, t.row)
	if err != nil || expected == nil || t.op == flexi.Delete {
		return expected, err
	}
	var have, now map[string]json.RawMessage
	if json.Unmarshal(expected, &have) != nil || json.Unmarshal(t.ev.Body, &now) != nil {
		return nil, nil
	}
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

// sort splits what a look found: under our own identity, and with the number only.
func (e *Engine) sort(t *task, records []flexi.Record) (mine, others []flexi.Record) {
	var paired []flexi.Record
	for _, r := range records {
		id := t.row.FlexiID
		if t.row.Work.Target != "" {
			id = t.row.Work.Target
		}
		// After a restore of the ERP an id may name another document than it did before.
		switch {
		case carries(r, t.row.Ext) || id != "" && r.ID() == id && e.otherOfOurs(t, r) == "":
			mine = append(mine, r)
		case !e.byPairAlone(t, r):
			others = append(others, r)
		default:
			paired = append(paired, r)
		}
	}
	// A payable's number holds within its year.
	year := e.yearOf(t, mine)
	for _, r := range paired {
		if sameNumber(year, t.number(), r.Issued(e.o.Settings.Zone), cisDosle(r)) {
			others = append(others, r)
		}
	}
	return mine, others
}

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
	return compare.Comparer{Props: t.props, Resolve: e.books, Items: e.items(ctx, t.row, body), Zone: e.o.Settings.Zone}
}

func (e *Engine) items(ctx context.Context, row *ledger.Row, body json.RawMessage) map[string]*flexi.Properties {
	items := map[string]*flexi.Properties{}
	for _, field := range flexi.ItemsField(body) {
		if p := e.books.rowProperties(ctx, row.Evidence); p != nil {
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
