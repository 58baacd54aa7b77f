package verify_test

import (
	"fmt"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// TestBlockedParksNothing: a refusal that is about us stops the writes, says why and what to do, and after the remedy all
// documents go through by themselves.
func TestBlockedParksNothing(t *testing.T) {
	cases := []struct {
		name   string
		break_ func(b *bench)
		mend   func(b *bench)
		reason string
		most   int // writes that may be sent while the breaker is tripped, trials included
	}{
		{"no write licence", func(b *bench) { b.fake.SetLicence(false) }, func(b *bench) { b.fake.SetLicence(true) }, "licence", 8},
		{"no right to the evidence", func(b *bench) { b.fake.SetRight("faktura-vydana", false) }, func(b *bench) { b.fake.SetRight("faktura-vydana", true) }, "right", 8},
		{"password changed", func(b *bench) { b.fake.SetPassword("other") }, func(b *bench) { b.fake.SetPassword("secret") }, "login", 8},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				before := b.writes()
				c.break_(b)
				for i := range 30 {
					b.push(flexi.Create, fmt.Sprint("A", i), invoice(fmt.Sprint("A", i)))
				}
				b.until(5*time.Minute, "closed", func() bool {
					for _, g := range b.eng.Status().Stops {
						if !g.Open && g.Reason == c.reason && g.Remedy != "" {
							return true
						}
					}
					return false
				})
				b.pass(10 * time.Minute)
				for i := range 30 {
					if r := b.row(fmt.Sprint("A", i)); r.State != ledger.Queued && r.State != ledger.Maybe {
						b.t.Fatalf("A%d is %s(%s)", i, r.State, r.Reason)
					}
				}
				if n := b.writes() - before; n > c.most {
					b.t.Fatalf("%d writes while the breaker is tripped", n)
				}
				c.mend(b)
				b.until(time.Hour, "all confirmed", func() bool {
					for i := range 30 {
						if b.row(fmt.Sprint("A", i)).State != ledger.Confirmed {
							return false
						}
					}
					return true
				})
				for i := range 30 {
					b.wantRecords(fmt.Sprint("A", i), 1)
				}
			})
		})
	}
}

// TestOutage: ten minutes without the ERP cost a handful of writes, and everything is confirmed afterwards.
func TestOutage(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		before := b.writes()
		b.fake.SetDown(true)
		const n = 200
		for i := range n {
			b.push(flexi.Create, fmt.Sprint("A", i), invoice(fmt.Sprint("A", i)))
		}
		b.pass(10 * time.Minute)
		if w := b.writes() - before; w > 3+4 {
			b.t.Fatalf("%d writes sent into the outage", w)
		}
		b.fake.SetDown(false)
		b.until(2*time.Hour, "all confirmed", func() bool { return b.eng.Status().Documents["confirmed"] == n+1 })
		if w := b.writes() - before; w > n+10 {
			b.t.Fatalf("%d writes for %d documents", w, n)
		}
	})
}

// TestOnlySuspectDocuments: when every waiting document had a maybe, the breaker is still reset.
func TestOnlySuspectDocuments(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		for i := range 5 {
			key := fmt.Sprint("A", i)
			b.first(key, flexitest.Fault{Kind: flexitest.ServerError, Status: 500})
			b.push(flexi.Create, key, invoice(key))
		}
		b.until(2*time.Hour, "all confirmed", func() bool { return b.eng.Status().Documents["confirmed"] == 6 })
		for i := range 5 {
			b.wantRecords(fmt.Sprint("A", i), 1)
		}
	})
}

// TestLyingLooks: a look that cannot be trusted is no absence, and nothing is sent on its word.
func TestLyingLooks(t *testing.T) {
	for _, c := range []struct {
		name string
		lie  flexitest.Lie
	}{{"rights lost", flexitest.LostRights}, {"control missing", flexitest.LoseControl}} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				b.first("A", flexitest.Fault{Kind: flexitest.LateCommit, Delay: 20 * time.Second})
				b.push(flexi.Create, "A", invoice("A"))
				b.until(time.Minute, "sent", func() bool { return len(b.fake.Writes("A")) == 1 })
				b.fake.LookLies(c.lie, 0)
				b.pass(2 * time.Hour)
				if n := len(b.fake.Writes("A")); n != 1 {
					b.t.Fatalf("%d writes while looks lied", n)
				}
				b.fake.LookLies(flexitest.Honest, 0)
				b.becomes("A", time.Hour, ledger.Confirmed, "")
				b.wantRecords("A", 1)
			})
		})
	}
}

// TestNoFence: where Flexi does not keep our external ids an absence never permits a resend; a person decides.
func TestNoFence(t *testing.T) {
	virtual(t, func(b *bench) {
		b.fake.DropExternalIDs(true)
		b.start()
		b.created("X", invoice("X"))
		b.first("A", flexitest.Fault{Kind: flexitest.ResetAnswer})
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", 2*time.Hour, ledger.Parked, ledger.Unknown)
		if n := len(b.fake.Writes("A")); n != 1 {
			b.t.Fatalf("%d writes", n)
		}
		b.wantRecords("A", 0)
	})
}

// TestFenceBroken: a create that the ERP took for an update stops the evidence at once.
func TestFenceBroken(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.LookFirst = false
		b.fake.IgnoreFence(true)
		b.fake.Type("faktura-vydana", map[string]any(invoice("A", "id", "ext:FLEXID:A")))
		b.start()
		b.push(flexi.Create, "A", invoice("A"))
		b.until(time.Minute, "stopped", func() bool {
			for _, g := range b.eng.Status().Stops {
				if g.Evidence == "faktura-vydana" && g.Reason == "fence" && g.NeedsYou {
					return true
				}
			}
			return false
		})
		b.push(flexi.Create, "B", invoice("B"))
		b.pass(time.Hour)
		if n := len(b.fake.Writes("B")); n != 0 {
			b.t.Fatalf("%d writes of B while they were stopped", n)
		}
		must(b.t, b.eng.ResumeWrites(b.t.Context(), "faktura-vydana", "jana", "zkontrolováno"))
		b.becomes("B", time.Hour, ledger.Confirmed, "")
	})
}
