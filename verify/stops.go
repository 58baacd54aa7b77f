package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexid/verify/ledger"
)

// stopsKey is where the stops that only a person ends are kept, for restarts and for the other replicas.
const (
	stopsKey   = "writes.stops"
	stopsEvery = 5 * time.Second
)

// volatile reasons describe this process's surroundings and are found anew at a start.
func volatile(reason string) bool { return reason == "ledger" || reason == "start" }

// StopFor stops all writes for a reason that the engine cannot remove itself. Documents stay queued.
func (e *Engine) StopFor(reason, text, remedy string) {
	e.addStop(Stop{Reason: reason, Text: text, Remedy: remedy})
}

func (e *Engine) stopEvidence(evidence, reason, text, remedy string) {
	e.addStop(Stop{Evidence: evidence, Reason: reason, Text: text, Remedy: remedy})
}

func (e *Engine) addStop(st Stop) {
	if news := e.admission.stop(st); !news || volatile(st.Reason) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopsEvery)
	defer cancel()
	if err := e.storeStops(ctx); err != nil {
		e.o.Log.Error().Err(err).Str("reason", st.Reason).Msg("a stop of writes holds here, but is not stored yet")
	}
	e.alertStop(ctx, st)
}

// EndStop ends what StopFor with this reason began.
func (e *Engine) EndStop(reason string) {
	released := e.admission.resume("", reason)
	if volatile(reason) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopsEvery)
	defer cancel()
	if err := e.storeStops(ctx, released...); err != nil {
		e.o.Log.Error().Err(err).Str("reason", reason).Msg("the end of a stop is not stored yet")
	}
}

// stopAsks is how long a stop waits for Flexi to say whether an evidence is there; without an answer it holds.
const stopAsks = 5 * time.Second

// StopWrites stops the writes of one evidence ("" = all) until somebody resumes them. An evidence that Flexi does not have
// is refused: a slip of the pen must not pass for a stop.
func (e *Engine) StopWrites(ctx context.Context, evidence, by, why string) error {
	if by == "" || why == "" {
		return &DecisionError{Text: "say who stops the writes and why"}
	}
	if evidence != "" {
		if e.noEvidence(ctx, evidence) {
			return &DecisionError{Writes: true, Text: fmt.Sprintf("Flexi has no evidence %q for our user, so nothing would be stopped: evidences are named as in addresses, such as faktura-vydana", evidence)}
		}
	}
	what := "flexid writes resume"
	if evidence != "" {
		what += " " + evidence
	}
	return e.changeStops(ctx, []Stop{{Evidence: evidence, Reason: "person", Text: why, By: by, Remedy: "`" + what + "`"}}, nil)
}

// noEvidence says that Flexi is known not to have an evidence.
func (e *Engine) noEvidence(ctx context.Context, evidence string) bool {
	ask, cancel := context.WithTimeout(ctx, stopAsks)
	defer cancel()
	_, known, err := e.metadata.evidence(ask, evidence)
	return err == nil && !known
}

// ResumeWrites removes every stop of the evidence ("" = those of all evidences) and has tripped breakers tried at once. An evidence
// that Flexi does not have and that is not stopped is refused: a slip of the pen must not pass for the end of a stop.
func (e *Engine) ResumeWrites(ctx context.Context, evidence, by, why string) error {
	if by == "" || why == "" {
		return &DecisionError{Text: "say who resumes the writes and why"}
	}
	stops, _, _ := e.admission.status()
	stopped := slices.ContainsFunc(stops, func(st Stop) bool { return st.Evidence == evidence })
	if evidence != "" && !stopped && e.noEvidence(ctx, evidence) {
		return &DecisionError{Writes: true, Text: fmt.Sprintf("nothing is stopped for %q, and Flexi has no such evidence: `flexid status` names what is stopped", evidence)}
	}
	if err := e.changeStops(ctx, nil, func(st Stop) bool { return st.Evidence == evidence }); err != nil {
		return err
	}
	e.admission.resume(evidence, "") // tripped breakers are tried at once
	e.o.Log.Info().Str("by", by).Str("why", why).Str("evidence", evidence).Msg("writes resumed")
	return nil
}

// acceptWaits is how long an acceptance waits for the ledger to be read.
const acceptWaits = 20 * time.Second

