package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
)

// mishap is one way in which the first send of a write goes wrong.
type mishap struct {
	name    string
	fault   flexitest.Fault
	commits bool    // the document is written nevertheless, now or later
	status  int     // what a client is told; 0 = no answer
	share   float64 // of all writes
}

// lateBy is when a write that was answered with a 504 takes effect after all. It is shorter than the settle time, which is
// the promise that the settle time stands for.
const lateBy = 4 * time.Second

func mishaps() []*mishap {
	return []*mishap{
		{name: "committed, then a 500", commits: true, status: 500, share: 0.03, fault: flexitest.Fault{Kind: flexitest.CommitThenStatus}},
		{name: "committed, connection reset", commits: true, share: 0.03, fault: flexitest.Fault{Kind: flexitest.ResetAfterCommit}},
		{name: "committed, the answer is lost", commits: true, share: 0.015, fault: flexitest.Fault{Kind: flexitest.SilenceAfterCommit}},
		{name: "a 504, committed 4 s later", commits: true, status: 504, share: 0.02,
			fault: flexitest.Fault{Kind: flexitest.LateCommit, Status: http.StatusGatewayTimeout, Delay: lateBy}},
		{name: "a 500, not done", status: 500, share: 0.03, fault: flexitest.Fault{Kind: flexitest.ServerError}},
		{name: "silence, not done", share: 0.01, fault: flexitest.Fault{Kind: flexitest.Silence}},
		{name: "429, Retry-After 1 s", status: 429, share: 0.025, fault: flexitest.Fault{Kind: flexitest.TooMany, RetryAfter: "1"}},
		{name: "400, stale role", status: 400, share: 0.01, fault: flexitest.Fault{Kind: flexitest.StaleRole}},
	}
}

// drawMishaps deals the mishaps out, each at least once. Partners are spared because whole families of invoices would
// wait for one; so are the two documents with a part of their own. The mishaps are spread over the piece: three maybes in
// a row are an outage to flexid, which then pauses all writes, and bursts would make the run one of pauses.
func (p *piece) drawMishaps(r *rand.Rand) {
	var free []*event
	for _, ev := range p.events {
		if ev.doc.evidence != "adresar" && !ev.doc.vital() {
			free = append(free, ev)
		}
	}
	var deck []*mishap
	for _, m := range mishaps() {
		for range max(1, int(m.share*float64(len(p.events))+0.5)) {
			deck = append(deck, m)
		}
	}
	r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	for i, m := range deck[:min(len(deck), len(free))] {
		// One place in each of as many equal stretches as there are mishaps.
		from, to := i*len(free)/len(deck), (i+1)*len(free)/len(deck)
		if to > from {
			free[from+r.IntN(to-from)].mishap = m
		}
	}
}

// install makes the fake go wrong as the piece says: at the first write of each event.
func (p *piece) install(erp *flexitest.Server) {
	for _, ev := range p.events {
		if ev.mishap != nil {
			erp.OnWrite(1, ev.matches, ev.mishap.fault)
		}
	}
}

// matches says whether a request is this event's: about its document, and the same operation. Two updates of one document
// are told apart by what they set.
func (ev *event) matches(r flexitest.Request) bool {
	if len(r.Docs) == 0 || r.Docs[0].Evidence != ev.doc.evidence || !r.Has(ev.doc.ext) {
		return false
	}
	create := bytes.Contains(r.Body, []byte(`"@update":"fail"`))
	storno := bytes.Contains(r.Body, []byte(`"@action":"storno"`))
	switch ev.op {
	case flexi.Create:
		return create
	case flexi.Storno:
		return storno
	}
	return !create && !storno && ev.changes(r.Body)
}

// changes says whether a request sets what the event sets.
func (ev *event) changes(request []byte) bool {
	var sent struct {
		Winstrom map[string]json.RawMessage `json:"winstrom"`
	}
	var records []map[string]json.RawMessage
	var want map[string]json.RawMessage
	if json.Unmarshal(request, &sent) != nil || json.Unmarshal(sent.Winstrom[ev.doc.evidence], &records) != nil ||
		json.Unmarshal(ev.body, &want) != nil {
		return false
	}
	return slices.ContainsFunc(records, func(r map[string]json.RawMessage) bool {
		for name, v := range want {
			if !bytes.Equal(r[name], v) {
				return false
			}
		}
		return len(want) > 0
	})
}
