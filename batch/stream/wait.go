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

// runState says whether something runs or is paused, and tells waiters about the change.
type runState struct {
	mu        sync.Mutex
	isRunning bool
	changed   chan struct{} // closed at the next change
}

func newRunState() *runState { return &runState{isRunning: true, changed: make(chan struct{})} }

func (s *runState) set(open bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isRunning == open {
		return false
	}
	s.isRunning = open
	close(s.changed)
	s.changed = make(chan struct{})
	return true
}

func (s *runState) resume() bool { return s.set(true) }
func (s *runState) pause() bool  { return s.set(false) }

// paused is a channel that is closed when the state is paused, or already.
func (s *runState) paused() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isRunning {
		return s.changed
	}
	now := make(chan struct{})
	close(now)
	return now
}

// wait returns true when the state is running, false when ctx has ended.
func (s *runState) wait(ctx context.Context) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		isOpen, turned := s.isRunning, s.changed
		s.mu.Unlock()
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
