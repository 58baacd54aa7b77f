package verify

import (
	"container/heap"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"flexid/verify/ledger"
)

// lane separates what waits for the write limit from what only reads, so that a long queue of documents to send never
// holds up the look-ups that settle maybes.
type lane uint8

const (
	laneSend lane = iota // the head event is queued
	laneLook             // everything else that is due
	lanes
)

// item is what the scheduler remembers of a row that wants attention.
type item struct {
	id       ledger.ID
	revision uint64
	seen     time.Time // when this revision was first seen here, monotonic: judges foreign leases
	due      time.Time
	lane     lane
	evidence string
	event    int    // ordinal of the current event
	order    int64  // since when it wants to take effect: the place in the queue
	turn     int    // among those of one moment
	blocked  bool   // the row says that it waits for a breaker or a manual stop
	in       *queue // where it waits; nil = nowhere, or in stopped
	at       int    // in there
	running  bool
	trying   bool // it runs as the trial of a breaker
	tried    int  // how often it was fetched for that
	changed  bool // changed while it was running
}

// scheduler orders the rows that are due, and is where a document waits until a worker takes it. It is a hint made from the
// ledger's watch and from our own writes; only a compare-and-set decides.
//
//	due      until a moment: the next look, a pause, a follow-up
//	ready    for a worker of its lane
//	stopped  for a breaker or a manual stop of its evidence (stopped.go)
//
// A worker that has all it needs to send waits for a slot (slot.go). Why a document waits is the reason in its row.
type scheduler struct {
	mu    sync.Mutex
	items map[ledger.ID]*item
	due   [lanes]queue // by due time
	ready [lanes]queue // due already, in the order of the queue
	wake  [lanes]chan struct{}
	rows  map[ledger.ID]knownRow

	standings map[Standing]*standing
	heard     map[ledger.ID]bool // the watch has told of a row that nobody has read here yet
	unread    map[ledger.ID]bool // rows that cannot be read as they are stored now: every list has to say that there are some

	// Documents whose writes are stopped, by evidence. They cost nothing there: one is fetched when a breaker may be tried,
	// and all of them when it is reset.
	stopped  map[string]map[ledger.ID]*item
	trying   int // documents that run as a trial
	came     int // events that were given a place in the queue
	breakers breakers

	scanned  bool                     // the first scan is over: what changes from now on, changes before our eyes
	openings map[ledger.ID]opening    // attempts in doubt that ended before our eyes
	times    map[ledger.ID]localTimes // instants of rows on our monotonic clock

	doubts  map[ledger.ID]doubt
	owners  map[uint64]ledger.ID // by evidence and Flexi id; a hint, the row decides
	numbers numbers
	seed    maphash.Seed
}

func newScheduler(d breakers) *scheduler {
	sc := &scheduler{
		items: map[ledger.ID]*item{}, rows: map[ledger.ID]knownRow{}, openings: map[ledger.ID]opening{}, times: map[ledger.ID]localTimes{}, doubts: map[ledger.ID]doubt{},
		stopped: map[string]map[ledger.ID]*item{}, breakers: d, standings: map[Standing]*standing{}, heard: map[ledger.ID]bool{}, unread: map[ledger.ID]bool{},
		owners: map[uint64]ledger.ID{}, numbers: numbers{first: map[uint64]ledger.ID{}, more: map[uint64][]ledger.ID{}}, seed: maphash.MakeSeed(),
	}
	for l := range sc.wake {
		sc.wake[l] = make(chan struct{}, 1)
		sc.due[l].less = func(a, b *item) bool { return a.due.Before(b.due) }
		sc.ready[l].less = (*item).before
	}
	return sc
}

// observation is which revision of a row was seen here, since when. It judges foreign leases: only a revision that stood still
// before our eyes was watched.
type observation struct {
	revision uint64
	at       time.Time // with its monotonic reading
	trial    bool      // the document was fetched as the trial of a breaker
}

// wakeOf receives when something of the lane may be due earlier than before.
func (sc *scheduler) wakeOf(l lane) <-chan struct{} { return sc.wake[l] }

// poke wakes the dispatcher of a lane.
func (sc *scheduler) poke(l lane) {
	select {
	case sc.wake[l] <- struct{}{}:
	default:
	}
}

// put takes over what a row says, from our own write (own) or from the watch, which runs behind our writes: only a newer
// revision counts.
func (sc *scheduler) put(row *ledger.Row, due, now time.Time, own bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	known, it := sc.rows[row.ID], sc.items[row.ID]
	if row.Revision <= known.revision {
		// The watch may show a write of ours before we hear that it is stored, and leaves the row to its writer for a while.
		if row.Revision == known.revision && it != nil && !due.IsZero() && due.Before(it.due) {
			sc.move(it, due, it.lane)
		}
		return
	}
	sc.count(row)
	sc.doubted(row)
	sc.watchOpening(row, now)
	if row.FlexiID != "" {
		sc.owners[sc.ownerKey(row.Evidence, row.FlexiID)] = row.ID
	}
	if it == nil {
		if due.IsZero() {
			return
		}
		it = &item{id: row.ID}
		sc.items[row.ID] = it
	}
	it.revision, it.seen, it.evidence = row.Revision, now, row.Evidence
	it.blocked = row.State == ledger.Queued && row.Reason == ledger.Blocked
	sc.place(it, row, now)
	it.changed = it.changed || it.running && !own
	sc.move(it, due, laneOf(row))
}

