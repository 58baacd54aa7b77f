package verify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// order is which documents were written, in order, by the keys of their first records.
func (b *bench) order() []string {
	var keys []string
	for _, r := range b.fake.Requests() {
		if r.Kind != flexitest.Write {
			continue
		}
		for _, k := range r.Docs[0].Keys {
			if key, ok := strings.CutPrefix(k, "ext:FLEXID:"); ok {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// TestTrialsFromBothEnds: through a tripped breaker the first of the queue goes first, after a failure the last one, and so on.
func TestTrialsFromBothEnds(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.Pack, b.set.SettleNoAnswer = 1, time.Hour
		b.start()
		b.created("X", invoice("X"))
		b.fake.ResetLog()
		b.fake.OnWrite(0, func(r flexitest.Request) bool { return true }, flexitest.Fault{Kind: flexitest.ServerError, Status: 502})
		for i := range 12 {
			b.push(flexi.Create, fmt.Sprintf("A%02d", i), invoice(fmt.Sprintf("A%02d", i)))
			b.pass(10 * time.Millisecond)
		}
		b.pass(4 * time.Minute)
		got := strings.Join(b.order(), " ")
		if want := "A00 A01 A02 A03 A11 A04 A10 A05 A09"; !strings.HasPrefix(got, want) && !strings.HasPrefix(want, got) || len(b.order()) < 6 {
			t.Errorf("tried in the order %s, want %s", got, want)
		}
	})
}

// TestPoisonedOnesKeepNobodyOut: documents that every write with them fails for stand at the head of the queue, and those that
// tried already take turns with those that did not. Both ends of the queue are tried all the same, so that the good ones get
// through long before the last poisoned one was tried.
func TestPoisonedOnesKeepNobodyOut(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		poison := func(r flexitest.Request) bool {
			return slices.ContainsFunc(r.Docs[0].Keys, func(k string) bool { return strings.HasPrefix(k, "ext:FLEXID:P") })
		}
		b.fake.OnWrite(0, poison, flexitest.Fault{Kind: flexitest.ServerError, Status: 500})
		const good, poisoned = 20, 60
		for i := range poisoned {
			b.push(flexi.Create, fmt.Sprintf("P%02d", i), invoice(fmt.Sprintf("P%02d", i)))
		}
		for i := range good {
			b.push(flexi.Create, fmt.Sprintf("A%02d", i), invoice(fmt.Sprintf("A%02d", i)))
		}
		took := b.until(20*time.Minute, "every good one confirmed", func() bool { return b.in(ledger.Confirmed) == good+1 })
		t.Logf("%d good documents behind %d poisoned ones: confirmed within %s", good, poisoned, took.Round(time.Second))
	})
}

// TestNoTrialNeedsNoLedger: documents that wait for a tripped breaker are not read while none may be its trial.
func TestNoTrialNeedsNoLedger(t *testing.T) {
	virtual(t, func(b *bench) {
		h := &hook{}
		h.under(b)
		b.start()
		b.created("X", invoice("X"))
		b.fake.SetLicence(false)
		b.many("A", 300)
		b.until(10*time.Minute, "closed and marked", func() bool { return !b.eng.Status().Stops[0].Open })
		b.pass(time.Minute)
		before := h.gets.Load()
		b.pass(time.Hour)
		if got := h.gets.Load() - before; got > 300 {
			t.Errorf("%d reads of the ledger in an hour for 300 documents that wait", got)
		}
		if r := b.row("A299"); r.State != ledger.Queued || r.Reason != ledger.Blocked {
			t.Errorf("A299 is %s(%s)", r.State, r.Reason)
		}
		b.fake.SetLicence(true)
		b.until(time.Hour, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 301 })
	})
}

// TestQuotaIsWaitedFor: a used-up budget of requests parks nothing, and at its reset the documents go on by themselves.
func TestQuotaIsWaitedFor(t *testing.T) {
	virtual(t, func(b *bench) {
		reset := time.Now().Add(6 * time.Hour)
		b.quota = &budget{left: 20, reset: reset}
		b.start()
		b.created("X", invoice("X"))
		b.many("A", 300)
		b.until(10*time.Minute, "closed", func() bool {
			g := b.eng.Status().Stops[0]
			return !g.Open && g.Reason == "quota" && g.NextTry.Equal(reset) && g.Remedy != ""
		})
		all, _ := b.wire()
		b.pass(5 * time.Hour)
		if n, _ := b.wire(); n != all {
			t.Errorf("%d requests without a budget", n-all)
		}
		if n := b.in(ledger.Parked) + b.in(ledger.Maybe); n > 0 {
			t.Errorf("%d documents are parked or in doubt", n)
		}
		b.until(2*time.Hour, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 301 })
	})
}

// TestRefusalIsWaitedFor: a 429 holds every document back for as long as it asks, and costs none of them a maybe.
func TestRefusalIsWaitedFor(t *testing.T) {
	virtual(t, func(b *bench) {
		h := &hook{}
		var gets atomic.Int64 // of rows that wait; confirmed ones wait for their read-back
		h.get = func(ctx context.Context, id ledger.ID) (ledger.Row, error) {
			r, err := h.Ledger.Get(ctx, id)
			if r.State == ledger.Queued {
				gets.Add(1)
			}
			return r, err
		}
		h.under(b)
		b.start()
		b.grown()
		b.fake.Script(flexitest.Fault{Kind: flexitest.TooMany, RetryAfter: "600"})
		gets.Store(0)
		begun := time.Now()
		b.many("A", 100)
		b.pass(9 * time.Minute)
		if g := b.eng.Status().Stops[0]; g.Open || g.Reason != "patience" || g.NextTry.Sub(begun) < 10*time.Minute {
			t.Errorf("the status says %+v", g)
		}
		if n, rows := gets.Load(), int64(b.in(ledger.Queued)); n > 20*rows || rows == 0 {
			t.Errorf("%d reads of the ledger for %d documents that wait", n, rows)
		}
		asked := time.Time{} // until then Flexi's word for patience is on its way
		for _, r := range b.fake.Requests() {
			switch {
			case r.Status == 429:
				asked = r.Time.Add(r.Duration)
			case r.Kind == flexitest.Write && !asked.IsZero() && r.Time.After(asked):
				t.Errorf("request %d is a write, %s after Flexi asked for patience", r.N, r.Time.Sub(asked))
			}
		}
		if asked.IsZero() {
			t.Error("Flexi never asked for patience")
		}
		took := b.until(20*time.Minute, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 160 })
		if total := took + 9*time.Minute; total > 20*time.Minute {
			t.Errorf("confirmed %s after %s", total, begun)
		}
		for i := range 100 {
			if n := b.row(fmt.Sprint("A", i)).Work.Opens; n > 0 {
				t.Fatalf("A%d was in doubt %d times", i, n)
			}
		}
	})
}
