package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

// breaker is the tripped breaker of issued invoices for a reason.
func (b *bench) breaker(reason string) (verify.Stop, bool) {
	for _, g := range b.eng.Status().Stops {
		if g.Evidence == "faktura-vydana" && g.Reason == reason {
			return g, true
		}
	}
	return verify.Stop{}, false
}

func (b *bench) confirmedOf(prefix string, n int) func() bool {
	return func() bool {
		for i := range n {
			if b.row(fmt.Sprint(prefix, i)).State != ledger.Confirmed {
				return false
			}
		}
		return true
	}
}

// TestLooksThatCannotBecomeValid: a server whose lists prove nothing is found out within a minute, nothing is written blindly,
// and it is not asked for ever. What the address can mend is mended by it, and a smaller question by asking it.
func TestLooksThatCannotBecomeValid(t *testing.T) {
	pick := testenv.OneOf(t, 3)
	for _, c := range []struct {
		name   string
		manner func(*flexitest.Server)
		stops  bool
	}{
		{"count without effect in a body", func(s *flexitest.Server) { s.IgnoreInBody("add-row-count") }, false},
		{"limit without effect in a body", func(s *flexitest.Server) { s.IgnoreInBody("limit") }, false},
		{"limit without effect", func(s *flexitest.Server) { s.IgnoreParams("limit") }, false},
		{"empty external ids shown", func(s *flexitest.Server) { s.ShowEmptyExternalIDs(true) }, false},
		{"count without effect", func(s *flexitest.Server) { s.IgnoreParams("add-row-count") }, true},
		{"unknown external id refused", func(s *flexitest.Server) { s.RefuseUnknownExt(true) }, true},
		{"control never comes back", func(s *flexitest.Server) { s.LookLies(flexitest.LoseControl, 0) }, true},
		{"every list too large", func(s *flexitest.Server) { s.LimitAnswers(10, 413) }, true},
	} {
		if !pick.Take() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				const docs = 40
				b.start()
				b.created("X", invoice("X"))
				b.pass(3 * time.Minute)
				c.manner(b.fake)
				for i := range docs {
					b.push(flexi.Create, fmt.Sprint("D", i), invoice(fmt.Sprint("D", i)))
				}
				if !c.stops {
					b.until(time.Minute, "every document confirmed", b.confirmedOf("D", docs))
					b.pass(5 * time.Minute) // read back
					if g, tripped := b.breaker("looks"); tripped || len(b.fake.Records("faktura-vydana")) != docs+1 {
						t.Fatalf("%+v", g)
					}
					return
				}
				b.until(time.Minute, "said", func() bool { _, tripped := b.breaker("looks"); return tripped })
				g, _ := b.breaker("looks")
				if !slices.Contains(b.notices.alerts(), "looks") || !strings.Contains(g.Remedy, "flexid doctor") {
					t.Errorf("alerts %v, breaker %+v", b.notices.alerts(), g)
				}
				b.pass(time.Minute)
				said := 0
				for i := range docs {
					if r := b.row(fmt.Sprint("D", i)); r.State != ledger.Queued || r.Reason == "" {
						t.Fatalf("%s is %s(%s)", r.Key, r.State, r.Reason)
					} else if r.Work != nil && r.Work.Story.Problem != nil {
						said++
					}
				}
				if said == 0 {
					t.Error("no row says why it waits")
				}
				b.wantWrites(1)
				before := b.fake.Count("read")
				b.pass(6 * time.Hour)
				if n := b.fake.Count("read") - before; n > 150 {
					t.Errorf("%d reads in six hours", n)
				}
				if n := len(b.notices.alerts()); n > 4 {
					t.Errorf("%d alerts: %v", n, b.notices.alerts())
				}
				b.fake.IgnoreParams()
				b.fake.RefuseUnknownExt(false)
				b.fake.LookLies(flexitest.Honest, 0)
				b.fake.LimitAnswers(0, 0)
				b.until(40*time.Minute, "every document confirmed", b.confirmedOf("D", docs))
				if r := b.row("D0"); r.Work.Story.Problem != nil {
					t.Errorf("it still says %q", r.Work.Story.Problem.Text)
				}
			})
		})
	}
}

// TestOneThatSpoilsThePack: a document that Flexi refuses to look up waits and says so; the others of its pack go on.
func TestOneThatSpoilsThePack(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.fake.RefuseFilterBy("ZLY")
		for i := range 20 {
			b.push(flexi.Create, fmt.Sprint("D", i), invoice(fmt.Sprint("D", i)))
			if i == 7 {
				b.push(flexi.Create, "B", invoice("ZLY"))
			}
		}
		b.until(time.Minute, "the others confirmed", b.confirmedOf("D", 20))
		b.until(time.Minute, "said", func() bool { return slices.Contains(b.notices.alerts(), "looks") })
		if r := b.row("B"); r.State != ledger.Queued || r.Reason != ledger.Waiting || r.Work.Story.Problem == nil {
			t.Fatalf("%s", pretty(r))
		}
		if g, tripped := b.breaker("looks"); tripped {
			t.Fatalf("%+v", g)
		}
		before := b.fake.Count("read")
		b.pass(6 * time.Hour)
		if n := b.fake.Count("read") - before; n > 200 {
			t.Errorf("%d reads in six hours", n)
		}
		b.fake.RefuseFilterBy("")
		b.becomes("B", 20*time.Minute, ledger.Confirmed, "")
	})
}

// TestLargeAnswersAreAskedForInParts: read-backs whose answer does not fit, whatever the box in between says of it.
func TestLargeAnswersAreAskedForInParts(t *testing.T) {
	for _, status := range []int{413, 500, 502} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.fake.PadRecords(5000)
				b.fake.LimitAnswers(60_000, status)
				for i := range 60 {
					b.push(flexi.Create, fmt.Sprint("D", i), invoice(fmt.Sprint("D", i)))
				}
				b.until(5*time.Minute, "confirmed", b.confirmedOf("D", 60))
				b.until(10*time.Minute, "read back", func() bool {
					for i := range 60 {
						if !b.row(fmt.Sprint("D", i)).ReadBack.IsZero() {
							return false
						}
					}
					return true
				})
				if _, tripped := b.breaker("looks"); tripped {
					t.Error("writes stopped")
				}
				if n := b.fake.Count("read"); n > 150 {
					t.Errorf("%d reads", n)
				}
			})
		})
	}
}

// TestDoubtThatCannotBeLookedAt: a document in doubt says that it cannot be looked up, and is settled when it can.
func TestDoubtThatCannotBeLookedAt(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.SilenceAfterCommit})
		b.push(flexi.Create, "A", invoice("A"))
		b.until(time.Minute, "sent", func() bool { return b.writes() == 2 })
		b.fake.IgnoreParams("add-row-count")
		b.until(5*time.Minute, "in doubt", func() bool { return b.row("A").State == ledger.Maybe })
		b.until(time.Minute, "said", func() bool {
			r := b.row("A")
			_, tripped := b.breaker("looks")
			return tripped && r.Work.Story.Problem != nil
		})
		b.pass(3 * time.Hour)
		b.wantWrites(2)
		b.fake.IgnoreParams()
		b.becomes("A", 20*time.Minute, ledger.Confirmed, "")
		b.wantRecords("A", 1)
	})
}