// place gives an item its place in the queue, once for each event: when it was first seen to wait, or begun before our start.
func (sc *scheduler) place(it *item, row *ledger.Row, now time.Time) {
	n, since := row.Next(), now
	if w := row.Work; w != nil && !w.Final {
		if n = w.N; w.FirstTry.Before(now) {
			since = w.FirstTry
		}
	}
	if it.event != n {
		sc.came++
		it.event, it.order, it.turn, it.tried = n, since.UnixNano(), sc.came, 0
	}
}

// laneOf is laneSend for a row whose current event waits to be sent; the rest only reads.
func laneOf(row *ledger.Row) lane {
	if row.State == ledger.Queued && len(row.ToNotify) == 0 && len(row.Parkings) == 0 {
		return laneSend
	}
	return laneLook
}

// move puts an item where its due time belongs; the zero time takes it out.
func (sc *scheduler) move(it *item, due time.Time, l lane) {
	sc.lift(it)
	it.due, it.lane = due, l
	switch {
	case it.running:
	case due.IsZero():
		delete(sc.items, it.id)
	case l == laneSend && it.blocked && sc.breakers.isStopped(it.evidence):
		if sc.stopped[it.evidence] == nil {
			sc.stopped[it.evidence] = map[ledger.ID]*item{}
		}
		sc.stopped[it.evidence][it.id] = it
		sc.poke(l)
	default:
		sc.due[l].add(it)
		sc.poke(l)
	}
}

// lift takes an item out of wherever it waits.
func (sc *scheduler) lift(it *item) {
	if it.in != nil {
		heap.Remove(it.in, it.at)
	}
	if set := sc.stopped[it.evidence]; set != nil {
		if delete(set, it.id); len(set) == 0 {
			delete(sc.stopped, it.evidence)
		}
	}
}

// next takes the first due item of a lane and marks it running; else it says how long to wait.
func (sc *scheduler) next(l lane, now time.Time) (id ledger.ID, seen observation, wait time.Duration, ok bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	wait = time.Hour
	if l == laneSend {
		it, d := sc.fetch(now)
		if it != nil {
			return it.id, observation{it.revision, it.seen, true}, 0, true
		}
		wait = d
	}
	late, ready := &sc.due[l], &sc.ready[l]
	for late.Len() > 0 && !late.items[0].due.After(now) {
		ready.add(heap.Pop(late).(*item))
	}
	if ready.Len() > 0 {
		it := ready.items[0]
		sc.start(it)
		return it.id, observation{it.revision, it.seen, false}, 0, true
	}
	if late.Len() > 0 {
		wait = min(wait, late.items[0].due.Sub(now))
	}
	return "", observation{}, wait, false
}

// start takes an item out of the queues for a worker.
func (sc *scheduler) start(it *item) {
	sc.lift(it)
	it.running, it.changed = true, false
}

// begin marks a row as running for someone else than the scheduler (a person's decision); false if it is running.
func (sc *scheduler) begin(id ledger.ID) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	it := sc.items[id]
	if it == nil {
		it = &item{id: id}
		sc.items[id] = it
	}
	if it.running {
		return false
	}
	sc.start(it)
	return true
}

// end gives a running item back with its next due time. If the row changed meanwhile, the newer revision counts and it is
// looked at again at once.
func (sc *scheduler) end(id ledger.ID, due, now time.Time) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	it := sc.items[id]
	if it == nil {
		return
	}
	it.running = false
	if it.trying {
		it.trying = false
		sc.trying--
	}
	if _, ok := sc.rows[id]; !ok {
		due = time.Time{} // its row is gone
	}
	if it.changed && (due.IsZero() || due.After(it.due)) && !it.due.IsZero() {
		due = it.due
	}
	sc.move(it, due, it.lane)
}

// resync forgets which revisions were seen: all rows come again.
func (sc *scheduler) resync() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for id, k := range sc.rows {
		sc.rows[id] = knownRow{standing: k.standing, number: k.number}
	}
	for _, it := range sc.items {
		it.revision = 0
	}
	for id, s := range sc.times {
		s.revision = 0
		sc.times[id] = s
	}
}

// ownerOf is the document that was last seen to have the record with a Flexi id, "" if none.
func (sc *scheduler) ownerOf(evidence, flexiID string) ledger.ID {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.owners[sc.ownerKey(evidence, flexiID)]
}

// ownerKey is short, since there is one for each document.
func (sc *scheduler) ownerKey(evidence, flexiID string) uint64 {
	return maphash.String(sc.seed, evidence+"\x00"+flexiID)
}

// knows says that there may be a row of this id: a hint, before the first scan is over it says so of all.
func (sc *scheduler) knows(id ledger.ID) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	_, ok := sc.rows[id]
	return ok || !sc.scanned
}

// has says that this revision of a row is known here, or a newer one.
func (sc *scheduler) has(id ledger.ID, revision uint64) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	k, ok := sc.rows[id]
	return ok && k.revision >= revision
}

// all lists every document, those too that the watch has just told of.
func (sc *scheduler) all() []ledger.ID {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(sc.rows)), maps.Keys(sc.heard))
}

// hears notes a document whose row is read later: one that nobody knows must not be missing among all.
func (sc *scheduler) hears(id ledger.ID) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if _, known := sc.rows[id]; !known {
		sc.heard[id] = true
	}
}

// forget drops a document whose row is gone.
func (sc *scheduler) forget(id ledger.ID) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if it := sc.items[id]; it != nil {
		sc.move(it, time.Time{}, it.lane)
	}
	sc.uncount(id)
	delete(sc.rows, id)
	delete(sc.unread, id)
	delete(sc.heard, id)
	delete(sc.doubts, id)
	delete(sc.openings, id)
	delete(sc.times, id)
}

// witness says that the first scan is over.
func (sc *scheduler) scanDone() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.scanned = true
}
