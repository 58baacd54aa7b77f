package verify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

func received(cis, firma string, more ...any) doc {
	d := doc{"@evidence": "faktura-prijata", "typDokl": "code:FAKTURA", "cisDosle": cis, "firma": firma, "datVyst": "2026-11-30", "varSym": "1"}
	for i := 0; i+1 < len(more); i += 2 {
		d[more[i].(string)] = more[i+1]
	}
	return d
}

// TestTwoSendersOneNumber: the second key is parked and names the first; one record.
func TestTwoSendersOneNumber(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.push(flexi.Create, "shop-1", invoice("FV-9"))
		b.push(flexi.Create, "erp-1", invoice("FV-9", "varSym", "8"))
		b.becomes("shop-1", time.Minute, ledger.Confirmed, "")
		r := b.becomes("erp-1", time.Minute, ledger.Parked, ledger.Duplicate)
		if !strings.Contains(r.Work.Story.Problem.Text, "faktura-vydana/shop-1") {
			b.t.Fatalf("the problem says %q", r.Work.Story.Problem.Text)
		}
		b.wantRecords("FV-9", 1)
		b.wantWrites(1)
	})
}

// TestNumberOfARejectedDocument is free again for another key.
func TestNumberOfARejectedDocument(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.push(flexi.Create, "k1", invoice("FV-9", "firma", "code:NENI"))
		b.becomes("k1", time.Minute, ledger.Parked, ledger.Rejected)
		b.push(flexi.Create, "k2", invoice("FV-9"))
		b.becomes("k2", time.Minute, ledger.Confirmed, "")
		b.wantRecords("FV-9", 1)
	})
}

// TestReceivedPairs: the supplier's number is unique with its partner only, whatever reference names the partner.
func TestReceivedPairs(t *testing.T) {
	virtual(t, func(b *bench) {
		one := b.fake.Type("adresar", map[string]any{"kod": "PRVNI", "nazev": "První"})
		b.fake.Type("adresar", map[string]any{"kod": "DRUHA", "nazev": "Druhá"})
		b.start()
		b.push(flexi.Create, "p1", received("77", "code:PRVNI"))
		b.push(flexi.Create, "p2", received("77", "code:DRUHA"))
		is := func(key string, s ledger.State, r ledger.Reason) {
			b.until(time.Minute, key+" "+string(s), func() bool {
				x := b.rowOf("faktura-prijata", key)
				return x.State == s && x.Reason == r
			})
		}
		is("p1", ledger.Confirmed, "")
		is("p2", ledger.Confirmed, "")
		b.push(flexi.Create, "p3", received("77", fmt.Sprint(one))) // the first partner by its Flexi id
		is("p3", ledger.Parked, ledger.Duplicate)
		if n := len(b.fake.Records("faktura-prijata")); n != 2 {
			b.t.Fatalf("%d records", n)
		}
	})
}

// TestLostAnswerOfADrawnNumber: without a number of ours the external id alone finds the record, and the number is told.
func TestLostAnswerOfADrawnNumber(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAfterCommit})
		b.push(flexi.Create, "A", invoice(""))
		r := b.becomes("A", time.Minute, ledger.Confirmed, "")
		if r.Number == "" || len(b.records(r.Number)) != 1 || len(b.fake.Records("faktura-vydana")) != 1 {
			b.t.Fatalf("number %q, records %d", r.Number, len(b.fake.Records("faktura-vydana")))
		}
	})
}

// TestWaitsFor: an invoice waits for its partner that is on its way, and for nothing else.
func TestWaitsFor(t *testing.T) {
	for _, c := range []struct{ name, ref string }{{"by code", "code:NOVA"}, {"by our external id", "ext:FLEXID:NOVA"}} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.fake.Type("adresar", map[string]any{"kod": "JINA", "nazev": "Jiná"})
				b.start()
				b.first("NOVA", flexitest.Fault{Kind: flexitest.LateCommit, Delay: time.Minute})
				b.push(flexi.Create, "NOVA", doc{"@evidence": "adresar", "kod": "NOVA", "nazev": "Nová"})
				b.push(flexi.Create, "A", invoice("A", "firma", c.ref))
				b.push(flexi.Create, "B", invoice("B"))
				b.becomes("B", 30*time.Second, ledger.Confirmed, "")
				if r := b.row("A"); r.Reason != ledger.WaitsFor || r.Work.Story.Problem.Link != "adresar/NOVA" {
					b.t.Fatalf("A is %s(%s), %+v", r.State, r.Reason, r.Work.Story.Problem)
				}
				b.becomes("A", time.Hour, ledger.Confirmed, "")
				b.wantWrites(3)
			})
		})
	}
}

// TestReadBack: columns that Flexi drops without a word are found.
func TestReadBack(t *testing.T) {
	virtual(t, func(b *bench) {
		b.fake.ReadOnlyColumns("faktura-vydana", "datSplat")
		b.start()
		b.push(flexi.Create, "A", invoice("A", "datSplat", "2026-12-24"))
		r := b.becomes("A", 6*time.Minute, ledger.Parked, ledger.Conflict)
		if d := r.Work.Story.Problem.Differ; len(d) != 1 || d[0].Field != "datSplat" || d[0].Sent != "2026-12-24" {
			b.t.Fatalf("differences %+v", d)
		}
		if a := b.notices.alerts(); len(a) != 1 {
			b.t.Fatalf("alerts %v", a)
		}
	})
}

// TestPersonTypesTheSameMeanwhile: the attempt was lost, a person typed the document by hand; the record gets our external
// id so that the lost request cannot make a second one.
func TestPersonTypesTheSameMeanwhile(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.first("A", flexitest.Fault{Kind: flexitest.LateCommit, Delay: 10 * time.Minute})
		b.push(flexi.Create, "A", invoice("A"))
		b.until(time.Minute, "maybe", func() bool { return b.row("A").State == ledger.Maybe })
		b.fake.Type("faktura-vydana", map[string]any(invoice("A")))
		b.becomes("A", time.Hour, ledger.Confirmed, ledger.Adopted)
		b.pass(time.Hour)
		b.wantRecords("A", 1)
	})
}

// TestRestored: ids that fall stop all writes until a person accepts.
func TestRestored(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		snap := b.fake.Snapshot()
		for i := range 5 {
			key := fmt.Sprint("A", i)
			b.created(key, invoice(key))
		}
		b.pass(2 * time.Minute)
		b.fake.Restore(snap)
		b.push(flexi.Create, "B", invoice("B"))
		b.until(10*time.Minute, "stopped", func() bool {
			for _, g := range b.eng.Status().Stops {
				if g.Reason == "restored" && g.NeedsYou {
					return true
				}
			}
			return false
		})
		must(b.t, b.eng.AcceptCompany(b.t.Context(), "restored", "jana", "obnova ze zálohy"))
		b.until(time.Hour, "the missing ones are with a person", func() bool {
			return b.row("A0").Reason == ledger.Conflict && b.row("A4").Reason == ledger.Conflict
		})
	})
}
