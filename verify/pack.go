package verify

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// A write of several documents is kept below what boxes in front of an ERP usually let through (1 MiB). Whoever gets a slot
// waits packLinger for company: documents of one look arrive within it.
const (
	packBytes  = 900 << 10
	packLinger = 5 * time.Millisecond
	packFast   = 10 * time.Second // an answer within it lets the next request carry more
)

// job is one document that is ready to be sent and waits for a slot, its own or a part of somebody's request.
type job struct {
	t        *task
	id       ledger.ID      // of its row, which whoever took it along rewrites while others compare it
	write    flexi.Write    // of this document alone
	prepared flexi.Prepared // the same, checked
	alone    bool
	most     int            // most documents in one request with it; 0 = as many as go
	taken    chan struct{}  // closed when another worker takes it along
	result   chan jobResult // from whoever sends it, exactly once
}

func (j *job) bytes() int { return len(j.prepared.Body()) }

// jobResult is what the sender of a group hands back to the worker of one document.
type jobResult struct {
	next  stepResult
	err   error
	res   *flexi.Result // of this document's part; nil: nothing was sent for it, tn or err says how to go on
	size  int           // documents in the request
	named bool          // the answer blames some of them by name
	lead  bool          // the result is that of the request's first document
	at    time.Time     // when the request ended, one moment for the whole group
	top   seenTop       // highest Flexi id known before the claim
	rand  float64       // one draw for the whole group, so that its look-ups stay together
}

// packer keeps the jobs that wait to be sent, and how many of them one request may carry. The number grows while requests are
// fast and shrinks when they end without an answer in time: a long transaction is the likelier to be cut.
type packer struct {
	most int

	mu      sync.Mutex
	size    float64
	waiting map[packKey][]*job
}

type packKey struct {
	evidence string
	op       flexi.Op
}

func newPacker(most int) *packer {
	return &packer{most: max(most, 1), size: 1, waiting: map[packKey][]*job{}}
}

// offer puts a job among those that wait, in the order of their events.
func (k *packer) offer(j *job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := packKey{j.write.Evidence, j.write.Op}
	at, _ := slices.BinarySearchFunc(k.waiting[key], j, (*job).compare)
	k.waiting[key] = slices.Insert(k.waiting[key], at, j)
}

// compare is the order in which the events came.
func (j *job) compare(other *job) int {
	a, b := j.t.ev, other.t.ev
	return cmp.Or(a.Received.Compare(b.Received), cmp.Compare(a.Stream.Seq, b.Stream.Seq), cmp.Compare(j.id, other.id))
}

// room reports whether company could still come along with the first of j's queue, which the slot carries. j itself may have to
// go alone, and must not send others off before theirs has come.
func (k *packer) room(j *job) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	waiting := k.waiting[packKey{j.write.Evidence, j.write.Op}]
	if len(waiting) == 0 {
		return false
	}
	n := k.limit(waiting[0])
	return n > 1 && len(waiting) < n
}

// limit is how many documents a request with this job may carry.
func (k *packer) limit(j *job) int {
	if j.alone {
		return 1
	}
	n := int(k.size)
	if j.most > 0 {
		n = min(n, j.most)
	}
	return n
}

// take removes the jobs of the next request from the waiting ones: the first of the queue that the slot can carry, or j alone. j
// itself may not be among them; then its worker sends them and j goes on waiting. The order keeps together what came together: a
// run of documents that Flexi chokes on draws few others in. It returns nil if somebody took j meanwhile.
func (k *packer) take(j *job, alone bool) []*job {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := packKey{j.write.Evidence, j.write.Op}
	waiting := k.waiting[key]
	if !slices.Contains(waiting, j) {
		return nil
	}
	var group, rest []*job
	limit, bytes := k.most, 0
	for _, other := range waiting {
		fits := min(limit, k.limit(other))
		if alone && other != j || len(group) > 0 && (len(group) >= fits || bytes+other.bytes() > packBytes) {
			rest = append(rest, other)
			continue
		}
		group, limit, bytes = append(group, other), fits, bytes+other.bytes()
		if other != j {
			close(other.taken)
		}
	}
	if k.waiting[key] = rest; len(rest) == 0 {
		delete(k.waiting, key)
	}
	return group
}

// learn moves the size by how a request of n documents went. done: it was accepted, or a look found what it asked for; what a
// look found soon after was as good, though its answer was lost.
func (k *packer) learn(n int, res *flexi.Result, done bool, took, limit time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	lost := res.Outcome == flexi.Maybe && res.Speaker == flexi.NoAnswer && !res.Odd
	switch {
	case lost && (!done || took >= packFast):
		k.size = max(1, k.size/2)
	case took > limit/4:
		k.size = max(1, k.size*3/4)
	case (res.Outcome == flexi.Accepted || res.Outcome == flexi.Maybe && done) && took < packFast && n >= int(k.size):
		k.size = min(2*k.size, float64(k.most))
	}
}

func (k *packer) now() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return int(k.size)
}

// linger gives others of the same look the time to come along.
func (k *packer) linger(ctx context.Context, j *job) {
	if !k.room(j) {
		return
	}
	t := time.NewTimer(packLinger)
	defer t.Stop()
	select {
	case <-t.C:
	case <-j.taken:
	case <-ctx.Done():
	}
}

// part is what an answer says about one document of the request.
func part(res *flexi.Result, i int) *flexi.Result {
	own := *res
	if own.Docs = nil; i < len(res.Docs) {
		own.Docs = res.Docs[i : i+1]
		if errs := res.Docs[i].Errors; len(errs) > 0 {
			own.Errors = errs
		}
	}
	return &own
}
