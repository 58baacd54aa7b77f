package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// send takes one document through the door: place, connection, claim, bytes, outcome. The order is the promise: the claim
// is durable before the first byte, and the connection stands before the claim so that the byte follows at once.
func (e *Engine) send(ctx, work context.Context, t *task) (turn, error) {
	row, w := t.row, t.row.Work

	// 1. The body, before anything that costs.
	write := e.write(t)
	prepared, err := flexi.Prepare(write)
	if err != nil {
		e.park(row, ledger.Unreadable, ledger.Problem{Text: err.Error()})
		return again(), e.save(ctx, row)
	}

	// 2. A place among the writes.
	sullied := w.Opens > 0
	p, until, ok := e.gate.enter(ctx, row.Evidence, sullied)
	if !ok {
		return at(later(until, e.o.Now())), nil
	}
	var res *flexi.Result
	defer func() { e.gate.leave(p, res, sullied) }()
	if p.canary != nil {
		if err := e.probe(ctx, row.Evidence); err != nil {
			res = &flexi.Result{Outcome: flexi.NotSent, Err: err}
			return at(e.o.Now().Add(e.o.Settings.Probe)), nil
		}
	}

	// 3. The connection. Without one nothing can have been sent.
	conn, err := e.o.ERP.Dial(ctx)
	if err != nil {
		res = &flexi.Result{Outcome: flexi.NotSent, Err: err}
		e.gate.read(row.Evidence, err)
		return at(e.o.Now().Add(e.o.Settings.Probe/4 + time.Duration(e.o.Rand()*float64(e.o.Settings.Probe)))), nil
	}
	defer conn.Close() //nolint:errcheck // one write per connection: nothing is lost by a failed close

	// 4. What was seen must still be young.
	if e.tooOld(w) {
		return again(), nil
	}

	// 5. The claim.
	e.claimed(row, write.Op)
	top := e.look.top(row.Evidence)
	if err := e.o.Ledger.Claim(work, []*ledger.Row{row})[0]; err != nil {
		return turn{}, fmt.Errorf("claiming attempt %d: %w", w.Attempt, err)
	}
	permit := flexi.Permit{
		Attempt: fmt.Sprintf("%s/%d/%d", row.ID, w.N, w.Attempt), Claimed: e.o.Now(),
	}
	if w.Refused != nil {
		permit.PriorAuth, permit.PriorMessage = w.Refused.Auth, w.Refused.Message
	}
	e.noted(row)

	// 6. The bytes. What comes back decides; a stop of the process does not cut it short before the drain time is over.
	var got flexi.Result
	if e.tooOld(w) {
		// NATS took its time to store the claim. Nothing was sent; the gate learns nothing from it.
		got = flexi.Result{Outcome: flexi.NotSent, Err: errors.New("storing the claim took so long that what was seen before is too old to write upon")}
	} else {
		e.called("write")
		begun := e.o.Now()
		got = conn.Send(work, prepared, permit)
		res = &got
		if e.o.Observer != nil {
			e.o.Observer.WriteTook(e.o.Now().Sub(begun).Seconds())
		}
	}

	// 7. The outcome, durable whatever happens to ctx.
	e.outcome(t, &got, top)
	if err := e.settle(work, row); err != nil {
		return turn{}, err
	}
	e.aftermath(work, row, &got)
	return again(), nil
}

// tooOld: what was seen of the document is older than a write may build upon.
func (e *Engine) tooOld(w *ledger.Work) bool {
	seen := e.seenAt(w)
	return !seen.IsZero() && e.o.Now().Sub(seen) > e.o.Settings.Fresh
}

// seenAt is when the record, or its absence, was last seen for the current event; zero where no look is needed.
func (e *Engine) seenAt(w *ledger.Work) time.Time {
	if w.Before == nil {
		return later(w.LastAbs, w.BeforeT) // a create: whichever look showed the absence last
	}
	return w.BeforeT
}

