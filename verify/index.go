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
	again    bool // changed while it was running
}

// index orders the rows that are due. It is a hint made from the ledger's watch and from our own writes; only a
// compare-and-set decides.
type index struct {
	mu    sync.Mutex
	items map[ledger.ID]*item
	due   [lanes]queue // by due time
	ready [lanes]queue // due already, in the order of the queue
	wake  [lanes]chan struct{}
	known map[ledger.ID]word

	standings map[Standing]*standing

	// Documents whose writes are stopped, by evidence. They cost nothing there: one is fetched when a breaker may be tried,
	// and all of them when it is reset.
	behind   map[string]map[ledger.ID]*item
	trying   int // documents that run as a trial
	came     int // events that were given a place in the queue
	breakers breakers

	witnessed bool                  // the first scan is over: what changes from now on, changes before our eyes
	openings  map[ledger.ID]opening // attempts in doubt that ended before our eyes
	sights    map[ledger.ID]sights  // instants of rows on our monotonic clock

	doubts  map[ledger.ID]doubt
	owners  map[uint64]ledger.ID // by evidence and Flexi id; a hint, the row tells
	numbers numbers
	seed    maphash.Seed
}

// breakers is what the scheduler asks of admission. It is asked under the scheduler's lock, so admission never calls the
// scheduler under its own.
type breakers interface {
	isStopped(evidence string) bool
	// trial says whether one document of an evidence may be the trial of the breakers that stop it now, and from which end of the
	// queue; fresh: one of those that wait was never a trial. next is when to ask again.
	trial(evidence string, fresh bool) (may, fromEnd bool, next time.Time)
	// trialBegun says that a document of the evidence was fetched for a trial.
	trialBegun(evidence string)
}

func newIndex(d breakers) *index {
	x := &index{
		items: map[ledger.ID]*item{}, known: map[ledger.ID]word{}, openings: map[ledger.ID]opening{}, sights: map[ledger.ID]sights{}, doubts: map[ledger.ID]doubt{},
		behind: map[string]map[ledger.ID]*item{}, breakers: d, standings: map[Standing]*standing{},
		owners: map[uint64]ledger.ID{}, numbers: numbers{first: map[uint64]ledger.ID{}, more: map[uint64][]ledger.ID{}}, seed: maphash.MakeSeed(),
	}
	for l := range x.wake {
		x.wake[l] = make(chan struct{}, 1)
		x.due[l].less = func(a, b *item) bool { return a.due.Before(b.due) }
		x.ready[l].less = (*item).before
	}
	return x
}

// word is the newest word on a document.
type word struct {
	standing *standing // shared by all documents that stand alike
	number   uint64    // of the shown number, see numberKey; 0 = none
	revision uint64
}

// standing is where documents stand. There are few different ones, however many documents there are.
type standing struct {
	Standing
	documents int
	open      map[ledger.ID]bool // the documents, where they are not over; nil where they are, since these are nearly all
}

// stand moves a document to where its row says it stands.
func (x *index) stand(row *ledger.Row) {
	x.leave(row.ID)
	s := Standing{State: row.State, Reason: row.Reason}
	if row.State == ledger.Parked {
		s.Cause = row.Cause
	}
	at := x.standings[s]
	if at == nil {
		at = &standing{Standing: s}
		if !atRest(s.State) {
			at.open = map[ledger.ID]bool{}
		}
		x.standings[s] = at
	}
	at.documents++
	if at.open != nil {
		at.open[row.ID] = true
	}
	x.known[row.ID] = word{at, x.addNumberOf(row), row.Revision}
}

// leave takes a document out of the count.
func (x *index) leave(id ledger.ID) {
	if k, ok := x.known[id]; ok {
		x.dropNumberOf(id, k.number)
		delete(k.standing.open, id)
		if k.standing.documents--; k.standing.documents == 0 {
			delete(x.standings, k.standing.Standing)
		}
	}
}

// sight is which revision of a row was seen here, since when. It judges foreign leases: only a revision that stood still
// before our eyes was watched.
type sight struct {
	revision uint64
	at       time.Time // with its monotonic reading
	trial    bool      // the document was fetched as the trial of a breaker
}

// wakeOf receives when something of the lane may be due earlier than before.
func (x *index) wakeOf(l lane) <-chan struct{} { return x.wake[l] }

