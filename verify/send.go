package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// send has one document sent, in a request of its own or in somebody's, and stores what became of it.
//
// 1. Prepare its request; what cannot be sent is parked.
// 2. Wait for a slot, or for somebody who takes the document along.
// 3. Send a group. One without the document is sent beside, and the document waits on: it has to be looked at again in time,
// however long that group takes, or what was seen of it would be too old when its turn comes, and others would go before it.
// 4. Make the outcome durable.
func (e *Engine) send(ctx, work context.Context, t *task) (stepResult, error) {
	row, w := t.row, t.row.Work
	if row.Aside != nil {
		return stepResult{}, fmt.Errorf("%s was set aside: nothing is sent under that key", addressOf(row))
	}
	j, err := e.newJob(t)
	if err != nil {
		e.park(row, ledger.Unreadable, ledger.Problem{Text: err.Error()})
		return continueNow(), e.save(ctx, row)
	}
	who := &waiter{job: j, suspect: w.Opens > 0, trial: t.trial, lookAt: e.lookAgainAt(w)}
	e.packs.offer(j) // from here on the row belongs to whoever takes the job, until its result comes back
	for {
		slot, until, ok := e.admission.acquire(ctx, who)
		alone := slot == nil || slot.trial != nil
		if ok && !alone {
			e.packs.linger(ctx, j)
		}
		group := e.packs.take(j, alone)
		switch {
		case group == nil: // somebody took it along
			if slot != nil {
				e.admission.release(slot, nil, false)
			}
		case !ok && until.IsZero():
			return continueNow(), nil
		case !ok:
			return waitUntil(later(until, e.o.Now())), nil
		default:
			if !slices.Contains(group, j) { // its turn has not come
				e.sending.Go(func() { e.sendGroup(ctx, work, slot, group) })
				continue
			}
			e.sendGroup(ctx, work, slot, group)
		}
		return e.received(work, t, <-j.result)
	}
}

// newJob prepares a document's own request, so that what cannot be sent is told before anything costs.
func (e *Engine) newJob(t *task) (*job, error) {
	write := e.write(t)
	prepared, err := flexi.Prepare(write)
	if err != nil {
		return nil, err
	}
	w := t.row.Work
	return &job{
		t: t, id: t.row.ID, write: write, prepared: prepared, most: w.Most,
		alone: w.Alone || w.Opens > 0 || write.Op == flexi.Attach,
		taken: make(chan struct{}), result: make(chan jobResult, 1),
	}, nil
}

// sendGroup sends a group as one request. The order is the promise: every claim is durable before the first byte, and the
// connection stands before the claims so that the byte follows at once. Every job gets exactly one result.
func (e *Engine) sendGroup(ctx, work context.Context, slot *slot, group []*job) {
	lead := group[0].t
	evidence, suspect := lead.row.Evidence, lead.row.Work.Opens > 0
	var res *flexi.Result
	leave := sync.OnceFunc(func() { e.admission.release(slot, res, suspect) })
	defer leave()
	hand := func(jobs []*job, s jobResult) {
		for _, j := range jobs {
			j.result <- s
		}
	}

	// 1. The body. Two documents that carry the same identifier cannot share a request.
	if _, err := together(group); err != nil {
		for _, j := range group[1:] {
			j.t.row.Work.Most = 1
		}
		hand(group[1:], jobResult{next: continueNow()})
		group = group[:1]
	}

	// 2. A trial of a breaker begins with a read.
	if slot.trial != nil {
		if err := e.probe(ctx, evidence); err != nil {
			res = &flexi.Result{Outcome: flexi.NotSent, Err: err}
			hand(group, jobResult{next: waitUntil(e.o.Now().Add(e.o.Settings.Probe))})
			return
		}
	}

	// 3. The connection. Without one nothing can have been sent.
	conn, err := e.o.ERP.Dial(ctx)
	if err != nil {
		if until, ours := asked(err, e.o.Now()); ours {
			e.admission.recordsRead(evidence, err)
			hand(group, jobResult{next: waitUntil(later(until, e.o.Now()))})
			return
		}
		if slot.trial != nil { // the trial failed; for others admission hears of it once, as of a read
			res = &flexi.Result{Outcome: flexi.NotSent, Err: err}
		}
		e.admission.recordsRead(evidence, err)
		hand(group, jobResult{next: waitUntil(e.o.Now().Add(e.o.Settings.Probe/4 + time.Duration(e.o.Rand()*float64(e.o.Settings.Probe))))})
		return
	}
	defer conn.Close() //nolint:errcheck // one write per connection: nothing is lost by a failed close

	// 4. What was seen must still be young.
	group = slices.DeleteFunc(group, func(j *job) bool {
		if e.tooOld(j.t.row.Work) {
			j.result <- jobResult{next: continueNow()}
			return true
		}
		return false
	})

	// 5. The claims.
	top, begun := e.marks.top(evidence), e.o.Now()
	if group = e.claim(work, group); len(group) == 0 {
		return
	}
	slot.carry(group)
	prepared, err := together(group)
	if err != nil { // a part of what could be prepared before
		hand(group, jobResult{err: fmt.Errorf("preparing what is claimed: %w", err)})
		return
	}

	// 6. The bytes. What comes back decides; a stop of the process does not cut it short before the drain time is over.
	var got flexi.Result
	if slices.ContainsFunc(group, func(j *job) bool { return e.tooOld(j.t.row.Work) }) {
		// NATS took its time to store the claims. Nothing was sent; admission learns nothing from it.
		got = flexi.Result{Outcome: flexi.NotSent, Err: errors.New("storing the claim took so long that what was seen before is too old to write upon")}
	} else {
		e.called("write")
		sent := e.o.Now()
		got = conn.Send(work, prepared, e.permit(group, begun))
		res = &got
		slot.took, slot.othersAccepted = e.o.Now().Sub(sent), e.othersGo(group)
		if e.o.Observer != nil {
			e.o.Observer.WriteTook(slot.took.Seconds())
		}
	}
	leave() // before anybody looks what became of it

	// 7. To each its part.
	s := jobResult{size: len(group), at: e.o.Now(), top: top, rand: e.o.Rand()}
	s.named = slices.ContainsFunc(got.Docs, func(d flexi.DocResult) bool { return len(d.Errors) > 0 })
	for i, j := range group {
		s.res, s.lead = part(&got, i), i == 0
		j.result <- s
	}
}

