package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexid/batch/stream"
	"flexid/config/statedir"
	"flexid/verify/ledger"
)

// NoLedgerError is a first start where none was meant to be; see Options.ExistingLedger.
type NoLedgerError struct {
	Prefix string
	Known  string // the ledger that was there before; "" = none was
}

func (e *NoLedgerError) Error() string {
	if e.Known != "" {
		return "ledger " + e.Known + ", which was there before, is gone: " + waysOut
	}
	return "there is no ledger with the prefix " + e.Prefix + " yet"
}

const waysOut = "restore NATS's files from a backup, or begin with an empty one by `flexid ledger accept-empty`"

// ledgerGone says that ledger or streams are gone, or others than before.
func ledgerGone(err error) bool {
	var missing *ledger.MissingError
	var other *ledger.OtherError
	var lost *stream.LostError
	var back *stream.SetBackError
	return errors.As(err, &missing) || errors.As(err, &other) || errors.As(err, &lost) || errors.As(err, &back)
}

// goneText is the loss without the ways out, which stand beside it.
func goneText(err error) string {
	var missing *ledger.MissingError
	if errors.As(err, &missing) {
		return fmt.Sprintf("the ledger bucket %q is gone, and with it the knowledge of what was sent", missing.Bucket)
	}
	var lost *stream.LostError
	if errors.As(err, &lost) {
		return lost.Error()
	}
	var back *stream.SetBackError
	if errors.As(err, &back) {
		return back.Error()
	}
	return err.Error()
}

// openLedger opens ledger and state and ensures the streams. A ledger that is missing although the intake stream names one
// is waited for: only a person knows whether it can be brought back.
func (d *daemon) openLedger(ctx context.Context) (*ledger.Ledger, *ledger.StateBucket, error) {
	d.standing.setPhase("opening the ledger")
	for {
		l, state, err := d.tryLedger(ctx, false)
		var missing *missingLedger
		switch {
		case err == nil:
			return l, state, nil
		case errors.As(err, &missing):
			if l, state, err = d.waitForLedger(ctx, missing); err == nil {
				return l, state, nil
			}
			return nil, nil, err
		case final(err) || ctx.Err() != nil:
			return nil, nil, err
		}
		d.log.Warn().Err(err).Msg("NATS cannot be asked for the ledger yet")
		d.standing.setPhase(err.Error())
		if !sleep(ctx, ledgerPause) {
			return nil, nil, ctx.Err()
		}
	}
}

// final errors are not healed by waiting.
func final(err error) bool {
	var pin *PinError
	var contradiction *stream.ContradictionError
	var unfit *ledger.ConfigError
	var none *NoLedgerError
	return errors.As(err, &none) || errors.As(err, &pin) || errors.As(err, &contradiction) || errors.As(err, &unfit) || errors.Is(err, ledger.ErrNewer)
}

// missingLedger: the intake stream names a ledger that is not the one found, or there is none.
type missingLedger struct{ text string }

func (e *missingLedger) Error() string { return e.text }