// write is the request for the current event.
func (e *Engine) write(t *task) flexi.Write {
	doc := flexi.Doc{Ext: t.row.Ext, FlexiID: t.row.Work.Target}
	op := t.op
	if op == flexi.Upsert {
		op = flexi.Create
	}
	if t.row.Work.Adopt != "" {
		return flexi.Write{Evidence: t.row.Evidence, Op: flexi.Attach, Docs: []flexi.Doc{{Ext: t.row.Ext, FlexiID: t.row.Work.Adopt}}}
	}
	switch op {
	case flexi.Create:
		doc.FlexiID, doc.Body = "", t.ev.Body
		if pairless(t.row.Evidence) {
			doc.Number = t.ev.Number
		}
	case flexi.Update:
		doc.Body = t.ev.Body
	}
	return flexi.Write{Evidence: t.row.Evidence, Op: op, Docs: []flexi.Doc{doc}}
}

// claimed turns the row to sending(n+1), in memory.
func (e *Engine) claimed(row *ledger.Row, op flexi.Op) {
	w, now := row.Work, e.o.Now()
	epoch := 1
	if row.Lease != nil {
		epoch = row.Lease.Epoch + 1
	}
	w.Attempt++
	w.Write = op
	w.Story.Attempts = append(w.Story.Attempts, ledger.Attempt{N: w.Attempt, Op: op, Claimed: now})
	row.State, row.Reason, row.Due, row.Updated = ledger.Sending, "", time.Time{}, now
	row.Lease = &ledger.Lease{Instance: e.o.Settings.Instance, Run: e.o.Settings.Run, Epoch: epoch, For: e.o.Settings.Lease}
}

// settle stores an outcome. It is tried until it is decided, once more after the drain time is over: an outcome that is not
// stored is a maybe at the next start.
func (e *Engine) settle(work context.Context, row *ledger.Row) error {
	for {
		last := work.Err() != nil
		ctx, cancel := context.WithTimeout(context.WithoutCancel(work), 5*time.Second)
		err := e.save(ctx, row)
		cancel()
		var conflict *ledger.ConflictError
		if errors.As(err, &conflict) {
			merged, unread := e.onlyAppended(work, row)
			switch {
			case merged:
				continue
			case unread == nil:
				return err
			}
			err = unread // whose row it is now could not be read: ask again
		}
		if err == nil || last {
			return err
		}
		e.noteTrouble(err)
		e.o.Log.Error().Err(err).Str("document", row.Evidence+"/"+row.Key).Msg("the outcome of a write is not stored yet")
		t := time.NewTimer(500 * time.Millisecond)
		select {
		case <-t.C:
		case <-work.Done():
			t.Stop()
		}
	}
}

// onlyAppended: while we sent, events were added to the document and nothing else happened to it. The attempt is still ours,
// so its outcome goes on top of what was added. False where somebody took the document over; an error where that could not
// be read.
func (e *Engine) onlyAppended(work context.Context, row *ledger.Row) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), 5*time.Second)
	defer cancel()
	now, err := e.o.Ledger.Get(ctx, row.ID)
	if err != nil {
		return false, fmt.Errorf("reading %s/%s after its write: %w", row.Evidence, row.Key, err)
	}
	if now.State != ledger.Sending || !e.mine(now.Lease) || now.Work == nil {
		return false, nil
	}
	if now.Work.N != row.Work.N || now.Work.Attempt != row.Work.Attempt || now.Revision == row.Revision {
		return false, nil
	}
	row.Revision, row.Tail, row.Seen, row.Extra = now.Revision, now.Tail, now.Seen, now.Extra
	for _, n := range now.Numbers {
		if !slices.Contains(row.Numbers, n) {
			row.Numbers = append(row.Numbers, n)
		}
	}
	return true, nil
}

// outcome applies what became of one attempt to the row, in memory. One case for each outcome of DESIGN 3.
func (e *Engine) outcome(t *task, res *flexi.Result, top string) {
	row, w, now := t.row, t.row.Work, e.o.Now()
	a := lastAttempt(w)
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
		if w.Write == flexi.Create && top != "" && doc.FlexiID != "" && higher(top, doc.FlexiID) == top {
			e.Hold("restored", fmt.Sprintf("Flexi gave the new document %s/%s the id %s, though it had %s before: it was restored from a backup",
				row.Evidence, row.Key, doc.FlexiID, top), "check what is missing in Flexi, then `flexid company accept --restored`")
		}
	case flexi.Maybe:
		a.Speaker = res.Speaker.String()
		e.opened(row, res.Speaker, now)
	case flexi.Rejected:
		row.Sends++
		e.rejected(row, res)
	case flexi.Refused, flexi.Blocked:
		row.Sends++
		e.backToQueue(row, res)
	case flexi.NotSent:
		e.backToQueue(row, res)
	}
}

