package verify

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"flexid/flexi"
)

// The gate stops new writes while they would only become maybes (an outage) or be refused for a reason that is ours (login,
// licence, rights). It parks nothing: documents stay queued. A closed door opens when a read gets through and then one
// document, sent alone, is accepted or rejected. After one that failed the next comes from the other end of the queue, so
// that a run of documents which no ERP takes cannot keep a door shut.
type gate struct {
	s    Settings
	now  func() time.Time
	rand func() float64
	say  func(event string, fields ...[2]string)

	mu       sync.Mutex
	doors    map[string]*door // "" = all evidences; only closed ones are kept
	holds    map[hold]GateStatus
	limit    float64
	flying   int
	line     []*entry      // who waits for a place, in the order of their events
	freed    chan struct{} // closed and renewed when those in line have to look again
	bad      int           // maybes in a row, of documents without an earlier one
	reads    int           // failed reads in a row
	accepted map[string]int
	opened   func()                                         // wakes the documents that wait for a door
	waiting  func(passable func(evidence string) bool) bool // some document behind a door of such an evidence could try it
}

// door is closed automatically and opens by itself.
type door struct {
	GateStatus
	pause   time.Duration
	most    time.Duration
	canary  bool
	byRead  bool      // closed by failed reads alone: a read that gets through opens it
	fromEnd bool      // the next to try comes from the end of the queue
	fetched time.Time // when a document was last fetched to try
}

// hold is one reason for which only a person opens.
type hold struct{ evidence, reason string }

// Most pauses of a closed door.
const (
	outageMost = time.Minute
	blockMost  = 15 * time.Minute
	badInARow  = 3
)

