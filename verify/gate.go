package verify

import (
	"sync"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// The gate stops new writes while they would only become maybes (an outage) or be refused for a reason that is ours (login,
// licence, rights). It parks nothing: documents stay queued. What an error shows decides how much stops: one evidence, or all
// only where different evidences fail. A closed door opens when a read gets through and then one document, sent alone, is
// accepted or rejected. After one that failed the next comes from the other end of the queue, so that a run of documents
// which no ERP takes cannot keep a door shut.
type gate struct {
	s    Settings
	now  func() time.Time
	rand func() float64
	say  func(event string, fields ...[2]string)

	mu          sync.Mutex
	doors       map[string]*door // "" = all evidences; only closed ones are kept
	holds       map[hold]GateStatus
	limit       float64
	flying      int
	trials      int           // of those: they try the door of one evidence, and take nobody's place
	line        []*entry      // who waits for a place, in the order of their events
	freed       chan struct{} // closed and renewed when those in line have to look again
	writes      streak        // maybes in a row, of documents without an earlier one
	blocks      streak        // refusals in a row that name no record
	reads       streak        // failed reads in a row
	unreachable int           // connections in a row that did not come about
	pending     []*pending
	accepted    map[string]int
	news        []func()                                                    // to be said once the lock is free
	opened      func()                                                      // wakes the documents that wait for a door
	waiting     func(passable func(evidence string) bool) bool              // some document behind a door of such an evidence could try it
	learnt      func(n int, r *flexi.Result, took time.Duration, done bool) // how large requests do
}

// door is closed automatically and opens by itself.
type door struct {
	GateStatus
	pause   time.Duration
	most    time.Duration
	canary  bool
	by      about     // closed by failed reads of that part alone: one that gets through opens it
	fromEnd bool      // the next to try comes from the end of the queue
	fetched time.Time // when a document was last fetched to try
	lost    bool      // the last one that tried had no bad outcome before, and failed: one that had may try now
	wanted  time.Time // when such a one last asked
}

// about is what of Flexi a read was about. What one part shows proves nothing of another: an evidence whose fields cannot be
// read may well list its records.
type about uint8

const (
	aboutNone about = iota
	aboutRecords
	aboutFields
)

// hold is one reason for which only a person opens.
type hold struct{ evidence, reason string }

// Most pauses of a closed door.
const (
	outageMost = time.Minute
	blockMost  = 15 * time.Minute
)

func newGate(s Settings, now func() time.Time, rand func() float64, say func(string, ...[2]string)) *gate {
	return &gate{
		s: s, now: now, rand: rand, say: say, doors: map[string]*door{}, holds: map[hold]GateStatus{},
		limit: 1, freed: make(chan struct{}), writes: newStreak(), blocks: newStreak(), reads: newStreak(),
		accepted: map[string]int{}, opened: func() {},
		waiting: func(func(string) bool) bool { return false },
		learnt:  func(int, *flexi.Result, time.Duration, bool) {},
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// unlock frees the gate and says what happened: whoever listens may ask the gate in turn.
func (g *gate) unlock() {
	news := g.news
	g.news = nil
	g.mu.Unlock()
	for _, say := range news {
		say()
	}
}

// tell has something said by the next unlock.
func (g *gate) tell(say func()) { g.news = append(g.news, say) }

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
	defer g.unlock()
	g.flying--
	if d := p.canary; d != nil {
		d.canary = false
		if d.Evidence != "" {
			g.trials--
		}
	}
	if res != nil {
		g.learn(p, res, sullied)
	}
	g.wake()
}

// learn moves limit and doors by what became of a write.
func (g *gate) learn(p *pass, res *flexi.Result, sullied bool) {
	switch res.Outcome {
	case flexi.Accepted, flexi.Rejected:
		if res.Outcome == flexi.Accepted {
			g.accepted[p.evidence]++
			g.blocks.good(p.evidence)
		}
		g.learnt(p.docs(), res, p.took, true)
		g.good(p)
	case flexi.Maybe:
		g.doubt(p, res, sullied)
	case flexi.Refused:
		g.limit = max(1, g.limit/2)
		if p.canary != nil {
			p.canary.NextTry = g.now().Add(res.Wait)
		}
	case flexi.NotSent:
		if p.canary != nil {
			g.grow(p.canary)
		} else {
			g.unreached(res.Err)
		}
	case flexi.Blocked:
		g.blocked(p, res, sullied)
	}
}

// good: Flexi did what it was asked, or said why not.
func (g *gate) good(p *pass) {
	g.writes.good(p.evidence)
	g.reads.good(p.evidence)
	g.unreachable = 0
	g.limit = min(g.limit+1/g.limit, float64(g.s.Concurrency))
	if d := p.canary; d != nil && g.doors[d.Evidence] == d { // what was shut anew meanwhile is another door
		g.open(d.Evidence)
	}
}

// blocked closes the door that a refusal about us asks for. One that names no record may be about this document alone: where
// others of its evidence were accepted since it was refused first, it is, and nobody else has to wait.
func (g *gate) blocked(p *pass, res *flexi.Result, sullied bool) {
	if p.canary != nil {
		g.turned(p.canary, sullied)
	}
	evidence := ""
	if res.Scope == flexi.ScopeEvidence {
		evidence = p.evidence
	}
	if res.Status == 400 {
		if p.others {
			return
		}
		if scope, stop := g.blocks.bad(p.evidence, 1); stop {
			evidence = scope
		}
	}
	g.close(GateStatus{Evidence: evidence, Reason: blockReason(res.Status), Text: text(res.Err), Remedy: res.Remedy}, blockMost, aboutNone)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// refusedReason is that of a door which one document may have closed.
const refusedReason = "refused"

func blockReason(status int) string {
	switch status {
	case 401:
		return "login"
	case 402:
		return "licence"
	case 403:
		return "right"
	}
	return refusedReason
}

// acceptedOf counts accepted writes of an evidence: whether others go through while one document is blocked.
func (g *gate) acceptedOf(evidence string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.accepted[evidence]
}

// docs is how many documents a pass carried.
func (p *pass) docs() int { return len(p.ids) }

// carry says what a pass carries.
func (p *pass) carry(group []*parcel) {
	p.ids = make([]ledger.ID, len(group))
	for i, q := range group {
		p.ids[i] = q.id
	}
}
