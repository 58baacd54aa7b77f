package verify

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"flexid/flexi"
)

// read tells the gate how a read of an evidence's records ended: some errors of reads would only be met again by a write.
// "" as an evidence is Flexi as a whole.
func (g *gate) read(evidence string, err error) { g.heard(evidence, aboutRecords, err) }

// heard is read for any part of an evidence.
func (g *gate) heard(evidence string, of about, err error) {
	g.mu.Lock()
	defer g.unlock()
	if err != nil {
		g.readFailed(evidence, of, err)
		return
	}
	g.unreachable = 0
	g.reads.good(evidence)
	if d := g.doors[""]; d != nil && d.by != aboutNone {
		g.open("")
	}
	if d := g.doors[evidence]; d != nil && d.by == of {
		g.open(evidence)
	}
}

func (g *gate) readFailed(evidence string, of about, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	var cert *flexi.CertError
	var fe *flexi.Error
	var quota *flexi.QuotaError
	var shut *flexi.ShutError
	var unlisted *unlistedError
	status := 0
	if errors.As(err, &fe) {
		status = fe.Status
	}
	switch {
	case errors.As(err, &quota):
		g.quotaUsedUp(quota)
	case errors.As(err, &shut):
		g.askedToWait(shut)
	case errors.As(err, &cert):
		g.close(GateStatus{Reason: "certificate", Text: err.Error(), Remedy: cert.Hint}, outageMost, of)
	case errors.As(err, &unlisted):
		g.close(GateStatus{Evidence: evidence, Reason: "right", Text: err.Error(),
			Remedy: "give the user the right to " + evidence + " in Flexi, and see that its module is switched on; " + flexi.RemedyStale}, outageMost, of)
	case status == 401:
		g.close(GateStatus{Reason: "login", Text: err.Error(),
			Remedy: "set FLEXID_FLEXI_USER and FLEXID_FLEXI_PASSWORD (or _PASSWORD_FILE) to a user that may use the REST API"}, blockMost, of)
	case status == 402:
		g.close(GateStatus{Reason: "licence", Text: err.Error(),
			Remedy: "the licence has no REST API for writing: order it, then nothing else is to be done"}, blockMost, of)
	case status == 404:
		g.close(GateStatus{Evidence: evidence, Reason: "licence", Text: err.Error(),
			Remedy: "Flexi hides " + evidence + " (404), as it does without a licence for the REST API or without the module: check both"}, blockMost, of)
	case status == 403:
		g.close(GateStatus{Evidence: evidence, Reason: "right", Text: err.Error(),
			Remedy: "give the user the right to " + evidence + " in Flexi; " + flexi.RemedyStale}, blockMost, of)
	case fe != nil && fe.Outcome == flexi.NotSent:
		g.unreached(err)
	default:
		g.unread(evidence, of, err)
	}
}

// unreached: no connection came about, which no evidence can be blamed for.
func (g *gate) unreached(err error) {
	if g.unreachable++; g.unreachable >= badInARow {
		g.outage("", "Flexi cannot be reached", err, aboutRecords)
	}
}

// unread: a read was answered badly, or not at all. The fields of an evidence are asked for once, for all of its documents,
// and by then several times: one such failure is enough to stop that evidence.
func (g *gate) unread(evidence string, of about, err error) {
	enough := badInARow
	if of == aboutFields && evidence != "" {
		enough = 1
	}
	scope, stop := g.reads.bad(evidence, enough)
	if !stop {
		return
	}
	what := "Flexi cannot be read"
	if scope != "" {
		what = fmt.Sprintf("%s cannot be read", scope)
	}
	g.outage(scope, what, err, of)
}

// inARow is how many writes a streak has, in words for people.
func inARow() string { return strconv.Itoa(badInARow) }

// probe is the read that goes before the document that tries a closed door.
func (e *Engine) probe(ctx context.Context, evidence string) error {
	e.called("probe")
	if _, err := e.o.ERP.List(ctx, flexi.Query{Evidence: evidence, Fields: []string{"id"}, Limit: 1}); err != nil {
		return fmt.Errorf("reading %s before the first write: %w", evidence, err)
	}
	return nil
}
