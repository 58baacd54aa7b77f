package verify_test

import (
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// TestRefusalIsPaidForOnce: a refused write takes one token of the shared budget, however many documents were in it, else a
// morning of refusals would use up what reads need.
func TestRefusalIsPaidForOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		docs  int
		fault flexitest.Fault
	}{
		{"one document, 429", 1, flexitest.Fault{Kind: flexitest.TooMany}},
		{"one document, stale role", 1, flexitest.Fault{Kind: flexitest.StaleRole}},
		{"twenty documents, 429", 20, flexitest.Fault{Kind: flexitest.TooMany}},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.Concurrency = 1
				b.refusals = flexi.NewBucket(1000, 0, 24*time.Hour) // time pays nothing back
				b.start()
				b.grown()
				before := b.writes()
				b.fake.Script(c.fault)
				b.many("A", c.docs)
				b.until(5*time.Minute, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 60+c.docs })
				refused := 0
				for _, r := range b.fake.Requests() {
					if r.Kind == flexitest.Write && (r.Status == 429 || r.Status == 400) {
						refused++
					}
				}
				if left := b.refusals.Tokens(time.Now()); refused != 1 || 1000-left > 1.01 {
					t.Errorf("%d refused writes of %d took %v tokens, want 1", refused, b.writes()-before, 1000-left)
				}
			})
		})
	}
}
