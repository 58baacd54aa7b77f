package verify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify/ledger"
)

// TestSavesAndSaysOtherwise: an ERP that commits every write and answers 500, or whose answers are all lost, is at work. Its
// documents are confirmed by their looks, at no less than a third of the pace with healthy answers, and nothing is stopped.
func TestSavesAndSaysOtherwise(t *testing.T) {
	pace := func(t *testing.T, pack, n int, f flexitest.Fault) (took time.Duration) {
		virtual(t, func(b *bench) {
			b.set.Pack = pack
			b.fake.Slow(140 * time.Millisecond)
			b.start()
			b.created("X", invoice("X"))
			b.fake.OnWrite(0, func(flexitest.Request) bool { return true }, f)
			b.fake.ResetLog()
			b.many("A", n)
			took = b.until(2*time.Hour, "all confirmed", func() bool { return b.in(ledger.Confirmed) == n+1 })
			b.wantNoStop()
			kods := b.kods()
			for i := range n {
				if kods[fmt.Sprint("A", i)] != 1 {
					t.Fatalf("%d records of A%d", kods[fmt.Sprint("A", i)], i)
				}
			}
			sent := 0
			for _, s := range b.sizes() {
				sent += s
			}
			if sent != n {
				t.Errorf("%d documents were sent for %d", sent, n)
			}
		})
		return took
	}
	company := 300
	if testenv.Wide() {
		company = 1000
	}
	for pack, n := range map[int]int{1: 150, 20: company} {
		healthy := pace(t, pack, n, flexitest.Fault{})
		for name, f := range map[string]flexitest.Fault{
			"500 done":          {Kind: flexitest.CommitThenStatus, Status: 500},
			"lost answers done": {Kind: flexitest.ResetAfterCommit},
		} {
			t.Run(fmt.Sprintf("%s, pack %d", name, pack), func(t *testing.T) {
				took := pace(t, pack, n, f)
				t.Logf("%d documents: %s with healthy answers, %s", n, healthy, took)
				if took > 3*healthy {
					t.Errorf("%d documents took %s, with healthy answers %s", n, took, healthy)
				}
			})
		}
	}
}

// TestFailsAndSaysSo is the other half: the same answers from an ERP that does nothing stop the writes after a streak.
func TestFailsAndSaysSo(t *testing.T) {
	for name, f := range map[string]flexitest.Fault{
		"500":          {Kind: flexitest.ServerError, Status: 500},
		"lost answers": {Kind: flexitest.ResetAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.Pack = 1
				b.start()
				b.grown()
				b.fake.OnWrite(0, func(flexitest.Request) bool { return true }, f)
				b.many("A", 50)
				b.until(time.Minute, "stopped", func() bool { return len(b.stops()) > 0 })
				b.pass(time.Second)
				if w := b.writes(); w > 3+3 { // those that were under way, at the limit of four
					t.Errorf("%d writes before the stop", w)
				}
				b.fake.NoFaults()
				b.until(3*time.Hour, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 60+50 })
			})
		})
	}
}

// TestOddAnswers: answers that are odd but harmless are settled by a look at once: one send each, nothing stopped, and a later
// event of the document does not wait for a settle time.
func TestOddAnswers(t *testing.T) {
	for name, set := range map[string]func(*flexitest.Server){
		"updated beside created":     func(s *flexitest.Server) { s.UpdatedBeside(true) },
		"no counters":                func(s *flexitest.Server) { s.OmitStats(true) },
		"no request-id":              func(s *flexitest.Server) { s.OmitRequestIDs(true) },
		"request-id in lower case":   func(s *flexitest.Server) { s.SpellRequestIDs(strings.ToLower) },
		"request-id as a Flexi path": func(s *flexitest.Server) { s.SpellRequestIDs(func(id string) string { return "faktura-vydana/" + id }) },
		"request-id that says naught": func(s *flexitest.Server) {
			s.SpellRequestIDs(func(string) string { return "1" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				set(b.fake)
				b.start()
				const n = 100
				b.many("A", n)
				took := b.until(time.Minute, "all confirmed", func() bool { return b.in(ledger.Confirmed) == n })
				if took > 15*time.Second {
					t.Errorf("confirmed after %s", took)
				}
				kods := b.kods()
				for i := range n {
					if r := b.row(fmt.Sprint("A", i)); r.Sends != 1 || kods[r.Key] != 1 {
						t.Fatalf("A%d: %d sends, %d records", i, r.Sends, kods[r.Key])
					}
				}
				b.push(flexi.Update, "A7", doc{"popis": "Jinak"})
				b.push(flexi.Update, "A7", doc{"popis": "A jinak"})
				b.until(time.Minute, "changed twice", func() bool {
					r := b.row("A7")
					return r.State == ledger.Confirmed && r.Head == r.Tail && r.Head == 3
				})
				b.wantNoStop()
			})
		})
	}
}

// TestOddAnswerContradicted: what a look contradicts is bad after all.
func TestOddAnswerContradicted(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.Pack, b.set.Concurrency = 1, 1
		b.start()
		b.created("X", invoice("X"))
		b.fake.OmitStats(true)
		b.fake.Slow(50 * time.Millisecond)
		b.fake.HideWhen(func(r flexitest.Record) bool { return strings.HasPrefix(fmt.Sprint(r.Fields["kod"]), "A") })
		b.many("A", 10)
		b.until(time.Minute, "stopped", func() bool { return len(b.stops()) == 1 })
		if n := b.writes(); n > 1+3+2 {
			t.Errorf("%d writes", n)
		}
	})
}
