package verify

import (
	"context"
	"strings"
	"time"

	"flexid/verify/ledger"
)

// looksReason is the reason of a breaker that tripped because no document of the evidence can be looked up.
const looksReason = "looks"

// lookable hears from the looker whether the documents of an evidence can be looked up, "" as why when they can. While they
// cannot, nothing of the evidence is written: each lost answer would be a maybe that nobody can settle.
func (e *Engine) lookable(evidence, why string) {
	if why == "" {
		e.admission.fit(evidence)
		return
	}
	st := Stop{Evidence: evidence, Reason: looksReason, Text: "documents of " + evidence + " cannot be looked up in Flexi: " + why,
		Remedy: "run `flexid doctor --evidence " + evidence + "`: it asks the same and says what is in the way; flexid tries again by itself"}
	if e.admission.unfit(st) {
		ctx, cancel := context.WithTimeout(context.Background(), stopsEvery)
		defer cancel()
		e.alertStop(ctx, st)
	}
}

// unfit trips the breaker of an evidence that cannot be looked up. It reports whether that is news. What is asked while the
// breaker waits for its next trial makes the pause no longer.
func (a *admission) unfit(st Stop) (news bool) {
	a.mu.Lock()
	defer a.unlock()
	b := a.breakers[st.Evidence]
	news = b == nil || b.Reason != looksReason
	if news || !a.now().Before(b.NextTry) {
		a.trip(st, blockMost, aboutNone)
	}
	return news
}

// fit resets a breaker that tripped because of looks.
func (a *admission) fit(evidence string) {
	a.mu.Lock()
	defer a.unlock()
	if b := a.breakers[evidence]; b != nil && b.Reason == looksReason {
		a.reset(evidence)
	}
}

// noLook says on the row that it cannot be looked up, once, and to a person where it is this document alone. It reports whether
// the row has changed.
func (e *Engine) noLook(ctx context.Context, row *ledger.Row, ans answer) bool {
	if !ans.unfit {
		return false
	}
	p := ledger.Problem{Text: cannotLook + clip(ans.why, 400)}
	if was := row.Work.Story.Problem; was != nil && was.Text == p.Text {
		return false
	}
	row.Work.Story.Problem = &p
	if ans.alone {
		e.alertLook(ctx, row, p.Text)
	}
	return true
}

const cannotLook = "it cannot be looked up in Flexi, so nothing is sent: "

// takeBack takes a reason from the row that begins so and holds no longer.
func takeBack(w *ledger.Work, said string) {
	if p := w.Story.Problem; p != nil && strings.HasPrefix(p.Text, said) {
		w.Story.Problem = nil
	}
}

// alertLook tells a person that one document cannot be looked up. It is a convenience: the row says the same.
func (e *Engine) alertLook(ctx context.Context, row *ledger.Row, text string) {
	a := addressOf(row)
	e.say("document cannot be looked up", [2]string{"document", a.String()}, [2]string{"number", row.Number}, [2]string{"text", text})
	if e.o.Notifier == nil {
		return
	}
	err := e.publishAlert(ctx, "", Alert{Time: e.o.Now().UTC(), Kind: looksReason, Text: text, Document: a.String(), Evidence: a.Evidence, Source: a.Source, Key: a.Key,
		Number: row.Number, State: row.State, Reason: row.Reason, Remedy: "see what Flexi says of its number or key; correct it at the sender and send it again, or drop it"})
	if err != nil {
		e.o.Log.Warn().Err(err).Str("document", a.String()).Msg("an alert could not be published")
	}
}

// lookPause is how long a document waits after a look that was none: the longer it goes on, the longer.
func (e *Engine) lookPause(ans answer) time.Duration {
	pause := max(ans.at.Sub(ans.since)/4, e.o.Settings.Probe/2)
	return min(pause, blockMost) + time.Duration(e.o.Rand()*float64(e.o.Settings.Probe))
}
