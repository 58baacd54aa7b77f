package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// A person who sends a document again that Flexi has lost, or has in an earlier state, means the document and not its last
// event: an update alone would leave lost what the events before it set, and could not make a record that is gone. So the
// last event that took effect has its turn again, with the fold of all that took effect in place of its own fields.

// EventReader reads the events of a document. Met by *ledger.Ledger.
type EventReader interface {
	Event(ctx context.Context, id ledger.ID, n int) (ledger.Event, error)
}

// Document is an event's document as it is sent: its own, or what a person has had put in its place.
func Document(ctx context.Context, from EventReader, id ledger.ID, ev *ledger.Event) (json.RawMessage, error) {
	if len(ev.Whole) == 0 {
		return ev.Body, nil
	}
	return fold(ctx, from, id, ev.Whole)
}

// inWhole puts the fold in the place of an event's document, in memory. Whether the record is there decides the operation.
func (e *Engine) inWhole(ctx context.Context, row *ledger.Row, ev *ledger.Event) error {
	body, err := fold(ctx, eventsOf{e.o.Ledger, row}, row.ID, ev.Whole)
	if err != nil {
		return err
	}
	ev.Born, ev.Problem = "", nil // of the event; what is sent is not the event
	if ev.Op, ev.Body = flexi.Update, body; row.Last == nil {
		ev.Op = flexi.Create
	}
	if n, ok, err := flexi.NumberOf(row.Evidence, body); ok && err == nil {
		ev.Number = n.Value
	}
	if older(ev.Version, row.Known) {
		ev.Version = row.Known // an event that changed nothing said a newer one
	}
	return nil
}

// resendJudged has the current event judged anew; where Flexi does not have what our events left, the document as a whole.
func (e *Engine) resendJudged(ctx context.Context, row *ledger.Row) (string, error) {
	t, ans, err := e.lookForPerson(ctx, row)
	if err != nil {
		return "", err
	}
	if err := e.sameBooks(); err != nil {
		return "", err
	}
	gone, err := e.isGone(ctx, t, ans.matches)
	if err == nil && !gone {
		err = e.asSeen(t, ans.matches)
	}
	if err != nil {
		return "", err
	}
	result, err := e.resendOf(ctx, t, ans, gone)
	if err == nil {
		e.bind(t, ans.matches)
	}
	return result, err
}

// resendOf says what is sent again, and gives it its turn.
func (e *Engine) resendOf(ctx context.Context, t *task, ans answer, gone bool) (string, error) {
	row := t.row
	w := row.Work
	reopened := over(w) && !w.Final // a look found that Flexi is not as our events left it
	lost := row.Last != nil && (gone || reopened || !w.Final && w.Story.Problem != nil && w.Story.Problem.Whole)
	switch {
	case gone && w.Op == flexi.Delete && !w.Final:
		return "", &DecisionError{Text: "Flexi has no record of this document any more: confirm the delete"}
	case row.Last == nil && gone && w.Unknown && len(row.Refused) > 1:
		return e.redoRefused(row), nil // what it changes was refused before it
	case !lost:
		forgive(row, w.N)
		e.anew(row)
		return "it is judged and sent again", nil
	}
	if !reopened && !w.Final && (t.ev.Born == ledger.Repeated || older(w.Version, row.Known)) {
		reason := ledger.Superseded // it changes nothing, and must not be laid over what is newer
		if t.ev.Born != "" {
			reason = ledger.Repeated
		}
		e.end(row, ledger.Confirmed, reason)
		reopened = true
	}
	n, op := w.N, w.Op
	if reopened {
		n, op = row.Last.N, row.Last.Op
	}
	if op == flexi.Storno {
		return e.resendStorno(ctx, t, ans, n, gone)
	}
	return e.resendWhole(ctx, row, n, gone)
}