// tryLedger asks NATS once. accepted: a person said that what is missing may be made anew.
func (d *daemon) tryLedger(ctx context.Context, accepted bool) (*ledger.Ledger, *ledger.StateBucket, error) {
	named, exists, err := stream.PushLedger(ctx, d.js, d.streams)
	if err != nil {
		return nil, nil, err
	}
	if d.o.ExistingLedger && named == "" {
		return nil, nil, &NoLedgerError{Prefix: d.cfg.NATS.Prefix, Known: d.known.Ledger}
	}
	first := d.known.Ledger == "" && (!exists || named == "")
	o := d.ledgerOptions()
	o.Create = accepted || first
	l, err := ledger.Open(ctx, d.js, o)
	if ledgerGone(err) {
		return nil, nil, &missingLedger{goneText(err)}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := d.checkOwn(ctx, l, named, accepted); err != nil {
		return nil, nil, err
	}
	if err := d.checkPin(ctx, l); err != nil {
		return nil, nil, err
	}
	if err := d.ensureStreams(ctx, l, accepted, first); err != nil {
		return nil, nil, err
	}
	state, err := ledger.OpenState(ctx, d.js, o)
	if err != nil {
		return nil, nil, err
	}
	d.standing.setLedger(l.LedgerID())
	return l, state, nil
}

func (d *daemon) ledgerOptions() ledger.Options {
	return ledger.Options{Prefix: d.cfg.NATS.Prefix, Company: d.cfg.Flexi.Company, System: d.cfg.Flexi.System,
		Replicas: d.cfg.NATS.Replicas, Now: d.now, Log: d.log}
}

// checkOwn makes sure that the ledger that is there is ours: the one that this state directory knows and that the intake
// stream names.
func (d *daemon) checkOwn(ctx context.Context, l *ledger.Ledger, named string, accepted bool) error {
	own := l.LedgerID()
	switch {
	case !accepted && d.known.Ledger != "" && d.known.Ledger != own:
		return &missingLedger{fmt.Sprintf("the ledger of before was %s, but the one that is there is %s: what was sent before is not known", d.known.Ledger, own)}
	case named == "" || named == own:
		return nil
	case !accepted:
		return &missingLedger{fmt.Sprintf("the intake stream belongs to ledger %s, but the one that is there is %s: "+
			"what was sent before is not known", named, own)}
	}
	set := d.streams
	set.LedgerID = own
	return stream.SetLedger(ctx, d.js, set)
}

// ensureStreams makes the streams at a first start, or where a person accepted that; else they must be those of before, as far as
// they were taken. What is there then is noted, in this process and in the state directory.
func (d *daemon) ensureStreams(ctx context.Context, l *ledger.Ledger, accepted, first bool) error {
	o := d.streams
	o.LedgerID, o.Known = l.LedgerID(), d.known.Streams
	if accepted {
		o.Known = nil
	}
	names := []string{o.Names().Push, o.Names().Inbox}
	o.First = map[string]uint64{}
	cursors := map[string]ledger.Cursor{}
	for _, name := range names {
		c, err := l.Cursor(ctx, name)
		if err != nil {
			return err
		}
		cursors[name], o.First[name] = c, max(c.Seq, c.GivenUp)+1
	}
	_, err := stream.Ensure(ctx, d.js, o)
	for _, name := range names {
		if err == nil {
			err = d.ensureCursor(ctx, l, cursors[name], accepted, first)
		}
	}
	if ledgerGone(err) {
		return &missingLedger{goneText(err)}
	}
	if err != nil {
		return err
	}
	made, err := stream.Made(ctx, d.js, o)
	if err != nil {
		return err
	}
	known := statedir.Known{Ledger: l.LedgerID(), Streams: made}
	if known.Ledger == d.known.Ledger {
		known.Documents, known.Noted, known.Taken = d.known.Documents, d.known.Noted, d.known.Taken
	}
	if accepted {
		known.Taken = nil
	}
	if err := statedir.WriteKnown(d.cfg.StateDir, d.cfg.NATS.Prefix, known); err != nil {
		return err
	}
	d.known = known
	d.streams.LedgerID, d.streams.Known = known.Ledger, made
	return nil
}

// ensureCursor makes sure that the ledger says how far a stream was taken, and that the stream is as it says. A person's
// acceptance begins anew with what is there.
func (d *daemon) ensureCursor(ctx context.Context, l *ledger.Ledger, c ledger.Cursor, accepted, first bool) error {
	begin, err := stream.Begin(ctx, d.js, c.Stream)
	if err != nil {
		return err
	}
	begin.Revision = c.Revision
	switch {
	case c.Revision == 0 && !accepted:
		begin.Replayed = 0
		if !first {
			begin.GivenUp = 0 // a stream that lost its beginning is no first start's
		}
	case c.Revision > 0:
		_, err := stream.Fits(ctx, d.js, c.Stream, c)
		if before := d.known.Taken[c.Stream]; err == nil && d.known.Ledger == l.LedgerID() && c.Seq < before {
			err = &stream.SetBackError{Stream: c.Stream, Taken: c.Seq, Before: before}
		}
		if err == nil || !accepted || !ledgerGone(err) {
			return err
		}
	}
	if accepted {
		begin.Replayed = d.mayBeTaken(begin)
		d.forgetTaken(c.Stream)
		d.log.Warn().Str("stream", c.Stream).Uint64("given_up_to", begin.GivenUp).Uint64("taken_again_to", begin.Replayed).
			Msg("the stream is taken from its beginning; what was in it before is looked up in Flexi and not sent by itself")
	}
	err = l.SetCursor(ctx, begin)
	var conflict *ledger.ConflictError
	switch {
	case !errors.As(err, &conflict):
		return err
	case !conflict.Deleted:
		return nil // another replica did it; what it set is looked at before anything is taken
	case accepted:
		return l.ReplaceCursor(ctx, begin)
	}
	return &missingLedger{fmt.Sprintf("how far %s was taken is not known: %v", c.Stream, conflict)}
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
