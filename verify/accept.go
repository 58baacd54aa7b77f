package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// Accept makes one event durable at its document, beside any stream. Any error means "not known to be durable": accept it
// again, it is recognised by its place.
func (e *Engine) Accept(ctx context.Context, in Event) (receipt Receipt, err error) {
	err = e.alone(ctx, func(b *ledger.Batch) error {
		receipt, err = e.acceptInto(ctx, b, in)
		return err
	})
	return receipt, err
}

// alone stores a batch of one event, which put puts into it, as often as somebody else is faster.
func (e *Engine) alone(ctx context.Context, put func(b *ledger.Batch) error) error {
	if err := e.hasBegun(ctx); err != nil {
		return err
	}
	for known := e.scheduler.knows; ; known = nil {
		b := e.o.Ledger.Begin(known)
		if err := put(b); err != nil {
			return err
		}
		err := e.commit(ctx, b, nil)
		var conflict *ledger.ConflictError
		if err == nil || ctx.Err() != nil || !errors.As(err, &conflict) && !errors.Is(err, ledger.ErrNoBatches) {
			return err
		}
	}
}

// hasBegun waits until it is known which company the ledger is about.
func (e *Engine) hasBegun(ctx context.Context) error {
	select {
	case <-e.begun:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the ledger: %w", ctx.Err())
	}
}

// commit stores a batch with its cursor, then shows its rows to the scheduler.
func (e *Engine) commit(ctx context.Context, b *ledger.Batch, c *ledger.Cursor) error {
	rows, err := e.o.Ledger.Commit(ctx, b, c)
	if err != nil {
		return e.storeError(err)
	}
	for i := range rows {
		e.arrived(&rows[i])
	}
	return nil
}

// AcceptAll makes events durable at their documents, in order, as many of them as go into one batch, and says of each what became
// of it; after a nil error the ledger owns the schedule of those. cursor, if not nil, says for a number of events how far their
// stream is taken with them: it moves in the same batch. careful is for events of which a batch was refused: nothing is taken to
// be new without a look. Errors are those of ledger.Batch.Commit; after each of them everything is read again.
func (e *Engine) AcceptAll(ctx context.Context, ins []Event, cursor func(n int) *ledger.Cursor, careful bool) ([]Receipt, error) {
	if err := e.hasBegun(ctx); err != nil {
		return nil, err
	}
	known := e.scheduler.knows
	if careful {
		known = nil
	}
	b := e.o.Ledger.Begin(known)
	receipts := make([]Receipt, 0, len(ins))
	for _, in := range ins {
		if b.Full() {
			break
		}
		receipt, err := e.acceptInto(ctx, b, in)
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, receipt)
	}
	var c *ledger.Cursor
	if cursor != nil {
		c = cursor(len(receipts))
	}
	if err := e.commit(ctx, b, c); err != nil {
		return nil, fmt.Errorf("taking %d events: %w", len(receipts), err)
	}
	return receipts, nil
}

// acceptInto puts one event into a batch, set aside where it can never be stored as it is.
func (e *Engine) acceptInto(ctx context.Context, b *ledger.Batch, in Event) (Receipt, error) {
	if len(in.Key) > mostKey {
		in.Problem = fmt.Sprintf("the key has %d bytes, more than %d", len(in.Key), mostKey)
		if in.Raw == nil {
			in.Raw = in.Body
		}
		in.Key = ""
	}
	receipt, row, err := e.take(ctx, b, in)
	if err == nil || !ledger.Never(err) {
		return receipt, err
	}
	// It would end like this at every try, and everybody's events wait behind it.
	return e.setAside(ctx, b, in, row, err)
}

// take appends an event to the document it names, whose row it gives.
func (e *Engine) take(ctx context.Context, b *ledger.Batch, in Event) (Receipt, ledger.Row, error) {
	ev := eventOf(in)
	if in.Key == "" {
		// It cannot be looked up under any name, so it gets one of its own and stays visible.
		sum := sha256.Sum256([]byte(in.EventID))
		in.Key = "unreadable-" + hex.EncodeToString(sum[:6])
	}
	row := ledger.Row{
		Format: ledger.Format, Evidence: in.Evidence, Source: in.Source, Key: in.Key,
		Ext: flexi.NewExternalID(e.o.Settings.System, in.Source, in.Key),
	}
	row.ID = ledger.RowID(e.o.Settings.Company, row.Evidence, row.Ext)
	receipt := Receipt{Evidence: in.Evidence, Source: in.Source, Key: in.Key}

	if in.Given {
		claim, err := b.TakeEventID(ctx, in.EventID, fingerprint(&ev), row.ID, ev.Stream)
		if err != nil {
			return receipt, row, fmt.Errorf("recording event id %q: %w", in.EventID, e.storeError(err))
		}
		// The same place in the stream is the same message delivered again, also if it is read otherwise now.
		repeated := !claim.New && claim.Ref != ev.Stream
		if repeated {
			if repeated, err = e.ofThisCompany(ctx, b, claim.Row); err != nil {
				return receipt, row, err
			}
		}
		switch {
		case repeated && claim.Same:
			receipt, err := e.acceptRepeat(ctx, b, receipt, row, ev)
			return receipt, row, err
		case repeated:
			ev.Born = ledger.IDReused
			ev.Problem = &ledger.Problem{Text: fmt.Sprintf(
				"event id %q was used before for another document or content: send the change with an event id of its own", in.EventID)}
		}
	}
	receipt, err := e.append(ctx, b, receipt, row, ev)
	return receipt, row, err
}

