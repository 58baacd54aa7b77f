package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// Problem is an error of the API (RFC 9457) with what to do next.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"`
	// Retry: the same request may succeed later without anybody doing anything.
	Retry bool `json:"retry,omitempty"`
}

func (p *Problem) Error() string {
	if p.Next == "" {
		return p.Detail
	}
	return p.Detail + "; " + p.Next
}

func newProblem(status int, detail, next string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Next: next}
}

func (p *Problem) write(w http.ResponseWriter) {
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="flexid"`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	// The status is out; a client that went away needs no body.
	_ = json.NewEncoder(w).Encode(p)
}

// problemOf sorts an error of ledger or engine. What is not known here is a 500 with the words of the error: they come
// from our own packages, which print no secrets.
func problemOf(err error) *Problem {
	var (
		own      *Problem
		notFound *verify.NotFoundError
		decision *verify.DecisionError
		missing  *ledger.MissingError
		erp      *flexi.Error
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &notFound):
		return newProblem(http.StatusNotFound, notFound.Error(), "`flexid docs list` shows what is known")
	case errors.Is(err, ledger.ErrNoRow):
		return newProblem(http.StatusNotFound, "no such document in the ledger", "`flexid docs list` shows what is known")
	case errors.As(err, &decision):
		next := "nothing was changed; see `flexid docs show` for where the document stands"
		if decision.Writes {
			next = "nothing was changed"
		}
		p := newProblem(http.StatusConflict, decision.Text, next)
		p.Retry = decision.Retry
		return p
	case errors.As(err, &missing):
		detail := "the ledger bucket " + missing.Bucket + " is gone, and with it the knowledge of what was sent"
		return newProblem(http.StatusServiceUnavailable, detail, ledgerWaysOut)
	case errors.As(err, &erp):
		p := newProblem(http.StatusServiceUnavailable, err.Error(), "Flexi has to answer for this: `flexid doctor` says what is wrong")
		p.Retry = true
		return p
	case errors.Is(err, ledger.ErrNewer):
		return newProblem(http.StatusConflict, err.Error(), "a newer flexid wrote this row: use that version")
	}
	return newProblem(http.StatusInternalServerError, err.Error(), "")
}

const ledgerWaysOut = "restore NATS's files from a backup, or begin with an empty one (`flexid ledger accept-empty`)"
