package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// asideBytes is how much is kept of an event whose whole does not fit.
const asideBytes = 4 << 10

// setAside parks an event that can never be stored under the document it names, under a key of its own made from its place
// in the stream, so that intake goes on. Nothing is ever sent under that key.
func (e *Engine) setAside(ctx context.Context, b *ledger.Batch, in Event, meant ledger.Row, cause error) (Receipt, error) {
	bytes := in.Body
	if in.Problem != "" {
		bytes = in.Raw
	}
	sum := sha256.Sum256(bytes)
	about := ledger.Aside{Key: meant.Key, Length: len(bytes), Digest: hex.EncodeToString(sum[:]), Readable: in.Problem == ""}
	whole := eventOf(in)
	row := e.asideRow(in, meant)
	if err := b.NoteAside(ctx, meant.ID, in.EventID, row.ID); err != nil {
		if !ledger.Never(err) {
			return Receipt{}, fmt.Errorf("noting what is set aside: %w", e.storeError(err))
		}
		e.o.Log.Warn().Err(err).Str("document", addressOf(&meant).String()).Msg("what is set aside cannot be found by its sender's key")
	}
	ev := whole
	ev.Born, ev.Body, ev.Raw = ledger.Unreadable, nil, bytes
	var err error
	for _, kept := range []int{len(bytes), min(len(bytes), asideBytes), 0} {
		ev.Raw = bytes[:kept]
		ev.Problem = asideProblem(&meant, &about, in.Problem, kept, cause)
		var got ledger.Row
		got, err = b.Append(ctx, row, ev, func(r *ledger.Row) {
			e.appended(r, &whole)
			r.Aside = &about
		})
		receipt := Receipt{Evidence: row.Evidence, Source: row.Source, Key: row.Key, State: string(got.State), Reason: string(got.Reason)}
		switch {
		case errors.Is(err, ledger.ErrHave):
			receipt.Known = true
			return receipt, nil
		case err == nil:
			e.o.Log.Debug().Str("document", addressOf(&meant).String()).Str("under", addressOf(&row).String()).Str("event_id", in.EventID).
				Int("bytes", about.Length).Str("problem", ev.Problem.Text).Msg("an event cannot be stored; it is parked under a key of its own")
			return receipt, nil
		case !ledger.Never(err):
			return receipt, fmt.Errorf("setting event %s aside: %w", in.EventID, e.storeError(err))
		}
	}
	return Receipt{}, fmt.Errorf("setting event %s aside, which cannot be stored (%w): %w", in.EventID, cause, err)
}

// asideRow names the row of what is set aside.
func (e *Engine) asideRow(in Event, meant ledger.Row) ledger.Row {
	place := in.Stream + ":" + strconv.FormatUint(in.Seq, 10) + ":" + strconv.FormatInt(in.StreamTime.UnixNano(), 10)
	if in.Stream == "" {
		place = in.EventID
	}
	sum := sha256.Sum256([]byte(place))
	row := ledger.Row{Format: ledger.Format, Evidence: meant.Evidence, Source: meant.Source, Key: "unstored-" + hex.EncodeToString(sum[:8])}
	row.Ext = flexi.NewExternalID(e.o.Settings.System, row.Source, row.Key)
	row.ID = ledger.RowID(e.o.Settings.Company, row.Evidence, row.Ext)
	return row
}

func asideProblem(meant *ledger.Row, about *ledger.Aside, unreadable string, kept int, cause error) *ledger.Problem {
	text := "it cannot be stored under " + addressOf(meant).String() + ": " + clip(cause.Error(), 300)
	if unreadable != "" {
		text = clip(unreadable, 200) + "; and " + text
	}
	if kept < about.Length {
		text += fmt.Sprintf("; of its %d bytes (SHA-256 %s) the first %d are kept", about.Length, about.Digest, kept)
	}
	return &ledger.Problem{Text: text, Link: addressOf(meant).String()}
}

// resendAside appends what was set aside to the document it names, now that a person says that it can be stored.
func (e *Engine) resendAside(ctx context.Context, row *ledger.Row) (string, error) {
	ev, err := e.o.Ledger.Event(ctx, row.ID, row.Work.N)
	if err != nil {
		return "", fmt.Errorf("reading what was set aside: %w", err)
	}
	meant := Address{row.Evidence, row.Source, row.Aside.Key}
	switch {
	case row.State != ledger.Parked:
		return "", &DecisionError{Text: fmt.Sprintf("it is %s: send a new event instead", stateText(row))}
	case !row.Aside.Readable:
		return "", &DecisionError{Text: "it is no document: correct it at the sender and send it again"}
	case len(ev.Raw) != row.Aside.Length:
		return "", &DecisionError{Text: fmt.Sprintf("only %d of its %d bytes are kept: send it again from where it came", len(ev.Raw), row.Aside.Length)}
	}
	in := Event{
		EventID: ev.EventID, Given: ev.Given, Evidence: row.Evidence, Source: row.Source, Key: row.Aside.Key, Derived: ev.Derived, Op: ev.Op, Body: ev.Raw,
		Received: ev.Received, Subject: ev.Subject, Stream: ev.Stream.Stream, Seq: ev.Stream.Seq, StreamTime: ev.Stream.Time,
	}
	if ev.Version != nil {
		in.Version = ev.Version.Text
	}
	err = e.alone(ctx, func(b *ledger.Batch) error {
		_, _, err := e.take(ctx, b, in)
		return err
	})
	if ledger.Never(err) {
		return "", &DecisionError{Text: "it still cannot be stored: " + err.Error()}
	}
	if err != nil {
		return "", err
	}
	forgive(row, row.Work.N)
	e.end(row, ledger.Dropped, "")
	return "appended to " + meant.String(), nil
}
