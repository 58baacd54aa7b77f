package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// outcome applies what became of one attempt to the row, in memory.
//
// 1. The attempt keeps its end, its answer and its request.
// 2. The update that attaches our id has outcomes of its own.
// 3. One case for each outcome of DESIGN 3.
func (e *Engine) outcome(t *task, s jobResult) {
	row, w, now, res := t.row, t.row.Work, s.at, s.res
	w.Shake = s.rand
	a := lastAttempt(w)
	if a.Group != "" {
		a.Size = s.size // those that were sent: a claim may have failed
	}
	a.Ended, a.Outcome, a.Errors = now, res.Outcome.String(), res.Errors
	if res.Request.Kind != "" {
		a.Requests = []flexi.Request{res.Request}
	}
	if res.Err != nil {
		a.Text = clip(res.Err.Error(), 300)
	}
	row.Lease = nil
	if w.Write == flexi.Attach {
		e.attached(row, res, now)
		return
	}
	switch res.Outcome {
	case flexi.Accepted:
		w.Refused = nil
		doc := res.Docs[0]
		row.Sends++
		e.confirm(row, t.ev, effect{flexiID: doc.FlexiID, number: doc.Number, sent: true})
		if doc.FlexiID == "" {
			row.ReadBack = now // the answer did not say which of the new records is ours: a look does
		}
	case flexi.Maybe:
		a.Speaker, a.Odd = res.Speaker.String(), res.Odd
		e.opened(row, res.Speaker, now)
	case flexi.Rejected:
		row.Sends++
		if s.size > 1 && !res.Whole {
			e.split(row, s)
			return
		}
		e.rejected(row, res)
	case flexi.Refused, flexi.Blocked:
		row.Sends++
		if s.size > 1 && res.Outcome == flexi.Blocked && res.Status == 400 {
			w.Most = 1 // it may be about one document, and only of one that is alone can that be said
		}
		e.backToQueue(row, res)
	case flexi.NotSent:
		e.backToQueue(row, res)
	}
}

// split goes on after the ERP refused a request of several documents and took all of it back. Nothing in it is rejected yet: a
// document that the answer names goes alone next, the others without it, in halves where the answer names none or not for the
// first time. "Exists" is looked at first.
func (e *Engine) split(row *ledger.Row, s jobResult) {
	w := row.Work
	a := lastAttempt(w)
	own := s.res.Docs[0].Errors
	a.Errors = own
	a.Text = fmt.Sprintf("refused in a request of %d documents and taken back with it", s.size)
	w.Splits++
	switch {
	case len(own) > 0:
		w.Most = 1
	case s.named && w.Splits == 1:
	default:
		w.Most = (s.size + 1) / 2
	}
	w.Mates = nil
	row.LookOnce = row.LookOnce || s.res.Exists
	row.State, row.Reason, row.Due = ledger.Queued, ledger.Waiting, s.at
}

// rejected goes on after the ERP refused the document for its content. With an attempt open, or where the words may mean "it is
// there already", a look comes first.
func (e *Engine) rejected(row *ledger.Row, res *flexi.Result) {
	w := row.Work
	p := problemOf(res)
	row.Cause = string(res.Cause)
	if !w.Open && !res.NeedLook && !res.Exists {
		e.park(row, ledger.Rejected, p)
		return
	}
	now := e.o.Now()
	row.State, row.Reason = ledger.Maybe, ""
	w.Step, w.Absences, w.LastAbs = 0, 0, time.Time{}
	w.Ended = now // the schedule begins anew; the settle time of an open attempt stays
	if !w.Open {
		w.Settle = now
	}
	if w.Exists = w.Exists || res.Exists; !res.Exists {
		w.Reject = &p
	}
	row.Due = now
}

func problemOf(res *flexi.Result) ledger.Problem {
	var words []string
	for _, m := range res.Errors {
		words = append(words, m.Text)
	}
	text := strings.Join(words, "; ")
	if text == "" && res.Err != nil {
		text = res.Err.Error()
	}
	return ledger.Problem{Text: clip(text, 500), Errors: res.Errors}
}