// isGone says whether Flexi has no record that can be the document. A record under a number that Flexi itself had drawn is
// none: after a restore it draws the same ones again.
func (e *Engine) isGone(ctx context.Context, t *task, s matches) (bool, error) {
	if len(s.all()) == 0 || len(s.mine) > 0 || !t.row.Marked {
		return len(s.all()) == 0, nil
	}
	left, err := e.expected(ctx, t.row)
	if err != nil || left == nil {
		return false, err
	}
	n, _, err := flexi.NumberOf(t.row.Evidence, left)
	if err != nil || n.Value != "" || t.ev.Number != "" {
		return false, nil //nolint:nilerr // a number that cannot be read was given
	}
	asked := append(foreignIDs(left), foreignIDs(t.ev.Body)...)
	return !slices.ContainsFunc(s.others, func(r flexi.Record) bool { return slices.ContainsFunc(asked, r.HasExternalID) }), nil
}

// resendStorno cancels again. Fields are not sent to a document that is cancelled, so what else it lost is for a person.
func (e *Engine) resendStorno(ctx context.Context, t *task, ans answer, n int, gone bool) (string, error) {
	s := ans.matches
	if gone {
		return "", &DecisionError{Text: "Flexi has no record of this document any more, so there is nothing to cancel: drop this event; " +
			"if the books need the cancelled document, have it sent again as a create, and its storno after that"}
	}
	if len(s.mine) == 1 && truth(s.mine[0], "storno") {
		reason, p, err := e.audit(ctx, t, ans, false)
		if err != nil {
			return "", err
		}
		if reason != "" {
			return "", &DecisionError{Text: p.Text + ", and to a cancelled document nothing is sent: put it right in Flexi, then confirm it"}
		}
	}
	return "it is judged and sent again", e.turnOf(ctx, t.row, n, nil)
}

// resendWhole gives event n its turn with the fold of all that took effect, itself included.
func (e *Engine) resendWhole(ctx context.Context, row *ledger.Row, n int, gone bool) (string, error) {
	all := slices.Clone(row.Base)
	if !slices.Contains(all, n) {
		all = append(all, n)
	}
	if !gone {
		return "the document is judged and sent again as all its events left it", e.turnOf(ctx, row, n, all)
	}
	makes, err := e.makes(ctx, row, all)
	if err != nil {
		return "", err
	}
	if !makes {
		return "", &DecisionError{Text: "Flexi has no record of this document any more, and flexid knows only what it changed of it: drop this " +
			"event and have the whole document sent as create or upsert, or enter it in Flexi under its number and confirm it"}
	}
	body, err := fold(ctx, e.o.Ledger, row.ID, all)
	if err != nil {
		return "", err
	}
	if n, _, err := flexi.NumberOf(row.Evidence, body); err == nil && n.Value == "" {
		row.Number = "" // Flexi drew it, and draws another one
	}
	forgetRecord(row)
	row.Known, row.LookOnce = nil, true // where it is refused, a sender who begins anew must not be told that he is outdated
	return "the document is looked up once more and made again as all its events left it", e.turnOf(ctx, row, n, all)
}

// makes says whether events know their document as a whole: one of them was meant to make it.
func (e *Engine) makes(ctx context.Context, row *ledger.Row, events []int) (bool, error) {
	for _, n := range events {
		ev, err := e.o.Ledger.Event(ctx, row.ID, n)
		if err != nil {
			return false, fmt.Errorf("reading event %d: %w", n, err)
		}
		if whole(ev.Op) && ev.Body != nil {
			return true, nil
		}
	}
	return false, nil
}

// turnOf gives an event its turn as if it had just come. If it is not the current one, that one ends as it had ended before.
func (e *Engine) turnOf(ctx context.Context, row *ledger.Row, n int, all []int) error {
	if all != nil {
		ev, err := e.o.Ledger.Event(ctx, row.ID, n)
		if err != nil {
			return fmt.Errorf("reading event %d: %w", n, err)
		}
		ev.Whole = all
		if err := e.o.Ledger.PutEvent(ctx, row.ID, ev); err != nil {
			return fmt.Errorf("changing event %d: %w", n, err)
		}
	}
	w := row.Work
	if n == w.N {
		forgive(row, n)
		e.anew(row)
		return nil
	}
	w.Final, w.Story.Problem = true, nil
	for _, r := range row.Refused {
		if r.N == w.N {
			w.Story.Problem = &ledger.Problem{Text: r.Text}
		}
	}
	e.mustNotify(row)
	row.Redo = append([]int{n}, row.Redo...)
	row.Due = e.o.Now()
	show(row)
	return nil
}
