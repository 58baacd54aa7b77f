package verify

import (
	"sync"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// admission decides which writes may leave, and when. Breakers trip while writes would only become maybes (an outage) or be
// refused for a reason that is ours (login, licence, rights); manual stops last until a person ends them; slots bound how many
// requests are in flight. Nothing is parked here: documents stay queued.
//
// What an error shows decides how much stops: one evidence, or all of them only where different evidences fail. A tripped breaker
// is reset when a read gets through and then one document, sent alone as its half-open trial, is accepted or rejected. After a
// trial that failed the next document comes from the other end of the queue, so that a run of documents that no ERP takes cannot
// keep a breaker tripped.
type admission struct {
	s    Settings
	now  func() time.Time
	rand func() float64
	say  func(event string, fields ...[2]string)

	mu             sync.Mutex
	breakers       map[string]*breaker // "" = all evidences; only tripped ones are kept
	manual         map[stopKey]Stop
	limit          float64
	inFlight       int
	trials         int           // half-open trials of one evidence among those in flight: they take no slot from others
	waiters        []*waiter     // who waits for a slot, in the order of their events
	freed          chan struct{} // closed and made anew when the waiters have to try again
	writes         streak        // maybes in a row, of documents without an earlier one
	blocks         streak        // refusals in a row that name no record
	reads          streak        // failed reads in a row
	unreachable    int           // connections in a row that did not come about
	pending        []*pending
	accepted       map[string]int
	afterUnlock    []func()                                                    // called once the lock is free
	onReset        func()                                                      // wakes the documents that wait for a breaker
	candidateWaits func(passable func(evidence string) bool) bool              // whether a document that waits for such an evidence could be the trial of its breaker
	onOutcome      func(n int, r *flexi.Result, took time.Duration, done bool) // hears how requests of n documents ended
}

// breaker stops the writes of one evidence, or of all. It trips and is reset by itself.
type breaker struct {
	Stop
	pause    time.Duration
	most     time.Duration
	halfOpen bool      // half-open: a trial is under way
	by       about     // tripped by failed reads of that part alone: a read of it that gets through resets the breaker
	fromEnd  bool      // the next trial comes from the end of the queue
	fetched  time.Time // when a document was last fetched for a trial
	lost     bool      // the last trial was a document without a bad outcome before, and failed: a suspect one may try now
	wanted   time.Time // when a suspect document last asked to be the trial
}

// about is what of Flexi a read was about. What one part shows proves nothing of another: an evidence whose fields cannot be
// read may well list its records.
type about uint8

const (
	aboutNone about = iota
	aboutRecords
	aboutFields
)

// The longest pauses between two trials of a breaker.
const (
	outageMost = time.Minute
	blockMost  = 15 * time.Minute
)

func newAdmission(s Settings, now func() time.Time, rand func() float64, say func(string, ...[2]string)) *admission {
	return &admission{
		s: s, now: now, rand: rand, say: say, breakers: map[string]*breaker{}, manual: map[stopKey]Stop{},
		limit: 1, freed: make(chan struct{}), writes: newStreak(), blocks: newStreak(), reads: newStreak(),
		accepted: map[string]int{}, onReset: func() {},
		candidateWaits: func(func(string) bool) bool { return false },
		onOutcome:      func(int, *flexi.Result, time.Duration, bool) {},
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// unlock frees the lock, then calls what waited for that: whoever is called may call admission in turn.
func (a *admission) unlock() {
	news := a.afterUnlock
	a.afterUnlock = nil
	a.mu.Unlock()
	for _, say := range news {
		say()
	}
}

// onUnlock has something called by the next unlock.
func (a *admission) onUnlock(say func()) { a.afterUnlock = append(a.afterUnlock, say) }

// release gives a slot back. res is nil when nothing was sent for a reason of our own (lost claim, stop).
func (a *admission) release(s *slot, res *flexi.Result, suspect bool) {
	a.mu.Lock()
	defer a.unlock()
	a.inFlight--
	if b := s.trial; b != nil {
		b.halfOpen = false
		if b.Evidence != "" {
			a.trials--
		}
	}
	if res != nil {
		a.learn(s, res, suspect)
	}
	a.wakeWaiters()
}

// learn moves limit and breakers by what became of a write.
func (a *admission) learn(s *slot, res *flexi.Result, suspect bool) {
	switch res.Outcome {
	case flexi.Accepted, flexi.Rejected:
		if res.Outcome == flexi.Accepted {
			a.accepted[s.evidence]++
			a.blocks.good(s.evidence)
		}
		a.onOutcome(s.docs(), res, s.took, true)
		a.good(s)
	case flexi.Maybe:
		a.doubt(s, res, suspect)
	case flexi.Refused:
		a.limit = max(1, a.limit/2)
		if s.trial != nil {
			s.trial.NextTry = a.now().Add(res.Wait)
		}
	case flexi.NotSent:
		if s.trial != nil {
			a.prolong(s.trial)
		} else {
			a.unreached(res.Err)
		}
	case flexi.Blocked:
		a.blocked(s, res, suspect)
	}
}

// good notes that Flexi did what it was asked, or said why not.
func (a *admission) good(s *slot) {
	a.writes.good(s.evidence)
	a.reads.good(s.evidence)
	a.unreachable = 0
	a.limit = min(a.limit+1/a.limit, float64(a.s.Concurrency))
	if b := s.trial; b != nil && a.breakers[b.Evidence] == b { // one that tripped again meanwhile is another breaker
		a.reset(b.Evidence)
	}
}

// blocked trips the breaker that a refusal about us asks for. A refusal that names no record may be about this document alone:
// where others of its evidence were accepted since it was refused first, it is, and nobody else has to wait.
func (a *admission) blocked(s *slot, res *flexi.Result, suspect bool) {
	if s.trial != nil {
		a.trialFailed(s.trial, suspect)
	}
	evidence := ""
	if res.Scope == flexi.ScopeEvidence {
		evidence = s.evidence
	}
	if res.Status == 400 {
		if s.othersAccepted {
			return
		}
		if scope, stop := a.blocks.bad(s.evidence, 1); stop {
			evidence = scope
		}
	}
	a.trip(Stop{Evidence: evidence, Reason: blockReason(res.Status), Text: text(res.Err), Remedy: res.Remedy}, blockMost, aboutNone)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// refusedReason is that of a breaker which one document alone may have tripped.
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
func (a *admission) acceptedOf(evidence string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.accepted[evidence]
}

// docs is how many documents a slot carried.
func (s *slot) docs() int { return len(s.ids) }

// carry notes which documents a slot carries.
func (s *slot) carry(group []*job) {
	s.ids = make([]ledger.ID, len(group))
	for i, other := range group {
		s.ids[i] = other.id
	}
}
