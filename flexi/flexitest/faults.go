package flexitest

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"time"
)

// FaultKind is what goes wrong with one request.
type FaultKind uint8

// The faults. Those named in pairs are one fault, not done and done; for all others Fault.Done says whether the server
// did the work.
const (
	Healthy            FaultKind = iota
	RefuseConnection             // closed before anything is read
	TooMany                      // 429, with RetryAfter if it is set
	StaleRole                    // 400 with a bare message, until the user is logged out
	Unauthorized                 // 401
	ServerError                  // Status: 500, 502, 503, 504, or any other
	CommitThenStatus             // ServerError, done
	ResetBefore                  // reset before the body is read (Done: read by a proxy, and carried out)
	ResetMiddle                  // reset after Bytes of the body (0 = the headers only)
	ResetAnswer                  // reset instead of an answer
	ResetAfterCommit             // ResetAnswer, done
	Silence                      // no answer until the client leaves, or for Delay
	SilenceAfterCommit           // Silence, done
	HalfAnswer                   // Bytes of the answer's body (0 = half), then the end of the connection
	HTML200                      // a page for people behind a 200
	OtherDocument                // an answer that names another document
	LateCommit                   // Status now (0 = reset), committed Delay later
	SlowBody                     // the answer in pieces of Bytes (16), Delay (1 s) apart
	ResponseDelay                // done at once, answered Delay later
	Redirect                     // Status 301 to 308 to Location
)

// Says is what the body of an error answer looks like.
type Says uint8

// The voices of an error answer.
const (
	Auto     Says = iota // the ERP's envelope for 4xx and 500, a proxy's page for the rest
	Envelope             // the ERP's envelope
	Page                 // a proxy's HTML
	Nothing              // no body
)

// Fault is one thing that goes wrong. Delay is waited before the answer, after the commit if there is one.
type Fault struct {
	Kind       FaultKind
	Done       bool // the work was done nevertheless
	Status     int
	RetryAfter string
	Location   string
	Says       Says
	Delay      time.Duration
	Bytes      int
	Unbounded  bool // HalfAnswer without Content-Length: the cut cannot be seen but by reading the content
	HoldLock   bool // LateCommit: other writes wait for it, as they would for its row locks
}

// String names the fault as the request log shows it, e.g. "500 done".
func (f Fault) String() string {
	f = f.plain()
	name := [...]string{
		"healthy", "refuse connection", "429", "stale role", "401", "error", "error", "reset before", "reset middle",
		"reset answer", "reset answer", "silence", "silence", "half answer", "html 200", "other document", "late commit",
		"slow body", "response delay", "redirect",
	}[f.Kind]
	if f.Kind == ServerError || f.Kind == Redirect {
		name = fmt.Sprint(f.Status)
	}
	if f.Done {
		name += " done"
	}
	return name
}

// plain turns the named pairs into kind and Done, and fills in defaults.
func (f Fault) plain() Fault {
	switch f.Kind {
	case CommitThenStatus:
		f.Kind, f.Done = ServerError, true
	case ResetAfterCommit:
		f.Kind, f.Done = ResetAnswer, true
	case SilenceAfterCommit:
		f.Kind, f.Done = Silence, true
	}
	switch {
	case f.Kind == ServerError && f.Status == 0:
		f.Status = http.StatusInternalServerError
	case f.Kind == Redirect && f.Status == 0:
		f.Status = http.StatusTemporaryRedirect
	}
	return f
}

// commits says whether the server carries the request out before (or although) the fault strikes.
func (f Fault) commits() bool {
	switch f.Kind {
	case Healthy, SlowBody, ResponseDelay, StaleRole:
		return true
	}
	return f.Done
}

// cutsBody says whether the fault strikes before the whole body was read.
func (f Fault) cutsBody() bool {
	switch f.Kind {
	case RefuseConnection, ResetBefore, ResetMiddle:
		return !f.Done
	}
	return false
}

type rule struct {
	nth   int
	match func(Request) bool
	p     float64
	fault Fault
	seen  map[string]int
}

// faultPlan is what shall go wrong. It is guarded by Server.mu.
type faultPlan struct {
	writes, reads []Fault
	rules         []*rule
	refuse        int
}

// scripted takes the next fault of a script; false when the script is over.
func (p *faultPlan) scripted(kind string) (Fault, bool) {
	script := &p.writes
	if kind == Read {
		script = &p.reads
	}
	if kind == Other || len(*script) == 0 {
		return Fault{}, false
	}
	f := (*script)[0].plain()
	*script = (*script)[1:]
	return f, true
}

// pick counts the documents of a write for every rule; the first rule that fits gives the fault.
func (p *faultPlan) pick(r Request, seed uint64) Fault {
	var out Fault
	for i, rule := range p.rules {
		for _, doc := range r.Docs {
			one := r
			one.Docs = []Doc{doc}
			if rule.match != nil && !rule.match(one) {
				continue
			}
			rule.seen[doc.ID()]++
			if out.Kind == Healthy && rule.strikes(i, seed, doc.ID()) {
				out = rule.fault.plain()
			}
		}
	}
	return out
}

func (r *rule) strikes(index int, seed uint64, id string) bool {
	n := r.seen[id]
	if r.nth > 0 {
		return n == r.nth
	}
	if r.p == 0 {
		return true
	}
	// Chance hangs on the document and how often it was sent, not on the order in which requests arrive: two runs with
	// one seed go wrong at the same documents.
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d/%s/%d", index, id, n)
	return float64(mix(seed, h.Sum64())>>11)/(1<<53) < r.p
}

// OnWrite lets f happen to the n-th write (from 1; 0 = every one) of each document for which match says so. match sees
// the request with that one document in Docs; it must not call the server. Of several rules the first that fits strikes.
func (s *Server) OnWrite(n int, match func(Request) bool, f Fault) {
	s.addRule(&rule{nth: n, match: match, fault: f})
}

// Probability lets f happen to writes with probability p, decided by Options.Seed, the document and how often it was sent.
func (s *Server) Probability(p float64, f Fault) {
	if p > 0 {
		s.addRule(&rule{p: p, fault: f})
	}
}

func (s *Server) addRule(r *rule) {
	r.seen = map[string]int{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.rules = append(s.faults.rules, r)
}

// Script lets the faults happen to the next writes, in order; a zero Fault is a healthy answer. A scripted write is not
// counted by OnWrite. RefuseConnection at the head closes the next new connection, whatever it was meant for.
func (s *Server) Script(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.writes = append(s.faults.writes, faults...)
}

// ScriptReads is Script for reads of records.
func (s *Server) ScriptReads(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.reads = append(s.faults.reads, faults...)
}

// RefuseConnections closes the next n connections before a byte is read.
func (s *Server) RefuseConnections(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.refuse += n
}

// NoFaults forgets all scripts and rules; standing modes stay.
func (s *Server) NoFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faultPlan{}
}

func (s *Server) refusesConn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p := &s.faults; {
	case s.modes.down || s.closed:
		return true
	case p.refuse > 0:
		p.refuse--
		return true
	case len(p.writes) > 0 && p.writes[0].Kind == RefuseConnection && !p.writes[0].Done:
		p.writes = p.writes[1:]
		return true
	case len(p.reads) > 0 && p.reads[0].Kind == RefuseConnection:
		p.reads = p.reads[1:]
		return true
	}
	return false
}
