package verify_test

import (
	"fmt"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// TestBadDocumentOfFewWords: at an ERP whose refusals say nothing but a message, a document that it does not take is told
// from a stale role, and stops those beside it for seconds, not for minutes.
func TestBadDocumentOfFewWords(t *testing.T) {
	bad := func() doc { return invoice("BAD", "firma", "code:NENI") }
	t.Run("among others", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("X", invoice("X"))
			b.fake.BareRefusals(true)
			b.push(flexi.Create, "BAD", bad())
			for i := range 20 {
				b.many(fmt.Sprint("A", i, "-"), 1)
				b.pass(time.Second)
			}
			took := b.until(time.Minute, "all over", func() bool { return b.in(ledger.Confirmed) == 21 && b.in(ledger.Parked) == 1 })
			if took > 15*time.Second {
				t.Errorf("all over %s after the last came", took)
			}
			if r := b.row("BAD"); r.Reason != ledger.Rejected || r.Work.Story.Problem == nil || len(r.Work.Story.Problem.Errors) == 0 {
				t.Errorf("BAD is %s", pretty(r))
			}
			for _, s := range b.stops() {
				if s != "faktura-vydana: refused" {
					t.Errorf("stopped: %s", s)
				}
			}
		})
	})
	t.Run("and one maybe", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("X", invoice("X"))
			b.fake.BareRefusals(true)
			b.first("ext:FLEXID:M", flexitest.Fault{Kind: flexitest.ServerError, Status: 500})
			b.push(flexi.Create, "M", invoice("M"))
			b.push(flexi.Create, "BAD", bad())
			took := b.until(time.Hour, "M is confirmed", func() bool { return b.row("M").State == ledger.Confirmed })
			if took > 90*time.Second { // 30 s are the settle time
				t.Errorf("M was confirmed after %s", took)
			}
			b.wantRecords("M", 1)
			for i := range 12 { // each accepted one lets the bad one prove once more that it is at fault itself
				key, begun := fmt.Sprint("LATER", i), time.Now()
				b.push(flexi.Create, key, invoice(key))
				b.becomes(key, time.Minute, ledger.Confirmed, "")
				if took := time.Since(begun); took > 15*time.Second {
					t.Errorf("%s took %s", key, took)
				}
				b.pass(10 * time.Second)
			}
			b.becomes("BAD", time.Minute, ledger.Parked, ledger.Rejected)
		})
	})
	t.Run("alone it waits", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("X", invoice("X"))
			b.fake.BareRefusals(true)
			b.push(flexi.Create, "BAD", bad())
			b.pass(30 * time.Minute)
			if r := b.row("BAD"); r.State != ledger.Queued || r.Reason != ledger.Blocked {
				t.Errorf("BAD is %s(%s): nothing tells whether it is the document", r.State, r.Reason)
			}
			begun := time.Now()
			b.push(flexi.Create, "P", doc{"@evidence": "adresar", "kod": "P", "nazev": "Firma"})
			b.until(time.Minute, "another evidence goes on", func() bool { return b.rowOf("adresar", "P").State == ledger.Confirmed })
			b.push(flexi.Create, "A", invoice("A"))
			b.becomes("A", time.Minute, ledger.Confirmed, "")
			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("those that came later took %s", took)
			}
		})
	})
	t.Run("a stale role", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("X", invoice("X"))
			b.fake.BareRefusals(true)
			b.fake.MakeStale("flexid")
			b.many("A", 30)
			b.until(time.Minute, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 31 })
			b.wantNoStop()
		})
	})
}

// TestEvidenceMissingForAMoment: an evidence that the list lacks because of a right, a module or a stale role parks nothing;
// its documents go on by themselves after the mend. A name that is none is parked.
func TestEvidenceMissingForAMoment(t *testing.T) {
	contact := func(key string) doc { return doc{"@evidence": "adresar", "kod": key, "nazev": "Firma " + key} }
	state := func(b *bench, key string) ledger.State { return b.rowOf("adresar", key).State }
	t.Run("hidden for ten minutes", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.fake.HideEvidence("adresar", true)
			b.start()
			b.created("X", invoice("X"))
			b.push(flexi.Create, "P", contact("P"))
			b.pass(10 * time.Minute)
			if s := state(b, "P"); s != ledger.Queued {
				t.Fatalf("P is %s", s)
			}
			if g := b.eng.Status().Stops[0]; g.Evidence != "adresar" || g.Reason != "right" || g.Remedy == "" {
				t.Errorf("the status says %+v", g)
			}
			begun := time.Now()
			b.push(flexi.Create, "A", invoice("A"))
			b.becomes("A", time.Minute, ledger.Confirmed, "")
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("an invoice took %s", took)
			}
			b.fake.HideEvidence("adresar", false)
			b.until(2*time.Minute, "confirmed after the mend", func() bool { return state(b, "P") == ledger.Confirmed })
		})
	})
	t.Run("hidden from a stale role", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.fake.HideFromStale("adresar", true)
			b.fake.MakeStale("flexid")
			b.start()
			b.push(flexi.Create, "P", contact("P"))
			b.until(30*time.Second, "confirmed", func() bool { return state(b, "P") == ledger.Confirmed })
			b.wantNoStop()
		})
	})
	t.Run("not importable for a stale role", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("X", invoice("X"))
			b.fake.SetImportStatus("adresar", "DISALLOWED")
			b.push(flexi.Create, "P", contact("P"))
			b.until(30*time.Second, "rejected", func() bool { return state(b, "P") == ledger.Parked })
			b.fake.SetImportStatus("adresar", "SUPPORTED")
			b.pass(2 * time.Second)
			b.push(flexi.Create, "Q", contact("Q"))
			b.until(30*time.Second, "confirmed", func() bool { return state(b, "Q") == ledger.Confirmed })
		})
	})
	t.Run("a name that is none", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.push(flexi.Create, "P", doc{"@evidence": "faktura-vidana", "kod": "P"})
			b.until(30*time.Second, "parked", func() bool { return b.rowOf("faktura-vidana", "P").Reason == ledger.Unreadable })
			b.wantNoStop()
		})
	})
}
