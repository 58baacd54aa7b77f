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

// A write of several documents is kept below what boxes in front of an ERP usually let through (1 MiB), and whoever gets a
// place among the writes waits this long for company: documents of one look arrive within it.
const (
	packBytes  = 900 << 10
	packLinger = 5 * time.Millisecond
	packFast   = 10 * time.Second // an answer within it lets the next request carry more
)

// parcel is one document that is ready to be sent and waits for a place, its own or one in somebody's request.
type parcel struct {
	t     *task
	id    ledger.ID   // of its row, which whoever took it along rewrites while others compare it
	write flexi.Write // of this document alone
	bytes int
	alone bool
	most  int           // most documents in one request with it; 0 = as many as go
	taken chan struct{} // closed when a leader takes it along
	came  chan shipped  // from the leader, exactly once
}

// shipped is what a leader brings back to the worker of one document.
type shipped struct {
	tn    turn
	err   error
	res   *flexi.Result // of this document's part; nil: nothing was sent for it, tn or err says how to go on
	size  int           // documents in the request
	named bool          // the answer blames some of them by name
	lead  bool          // of the request's first document
	at    time.Time     // when the request ended, one moment for the whole group
	top   seenTop       // highest Flexi id known before the claim
	rand  float64       // one draw for the whole group, so that its look-ups stay together
}

// packer keeps the documents that wait at the door, and how many of them one request may carry. The number grows while
// requests are fast and shrinks when they end without an answer in time: a long transaction is the likelier to be cut.
type packer struct {
	most int

	mu      sync.Mutex
	size    float64
	waiting map[packKey][]*parcel
}

type packKey struct {
	evidence string
	op       flexi.Op
}

func newPacker(most int) *packer {
	return &packer{most: max(most, 1), size: 1, waiting: map[packKey][]*parcel{}}
}

func (k *packer) offer(p *parcel) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := packKey{p.write.Evidence, p.write.Op}
	at, _ := slices.BinarySearchFunc(k.waiting[key], p, (*parcel).compare)
	k.waiting[key] = slices.Insert(k.waiting[key], at, p)
}

// compare is the order in which the events came.
func (p *parcel) compare(o *parcel) int {
	a, b := p.t.ev, o.t.ev
	return cmp.Or(a.Received.Compare(b.Received), cmp.Compare(a.Stream.Seq, b.Stream.Seq), cmp.Compare(p.id, o.id))
}

// room reports whether company could still come along with the first of p's queue, whom its place carries. p itself may have
// to go alone, and must not send others off before theirs has come.
func (k *packer) room(p *parcel) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	waiting := k.waiting[packKey{p.write.Evidence, p.write.Op}]
	if len(waiting) == 0 {
		return false
	}
	n := k.limit(waiting[0])
	return n > 1 && len(waiting) < n
}

func (k *packer) limit(p *parcel) int {
	if p.alone {
		return 1
	}
	n := int(k.size)
	if p.most > 0 {
		n = min(n, p.most)
	}
	return n
}

// take removes the documents of the next request from the waiting ones: the first of the queue that p's place can carry,
// or p alone. p itself may not be among them; then its worker sends them and p goes on waiting. The order keeps together
// what came together: a run of documents that Flexi chokes on draws few others in. It returns nil if somebody took p
// meanwhile.
func (k *packer) take(p *parcel, alone bool) []*parcel {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := packKey{p.write.Evidence, p.write.Op}
	waiting := k.waiting[key]
	if !slices.Contains(waiting, p) {
		return nil
	}
	var group, rest []*parcel
	limit, bytes := k.most, 0
	for _, q := range waiting {
		fits := min(limit, k.limit(q))
		if alone && q != p || len(group) > 0 && (len(group) >= fits || bytes+q.bytes > packBytes) {
			rest = append(rest, q)
			continue
		}
		group, limit, bytes = append(group, q), fits, bytes+q.bytes
		if q != p {
			close(q.taken)
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
func (k *packer) linger(ctx context.Context, p *parcel) {
	if !k.room(p) {
		return
	}
	t := time.NewTimer(packLinger)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.taken:
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
