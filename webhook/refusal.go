package webhook

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Reasons of refusals, as metrics and log name them.
const (
	reasonSignature = "signature"
	reasonStale     = "stale"
	reasonMalformed = "malformed"
	reasonContent   = "content"
	reasonSize      = "size"
	reasonType      = "type"
	reasonSlow      = "slow"
	reasonRate      = "rate"
	reasonInFlight  = "inflight"
	reasonNetwork   = "network"
	reasonPath      = "path"
	reasonMethod    = "method"
	reasonClash     = "clash"
	reasonStore     = "store"
)

// Refusal is an answer other than 2xx. Detail goes to the sender: no part of a secret, an expected signature or the body
// may stand in it.
type Refusal struct {
	Status int
	Reason string
	Detail string
	Retry  int   // seconds for Retry-After, 0 = none
	Err    error // for the log
}

func refuse(status int, reason, detail string) *Refusal {
	return &Refusal{Status: status, Reason: reason, Detail: detail}
}

func (r *Refusal) Error() string {
	if r.Err != nil {
		return r.Detail + ": " + r.Err.Error()
	}
	return r.Detail
}

func (r *Refusal) Unwrap() error { return r.Err }

// problem is RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func (r *Refusal) write(w http.ResponseWriter) {
	h := w.Header()
	switch r.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="flexid"`)
	case http.StatusMethodNotAllowed:
		h.Set("Allow", http.MethodPost)
	case http.StatusRequestTimeout:
		h.Set("Connection", "close") // the rest of the body is still to come
	}
	if r.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(r.Retry))
	}
	slug := r.Reason
	if slug == reasonStale {
		slug = reasonSignature // which of the two it was is nobody's business
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(r.Status)
	// The status is out; a sender that went away needs no body.
	_ = json.NewEncoder(w).Encode(problem{"urn:flexid:problem:" + slug, http.StatusText(r.Status), r.Status, r.Detail})
}