// asked is until when nothing is to be asked of the ERP, because it said so (429) or because our own budget of requests is
// used up. Such an error tells nothing about how the ERP is.
func asked(err error, now time.Time) (until time.Time, ok bool) {
	var shut *flexi.ThrottledError
	var quota *flexi.QuotaError
	switch {
	case errors.As(err, &shut):
		return now.Add(shut.Until.Sub(now)), true
	case errors.As(err, &quota):
		return now.Add(quota.Until.Sub(now)), true
	}
	return time.Time{}, false
}

// together is one request for a group.
func together(group []*job) (flexi.Prepared, error) {
	var requests []flexi.Prepared
	for _, j := range group {
		requests = append(requests, j.prepared)
	}
	return flexi.Join(requests)
}

// received makes durable what became of one document, whatever happens to the context.
func (e *Engine) received(work context.Context, t *task, s jobResult) (stepResult, error) {
	if s.res == nil {
		return s.next, s.err
	}
	if s.lead && s.res.FenceBroken { // before the outcome: whether that can be stored must not decide about the stop
		e.fenceBroken(t.row)
	}
	e.outcome(t, s)
	e.noteCreated(work, t.row, s)
	if err := e.settle(work, t.row); err != nil {
		return stepResult{}, err
	}
	e.aftermath(work, t.row, s)
	return continueNow(), nil
}

// tooOld says that what was seen of the document is older than a write may build upon.
func (e *Engine) tooOld(w *ledger.Work) bool {
	seen := e.seenAt(w)
	return !seen.IsZero() && e.o.Now().Sub(seen) > e.o.Settings.Fresh
}

// lookAgainAt is when a document that waits for a slot is looked at again: before what was seen is too old, since one that is
// found to be so when its turn has come loses the slot to whoever came a moment ago. Not at once where the look itself took long;
// zero where none is needed.
func (e *Engine) lookAgainAt(w *ledger.Work) time.Time {
	seen, fresh := e.seenAt(w), e.o.Settings.Fresh
	if seen.IsZero() {
		return time.Time{}
	}
	return later(seen.Add(fresh*3/4), e.o.Now().Add(fresh/4))
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
		doc.FlexiID, doc.Body = "", t.body
		if pairless(t.row.Evidence) {
			doc.Number = t.ev.Number
		}
	case flexi.Update:
		doc.Body = t.body
	}
	return flexi.Write{Evidence: t.row.Evidence, Op: op, Docs: []flexi.Doc{doc}}
}

// settle stores an outcome. It is tried until it is decided, once more after the drain time is over: an outcome that is not
// stored is a maybe at the next start.
//
// 1. Store the row.
// 2. After a conflict: where only events were appended meanwhile, the outcome goes on top of them; else the row is somebody's
// else.
// 3. A row that is too large loses its story: the outcome counts, not how it came to it.
// 4. Wait a moment, again.
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
		var large *ledger.TooLargeError
		if errors.As(err, &large) { // the outcome counts, not how it came to it
			row.Work.Story = ledger.Story{Cut: row.Work.Story.Cut + len(row.Work.Story.Attempts) + len(row.Work.Story.Looks)}
		}
		t := time.NewTimer(500 * time.Millisecond)
		select {
		case <-t.C:
		case <-work.Done():
			t.Stop()
		}
	}
}

// onlyAppended says that while we sent, events were added to the document and nothing else happened to it. The attempt is still
// ours, so its outcome goes on top of what was added. False where somebody took the document over; an error where that could not
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
	row.LookOnce = row.LookOnce || now.LookOnce
	row.ReadBack = later(row.ReadBack, now.ReadBack)
	for _, n := range now.Numbers {
		addNumber(row, n)
	}
	return true, nil
}
