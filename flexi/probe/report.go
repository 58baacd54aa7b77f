package probe

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"flexid/flexi"
)

// Tally is the client's count. Safe for concurrent use.
type Tally struct {
	mu       sync.Mutex
	requests []flexi.Request
}

// Observe counts one wire request; it is meant for flexi.Options.Observe.
func (t *Tally) Observe(r flexi.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = append(t.requests, r)
}

func (t *Tally) all() []flexi.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}

// Report is what a probe measured.
type Report struct {
	LogicalCalls   int  `json:"logical_calls"`
	WireRequests   int  `json:"wire_requests"`   // as the client counted
	ServerRequests *int `json:"server_requests"` // as the server counted; nil where nobody counts there
	// Amplification is requests by calls: the larger of the two counts, since a hidden repeat is load all the same.
	Amplification float64 `json:"amplification"`
	SpentSeconds  float64 `json:"spent_seconds"` // from the first call to the last outcome: what a caller waited, pauses too
	// AttemptSeconds is the sum of the attempts, without the waits between them.
	AttemptSeconds float64 `json:"attempt_seconds"`
	ElapsedMillis  int64   `json:"elapsed_ms"` // the same as SpentSeconds
	// Outcome is how the last call ended: ok of a read; accepted of a write; else one of flexi's outcomes.
	Outcome string `json:"outcome"`
	// Outcomes counts how all calls ended.
	Outcomes map[string]int `json:"outcomes"`
	Error    string         `json:"error,omitempty"` // of the last call, in words
	// WaitMillis is how long the last write, if the ERP refused it or wanted none, has to wait in the queue.
	WaitMillis int64 `json:"wait_ms,omitempty"`
	// Commits is how many writes the scripted server counts as done; nil where nobody counts there.
	Commits *int `json:"commits,omitempty"`
	// Mismatch says what the difference of the two counts means; "" where they agree or only one is known.
	Mismatch string          `json:"mismatch,omitempty"`
	Requests []flexi.Request `json:"requests"`
}

// measure fills in what the client counted.
func (r *Report) measure(t *Tally, elapsed time.Duration) {
	r.Requests = t.all()
	r.WireRequests = len(r.Requests)
	var spent time.Duration
	for _, q := range r.Requests {
		spent += q.Duration
	}
	r.SpentSeconds, r.AttemptSeconds = elapsed.Seconds(), spent.Seconds()
	r.ElapsedMillis = elapsed.Milliseconds()
	r.amplify(r.WireRequests)
}

// Compare puts the server's count beside the client's.
func (r *Report) Compare(requests, commits int) {
	r.ServerRequests, r.Commits = &requests, &commits
	r.amplify(max(requests, r.WireRequests))
	switch {
	case requests > r.WireRequests:
		r.Mismatch = fmt.Sprintf("a hidden retry layer: the server received %d requests, the client sent %d", requests, r.WireRequests)
	case requests < r.WireRequests:
		r.Mismatch = fmt.Sprintf("requests were lost, or something on the way answered for the server: it received %d, the client sent %d",
			requests, r.WireRequests)
	}
}

func (r *Report) amplify(requests int) {
	if r.LogicalCalls > 0 {
		r.Amplification = float64(requests) / float64(r.LogicalCalls)
	}
}

// Clean reports whether every call ended as asked and no count contradicts another.
func (r *Report) Clean() bool {
	return r.Mismatch == "" && r.LogicalCalls > 0 && r.Outcomes[readOK]+r.Outcomes[flexi.Accepted.String()] == r.LogicalCalls
}
