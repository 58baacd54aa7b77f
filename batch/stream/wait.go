package stream

import (
	"context"
	"sync"
	"time"
)

// backoff doubles from base to cap. No jitter: intake has one consumer.
type backoff struct{ base, cap, now time.Duration }

func (b *backoff) next() time.Duration {
	b.now = min(max(2*b.now, b.base), b.cap)
	return b.now
}

func (b *backoff) reset() { b.now = 0 }

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// gate is open or closed and tells waiters about the change.
type gate struct {
	mu     sync.Mutex
	isOpen bool
	turned chan struct{} // closed at the next change
}

func newGate() *gate { return &gate{isOpen: true, turned: make(chan struct{})} }

func (g *gate) set(open bool) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen == open {
		return false
	}
	g.isOpen = open
	close(g.turned)
	g.turned = make(chan struct{})
	return true
}

func (g *gate) open() bool  { return g.set(true) }
func (g *gate) close() bool { return g.set(false) }

// closed is a channel that is closed when the gate is, or already.
func (g *gate) closed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen {
		return g.turned
	}
	shut := make(chan struct{})
	close(shut)
	return shut
}

// wait returns true when the gate is open, false when ctx has ended.
func (g *gate) wait(ctx context.Context) bool {
	for ctx.Err() == nil {
		g.mu.Lock()
		isOpen, turned := g.isOpen, g.turned
		g.mu.Unlock()
		if isOpen {
			return true
		}
		select {
		case <-turned:
		case <-ctx.Done():
		}
	}
	return false
}
