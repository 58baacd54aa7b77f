package verify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// of matches writes of documents whose key begins with a prefix.
func of(prefix string) func(flexitest.Request) bool {
	return func(r flexitest.Request) bool {
		return slices.ContainsFunc(r.Docs[0].Keys, func(k string) bool { return strings.HasPrefix(k, "ext:FLEXID:"+prefix) })
	}
}

// TestGuiltyAtBothEnds: documents for which Flexi refuses the whole request without naming one trip the breaker. They
// stand at both ends of the queue, so they must not be all that ever tries it.
func TestGuiltyAtBothEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
	}{
		{"at the head", []string{"G0", "A0", "A1", "A2", "A3"}},
		{"at both ends", []string{"G0", "A0", "A1", "A2", "A3", "G1"}},
		{"most of them", []string{"G0", "G1", "G2", "A0", "G3", "A1", "G4", "G5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				b.fake.OnWrite(0, of("G"), flexitest.Fault{Kind: flexitest.ServerError, Status: 400, Says: flexitest.Envelope})
				good, guilty := 0, 0
				for _, key := range c.keys {
					b.push(flexi.Create, key, invoice(key))
					if b.pass(10 * time.Millisecond); key[0] == 'A' {
						good++
					} else {
						guilty++
					}
				}
				b.until(12*time.Hour, "the good ones confirmed", func() bool { return b.in(ledger.Confirmed) == 1+good })
				for _, key := range c.keys {
					b.wantRecords(key, map[byte]int{'A': 1}[key[0]])
				}
				// New ones go through, and so the guilty ones are told apart.
				for i := range 20 {
					b.push(flexi.Create, fmt.Sprint("N", i), invoice(fmt.Sprint("N", i)))
					b.pass(2 * time.Minute)
				}
				if n := b.in(ledger.Parked); n != guilty {
					t.Errorf("%d are parked: %s", n, pretty(b.row("G0")))
				}
			})
		})
	}
}

// TestWaitingOnesDoNotKeepADoorShut: documents that wait for another one stand at the head of the queue and cannot try a
// tripped breaker.
func TestWaitingOnesDoNotKeepADoorShut(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.fake.Type("adresar", map[string]any{"kod": "F", "nazev": "Jiná"})
		b.push(flexi.Create, "F", doc{"@evidence": "adresar", "kod": "F", "nazev": "Firma"})
		b.until(time.Minute, "a conflict", func() bool { return b.in(ledger.Parked) == 1 })
		b.many("W", 100, "firma", "code:F")
		b.fake.SetLicence(false)
		b.many("A", 10)
		b.until(10*time.Minute, "closed", func() bool { return !b.eng.Status().Stops[0].Open })
		b.pass(10 * time.Minute)
		b.fake.SetLicence(true)
		b.until(time.Hour, "those that wait for nothing confirmed", func() bool { return b.in(ledger.Confirmed) == 11 })
	})
}

// TestMateIsGone: a document that shared the request, and whose row a person deleted, proves nothing and holds nobody up.
func TestMateIsGone(t *testing.T) {
	virtual(t, func(b *bench) {
		h := &hook{}
		gone := ledger.RowID("firma", "faktura-vydana", flexi.NewExternalID("FLEXID", "", "A3"))
		h.under(b)
		b.start()
		b.grown()
		b.first("A4", flexitest.Fault{Kind: flexitest.ServerError, Status: 500})
		b.many("A", 10)
		b.until(time.Minute, "in doubt", func() bool { return b.in(ledger.Maybe) == 10 })
		b.halt()
		h.get = func(ctx context.Context, id ledger.ID) (ledger.Row, error) {
			if id == gone {
				return ledger.Row{}, fmt.Errorf("row %s: %w", id, ledger.ErrNoRow)
			}
			return h.Ledger.Get(ctx, id)
		}
		b.start()
		b.until(3*time.Hour, "the others confirmed", func() bool { return b.in(ledger.Confirmed) == 69 })
	})
}

// TestFenceBrokenInAGroup: the stop does not hang on whether the outcome of the request's first document could be stored.
func TestFenceBrokenInAGroup(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.LookFirst = false
		h := &hook{}
		lost := false
		h.settle = func(ctx context.Context, rows []*ledger.Row) []error {
			if r := rows[0]; r.Key == "A0" && r.State == ledger.Maybe && !lost {
				lost = true
				return each(rows, &ledger.ConflictError{})
			}
			return h.Ledger.Settle(ctx, rows)
		}
		h.under(b)
		b.start()
		b.grown()
		b.fake.IgnoreFence(true)
		b.fake.Type("faktura-vydana", map[string]any{"kod": "A3", "id": "ext:FLEXID:A3", "typDokl": "code:FAKTURA", "varSym": "20260001", "datVyst": "2026-11-30", "popis": "Služby"})
		b.many("A", 10)
		b.pass(time.Minute)
		if sizes := b.sizes(); sizes[0] != 10 {
			t.Fatalf("sizes %v", sizes)
		}
		if g := b.eng.Status().Stops[0]; g.Open || g.Reason != "fence" || !g.NeedsYou {
			t.Errorf("the breaker says %+v", g)
		}
	})
}

// TestTrialsDoNotPileUp: while a write hangs nothing may try a tripped breaker, so nothing is fetched and looked up for it.
func TestTrialsDoNotPileUp(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.Pack, b.set.SettleNoAnswer = 1, time.Hour
		b.start()
		b.many("G", 60)
		b.until(time.Minute, "confirmed", func() bool { return b.in(ledger.Confirmed) == 60 })
		b.fake.OnWrite(0, of("H"), flexitest.Fault{Kind: flexitest.Silence})
		b.fake.OnWrite(0, of("B"), flexitest.Fault{Kind: flexitest.ServerError, Status: 502})
		b.many("H", 1)
		b.pass(100 * time.Millisecond)
		b.many("B", 2) // of two evidences: what one shows would close that one alone, and what hangs would be no hindrance
		b.push(flexi.Create, "B2", doc{"@evidence": "adresar", "kod": "B2", "nazev": "Firma"})
		b.until(10*time.Second, "closed", func() bool { return !b.eng.Status().Stops[0].Open })
		b.many("A", 100)
		b.pass(5 * time.Second)
		b.fake.ResetLog()
		b.pass(2 * time.Minute)
		_, writes := b.wire()
		if st := b.eng.Status(); st.InFlight != 1 || writes > 0 {
			t.Fatalf("%d in flight, %d writes", st.InFlight, writes)
		}
		reads := 0 // of those that wait, not of those in doubt
		for _, r := range b.fake.Requests() {
			if asked := fmt.Sprint(r.Path, r.Query, string(r.Body)); strings.Contains(asked, "FLEXID:A") || strings.Contains(asked, "FLEXID%3AA") {
				reads++
			}
		}
		if reads > 2 {
			t.Errorf("%d look-ups for documents that cannot be sent yet", reads)
		}
		b.until(time.Hour, "the others confirmed", func() bool { return b.in(ledger.Confirmed) == 160 })
	})
}
