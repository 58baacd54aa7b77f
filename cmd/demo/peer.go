package main

import (
	"net/http"

	"flexid/flexi"
)

// peer is what a client with the defaults of go-retryablehttp 0.7 would have done with the same script: 5 attempts, 1 s
// apart and doubling, again after every transport error, every 429 and every 5xx but 501, whatever the method. It is
// computed, not run. Two things are in its favour: the stale role is counted for the one document that the script names,
// though every write after it would fail too until somebody logs the user out; and a silent server is taken to break the
// connection at last, though that client has no deadline of its own. One is not: it posts the document alone. With an
// external id in the body a repeated create would change the first record instead of making a second one.
type peer struct {
	wire       int // requests
	duplicates int // records beyond the first
	gaveUp     int // events that end as an error although nothing is wrong with them
}

// retryMax is that client's default number of repetitions.
const retryMax = 4

// add plays one event: what goes wrong at its first send, and nothing after that.
func (p *peer) add(ev *event) {
	committed := 0
	for attempt := 0; attempt <= retryMax; attempt++ {
		p.wire++
		status, commits := http.StatusCreated, true
		switch {
		case ev.doc.refused:
			status, commits = http.StatusBadRequest, false
		case attempt == 0 && ev.mishap != nil:
			status, commits = ev.mishap.status, ev.mishap.commits
		}
		if commits {
			committed++
		}
		if again(status) {
			continue
		}
		if status >= 300 && !ev.doc.refused {
			p.gaveUp++
		}
		break
	}
	if ev.op == flexi.Create && committed > 1 {
		p.duplicates += committed - 1
	}
}

// again is that client's default policy; 0 stands for an error of the transport.
func again(status int) bool {
	return status == 0 || status == http.StatusTooManyRequests || status >= 500 && status != http.StatusNotImplemented
}
