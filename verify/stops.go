package verify

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// This file says what stops writes. Nothing is lost by a stop: documents stay queued, and looks go on.
//
//	a breaker     trips by what Flexi answers, is reset by itself (breaker.go): outage, login, licence, right, certificate,
//	              refused, looks, quota, patience
//	a manual stop lasts until a person ends it: person (writes stop), guard, fence, company, restored, ledger; it is kept over
//	              restarts and shared by replicas (storedstops.go), but for ledger, which each process finds by itself
//
// Either is of one evidence, or of all ("" as evidence).

// Stop is one reason why writes of an evidence, or of all ("" as evidence), are stopped; or, with Open alone, that none is.
type Stop struct {
	Evidence string    `json:"evidence,omitempty"`
	Open     bool      `json:"open"`
	Reason   string    `json:"reason,omitempty"` // outage, login, licence, right, refused, looks, quota, patience, company, guard, fence, person, restored, ledger
	Text     string    `json:"text,omitempty"`
	Remedy   string    `json:"remedy,omitempty"`
	By       string    `json:"by,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	NextTry  time.Time `json:"next_try,omitzero"`
	NeedsYou bool      `json:"needs_you,omitempty"` // only a person ends it (writes resume, company accept)
}

// fields are those of the log line.
func (s Stop) fields() [][2]string {
	what := s.Evidence
	if what == "" {
		what = "all evidences"
	}
	return [][2]string{{"evidence", what}, {"reason", s.Reason}, {"text", s.Text}, {"remedy", s.Remedy}, {"by", s.By}}
}

// isStopped says whether writes of an evidence are stopped, by a breaker or by a person.
func (a *admission) isStopped(evidence string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.manuallyStopped(evidence) || a.tripped(evidence) != nil
}

// tripped is the breaker that stops an evidence, the one of all evidences first; nil if none does.
func (a *admission) tripped(evidence string) *breaker {
	if b := a.breakers[""]; b != nil {
		return b
	}
	return a.breakers[evidence]
}

// manuallyStopped says whether a person has to act before an evidence is written to.
func (a *admission) manuallyStopped(evidence string) bool {
	for h := range a.manual {
		if h.evidence == "" || h.evidence == evidence {
			return true
		}
	}
	return false
}

// stopKey names a manual stop: one reason for which only a person lets writes go on.
type stopKey struct{ evidence, reason string }

// stoppedFor says whether a manual stop of all evidences has such a reason.
func (a *admission) stoppedFor(reason func(string) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for h := range a.manual {
		if h.evidence == "" && reason(h.reason) {
			return true
		}
	}
	return false
}

// otherBooks says that writes stand still because the books behind the address may not be those that the ledger knows.
func (a *admission) otherBooks() bool { return a.stoppedFor(otherBooks) }

// otherBooks is a reason by which the books may not be those that the ledger knows.
func otherBooks(reason string) bool { return reason == "restored" || otherCompany(reason) }

// otherCompany is a reason by which what stands behind the address has nothing to do with the ledger.
func otherCompany(reason string) bool { return reason == "company" }

// stop stops writes for a reason that only a person removes. It reports whether that is news.
func (a *admission) stop(st Stop) bool {
	a.mu.Lock()
	was, have := a.manual[stopKey{st.Evidence, st.Reason}]
	st.NeedsYou, st.Since = true, a.now()
	if have {
		st.Since = was.Since
	}
	a.manual[stopKey{st.Evidence, st.Reason}] = st
	a.mu.Unlock()
	if have && was.Text == st.Text {
		return false
	}
	a.say("writes stopped", st.fields()...)
	return true
}

// resume ends manual stops of an evidence: all of them when reason is "". Its tripped breakers are tried at once.
func (a *admission) resume(evidence, reason string) (released []Stop) {
	a.mu.Lock()
	for h, st := range a.manual {
		if h.evidence == evidence && (reason == "" || h.reason == reason) {
			released = append(released, st)
			delete(a.manual, h)
		}
	}
	for name, b := range a.breakers {
		if evidence == "" || name == evidence {
			b.NextTry = a.now()
			released = append(released, b.Stop)
		}
	}
	a.unlock()
	for _, st := range released {
		a.say("writes released", st.fields()...)
	}
	a.onReset()
	return released
}

// StopFor stops all writes for a reason that the engine cannot remove itself. Documents stay queued.
func (e *Engine) StopFor(reason, text, remedy string) {
	e.addStop(Stop{Reason: reason, Text: text, Remedy: remedy})
}

// stopEvidence is StopFor for one evidence.
func (e *Engine) stopEvidence(evidence, reason, text, remedy string) {
	e.addStop(Stop{Evidence: evidence, Reason: reason, Text: text, Remedy: remedy})
}

// addStop stops here at once, then stores the stop for restarts and other replicas, and alerts. What describes only this process
// is not stored.
func (e *Engine) addStop(st Stop) {
	if news := e.admission.stop(st); !news || volatile(st.Reason) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopsEvery)
	defer cancel()
	if err := e.storeStops(ctx); err != nil {
		e.o.Log.Error().Err(err).Str("reason", st.Reason).Msg("writes are stopped here, but the stop is not stored yet")
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
