package flexi

import (
	"sync"
	"time"
)

// Reads: one retry costs a token, a read that succeeds at once pays a tenth back. When much fails, retries die out
// instead of multiplying the load of a server that is already in trouble. The floor keeps a quiet daemon, whose bucket
// nothing refills, from giving up on the first fault.
const (
	readAttempts    = 4
	refusedAttempts = 10 // tries of one read that the ERP refused (429); its time is mostly over before
	backoffBase     = 200 * time.Millisecond
	backoffCap      = 10 * time.Second
)

// Budget is what everything that talks to one ERP may spend on sending again. There is one for each process; the client
// draws on Reads and Refusals, package verify on Maybes.
type Budget struct {
	Reads    *Bucket // retries of reads
	Refusals *Bucket // further tries after a refusal: cheap for the server, so many are allowed
	Maybes   *Bucket // sends after an attempt that may have committed
}

// NewBudget makes full buckets; pack is the most documents in one write.
func NewBudget(pack int) *Budget {
	return &Budget{
		Reads:    NewBucket(10, 0.1, 10*time.Second),
		Refusals: NewBucket(1000, 0, time.Second/10),
		Maybes:   NewBucket(float64(2*max(pack, 1)), 0.1, 10*time.Second),
	}
}

// Bucket is a token bucket: a further try takes a token, a success pays a part of one back, and time gives one whole
// token every so often. Safe for concurrent use.
type Bucket struct {
	size, perSuccess float64
	every            time.Duration

	mu     sync.Mutex
	tokens float64
	last   time.Time // up to when time has paid; zero before the first use
}

// NewBucket makes a full bucket: a success pays perSuccess back, time one token every so often.
func NewBucket(size, perSuccess float64, every time.Duration) *Bucket {
	return &Bucket{size: size, perSuccess: perSuccess, every: every, tokens: size}
}

// Take takes a token; ok is false when there is none, wait is then when time gives the next one.
func (b *Bucket) Take(now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flow(now)
	if b.tokens >= 1 {
		b.tokens--
		return 0, true
	}
	return time.Duration((1 - b.tokens) * float64(b.every)), false
}

// Wait is when time will have filled the bucket to n tokens, 0 when they are there. What successes pay comes sooner.
func (b *Bucket) Wait(now time.Time, n int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flow(now)
	return time.Duration(max(min(float64(n), b.size)-b.tokens, 0) * float64(b.every))
}

// Return gives back a token that was taken and not used.
func (b *Bucket) Return() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+1, b.size)
}

// Pay credits n successes.
func (b *Bucket) Pay(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+b.perSuccess*float64(n), b.size)
}

// Tokens is what is left, for metrics.
func (b *Bucket) Tokens(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flow(now)
	return b.tokens
}

// flow credits the time since it was last asked. A clock that is set back pays nothing and takes nothing.
func (b *Bucket) flow(now time.Time) {
	if b.last.IsZero() || now.Before(b.last) {
		b.last = now
		return
	}
	b.tokens = min(b.tokens+float64(now.Sub(b.last))/float64(b.every), b.size)
	b.last = now
}

// backoff is the full-jitter wait before retry n (0 = the first).
func backoff(n int, random func() float64) time.Duration {
	return jitter(random, min(backoffBase<<n, backoffCap))
}
