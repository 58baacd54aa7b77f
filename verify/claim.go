package verify

import (
	"context"
	"fmt"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// This file writes what is stored before the first byte of an attempt: for each document of a request the row in sending(n+1), with
// the attempt, its number, the lease, the before-image that it rests on, and who shares the request. Only an acknowledged
// compare-and-set on that row permits the send.

// claim makes the attempts of a group durable. Documents whose claim was not stored leave the group.
func (e *Engine) claim(work context.Context, group []*job) []*job {
	rows := make([]*ledger.Row, len(group))
	var mates []ledger.Mate
	name := ""
	if len(group) > 1 {
		name = fmt.Sprintf("%s.%d", e.o.Settings.Run, e.groups.Add(1))
	}
	for i, j := range group {
		rows[i] = j.t.row
		e.claimed(j.t.row, j.write.Op)
		if j.t.row.Work.Drawn = j.write.Op == flexi.Create && !numbered(j.t); j.write.Op == flexi.Create {
			e.fence.claiming(j.t.row.ID, j.t.row.Work.N, e.o.Now())
		}
		if name != "" {
			mates = append(mates, ledger.Mate{ID: j.t.row.ID, N: j.t.row.Work.N})
			a := lastAttempt(j.t.row.Work)
			a.Group, a.Size = name, len(group)
		}
	}
	for _, row := range rows {
		row.Work.Mates = mates
	}
	if len(rows) == 0 {
		return nil
	}
	errs := e.o.Ledger.Claim(work, rows)
	var ours []*job
	for i, j := range group {
		if errs[i] != nil {
			j.result <- jobResult{err: fmt.Errorf("claiming attempt %d: %w", rows[i].Work.Attempt, errs[i])}
			continue
		}
		e.noted(j.t.row)
		ours = append(ours, j)
	}
	return ours
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
	e.express(row)
	row.Lease = &ledger.Lease{Instance: e.o.Settings.Instance, Run: e.o.Settings.Run, Epoch: epoch, For: e.o.Settings.Lease}
}

// numbered says whether a look can find the document's record by its number.
func numbered(t *task) bool {
	return t.ev.Number != "" && (pairless(t.row.Evidence) || t.row.Work.Partner != "")
}

// permit is the right to send a claimed group. Its age counts from before the first claim was stored, so that no write
// outlives the lease of any of them.
func (e *Engine) permit(group []*job, begun time.Time) flexi.Permit {
	m := flexi.Permit{Claimed: begun}
	for i, j := range group {
		row, w := j.t.row, j.t.row.Work
		name := fmt.Sprintf("%s/%d/%d", row.ID, w.N, w.Attempt)
		if i == 0 {
			m.Attempt = name
		} else {
			m.Others = append(m.Others, name)
		}
		if w.Refused != nil {
			m.PriorAuth, m.PriorMessage = max(m.PriorAuth, w.Refused.Auth), max(m.PriorMessage, w.Refused.Message)
		}
	}
	return m
}
