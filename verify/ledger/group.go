package ledger

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// This file gathers what waits to be stored. While some writes are on their way to the disk, what comes meanwhile waits and goes
// along with the next ones, in one atomic batch: a batch of hundreds costs hardly more syncs than a batch of one. A handful goes
// as plain compare-and-sets side by side, which is cheaper.
//
// The group makes the first attempt only. A unit that its batch took down, or of which nobody knows, goes on alone, in the call of
// the one who wants it stored: one that does not fit holds up nobody.

const (
	groupsAtOnce = 2       // on their way to the store
	leastBatch   = 8       // puts: below it a batch costs more syncs than they do by themselves
	mostPuts     = 800     // of a batch: the server takes 1,000
	mostBytes    = 4 << 20 // of a batch
)

// put is one compare-and-set: value replaces what key has if that still has the revision; 0 = the key must not exist.
type put struct {
	key      string
	value    []byte
	revision uint64
}

// batcher stores several keys of a bucket as a whole or not at all, and gives the revision of the last one; the others have those
// before it, in order.
type batcher interface {
	Commit(ctx context.Context, puts []put) (last uint64, err error)
}

// errApart says that a batch of several units was not stored, for what may be the fault of one. Nothing of it is or will be stored.
var errApart = errors.New("the batch was refused as a whole")

// unit is what is stored as a whole or not at all, on its way through the group.
type unit struct {
	puts []put
	done chan answer // holds one
	call *call       // that carries it; nil while it waits
}

// call is one trip to the store. It lives as long as one caller waits for it.
type call struct {
	ctx    context.Context
	cancel context.CancelFunc
	live   int // callers that wait
}

type answer struct {
	last uint64 // revision of the last put
	err  error
}

// group is the queue of a store. Its goroutines live as long as callers wait for what they carry.
type group struct {
	one     func(ctx context.Context, p put) (uint64, error)
	batch   batcher
	timeout time.Duration // of one call

	mu      sync.Mutex
	waiting []*unit
	running int
	off     bool // the server takes no batches
}

// store makes one attempt to store puts, along with what others store. An error may leave it stored, but for errApart.
func (g *group) store(ctx context.Context, puts []put) (uint64, error) {
	u := &unit{puts: puts, done: make(chan answer, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, u)
	begin := g.running < groupsAtOnce
	if begin {
		g.running++
	}
	g.mu.Unlock()
	if begin {
		go g.run()
	}
	select {
	case a := <-u.done:
		return a.last, a.err
	case <-ctx.Done():
	}
	if g.leave(u) {
		a := <-u.done
		return a.last, a.err
	}
	return 0, ctx.Err()
}

// leave gives a unit up. Where nobody else waits for the call that carries it, the call ends, and true says so.
func (g *group) leave(u *unit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u.call == nil {
		g.waiting = slices.DeleteFunc(g.waiting, func(o *unit) bool { return o == u })
		return false
	}
	if u.call.live--; u.call.live > 0 {
		return false
	}
	u.call.cancel()
	return true
}

// run carries what waits until nothing does.
func (g *group) run() {
	for {
		units, n := g.take()
		if units == nil {
			return
		}
		c := units[0].call
		if n < leastBatch && n == len(units) || g.noBatches() {
			g.sideBySide(c.ctx, units)
		} else {
			g.together(c.ctx, units, n)
		}
		c.cancel()
	}
}

// take gives the units of the next batch and how many puts they have; nil when nothing waits, and then its caller ends. A key
// that would be in the batch twice waits for the next one: the server refuses such a batch.
func (g *group) take() (units []*unit, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	keys := map[string]bool{}
	bytes := 0
	rest := g.waiting[:0]
	for _, u := range g.waiting {
		size := 0
		twice := false
		for _, p := range u.puts {
			size += len(p.key) + len(p.value)
			twice = twice || keys[p.key]
		}
		if twice || len(units) > 0 && (n+len(u.puts) > mostPuts || bytes+size > mostBytes) {
			rest = append(rest, u)
			continue
		}
		for _, p := range u.puts {
			keys[p.key] = true
		}
		units, n, bytes = append(units, u), n+len(u.puts), bytes+size
	}
	clear(g.waiting[len(rest):])
	if g.waiting = rest; units == nil {
		g.running--
		return nil, 0
	}
	c := &call{live: len(units)}
	c.ctx, c.cancel = context.WithTimeout(context.Background(), g.timeout)
	for _, u := range units {
		u.call = c
	}
	return units, n
}

func (g *group) noBatches() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.off || g.batch == nil
}

// sideBySide stores units each by itself; those of several puts need batches.
func (g *group) sideBySide(ctx context.Context, units []*unit) {
	var all sync.WaitGroup
	for _, u := range units {
		all.Go(func() {
			var a answer
			if len(u.puts) == 1 {
				a.last, a.err = g.one(ctx, u.puts[0])
			} else {
				a.err = ErrNoBatches
			}
			u.done <- a
		})
	}
	all.Wait()
}

// together stores units in one batch.
func (g *group) together(ctx context.Context, units []*unit, n int) {
	puts := make([]put, 0, n)
	for _, u := range units {
		puts = append(puts, u.puts...)
	}
	last, err := g.batch.Commit(ctx, puts)
	if err != nil && classify(err) == disabled {
		g.mu.Lock()
		g.off = true
		g.mu.Unlock()
	}
	if err != nil && refusedWhole(err) && len(units) > 1 {
		err = errApart
	}
	at := last - uint64(n)
	for _, u := range units {
		at += uint64(len(u.puts))
		u.done <- answer{at, err}
	}
}

// refusedWhole says that nothing of a batch was stored, nor will be.
func refusedWhole(err error) bool {
	switch classify(err) {
	case conflict, full, large, many, disabled, spoilt:
		return true
	}
	return false
}
