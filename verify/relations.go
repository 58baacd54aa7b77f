package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// A document waits for another one at most this long; then it is sent as it is and the ERP says what it thinks.
const (
	waitMost  = 24 * time.Hour
	waitEvery = 2 * time.Second
	chainMost = 32
)

// ownNumber makes a number this row's own, or parks the event: two keys must not share one. ok is false when the event
// cannot go on now.
func (e *Engine) ownNumber(ctx context.Context, t *task, name string) (next stepResult, ok bool, err error) {
	row, ev := t.row, t.ev
	if name == "" || neverLost(row, name) {
		return stepResult{}, true, nil
	}
	take := t.op == flexi.Create || t.op == flexi.Upsert || t.op == flexi.Update
	holder, err := e.holder(ctx, row, name, take)
	switch {
	case errors.Is(err, errNotStored):
		return waitUntil(e.o.Now().Add(waitEvery)), false, nil
	case err != nil:
		return stepResult{}, false, fmt.Errorf("owning number %s: %w", name, e.storeError(err))
	case holder == nil:
		if take {
			addNumber(row, name)
		}
		return stepResult{}, true, nil
	}
	other := Address{holder.Evidence, holder.Source, holder.Key}.String()
	if has := numberOf(holder); has != "" && has != ev.Number {
		if row.Work.Pass {
			return stepResult{}, true, nil // a person says that they are two
		}
		e.park(row, ledger.Conflict, letterCase(ev.Number, has, other))
		return continueNow(), false, e.save(ctx, row)
	}
	e.park(row, ledger.Duplicate, ledger.Problem{Link: other, Text: fmt.Sprintf(
		"number %s belongs to document %s: two documents must not carry it; correct one of them, or %s", ev.Number, other, oneName(row, holder))})
	return continueNow(), false, e.save(ctx, row)
}

// neverLost says that the row came by the number with its first event, which has not been over since. Only the number of a document
// that has no use for it is freed, and this one has had use for it all the time, so that its key need not be read. An event that was
// over and goes on has no numbers listed (anew), or is marked as redone.
func neverLost(r *ledger.Row, name string) bool {
	w := r.Work
	return w.N == 1 && !w.Redone && r.Last == nil && slices.Contains(r.Numbers, name)
}

// oneName says how two senders come to name one document. Keys of different sources are different documents, which a webhook
// and a nightly file that know each other's keys only find out here.
func oneName(row, holder *ledger.Row) string {
	switch {
	case row.Source == holder.Source:
		return "send both under one key"
	case row.Source == "":
		return fmt.Sprintf("send both under one key and source: `flexid push --source %s`, over NATS the header Flexid-Source: %s", holder.Source, holder.Source)
	case holder.Source == "":
		return fmt.Sprintf("send both under one key and source: `flexid push --source %s`, over NATS the header Flexid-Source: %s", row.Source, row.Source)
	}
	return "let one source send it"
}

// errNotStored says that a number was taken at intake for a row that is not there. Either it is about to come, or the intake died
// and delivers the message again.
var errNotStored = errors.New("the row that took the number is not stored yet")

