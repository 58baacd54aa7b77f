package verify

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"flexid/flexi"
)

// recordsRead notes how a read of an evidence's records ended: some errors of reads would only be met again by a write. "" as an
// evidence is Flexi as a whole.
func (a *admission) recordsRead(evidence string, err error) { a.readEnded(evidence, aboutRecords, err) }

// readEnded is recordsRead for any part of an evidence.
func (a *admission) readEnded(evidence string, of about, err error) {
	a.mu.Lock()
	defer a.unlock()
	if err != nil {
		a.readFailed(evidence, of, err)
		return
	}
	a.unreachable = 0
	a.reads.good(evidence)
	if b := a.breakers[""]; b != nil && b.by != aboutNone {
		a.reset("")
	}
	if b := a.breakers[evidence]; b != nil && b.by == of {
		a.reset(evidence)
	}
}

// readFailed decides what an error of a read stops.
func (a *admission) readFailed(evidence string, of about, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	var cert *flexi.CertError
	var fe *flexi.Error
	var quota *flexi.QuotaError
	var shut *flexi.ThrottledError
	var unlisted *unlistedError
	status := 0
	if errors.As(err, &fe) {
		status = fe.Status
	}
	switch {
	case errors.As(err, &quota):
		a.quotaUsedUp(quota)
	case errors.As(err, &shut):
		a.askedToWait(shut)
	case errors.As(err, &cert):
		a.trip(Stop{Reason: "certificate", Text: err.Error(), Remedy: cert.Hint}, outageMost, of)
	case errors.As(err, &unlisted):
		a.trip(Stop{Evidence: evidence, Reason: "right", Text: err.Error(),
			Remedy: "give the user the right to " + evidence + " in Flexi, and see that its module is switched on; " + flexi.RemedyStale}, outageMost, of)
	case status == 401:
		a.trip(Stop{Reason: "login", Text: err.Error(),
			Remedy: "set FLEXID_FLEXI_USER and FLEXID_FLEXI_PASSWORD (or _PASSWORD_FILE) to a user that may use the REST API"}, blockMost, of)
	case status == 402:
		a.trip(Stop{Reason: "licence", Text: err.Error(),
			Remedy: "the licence has no REST API for writing: order it, then nothing else is to be done"}, blockMost, of)
	case status == 404:
		a.trip(Stop{Evidence: evidence, Reason: "licence", Text: err.Error(),
			Remedy: "Flexi hides " + evidence + " (404), as it does without a licence for the REST API or without the module: check both"}, blockMost, of)
	case status == 403:
		a.trip(Stop{Evidence: evidence, Reason: "right", Text: err.Error(),
			Remedy: "give the user the right to " + evidence + " in Flexi; " + flexi.RemedyStale}, blockMost, of)
	case fe != nil && fe.Outcome == flexi.NotSent:
		a.unreached(err)
	default:
		a.answeredBadly(evidence, of, err)
	}
}

// unreached counts connections that did not come about, which no evidence can be blamed for.
func (a *admission) unreached(err error) {
	if a.unreachable++; a.unreachable >= badInARow {
		a.tripForOutage("", "Flexi cannot be reached", err, aboutRecords)
	}
}

// answeredBadly counts reads that were answered badly, or not at all. The fields of an evidence are asked for once, for all of
// its documents, and by then several times: one such failure is enough to stop that evidence.
func (a *admission) answeredBadly(evidence string, of about, err error) {
	enough := badInARow
	if of == aboutFields && evidence != "" {
		enough = 1
	}
	scope, stop := a.reads.bad(evidence, enough)
	if !stop {
		return
	}
	what := "Flexi cannot be read"
	if scope != "" {
		what = fmt.Sprintf("%s cannot be read", scope)
	}
	a.tripForOutage(scope, what, err, of)
}

// inARow is how many writes a streak has, in words for people.
func inARow() string { return strconv.Itoa(badInARow) }

// probe is the read that goes before the trial of a breaker.
func (e *Engine) probe(ctx context.Context, evidence string) error {
	e.called("probe")
	if _, err := e.o.ERP.List(ctx, flexi.Query{Evidence: evidence, Fields: []string{"id"}, Limit: 1}); err != nil {
		return fmt.Errorf("reading %s before the first write: %w", evidence, err)
	}
	return nil
}

// ReadEnded tells the engine how a request ended that somebody else made, such as a check of the company; nil is a good answer.
// It must be about Flexi as a whole, not about one record or evidence.
func (e *Engine) ReadEnded(err error) { e.admission.recordsRead("", err) }