// backToQueue goes on after nothing was done. Where an earlier attempt is open the row is a maybe again, else it waits in the
// queue.
func (e *Engine) backToQueue(row *ledger.Row, res *flexi.Result) {
	w, now := row.Work, e.o.Now()
	wait := res.Wait
	switch {
	case res.Outcome == flexi.Refused && res.Refresh == flexi.RefreshUser:
		if w.Refused == nil {
			w.Refused = &ledger.Refusals{}
		}
		if res.Status == 401 {
			w.Refused.Auth++
		} else {
			w.Refused.Message++
			if w.Refused.Blocks == 0 {
				w.Passed = e.admission.acceptedOf(row.Evidence)
			}
		}
	case res.Outcome == flexi.Blocked:
		wait = max(wait, e.o.Settings.Probe/4)
		if res.Status == 400 && e.countBlock(row, res) {
			return
		}
	case res.Outcome == flexi.NotSent:
		wait = max(wait, time.Duration(e.o.Rand()*float64(time.Second)))
	}
	row.Due = now.Add(wait)
	w.Mates = nil
	if w.Open {
		row.State, row.Reason = ledger.Maybe, ""
		return
	}
	row.State, row.Reason = ledger.Queued, ledger.Waiting
	if res.Outcome == flexi.Blocked {
		row.Reason = ledger.Blocked
	}
}

// othersGo says that a 400 without a name that ends this request would be about its one document, since others of its evidence
// were accepted after it had been refused in the same way.
func (e *Engine) othersGo(group []*job) bool {
	if len(group) > 1 {
		return false
	}
	row := group[0].t.row
	w := row.Work
	return w.Refused != nil && w.Refused.Message > 0 && othersWent(e.admission.acceptedOf(row.Evidence), w.Passed)
}

// othersWent says that documents were accepted between two counts, which begin anew with each start.
func othersWent(accepted, before int) bool { return accepted > 0 && accepted != before }

// countBlock counts a 400 that blocked a document. One that is blocked twice more while others of its evidence go through is at
// fault itself: it is rejected, and true is returned.
func (e *Engine) countBlock(row *ledger.Row, res *flexi.Result) bool {
	w := row.Work
	if w.Refused == nil {
		w.Refused = &ledger.Refusals{}
	}
	accepted := e.admission.acceptedOf(row.Evidence)
	if w.Refused.Blocks == 0 || othersWent(accepted, w.Passed) {
		w.Refused.Blocks++
	}
	w.Passed = accepted
	if w.Refused.Blocks < 3 {
		return false
	}
	res.Cause = flexi.OtherCause
	e.rejected(row, res) // with an attempt open, looks come first
	return true
}

// fenceBroken stops the writes of an evidence whose creates Flexi answers as something else.
func (e *Engine) fenceBroken(row *ledger.Row) {
	e.fence.set(row.Evidence, fenceDisproved)
	e.stopEvidence(row.Evidence, "fence", fmt.Sprintf(
		"Flexi answered the create of %s/%s as an update or skip: its protection against doubles does not hold", row.Evidence, row.Key),
		"look at the record in Flexi, then `flexid writes resume "+row.Evidence+"`")
}

// aftermath does what an outcome asks for beyond the row: renewing what went stale, and owning a number that Flexi drew. What
// concerns a whole request is done once.
func (e *Engine) aftermath(work context.Context, row *ledger.Row, s jobResult) {
	res := s.res
	if s.lead && res.Refresh == flexi.RefreshUser && res.Outcome == flexi.Refused {
		ctx, cancel := context.WithTimeout(work, 30*time.Second)
		defer cancel()
		if err := e.metadata.renew(ctx); err != nil {
			e.o.Log.Warn().Err(err).Msg("renewing our user's context at Flexi")
		}
	}
	if end := row.Work.End; end != nil && end.State == ledger.Confirmed && row.Work.Write == flexi.Create && len(res.Docs) > 0 {
		e.ownDrawn(work, row, res.Docs[0].Number)
	}
}

// ownDrawn takes the number that Flexi drew from its series, once an answer or a look shows it.
func (e *Engine) ownDrawn(ctx context.Context, row *ledger.Row, number string) {
	number = flexi.NormaliseNumber(row.Evidence, number)
	if number == "" || !pairless(row.Evidence) {
		return
	}
	if row.Last != nil && row.Last.Number == "" {
		row.Last.Number = number
	}
	if slices.Contains(row.Numbers, number) {
		return
	}
	holder, err := e.o.Ledger.TakeNumber(ctx, row.Evidence, number, row.ID)
	if err != nil {
		e.o.Log.Warn().Err(err).Str("number", number).Msg("owning a number that Flexi drew")
		return
	}
	if holder == row.ID {
		addNumber(row, number) // stored with the next compare-and-set
	}
}