// holder is the other document that owns a number, nil if it is free or this row's own. A holder that has no use for it any
// more (its create was rejected or dropped, its delete confirmed, and no late look is due) loses it here.
func (e *Engine) holder(ctx context.Context, row *ledger.Row, number string, take bool) (*ledger.Row, error) {
	for range 3 {
		id, taken, err := e.o.Ledger.HolderOf(ctx, row.Evidence, number)
		if err != nil {
			return nil, err
		}
		if !taken {
			if !take {
				return nil, nil
			}
			if id, err = e.o.Ledger.TakeNumber(ctx, row.Evidence, number, row.ID); err != nil {
				return nil, err
			}
		}
		if id == row.ID {
			return nil, nil
		}
		other, err := e.o.Ledger.Get(ctx, id)
		switch {
		case errors.Is(err, ledger.ErrNoRow):
			// Taken at intake, and the crash came before the row: nobody is behind it.
			if e.o.Now().Sub(row.Updated) < time.Minute {
				return nil, errNotStored
			}
		case err != nil:
			return nil, err
		}
		e.forgetOld(&other)
		if err == nil && usesNumber(&other, number) {
			return &other, nil
		}
		if err := e.o.Ledger.FreeNumber(ctx, row.Evidence, number, id); err != nil {
			return nil, err
		}
		// An event that came to the holder between our read and the freeing has seen the number as its own.
		if other, err = e.o.Ledger.Get(ctx, id); err != nil {
			continue
		}
		if e.forgetOld(&other); usesNumber(&other, number) {
			if _, err := e.o.Ledger.TakeNumber(ctx, row.Evidence, number, id); err != nil {
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("number %s changes hands too quickly", number)
}

// waitsFor holds an event back while a document that it refers to is on its way. It returns when to ask again.
func (e *Engine) waitsFor(ctx context.Context, t *task) (time.Time, error) {
	row := t.row
	if t.ev.Body == nil || e.o.Now().Sub(row.Work.FirstTry) > waitMost {
		return time.Time{}, nil
	}
	for _, ref := range references(t.props, t.ev.Body) {
		if e.evidences.none(ref.evidence, row.Revision) {
			continue
		}
		other, err := e.referred(ctx, ref)
		if err != nil {
			return time.Time{}, err
		}
		if other == nil || other.ID == row.ID || !unconfirmed(other) || e.circle(ctx, other, row.ID) {
			continue
		}
		next := e.o.Now().Add(waitEvery)
		if row.Reason == ledger.WaitsFor && row.Work.For == other.ID {
			return next, nil
		}
		row.Reason, row.Work.For = ledger.WaitsFor, other.ID
		row.Work.Story.Problem = &ledger.Problem{
			Text: "waits for a document that it refers to", Link: Address{other.Evidence, other.Source, other.Key}.String(),
		}
		return next, e.save(ctx, row)
	}
	if row.Reason == ledger.WaitsFor {
		row.Reason, row.Work.For, row.Work.Story.Problem = "", "", nil
	}
	return time.Time{}, nil
}

// unconfirmed says that the document never took effect and still may.
func unconfirmed(r *ledger.Row) bool {
	return r.Last == nil && (r.Work == nil || !r.Work.Final || r.More())
}

// circle follows what the other one waits for; a circle would wait for ever.
func (e *Engine) circle(ctx context.Context, other *ledger.Row, self ledger.ID) bool {
	for range chainMost {
		if other.Work == nil || other.Reason != ledger.WaitsFor {
			return false
		}
		if other.Work.For == self {
			return true
		}
		next, err := e.o.Ledger.Get(ctx, other.Work.For)
		if err != nil {
			return false
		}
		other = &next
	}
	return true
}

type reference struct{ evidence, value string }

// references are the relations of a body, its rows included where the fields have the same names as the document's.
func references(p *flexi.Properties, body json.RawMessage) []reference {
	if p == nil {
		return nil
	}
	var refs []reference
	for field, raw := range flexi.ParseRecord(body) {
		prop, ok := p.ByName[field]
		if !ok || prop.RefEvidence == "" {
			continue
		}
		s, _ := flexi.ParseString(raw)
		if strings.HasPrefix(s, "code:") || strings.HasPrefix(s, "ext:") {
			refs = append(refs, reference{prop.RefEvidence, s})
		}
	}
	slices.SortFunc(refs, func(a, b reference) int { return strings.Compare(a.evidence+a.value, b.evidence+b.value) })
	return refs
}

// referred is the ledger's document behind a reference, nil if it knows none.
func (e *Engine) referred(ctx context.Context, ref reference) (*ledger.Row, error) {
	var id ledger.ID
	if code, ok := strings.CutPrefix(ref.value, "code:"); ok {
		holder, taken, err := e.o.Ledger.HolderOf(ctx, ref.evidence, flexi.NormaliseNumber(ref.evidence, code))
		if err != nil || !taken {
			return nil, err
		}
		id = holder
	} else if e.fence.ours(ref.value) {
		id = ledger.RowID(e.o.Settings.Company, ref.evidence, flexi.ExternalID(ref.value))
	} else {
		return nil, nil
	}
	row, err := e.o.Ledger.Get(ctx, id)
	if errors.Is(err, ledger.ErrNoRow) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the document behind %s: %w", ref.value, err)
	}
	e.forgetOld(&row)
	return &row, nil
}