// rejected: the ERP refused the document for its content. With an attempt open, or where the words may mean "it is there
// already", a look comes first.
func (e *Engine) rejected(row *ledger.Row, res *flexi.Result) {
	w := row.Work
	p := problemOf(res)
	row.Cause = string(res.Cause)
	if !w.Open && !res.NeedLook && !res.Exists {
		e.park(row, ledger.Rejected, p)
		w.End.Cause = row.Cause
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

// backToQueue: nothing was done. Where an earlier attempt is open the row is a maybe again, else it waits in the queue.
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
		}
	case res.Outcome == flexi.Blocked:
		wait = max(wait, e.o.Settings.Probe/4)
		if res.Status == 400 && e.blockedAgain(row, res) {
			return
		}
	case res.Outcome == flexi.NotSent:
		wait = max(wait, time.Duration(e.o.Rand()*float64(time.Second)))
	}
	row.Due = now.Add(wait)
	if w.Open {
		row.State, row.Reason = ledger.Maybe, ""
		return
	}
	row.State, row.Reason = ledger.Queued, ledger.Waiting
	if res.Outcome == flexi.Blocked {
		row.Reason = ledger.Blocked
	}
}

// blockedAgain: a document that is blocked by a 400 twice more while others of its evidence go through is at fault itself.
func (e *Engine) blockedAgain(row *ledger.Row, res *flexi.Result) bool {
	w := row.Work
	if w.Refused == nil {
		w.Refused = &ledger.Refusals{}
	}
	accepted := e.gate.acceptedOf(row.Evidence)
	if w.Refused.Blocks == 0 || accepted > w.Passed {
		w.Refused.Blocks++
	}
	w.Passed = accepted
	if w.Refused.Blocks < 3 || w.Open {
		return false
	}
	row.Cause = string(res.Cause)
	e.park(row, ledger.Rejected, problemOf(res))
	return true
}

// aftermath does what an outcome asks for beyond the row.
func (e *Engine) aftermath(work context.Context, row *ledger.Row, res *flexi.Result) {
	if res.FenceBroken {
		e.fence.set(row.Evidence, fenceDisproved)
		e.holdEvidence(row.Evidence, "fence", fmt.Sprintf(
			"Flexi answered the create of %s/%s as an update or skip: its protection against doubles does not hold", row.Evidence, row.Key),
			"look at the record in Flexi, then `flexid writes resume "+row.Evidence+"`")
	}
	if res.Refresh == flexi.RefreshUser && res.Outcome == flexi.Refused {
		ctx, cancel := context.WithTimeout(work, 30*time.Second)
		defer cancel()
		if err := e.o.ERP.EndUserContext(ctx); err != nil {
			e.o.Log.Warn().Err(err).Msg("renewing our user's context at Flexi")
		}
	}
	if row.State == ledger.Confirmed && row.Work.Write == flexi.Create && len(res.Docs) > 0 {
		e.ownDrawn(work, row, res.Docs[0].Number)
	}
}

// ownDrawn takes the number that Flexi drew from its series, once it is told or shown.
func (e *Engine) ownDrawn(ctx context.Context, row *ledger.Row, number string) {
	number = flexi.NormaliseNumber(row.Evidence, number)
	if number == "" || !pairless(row.Evidence) || slices.Contains(row.Numbers, number) {
		return
	}
	if _, err := e.o.Ledger.TakeNumber(ctx, row.Evidence, number, row.ID); err != nil {
		e.o.Log.Warn().Err(err).Str("number", number).Msg("owning a number that Flexi drew")
		return
	}
	row.Numbers = append(row.Numbers, number) // stored with the next compare-and-set
}
