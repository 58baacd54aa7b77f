package flexi

import (
	"errors"
	"fmt"
	"net/http"
)

// answer is everything that is known after a write was tried.
type answer struct {
	status int // 0 without a complete head
	header http.Header
	body   []byte
	whole  bool  // the body came to its end and under the size limit
	sent   int64 // bytes of the request that reached the connection
	err    error // of the transport

	received int64
	over     bool // the session it was asked with has ended
}

// The budgets of refusals that may mean a stale login or role: how many before it is taken for a refusal about us.
const (
	authRefusals    = 1
	messageRefusals = 2
	importRefusals  = 1
)

// verdict is what one row of the table decides; words are the reason in the error.
type verdict struct {
	outcome Outcome
	speaker Speaker
	scope   Scope
	refresh Refresh
	exists  bool
	whole   bool // holds for every document of the request
	odd     bool // a success that only a look can settle
	broken  bool // the fence did not hold
	remedy  string
	words   string
}

func maybe(s Speaker, words string) verdict { return verdict{speaker: s, words: words} }

// classify is the one place where an outcome is decided; DESIGN 3. What no row names is a maybe.
func classify(a answer, p Prepared, permit Permit) Result {
	env, isEnv := envelope{}, false
	if a.whole {
		env, isEnv = decodeEnvelope(a.body)
	}
	v := decide(a, p, permit, decoded{env, isEnv})
	r := Result{
		Outcome: v.outcome, Speaker: v.speaker, Scope: v.scope, Refresh: v.refresh, Status: a.status,
		Exists: v.exists, Whole: v.whole, Odd: v.odd, FenceBroken: v.broken, Remedy: v.remedy, Errors: env.all(),
		Docs: docResults(p, env, v.outcome),
	}
	if v.outcome == Rejected {
		r.Cause = causeOf(r.Errors)
		r.NeedLook = v.exists || !v.whole && needLook(r.Errors)
	}
	if v.outcome != Accepted {
		err := a.err
		if err == nil || v.words != "" {
			err = reason(v.words, a.err)
		}
		r.Err = &Error{
			Op: string(p.write.Op) + " " + p.write.Evidence, Status: a.status, Outcome: v.outcome,
			Messages: r.Errors, Err: err,
		}
	}
	return r
}

func reason(words string, err error) error {
	if err == nil {
		return errors.New(words)
	}
	return fmt.Errorf("%s: %w", words, err)
}

// decoded is the ERP's envelope, ok if the body is one.
type decoded struct {
	envelope
	ok bool
}

// decide is the table: rows by status, in each the envelope.
func decide(a answer, p Prepared, permit Permit, d decoded) verdict {
	switch s := a.status; {
	case s == 0 && a.sent == 0:
		return verdict{outcome: NotSent, words: "nothing was sent"}
	case s == 0:
		return maybe(NoAnswer, "no answer")
	case s == http.StatusTooManyRequests, s == http.StatusMisdirectedRequest, s == http.StatusTooEarly:
		return verdict{outcome: Refused, words: "the ERP refused before doing anything"}
	case s == http.StatusUnauthorized && permit.PriorAuth < authRefusals:
		return verdict{outcome: Refused, refresh: RefreshUser, words: "the ERP refused the login"}
	case s == http.StatusUnauthorized:
		return blocked(ScopeAll, remedyLogin)
	case s == http.StatusPaymentRequired:
		return blocked(ScopeAll, remedyLicence)
	case s == http.StatusForbidden:
		return blocked(ScopeEvidence, fmt.Sprintf(remedyRights, p.write.Evidence))
	case s == http.StatusRequestTimeout:
		return maybe(NoAnswer, "the server gave up waiting; what for is not known")
	case s >= 400 && s < 500:
		return clientError(a, p, permit, d)
	case (s == 500 || s == 503) && d.ok:
		return maybe(ServerError, "the ERP failed; whether it had saved is not known")
	case s == 503 && a.whole:
		return maybe(Proxy, "something in front of the ERP answered for it")
	case successStatus(s):
		return success(a, p, permit, d)
	case s >= 300 && s < 400:
		return maybe(NoAnswer, "a redirect, which is not followed: "+a.header.Get("Location"))
	}
	return maybe(NoAnswer, "an answer that proves nothing")
}

// clientError is a 4xx that is not decided by its status alone.
func clientError(a answer, p Prepared, permit Permit, d decoded) verdict {
	switch {
	case !d.ok:
		return maybe(NoAnswer, "not the ERP's envelope: some other box may have answered")
	case d.counted() || d.success:
		return maybe(NoAnswer, "an error that counts something done")
	case a.status == 404 || a.status == 405 || a.status == 406:
		return blocked(ScopeEvidence, fmt.Sprintf(remedyEvidence, p.write.Evidence))
	case saysNoImport(d.all()):
		return notImportable(p, permit)
	case p.write.Op == Create && saysExists(d.all()):
		return verdict{outcome: Rejected, exists: true, words: "a record with this identifier exists already"}
	case len(d.recordErrors()) > 0, saysAbsent(d.all()):
		return rejected()
	case a.status != http.StatusBadRequest:
		return maybe(NoAnswer, "an error that names no record")
	case len(d.messages) == 0:
		return maybe(NoAnswer, "an error without a word")
	case permit.PriorMessage < messageRefusals:
		return verdict{outcome: Refused, refresh: RefreshUser, words: "an error about the request, perhaps a stale role"}
	}
	// It may be about this document, or about its evidence: who sees what else is refused closes more.
	return blocked(ScopeEvidence, remedyMessage)
}

// notImportable is a refusal of everything that this request could ever do in its evidence: no document of another evidence
// may wait for it, and the documents of the request need not be told apart. A stale role is refused in the same words, and it
// may be stale again a moment after our user's context was renewed: each document has its own second try.
func notImportable(p Prepared, permit Permit) verdict {
	if permit.PriorMessage < importRefusals {
		return verdict{outcome: Refused, refresh: RefreshUser, words: "no import into " + p.write.Evidence + ", unless the role is stale"}
	}
	return verdict{outcome: Rejected, whole: true, words: "the ERP takes no import into " + p.write.Evidence}
}

func rejected() verdict { return verdict{outcome: Rejected, words: "the ERP rejected the document"} }

func blocked(s Scope, remedy string) verdict {
	return verdict{outcome: Blocked, scope: s, remedy: remedy, words: remedy}
}

// RemedyStale is what an operator may have to do where rights seem to be missing that the user has.
const RemedyStale = "if the user has all that, its role is perhaps stale: Flexi goes by the old one until the user is logged out there " +
	"(POST /status/user/LOGIN/logout)"

// What an operator has to do when writes are blocked.
const (
	remedyLogin    = "the ERP refuses the login: check FLEXID_FLEXI_USER and FLEXID_FLEXI_PASSWORD, then flexid writes resume"
	remedyLicence  = "the ERP's licence has no REST API for writing (402): extend it with the vendor, then flexid writes resume"
	remedyRights   = "the ERP forbids our user to write %s (403): give the user the right to it, or a licence that has it; " + RemedyStale
	remedyEvidence = "the ERP does not take writes to %s: it is unknown, switched off, or hidden by licence or rights; " + RemedyStale
	remedyMessage  = "the ERP refuses the request without naming a record, also after the login was renewed: read its words, " +
		"check the rights of our user and the company, then flexid writes resume"
	remedyGuard = "flexid was about to send one attempt twice and stopped itself: report it, then flexid writes resume"
)

func needLook(ms []Message) bool {
	for _, m := range ms {
		if aboutIdentity(m) {
			return true
		}
	}
	return len(ms) == 0
}