func (x *index) poke(l lane) {
	select {
	case x.wake[l] <- struct{}{}:
	default:
	}
}

// put takes over what a row says, from our own write (own) or from the watch, which runs behind our writes: only a newer
// revision counts.
func (x *index) put(row *ledger.Row, due, now time.Time, own bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	known, it := x.known[row.ID], x.items[row.ID]
	if row.Revision <= known.revision {
		// The watch may show a write of ours before we hear that it is stored, and leaves the row to its writer for a while.
		if row.Revision == known.revision && it != nil && !due.IsZero() && due.Before(it.due) {
			x.move(it, due, it.lane)
		}
		return
	}
	x.stand(row)
	x.doubted(row)
	x.watchOpening(row, now)
	if row.FlexiID != "" {
		x.owners[x.ownerKey(row.Evidence, row.FlexiID)] = row.ID
	}
	if it == nil {
		if due.IsZero() {
			return
		}
		it = &item{id: row.ID}
		x.items[row.ID] = it
	}
	it.revision, it.seen, it.evidence = row.Revision, now, row.Evidence
	it.blocked = row.State == ledger.Queued && row.Reason == ledger.Blocked
	x.place(it, row, now)
	it.again = it.again || it.running && !own
	x.move(it, due, laneOf(row))
}

// place gives an item its place in the queue, once for each event: when it was first seen to wait, or begun before our start.
func (x *index) place(it *item, row *ledger.Row, now time.Time) {
	n, since := row.Next(), now
	if w := row.Work; w != nil && !w.Final {
		if n = w.N; w.FirstTry.Before(now) {
			since = w.FirstTry
		}
	}
	if it.event != n {
		x.came++
		it.event, it.order, it.turn, it.tried = n, since.UnixNano(), x.came, 0
	}
}

// laneOf: a queued head waits for a write, the rest only reads.
func laneOf(row *ledger.Row) lane {
	if row.State == ledger.Queued && len(row.Untold) == 0 && len(row.Parkings) == 0 {
		return laneSend
	}
	return laneLook
}

// move puts an item where its due time belongs; the zero time takes it out.
func (x *index) move(it *item, due time.Time, l lane) {
	x.lift(it)
	it.due, it.lane = due, l
	switch {
	case it.running:
	case due.IsZero():
		delete(x.items, it.id)
	case l == laneSend && it.blocked && x.breakers.isStopped(it.evidence):
		if x.behind[it.evidence] == nil {
			x.behind[it.evidence] = map[ledger.ID]*item{}
		}
		x.behind[it.evidence][it.id] = it
		x.poke(l)
	default:
		x.due[l].add(it)
		x.poke(l)
	}
}

// lift takes an item out of wherever it waits.
func (x *index) lift(it *item) {
	if it.in != nil {
		heap.Remove(it.in, it.at)
	}
	if set := x.behind[it.evidence]; set != nil {
		if delete(set, it.id); len(set) == 0 {
			delete(x.behind, it.evidence)
		}
	}
}

// next takes the first due item of a lane and marks it running; else it says how long to wait.
func (x *index) next(l lane, now time.Time) (id ledger.ID, seen sight, wait time.Duration, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	wait = time.Hour
	if l == laneSend {
		it, d := x.fetch(now)
		if it != nil {
			return it.id, sight{it.revision, it.seen, true}, 0, true
		}
		wait = d
	}
	late, ready := &x.due[l], &x.ready[l]
	for late.Len() > 0 && !late.items[0].due.After(now) {
		ready.add(heap.Pop(late).(*item))
	}
	if ready.Len() > 0 {
		it := ready.items[0]
		x.start(it)
		return it.id, sight{it.revision, it.seen, false}, 0, true
	}
	if late.Len() > 0 {
		wait = min(wait, late.items[0].due.Sub(now))
	}
	return "", sight{}, wait, false
}

func (x *index) start(it *item) {
	x.lift(it)
	it.running, it.again = true, false
}