// AcceptCompany lets writes go on after the company behind the address changed. restored: every document that is over has to be
// looked at before its next event, because the books may lack it, or have again what was deleted. new: nothing that the ledger
// says about Flexi counts any more; rows are not touched until their next event, and stay readable.
func (e *Engine) AcceptCompany(ctx context.Context, how, by, why string) error {
	if by == "" || why == "" {
		return &DecisionError{Text: "say who accepts the company and why"}
	}
	switch how {
	case "new":
	case "restored":
		select {
		case <-e.ready: // before that nobody knows which documents there are
		case <-time.After(acceptWaits):
			return &DecisionError{Retry: true, Text: "the ledger is still being read: accept the company in a moment"}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := e.requestChecks(ctx); err != nil {
			return err
		}
	default:
		return &DecisionError{Text: "accept the company as --new or as --restored"}
	}
	if err := e.markAccepted(ctx, how == "new"); err != nil {
		return err
	}
	if e.o.Accepted != nil {
		if err := e.o.Accepted(ctx); err != nil {
			return err
		}
	}
	err := e.changeStops(ctx, nil, func(st Stop) bool {
		return st.Evidence == "" && otherBooks(st.Reason)
	})
	if err != nil {
		return err
	}
	e.o.Log.Info().Str("by", by).Str("why", why).Str("how", how).Msg("company accepted")
	return nil
}

// markAccepted begins the marks anew, durably, before any write may go.
func (e *Engine) markAccepted(ctx context.Context, other bool) error {
	for {
		stored, rev, err := e.o.Ledger.Marks(ctx)
		if err != nil {
			return fmt.Errorf("reading how far the books were seen: %w", e.storeError(err))
		}
		next := ledger.Marks{Era: max(stored.Era, e.marks.era()), Accepted: acceptedAt(e.o.Now(), stored.Accepted, e.marks.accepted()), Extra: stored.Extra}
		if other {
			next.Era++
		}
		err = e.o.Ledger.SetMarks(ctx, next, rev)
		var conflict *ledger.ConflictError
		switch {
		case err == nil:
			e.marks.set(next)
			e.startOver(other)
			return nil
		case !errors.As(err, &conflict):
			return fmt.Errorf("storing that the company was accepted: %w", e.storeError(err))
		}
	}
}

// acceptedAt is the time of an acceptance: after those before it, also where the clock was set back since. The latest one counts,
// and one that seemed older would be void.
func acceptedAt(now time.Time, before ...time.Time) time.Time {
	at := now.UTC().Round(0)
	for _, t := range before {
		if !at.After(t.Round(0)) {
			at = t.UTC().Round(0).Add(time.Millisecond)
		}
	}
	return at
}

// requestChecks asks for a look at every document, whatever became of its last event.
func (e *Engine) requestChecks(ctx context.Context) error {
	for _, id := range e.scheduler.all() {
		err := e.requestCheck(ctx, id)
		if ledger.Never(err) { // it would fail each time, and nobody could ever accept
			e.o.Log.Error().Err(err).Str("row", string(id)).Msg("this document cannot be made to owe a look: see in Flexi that it is there")
			continue
		}
		if err != nil {
			return fmt.Errorf("making every document owe a look: %w", err)
		}
	}
	return nil
}

func (e *Engine) requestCheck(ctx context.Context, id ledger.ID) error {
	for {
		row, err := e.o.Ledger.Get(ctx, id)
		if errors.Is(err, ledger.ErrNoRow) || errors.Is(err, ledger.ErrNewer) {
			return nil
		}
		if err != nil {
			return err
		}
		if row.Era < e.marks.era() || row.Last == nil && (row.Work == nil || !row.Work.Final) {
			return nil // of another company, or its event in hand looks for itself
		}
		e.present(&row)
		row.ReadBack, row.LookOnce, row.Updated = e.o.Now(), true, e.o.Now()
		if last := row.Last; last != nil && last.At.After(row.Updated) { // the clock was ahead: it comes before the acceptance all the same
			before := *last
			before.At = row.Updated.Add(-time.Second)
			row.Last = &before
		}
		e.express(&row)
		err = e.o.Ledger.Settle(ctx, []*ledger.Row{&row})[0]
		var conflict *ledger.ConflictError
		switch {
		case err == nil:
			e.arrived(&row) // a worker that has the row does not know of this yet
			return nil
		case !errors.As(err, &conflict):
			return err
		}
	}
}

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

// same: the same reason for the same evidence.
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

// Status is what an operator sees at a glance.
func (e *Engine) Status() Status {
	stops, inFlight, limit := e.admission.status()
	if len(stops) == 0 {
		stops = []Stop{{Open: true}}
	}
	s := Status{Stops: stops, Fence: e.fence.all(), InFlight: inFlight, Limit: limit, Pack: e.packs.now()}
	s.Standings, s.Documents = e.scheduler.counts()
	now, b := e.o.Now(), e.o.Budget
	s.Tokens = map[string]int{"reads": int(b.Reads.Tokens(now)), "refusals": int(b.Refusals.Tokens(now)), "maybes": int(b.Maybes.Tokens(now))}
	s.Waiting = s.Documents[string(ledger.Queued)]
	s.MaybeBy, s.Oldest = e.scheduler.maybes()
	return s
}

// ReadEnded tells the engine how a request ended that somebody else made, such as a check of the company; nil is a good answer.
// It must be about Flexi as a whole, not about one record or evidence.
func (e *Engine) ReadEnded(err error) { e.admission.recordsRead("", err) }
