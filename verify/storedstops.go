package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// stopsKey is where the stops that only a person ends are kept, for restarts and for the other replicas; stopsEvery is how often
// they are read.
const (
	stopsKey   = "writes.stops"
	stopsEvery = 5 * time.Second
)

// volatile reasons describe this process's surroundings and are found anew at a start: they are not stored.
func volatile(reason string) bool { return reason == "ledger" || reason == "start" }

// changeStops stores stops that a person makes or ends, and only then lets them take effect: either the whole of it works,
// here, in the other replicas and after a restart, or nothing changed. A write whose answer was lost is read back.
func (e *Engine) changeStops(ctx context.Context, add []Stop, ends func(Stop) bool) error {
	if ends == nil {
		ends = func(Stop) bool { return false }
	}
	for i := range add {
		add[i].NeedsYou, add[i].Since = true, e.o.Now()
	}
	if e.o.State != nil {
		ctx, cancel := context.WithTimeout(ctx, stopsEvery)
		defer cancel()
		if err := e.putStops(ctx, add, ends); err != nil {
			return &DecisionError{Retry: true, Text: fmt.Sprintf(
				"it could not be stored, so nothing was changed (%v): see that NATS runs, then do it again; `flexid status` shows what is stopped", err)}
		}
	}
	for _, st := range add {
		e.admission.stop(st)
	}
	stops, _, _ := e.admission.status()
	for _, st := range stops {
		if st.NeedsYou && ends(st) {
			e.admission.resume(st.Evidence, st.Reason)
		}
	}
	return nil
}

// putStops stores what holds here, with some more and without some that end. One of another replica that has not come to us
// yet stays.
func (e *Engine) putStops(ctx context.Context, add []Stop, ends func(Stop) bool) error {
	stored, _, err := e.storedStops(ctx)
	if err != nil {
		return err
	}
	keep := slices.Clone(add)
	stops, _, _ := e.admission.status()
	for _, st := range slices.Concat(stops, stored) {
		if st.NeedsYou && !volatile(st.Reason) && !ends(st) && !slices.ContainsFunc(keep, st.same) {
			keep = append(keep, st)
		}
	}
	slices.SortFunc(keep, func(a, b Stop) int { return a.Since.Compare(b.Since) })
	b, err := json.Marshal(keep)
	if err != nil {
		return fmt.Errorf("writing the stops: %w", err)
	}
	if err := e.o.State.Put(ctx, stopsKey, b); err == nil {
		return nil
	} else if again, _, readErr := e.o.State.Get(context.WithoutCancel(ctx), stopsKey); readErr != nil || !bytes.Equal(again, b) {
		return fmt.Errorf("storing the stops: %w", err)
	}
	return nil
}

// storeStops writes our stops for the others. One of another replica that has not come to us yet stays, and holds here too.
func (e *Engine) storeStops(ctx context.Context, released ...Stop) error {
	if e.o.State == nil {
		return nil
	}
	ended := func(st Stop) bool { return slices.ContainsFunc(released, st.same) }
	stored, _, err := e.storedStops(ctx)
	if err != nil {
		return err
	}
	for _, st := range stored {
		if !ended(st) {
			e.admission.stop(st)
		}
	}
	return e.putStops(ctx, nil, ended)
}

// loadStops takes over what was stored, by an earlier start or another replica.
func (e *Engine) loadStops(ctx context.Context) error {
	if e.o.State == nil {
		return nil
	}
	stored, kept, err := e.storedStops(ctx)
	if err != nil {
		return err
	}
	have, _, _ := e.admission.status()
	if !kept {
		// Nobody ever stored any, or the bucket was made again: that ends no stop.
		if slices.ContainsFunc(have, func(st Stop) bool { return st.NeedsYou && !volatile(st.Reason) }) {
			return e.storeStops(ctx)
		}
		return nil
	}
	for _, st := range stored {
		e.admission.stop(st)
	}
	for _, st := range have {
		gone := !slices.ContainsFunc(stored, st.same)
		// A stop of our own that could not be stored yet is young; an old one that is not stored was ended elsewhere.
		if st.NeedsYou && !volatile(st.Reason) && gone && e.o.Now().Sub(st.Since) > 4*stopsEvery {
			e.admission.resume(st.Evidence, st.Reason)
		}
	}
	return nil
}

// storedStops gives the stops that are stored; kept is false where no list of them is, not even an empty one.
func (e *Engine) storedStops(ctx context.Context) (stored []Stop, kept bool, err error) {
	b, _, err := e.o.State.Get(ctx, stopsKey)
	if err != nil || len(b) == 0 {
		return nil, false, err
	}
	if err := json.Unmarshal(b, &stored); err != nil {
		return nil, false, fmt.Errorf("the stored stops cannot be read: %w", err)
	}
	return stored, true, nil
}

// same says that two stops have the same reason for the same evidence.
func (s Stop) same(o Stop) bool { return s.Evidence == o.Evidence && s.Reason == o.Reason }

// followStops keeps replicas in step until ctx ends.
func (e *Engine) followStops(ctx context.Context) {
	tick := time.NewTicker(stopsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// What an acceptance changed is known before the stop that it ended lets anything go.
			if err := e.syncMarks(ctx); err != nil && ctx.Err() == nil {
				e.o.Log.Warn().Err(err).Msg("following how far the books were seen")
			}
			if err := e.loadStops(ctx); err != nil && ctx.Err() == nil {
				e.o.Log.Warn().Err(err).Msg("reading the stops of writes")
			}
		case <-ctx.Done():
			return
		}
	}
}
