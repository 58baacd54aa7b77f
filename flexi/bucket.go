package flexi

import (
	"sync"
	"time"
)

// Reads: one retry costs a token, a read that succeeds at once pays a tenth back. When much fails, retries die out
// instead of multiplying the load of a server that is already in trouble. The floor keeps a quiet daemon, whose bucket
// nothing refills, from giving up on the first fault.
const (
	bucketSize   = 10
	bucketPayIn  = 0.1
	bucketFloor  = 10 * time.Second
	readAttempts = 4
	backoffBase  = 200 * time.Millisecond
	backoffCap   = 10 * time.Second
)

// bucket is the retry budget of all reads of a Client.
type bucket struct {
	mu     sync.Mutex
	tokens float64
	last   time.Time // of the last retry that the floor paid for
}

// take reports whether one more retry is allowed.
func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens >= 1 {
		b.tokens--
		return true
	}
	if b.last.IsZero() || now.Sub(b.last) >= bucketFloor {
		b.last = now
		return true
	}
	return false
}

// pay credits a read that succeeded at its first attempt.
func (b *bucket) pay() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+bucketPayIn, bucketSize)
}

// backoff is the full-jitter wait before retry n (0 = the first).
func backoff(n int, random func() float64) time.Duration {
	return jitter(random, min(backoffBase<<n, backoffCap))
}

// RetryTokens is what is left of the retry budget of reads, for metrics.
func (c *Client) RetryTokens() float64 {
	c.bucket.mu.Lock()
	defer c.bucket.mu.Unlock()
	return c.bucket.tokens
}