// ofThisCompany says that the row that took an event id took it in the present company's time. An id from before is as good as new.
func (e *Engine) ofThisCompany(ctx context.Context, rows interface {
	Get(ctx context.Context, id ledger.ID) (ledger.Row, error)
}, id ledger.ID) (bool, error) {
	if e.marks.era() == 0 {
		return true, nil
	}
	row, err := rows.Get(ctx, id)
	if ledger.Never(err) || errors.Is(err, ledger.ErrNoRow) {
		return true, nil // about to come, or never will: as without an acceptance
	}
	if err != nil {
		return false, fmt.Errorf("reading the document of an event id: %w", e.storeError(err))
	}
	return row.Era >= e.marks.era(), nil
}

// fingerprint is what an event id stands for: the same id with another one is another event.
func fingerprint(ev *ledger.Event) string { return string(ev.Op) + ":" + ev.Digest }

// Knows says whether the id of an event was taken before, and whether with the same document; nothing is stored. An id of which
// the event could not be stored is as good as new: it had no effect.
func (e *Engine) Knows(ctx context.Context, in Event) (known, same bool, err error) {
	if !in.Given {
		return false, false, nil
	}
	ev := eventOf(in)
	id := ledger.RowID(e.o.Settings.Company, in.Evidence, flexi.NewExternalID(e.o.Settings.System, in.Source, in.Key))
	claim, known, err := e.o.Ledger.FirstOf(ctx, in.EventID, fingerprint(&ev), id)
	if err != nil || !known {
		return false, false, err
	}
	if known, err = e.ofThisCompany(ctx, e.o.Ledger, claim.Row); err != nil || !known {
		return false, false, err
	}
	aside, err := e.o.Ledger.AsideEvent(ctx, in.EventID)
	return err == nil && len(aside) == 0, claim.Same, err
}

// mostKey bounds what a sender may call a document, in bytes: the row keeps the key as it was given.
const mostKey = 1024

// acceptRepeat takes in an event that came before with the same document. It costs no write to Flexi. It is added to the history
// only where it would not hide what became of the first one.
func (e *Engine) acceptRepeat(ctx context.Context, b *ledger.Batch, receipt Receipt, row ledger.Row, ev ledger.Event) (Receipt, error) {
	have, err := b.Get(ctx, row.ID)
	if err != nil && !errors.Is(err, ledger.ErrNoRow) {
		return receipt, fmt.Errorf("reading %s: %w", receipt.Key, e.storeError(err))
	}
	aside, asideErr := b.AsideEvent(ctx, ev.EventID)
	if asideErr != nil && !ledger.Never(asideErr) {
		return receipt, fmt.Errorf("reading what was set aside of event id %q: %w", ev.EventID, e.storeError(asideErr))
	}
	switch {
	case len(aside) > 0:
		// The first one had no effect: it could not be stored.
		return e.append(ctx, b, receipt, row, ev)
	case errors.Is(err, ledger.ErrNoRow):
		// The first delivery took the event id and never reached the row.
		return e.append(ctx, b, receipt, row, ev)
	case have.State == ledger.Confirmed && !have.More():
		if !e.admission.otherBooks() { // else what is known may be of other books: it is judged when a person has accepted them
			ev.Born = ledger.Repeated
		}
		return e.append(ctx, b, receipt, row, ev)
	}
	receipt.State, receipt.Reason, receipt.Known = string(have.State), string(have.Reason), true
	return receipt, nil
}