func newGate(s Settings, now func() time.Time, rand func() float64, say func(string, ...[2]string)) *gate {
	return &gate{
		s: s, now: now, rand: rand, say: say, doors: map[string]*door{}, holds: map[hold]GateStatus{},
		limit: 1, freed: make(chan struct{}), accepted: map[string]int{}, opened: func() {},
		waiting: func(func(string) bool) bool { return false },
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// shut is the closed door in the way of an evidence, the whole one first.
func (g *gate) shut(evidence string) *door {
	if d := g.doors[""]; d != nil {
		return d
	}
	return g.doors[evidence]
}

// leave ends a pass. res is nil when nothing was sent for a reason of our own (lost claim, stop).
func (g *gate) leave(p *pass, res *flexi.Result, sullied bool) {
	g.mu.Lock()
	g.flying--
	if p.canary != nil {
		p.canary.canary = false
	}
	var said func()
	if res != nil {
		said = g.learn(p, res, sullied)
	}
	g.wake()
	g.mu.Unlock()
	if said != nil {
		said()
	}
}

// learn moves limit and doors by what became of a write. It returns what to say once the lock is free.
func (g *gate) learn(p *pass, res *flexi.Result, sullied bool) func() {
	switch res.Outcome {
	case flexi.Accepted, flexi.Rejected:
		if res.Outcome == flexi.Accepted {
			g.accepted[p.evidence]++
		}
		g.bad, g.reads = 0, 0
		g.limit = min(g.limit+1/g.limit, float64(g.s.Concurrency))
		if d := p.canary; d != nil && g.doors[d.Evidence] == d { // what was shut anew meanwhile is another door
			return g.open(d.Evidence)
		}
	case flexi.Maybe:
		g.limit = max(1, g.limit/2)
		if !sullied {
			g.bad++
		}
		if p.canary != nil {
			p.canary.fromEnd = !p.canary.fromEnd
			g.grow(p.canary)
		} else if g.bad >= badInARow {
			return g.shutAll("outage", "Flexi did not answer "+strconv.Itoa(g.bad)+" writes in a row as it should", res.Err, false)
		}
	case flexi.Refused:
		g.limit = max(1, g.limit/2)
		if p.canary != nil {
			p.canary.NextTry = g.now().Add(res.Wait)
		}
	case flexi.NotSent:
		if p.canary != nil {
			g.grow(p.canary)
		} else if g.reads++; g.reads >= badInARow {
			return g.shutAll("outage", "Flexi cannot be reached", res.Err, true)
		}
	case flexi.Blocked:
		evidence := ""
		if res.Scope == flexi.ScopeEvidence {
			evidence = p.evidence
		}
		st := GateStatus{Evidence: evidence, Reason: blockReason(res.Status), Text: text(res.Err), Remedy: res.Remedy}
		return g.close(st, blockMost, false)
	}
	return nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func blockReason(status int) string {
	switch status {
	case 401:
		return "login"
	case 402:
		return "licence"
	case 403:
		return "right"
	}
	return "refused"
}

func (g *gate) shutAll(reason, what string, err error, byRead bool) func() {
	if err != nil {
		what += ": " + err.Error()
	}
	return g.close(GateStatus{Reason: reason, Text: what, Remedy: "nothing to do: flexid tries again by itself"}, outageMost, byRead)
}

// close shuts a door, or lets the pause of a shut one grow.
func (g *gate) close(st GateStatus, most time.Duration, byRead bool) func() {
	if d := g.doors[st.Evidence]; d != nil {
		d.Reason, d.Text, d.Remedy, d.byRead, d.most = st.Reason, st.Text, st.Remedy, d.byRead && byRead, most
		g.grow(d)
		return nil
	}
	st.Since = g.now()
	d := &door{GateStatus: st, pause: g.s.Probe, most: most, byRead: byRead}
	d.NextTry = g.now().Add(d.pause)
	g.doors[st.Evidence] = d
	g.bad = 0
	g.wake()
	return func() { g.say("writes stopped", st.fields()...) }
}

// quotaUsedUp shuts the door for all until the budget of requests has been filled again. Reads that its reserve still allows
// do not open it; the first document after the reset does.
func (g *gate) quotaUsedUp(quota *flexi.QuotaError) func() {
	return g.closeUntil(quota.Until, false, GateStatus{Reason: "quota", Text: quota.Error(),
		Remedy: "nothing to do: the documents wait and go on by themselves; a higher budget is FLEXID_FLEXI_DAILY_REQUESTS, if the licence has it"})
}

// askedToWait shuts the door for all when Flexi wants no requests for a while (429). The client's own door tells everyone
// when to come; this one keeps the queue from asking it again and again.
func (g *gate) askedToWait(shut *flexi.ShutError) func() {
	if shut.Until.Sub(g.now()) <= g.s.Probe {
		return nil
	}
	return g.closeUntil(shut.Until, true, GateStatus{Reason: "patience", Text: shut.Error(),
		Remedy: "nothing to do: the documents wait and go on by themselves"})
}

func (g *gate) closeUntil(until time.Time, byRead bool, st GateStatus) func() {
	until = g.now().Add(until.Sub(g.now())) // the end of a day is of the wall clock, which may be set
	if d := g.doors[""]; d != nil && d.Reason == st.Reason {
		d.NextTry = later(d.NextTry, until)
		return nil
	}
	said := g.close(st, outageMost, byRead)
	d := g.doors[""]
	d.pause, d.NextTry = g.s.Probe, until
	return said
}

// grow makes the pause longer, with full jitter on the upper half.
func (g *gate) grow(d *door) {
	d.pause = min(2*d.pause, d.most)
	d.NextTry = g.now().Add(d.pause/2 + time.Duration(g.rand()*float64(d.pause/2)))
}

func (g *gate) open(evidence string) func() {
	d := g.doors[evidence]
	if d == nil {
		return nil
	}
	delete(g.doors, evidence)
	if g.bad, g.reads = 0, 0; evidence == "" { // writes of other evidences went on and know what Flexi can take
		g.limit = 1
	}
	for _, rest := range g.doors { // what is still shut may be tried at once
		rest.NextTry = g.now()
	}
	g.wake()
	return func() {
		g.say("writes go on", d.fields()...)
		g.opened()
	}
}

// read tells the gate how a read ended: some errors of reads would only be met again by a write.
func (g *gate) read(evidence string, err error) {
	g.mu.Lock()
	var said []func()
	if err == nil {
		g.reads = 0
		for _, name := range []string{"", evidence} {
			if d := g.doors[name]; d != nil && d.byRead {
				said = append(said, g.open(name))
			}
		}
	} else if f := g.readFailed(evidence, err); f != nil {
		said = append(said, f)
	}
	g.mu.Unlock()
	for _, say := range said {
		say()
	}
}

func (g *gate) readFailed(evidence string, err error) func() {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	var cert *flexi.CertError
	var fe *flexi.Error
	var quota *flexi.QuotaError
	var shut *flexi.ShutError
	switch {
	case errors.As(err, &quota):
		return g.quotaUsedUp(quota)
	case errors.As(err, &shut):
		return g.askedToWait(shut)
	case errors.As(err, &cert):
		return g.close(GateStatus{Reason: "certificate", Text: err.Error(), Remedy: cert.Hint}, outageMost, true)
	case errors.As(err, &fe) && fe.Status == 401:
		return g.close(GateStatus{Reason: "login", Text: err.Error(),
			Remedy: "set FLEXID_FLEXI_USER and FLEXID_FLEXI_PASSWORD (or _PASSWORD_FILE) to a user that may use the REST API"}, blockMost, true)
	case errors.As(err, &fe) && fe.Status == 402:
		return g.close(GateStatus{Reason: "licence", Text: err.Error(),
			Remedy: "the licence has no REST API for writing: order it, then nothing else is to be done"}, blockMost, true)
	case errors.As(err, &fe) && fe.Status == 404:
		return g.close(GateStatus{Evidence: evidence, Reason: "licence", Text: err.Error(),
			Remedy: "Flexi hides " + evidence + " (404), as it does without a licence for the REST API or without the module: check both"}, blockMost, true)
	case errors.As(err, &fe) && fe.Status == 403:
		return g.close(GateStatus{Evidence: evidence, Reason: "right", Text: err.Error(),
			Remedy: "give the user the right to " + evidence + " in Flexi"}, blockMost, true)
	}
	if g.reads++; g.reads >= badInARow {
		return g.shutAll("outage", "Flexi cannot be read", err, true)
	}
	return nil
}

// acceptedOf counts accepted writes of an evidence: whether others go through while one document is blocked.
func (g *gate) acceptedOf(evidence string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.accepted[evidence]
}

// probe is the read that goes before the document that tries a closed door.
func (e *Engine) probe(ctx context.Context, evidence string) error {
	e.called("probe")
	if _, err := e.o.ERP.List(ctx, flexi.Query{Evidence: evidence, Fields: []string{"id"}, Limit: 1}); err != nil {
		return fmt.Errorf("reading %s before the first write: %w", evidence, err)
	}
	return nil
}
