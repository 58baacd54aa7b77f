package verify_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// counts is an observer that adds up.
type counts struct {
	mu      sync.Mutex
	entered map[string]int
	parked  []string // reasons in the log's lines of parkings
	stops   []string
}

func (c *counts) Entered(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entered == nil {
		c.entered = map[string]int{}
	}
	c.entered[state]++
}

func (c *counts) into(state ledger.State) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entered[string(state)]
}

func (c *counts) Log(event string, fields ...[2]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if event == "writes stopped" {
		c.stops = append(c.stops, fields[0][1]+": "+fields[1][1])
	}
	for _, f := range fields {
		if event == "document parked" && f[0] == "reason" {
			c.parked = append(c.parked, f[1])
		}
	}
}

func (c *counts) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.parked)
}

func (*counts) Call(string)       {}
func (*counts) Looked(string)     {}
func (*counts) WriteTook(float64) {}

// TestEntriesAreCounted: every entry into a state counts once, also where the watch shows a write before its writer hears of it.
func TestEntriesAreCounted(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		const n = 40
		for i := range n {
			b.push(flexi.Create, fmt.Sprint("A", i), invoice(fmt.Sprint("A", i)))
		}
		b.until(time.Minute, "all confirmed", func() bool { return b.eng.Status().Documents["confirmed"] == n })
		b.pass(10 * time.Minute) // read-backs enter nothing
		for _, s := range []ledger.State{ledger.Queued, ledger.Sending, ledger.Confirmed} {
			if got := b.seen.into(s); got != n {
				b.t.Errorf("%d entries into %s, want %d", got, s, n)
			}
		}
	})
}