// append adds an event to the row of its document, in the batch, and takes its number in the order of intake.
func (e *Engine) append(ctx context.Context, b *ledger.Batch, receipt Receipt, row ledger.Row, ev ledger.Event) (Receipt, error) {
	made := false
	if ev.Born == "" && ev.Op != flexi.Delete && ev.Op != flexi.Storno && ev.Number != "" && pairless(row.Evidence) {
		// The number is taken in the order of intake, so that a later event that refers to it by code: finds this row.
		owner, err := b.TakeNumber(ctx, row.Evidence, ev.Number, row.ID)
		if err != nil {
			return receipt, fmt.Errorf("taking number %s: %w", ev.Number, e.storeError(err))
		}
		made = owner == row.ID && b.MakesNumber(row.Evidence, ev.Number)
	}
	got, err := b.Append(ctx, row, ev, func(r *ledger.Row) {
		e.appended(r, &ev)
		if made && r.Tail == 1 { // the row is as new as its number, and stored with it
			addNumber(r, ev.Number)
		}
	})
	if errors.Is(err, ledger.ErrHave) {
		receipt.Known, err = true, nil
	}
	if err != nil {
		return receipt, fmt.Errorf("appending event %s to %s/%s: %w", ev.EventID, row.Evidence, row.Key, e.storeError(err))
	}
	receipt.State, receipt.Reason = string(got.State), string(got.Reason)
	return receipt, nil
}

// appended sets what a row says when an event was added to it. An idle row turns to the new event; a busy one goes on.
func (e *Engine) appended(r *ledger.Row, ev *ledger.Event) {
	now := e.o.Now()
	setBack(r, e.o.Settings, now)
	r.Updated = now
	if r.Head == 0 && r.Last == nil {
		r.Era = max(r.Era, e.marks.era()) // nothing took effect in an earlier company
	}
	if r.Head == 0 || r.Work == nil || r.Work.Final {
		if r.Next() < r.Tail {
			return // it shows an earlier one that is not over either
		}
		r.State, r.Reason, r.Cause, r.Sends = ledger.Queued, "", "", 0
		r.Due = now
		describe(r, ev, e.o.Settings.Zone)
	}
}

// eventOf turns an event into what the ledger keeps.
func eventOf(in Event) ledger.Event {
	ev := ledger.Event{
		EventID: in.EventID, Given: in.Given, Op: in.Op, Received: in.Received.UTC(), Subject: in.Subject, Derived: in.Derived, Replayed: in.Replayed,
		Stream: ledger.StreamRef{Stream: in.Stream, Seq: in.Seq, Time: in.StreamTime.UTC()},
	}
	if in.Version != "" {
		ev.Version = &ledger.Version{Text: in.Version}
	}
	if in.Problem != "" {
		sum := sha256.Sum256(in.Raw)
		ev.Born, ev.Raw, ev.Digest = ledger.Unreadable, in.Raw, hex.EncodeToString(sum[:])
		ev.Problem = &ledger.Problem{Text: in.Problem}
		return ev
	}
	ev.Body, ev.Digest = in.Body, flexi.Digest(in.Body)
	if n, ok, err := flexi.NumberOf(in.Evidence, in.Body); ok && err == nil {
		ev.Number = n.Value
	}
	return ev
}

// storeError passes an error of the ledger on, after it stopped the writes where the ledger is gone.
func (e *Engine) storeError(err error) error {
	e.noteTrouble(err)
	return err
}

// noteTrouble stops all writes at once when the ledger is gone, whoever noticed.
func (e *Engine) noteTrouble(err error) {
	var missing *ledger.MissingError
	if errors.As(err, &missing) {
		e.ledgerTrouble(err)
	}
}

// pairless says that the evidence's number is one field, so it can be owned before the partner is known at the ERP.
func pairless(evidence string) bool {
	_, pair := flexi.NumberField(evidence)
	return !pair
}

// describe copies the fields that lists filter by from the shown event. One that is only repeated may be older than what took
// effect last, which they show already.
func describe(r *ledger.Row, ev *ledger.Event, zone *time.Location) {
	rec := flexi.ParseRecord(ev.Body)
	if ev.Born == ledger.Repeated || rec == nil {
		return
	}
	set := func(to *string, from ...string) {
		for _, f := range from {
			if v := rec.Text(f); v != "" {
				*to = clip(v, 60)
				return
			}
		}
	}
	if ev.Number != "" {
		r.Number = ev.Number
	}
	set(&r.Partner, "nazFirmy", "firma")
	set(&r.Amount, "sumCelkem", "sumCelkemMen", "castka", "sumOsv")
	set(&r.Currency, "mena")
	set(&r.Date, "datVyst")
	if day, ok := flexi.Day(r.Date, zone); ok {
		r.Date = day
	}
}

// shownFields is a record as far as lists show it.
func shownFields(r flexi.Record) json.RawMessage {
	shown := map[string]json.RawMessage{}
	for _, f := range []string{"nazFirmy", "firma", "sumCelkem", "mena", "datVyst"} {
		if v, ok := r[f]; ok {
			shown[f] = v
		}
	}
	b, err := json.Marshal(shown)
	if err != nil {
		return nil
	}
	return b
}

func clip(s string, runes int) string {
	if r := []rune(s); len(r) > runes {
		return string(r[:runes]) + "…"
	}
	return s
}