// fetch takes a document whose evidence is stopped and may be tried, from the end of the queue that admission names, and lets
// those go whose breaker was reset. One that was fetched before comes after those that were not: it may wait for something else,
// or be what Flexi refuses, and must not be all that ever tries. Without one it says when to ask again.
func (x *index) fetch(now time.Time) (*item, time.Duration) {
	wait := time.Hour
	var first, last *item
	end := false
	for evidence, set := range x.behind {
		if !x.breakers.isStopped(evidence) {
			for _, it := range set {
				x.move(it, now, laneSend)
			}
			continue
		}
		fresh := false
		for _, it := range set {
			fresh = fresh || it.tried == 0
		}
		may, fromEnd, next := x.breakers.trial(evidence, fresh)
		if !may {
			if d := next.Sub(now); !next.IsZero() {
				wait = min(wait, max(d, time.Millisecond))
			}
			continue
		}
		end = end || fromEnd
		for _, it := range set {
			if first == nil || it.tried < first.tried || it.tried == first.tried && it.before(first) {
				first = it
			}
			if last == nil || it.tried < last.tried || it.tried == last.tried && last.before(it) {
				last = it
			}
		}
	}
	if end {
		first = last
	}
	if first != nil {
		x.start(first)
		first.trying = true
		first.tried++
		x.trying++
		x.breakers.trialBegun(first.evidence)
	}
	return first, wait
}

// begin marks a row as running for someone else than the scheduler (a person's decision); false if it is running.
func (x *index) begin(id ledger.ID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	it := x.items[id]
	if it == nil {
		it = &item{id: id}
		x.items[id] = it
	}
	if it.running {
		return false
	}
	x.start(it)
	return true
}

// end gives a running item back with its next due time. If the row changed meanwhile, the later word counts and it is
// looked at again at once.
func (x *index) end(id ledger.ID, due, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	it := x.items[id]
	if it == nil {
		return
	}
	it.running = false
	if it.trying {
		it.trying = false
		x.trying--
	}
	if _, ok := x.known[id]; !ok {
		due = time.Time{} // its row is gone
	}
	if it.again && (due.IsZero() || due.After(it.due)) && !it.due.IsZero() {
		due = it.due
	}
	x.move(it, due, it.lane)
}

// counts of documents by where they stand, and by state alone.
func (x *index) counts() ([]Standing, map[string]int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all, n := make([]Standing, 0, len(x.standings)), map[string]int{}
	for _, at := range x.standings {
		s := at.Standing
		s.Documents = at.documents
		all = append(all, s)
		n[string(s.State)] += s.Documents
	}
	slices.SortFunc(all, Standing.compare)
	return all, n
}

// resync forgets which revisions were seen: all rows come again.
func (x *index) resync() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, k := range x.known {
		x.known[id] = word{standing: k.standing, number: k.number}
	}
	for _, it := range x.items {
		it.revision = 0
	}
	for id, s := range x.sights {
		s.revision = 0
		x.sights[id] = s
	}
}

// ownerOf is the document that was last seen to have the record with a Flexi id, "" if none.
func (x *index) ownerOf(evidence, flexiID string) ledger.ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.owners[x.ownerKey(evidence, flexiID)]
}

// ownerKey is short, since there is one for each document.
func (x *index) ownerKey(evidence, flexiID string) uint64 {
	return maphash.String(x.seed, evidence+"\x00"+flexiID)
}

// knows says that there may be a row of this id: a hint, before the first scan is over it says so of all.
func (x *index) knows(id ledger.ID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.known[id]
	return ok || !x.witnessed
}

// has says that this revision of a row is known here, or a newer one.
func (x *index) has(id ledger.ID, revision uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	k, ok := x.known[id]
	return ok && k.revision >= revision
}

// all lists every document.
func (x *index) all() []ledger.ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Keys(x.known))
}

// forget drops a document whose row is gone.
func (x *index) forget(id ledger.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if it := x.items[id]; it != nil {
		x.move(it, time.Time{}, it.lane)
	}
	x.leave(id)
	delete(x.known, id)
	delete(x.doubts, id)
	delete(x.openings, id)
	delete(x.sights, id)
}

// witness says that the first scan is over.
func (x *index) witness() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.witnessed = true
}

// hurry makes everything that waits to be sent due now: a breaker was reset.
func (x *index) hurry(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, it := range x.due[laneSend].items {
		if it.due.After(now) {
			it.due = now
		}
	}
	heap.Init(&x.due[laneSend])
	x.poke(laneSend)
}

// candidates says whether a stopped document could be a trial, or one runs as such.
func (x *index) candidates(passable func(evidence string) bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.trying > 0 {
		return true
	}
	for evidence := range x.behind {
		if passable(evidence) {
			return true
		}
	}
	return false
}
