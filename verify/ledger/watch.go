package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"
)

// Change is one thing that a watcher is told. Exactly one of these holds: Ready, Resync, Err (the watch is broken and is being
// mended), or it is about the row with ID.
type Change struct {
	ID       ID
	Revision uint64
	Deleted  bool  // somebody deleted the row by hand
	Ready    bool  // every row that was there when the watch began has been delivered
	Resync   bool  // the watch began anew: every row comes again, then Ready. Rows may have changed in between unseen
	Err      error // why the watch broke: *MissingError or a lack of answers

	value []byte
}

// Row reads the row as it is stored at the revision. A watcher that has written it knows it already and need not ask: most changes
// are its own, and reading one costs more than all else about it. Errors: ErrNewer, with what names the document; a damaged row.
func (c Change) Row() (Row, error) { return rowOf(c.value, c.Revision, c.ID) }

// Evidence is the row's, found without reading all of it; "" where it cannot be found.
func (c Change) Evidence() string {
	d := json.NewDecoder(bytes.NewReader(c.value))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		if name == "evidence" {
			var evidence string
			if d.Decode(&evidence) != nil {
				return ""
			}
			return evidence
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return ""
		}
	}
	return ""
}

// Pauses before a broken watch begins anew.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// Watch delivers all rows, then every later change, until ctx ends; then it closes the channel. A reader may be slow: the
// rest waits at the server, and of a row that changes often only the last state comes. Revisions of one row rise, except
// after a Resync of a bucket that was restored.
func (l *Ledger) Watch(ctx context.Context) (<-chan Change, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make(chan Change)
	send := func(c Change) error {
		select {
		case out <- c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f := feed{store: l.store, prefix: rowPrefix,
		value: func(r record) error { l.cache.correct(r); return send(changeOf(r)) },
		ready: func() error { return send(Change{Ready: true}) },
	}
	go func() {
		defer close(out)
		f.supervise(ctx, supervisor{
			resync: func() error { return send(Change{Resync: true}) },
			broken: func(err error) error { return send(Change{Err: err}) },
		})
	}()
	return out, nil
}

// supervisor is what a watcher is told besides values.
type supervisor struct {
	resync func() error
	broken func(error) error
}

// supervise runs a feed again and again until ctx ends, each time from the beginning: only that shows changes that were
// lost, and a bucket whose sequence fell back.
func (f *feed) supervise(ctx context.Context, to supervisor) {
	pause := firstPause
	for round := 0; ctx.Err() == nil; round++ {
		next := feed{store: f.store, prefix: f.prefix, value: f.value, ready: f.ready}
		link, open := f.linked(), false
		next.begun = func() error {
			f.cache.open(link)
			if open = true; round == 0 {
				return nil
			}
			return to.resync()
		}
		err := next.run(ctx)
		if open {
			f.cache.close()
		}
		if ctx.Err() != nil {
			return
		}
		f.log.Warn().Err(err).Msg("ledger: watch broke, it begins anew")
		if to.broken(err) != nil {
			return
		}
		if next.isReady {
			pause = firstPause
		}
		wait(ctx, pause)
		pause = min(2*pause, lastPause)
	}
}

func changeOf(r record) Change {
	return Change{ID: ID(r.key[len(rowPrefix):]), Revision: r.revision, Deleted: r.deleted, value: r.value}
}

// errEnough ends a feed that has delivered what was asked for.
var errEnough = errors.New("enough")

// List delivers all rows for which from says true (nil = all), one by one, with flat memory. A row that changes meanwhile
// may come twice, the newer state last. A row that cannot be read comes with its ID and an error (ErrNewer or a damaged
// one) and the list goes on; an error with an empty Row ends it, and the list is not complete.
func (l *Ledger) List(ctx context.Context, from func(*Row) bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		f := feed{store: l.store, prefix: rowPrefix, ready: func() error { return errEnough }}
		f.value = func(r record) error {
			if r.deleted {
				return nil
			}
			row, err := changeOf(r).Row()
			if err == nil && from != nil && !from(&row) {
				return nil
			}
			if !yield(row, err) {
				return errEnough
			}
			return nil
		}
		if err := f.run(ctx); err != nil && !errors.Is(err, errEnough) {
			yield(Row{}, err)
		}
	}
}
