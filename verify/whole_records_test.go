package verify_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// TestResendWithADrawnNumber: a record that is made again gets a number anew, and that one is shown and owned.
func TestResendWithADrawnNumber(t *testing.T) {
	virtual(t, func(b *bench) {
		b.setBack(0, func(b *bench) { b.push(flexi.Create, "A", invoice("")) }, updates("varSym", "5"))
		old := b.row("A").Number
		b.typed(invoice("")) // somebody gets the number that the restore set free
		must(b.t, b.decide("A", verify.DecideResend))
		b.until(time.Hour, "confirmed", func() bool { return b.row("A").State == ledger.Confirmed })
		b.pass(time.Hour)
		row, recs := b.row("A"), b.fake.Find("faktura-vydana", "ext:FLEXID:A")
		if len(recs) != 1 || row.State != ledger.Confirmed || old == "" || row.Number != recs[0].Number {
			b.t.Fatalf("was %q, row %s(%s) %q, records %+v", old, row.State, row.Reason, row.Number, recs)
		}
		if got := fmt.Sprint(recs[0].Fields["varSym"]); got != "5" {
			b.t.Errorf("varSym %s", got)
		}
	})
}

// TestResendOfManyLostUpdates: of a document with more events than are read at once, what was folded of it is known as whole.
func TestResendOfManyLostUpdates(t *testing.T) {
	for kept := range 2 {
		virtual(t, func(b *bench) {
			b.setBack(kept, creates(), func(b *bench) {
				for i := range 70 {
					b.push(flexi.Update, "A", doc{[]string{"varSym", "popis"}[i%2]: fmt.Sprint(i)})
				}
				b.becomes("A", 10*time.Minute, ledger.Confirmed, "")
			})
			must(b.t, b.decide("A", verify.DecideResend))
			b.becomes("A", time.Hour, ledger.Confirmed, "")
			b.wantRecords("A", 1)
			b.wantFields(map[string]string{"varSym": "68", "popis": "69"})
		})
	}
}

// TestResendDoesNotTouchAStranger: the restore gave the document's Flexi id to somebody else's record.
func TestResendDoesNotTouchAStranger(t *testing.T) {
	for _, noIDs := range []bool{false, true} {
		virtual(t, func(b *bench) {
			b.fake.DropExternalIDs(noIDs)
			b.start()
			b.created("X", invoice("X"))
			snap := b.fake.Snapshot()
			id := b.created("A", invoice("A")).FlexiID
			for _, field := range []string{"varSym", "specSym"} {
				b.push(flexi.Update, "A", doc{field: "5"})
				b.becomes("A", time.Minute, ledger.Confirmed, "")
			}
			b.fake.Restore(snap)
			was := b.strangers(id)
			b.acceptCompany("restored")
			b.parkedFor("A", time.Hour)
			must(b.t, b.decide("A", verify.DecideResend))
			b.becomes("A", time.Hour, ledger.Confirmed, "")
			b.untouched(was)
			b.wantRecords("A", 1)
			b.wantFields(map[string]string{"varSym": "5", "specSym": "5"})
		})
	}
}

// TestResendOfALostPayable: the supplier's number is that of the whole document, and the row goes on owning it.
func TestResendOfALostPayable(t *testing.T) {
	virtual(t, func(b *bench) {
		b.fake.Type("adresar", map[string]any{"kod": "PRVNI", "nazev": "První"})
		b.start()
		b.created("X", invoice("X"))
		snap := b.fake.Snapshot()
		is := func(key string, s ledger.State) func() bool {
			return func() bool { return b.rowOf("faktura-prijata", key).State == s }
		}
		b.push(flexi.Create, "A", received("77", "code:PRVNI"))
		b.push(flexi.Update, "A", doc{"@evidence": "faktura-prijata", "specSym": "5"})
		b.until(time.Minute, "confirmed", is("A", ledger.Confirmed))
		b.fake.Restore(snap)
		b.acceptCompany("restored")
		b.until(time.Hour, "parked", is("A", ledger.Parked))
		_, err := b.eng.Decide(b.t.Context(), verify.Address{Evidence: "faktura-prijata", Key: "A"}, verify.Decision{What: verify.DecideResend, By: "jana", Why: "obnova"})
		must(b.t, err)
		b.until(time.Hour, "confirmed", is("A", ledger.Confirmed))
		recs := b.fake.Records("faktura-prijata")
		if len(recs) != 1 || fmt.Sprint(recs[0].Fields["cisDosle"]) != "77" || fmt.Sprint(recs[0].Fields["specSym"]) != "5" {
			b.t.Fatalf("%+v", recs)
		}
		b.push(flexi.Create, "B", received("77", "code:PRVNI"))
		b.until(time.Minute, "parked", is("B", ledger.Parked))
		if r := b.rowOf("faktura-prijata", "B"); r.Reason != ledger.Duplicate {
			b.t.Errorf("%s(%s)", r.State, r.Reason)
		}
	})
}

// TestResendOfTheWholeThatIsNotStored: the decision got as far as the event and not to the row. The document stands where it
// stood, and every decision about it goes on working.
func TestResendOfTheWholeThatIsNotStored(t *testing.T) {
	for what, writes := range map[verify.What]int{verify.DecideResend: 1, verify.DecideConfirm: 0, verify.DecideDrop: 0} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("then %s, restart %v", what, restart), func(t *testing.T) {
				virtual(t, func(b *bench) {
					h := &hook{}
					lost := false
					h.settle = func(ctx context.Context, rows []*ledger.Row) []error {
						if lost && rows[0].Key == "A" {
							return each(rows, errors.New("NATS is away"))
						}
						return h.Ledger.Settle(ctx, rows)
					}
					h.under(b)
					b.setBack(1, creates(), updates("varSym", "5"), updates("specSym", "6"))
					before := b.writes()
					lost = true
					if b.decide("A", verify.DecideResend) == nil {
						b.t.Fatal("a decision that is not stored was taken")
					}
					lost = false
					if restart {
						b.halt()
						b.start()
					}
					b.pass(time.Minute)
					if r := b.row("A"); r.State != ledger.Parked || b.writes() != before {
						b.t.Fatalf("it is %s(%s), %d writes", r.State, r.Reason, b.writes()-before)
					}
					must(b.t, b.decide("A", what))
					b.until(time.Hour, "over", func() bool { return b.row("A").State != ledger.Parked && b.row("A").Work.Final })
					b.pass(time.Hour)
					if n := b.writes() - before; n != writes {
						b.t.Errorf("%d writes", n)
					}
					if what == verify.DecideResend {
						b.wantFields(map[string]string{"varSym": "5", "specSym": "6"})
					}
					if what != verify.DecideDrop { // which leaves the record as somebody else's change
						b.push(flexi.Update, "A", doc{"varSym": "9"})
						b.becomes("A", time.Hour, ledger.Confirmed, "")
						b.wantFields(map[string]string{"varSym": "9"})
					}
				})
			})
		}
	}
}
