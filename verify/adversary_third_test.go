package verify_test

import (
	"fmt"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

// TestFiveHundredsAndAPerson: Flexi saves everything and answers 500 each time, in packed requests, while a person edits and
// deletes what has just come. One record each at most, and whatever is not as it was sent is with a person.
func TestFiveHundredsAndAPerson(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.grown()
		b.fake.OnWrite(0, of("P"), flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500})
		edited, gone := map[string]bool{}, map[string]bool{}
		for i := range 40 {
			b.push(flexi.Create, fmt.Sprint("P", i), invoice(fmt.Sprint("P", i), "varSym", fmt.Sprint(i)))
		}
		for range 200 {
			b.pass(7 * time.Millisecond)
			for i := 0; i < 40; i += 5 {
				k := fmt.Sprint("P", i)
				if rs := b.records(k); len(rs) == 1 && !edited[k] && !gone[k] {
					if i%10 == 0 {
						b.fake.Remove("faktura-vydana", rs[0].ID)
						gone[k] = true
					} else {
						b.fake.Edit("faktura-vydana", rs[0].ID, map[string]any{"varSym": "777"})
						edited[k] = true
					}
				}
			}
		}
		b.pass(90 * time.Minute)
		for i := range 40 {
			k := fmt.Sprint("P", i)
			r, n := b.row(k), len(b.records(k))
			if n > 1 {
				b.t.Errorf("%s: %d records", k, n)
			}
			ok := r.State == ledger.Confirmed && n == 1 || r.State == ledger.Parked
			if r.State == ledger.Confirmed && n == 1 && !edited[k] && b.field(k, "varSym") != fmt.Sprint(i) {
				ok = false
			}
			if !ok {
				b.t.Errorf("%s (edited %v, gone %v) is %s(%s) with %d records", k, edited[k], gone[k], r.State, r.Reason, n)
			}
		}
	})
}

// TestRestoreWhileAPersonDecides: the ERP is set back right before a person decides. No stranger's record is touched, whatever
// is decided.
func TestRestoreWhileAPersonDecides(t *testing.T) {
	pick := testenv.OneOf(t, 5)
	for _, noIDs := range []bool{false, true} {
		for _, what := range []verify.What{verify.DecideConfirm, verify.DecideResend, verify.DecideDrop} {
			for _, op := range []flexi.Op{flexi.Update, flexi.Delete} {
				for _, same := range []bool{false, true} {
					if !pick.Take() {
						continue
					}
					t.Run(fmt.Sprint(noIDs, what, op, same), func(t *testing.T) {
						virtual(t, func(b *bench) {
							b.fake.DropExternalIDs(noIDs)
							b.start()
							b.created("X", invoice("X"))
							snap := b.fake.Snapshot()
							r := b.created("A", invoice("A"))
							b.pass(10 * time.Minute)
							b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"varSym": "9"})
							body := doc{}
							if op == flexi.Update {
								body = doc{"varSym": "10"}
							}
							b.push(op, "A", body)
							b.parkedFor("A", time.Hour)
							b.fake.RestoreUnseen(snap)
							theirs := "CIZI"
							if same {
								theirs = "A"
							}
							if id := b.typed(invoice(theirs, "varSym", "777", "popis", "cizí")); id != atoi(r.FlexiID) {
								b.t.Fatal(id)
							}
							was := map[int64]flexitest.Record{atoi(r.FlexiID): b.records(theirs)[0]}
							err := b.decide("A", what)
							b.pass(20 * time.Minute)
							now := b.row("A")
							if err == nil && same && what != verify.DecideDrop {
								b.t.Errorf("a %s was taken of a record that nobody has seen", what)
							}
							b.untouched(was)
							if what == verify.DecideResend && op == flexi.Update && !same { // it is gone, so it is made again
								if b.wantRecords("A", 1); now.State != ledger.Confirmed || b.field("A", "varSym") != "10" {
									b.t.Errorf("it is %s(%s), varSym %s", now.State, now.Reason, b.field("A", "varSym"))
								}
								return
							}
							if now.State != ledger.Parked && now.State != ledger.Dropped && !(op == flexi.Delete && !same) {
								b.t.Errorf("it is %s(%s) after %v", now.State, now.Reason, err)
							}
						})
					})
				}
			}
		}
	}
}

// TestTwoOverOneQueue: two engines on one ledger, a clock set back, early newer versions, a failing ERP; one record and the
// newest content.
func TestTwoOverOneQueue(t *testing.T) {
	for _, back := range []time.Duration{0, -time.Hour, -48 * time.Hour} {
		t.Run(fmt.Sprint(back), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				two, stop := b.second()
				defer func() { _ = stop() }()
				b.created("X", invoice("X"))
				b.pass(10 * time.Minute)
				b.pushed(flexi.Update, "3", doc{"varSym": "33"})
				b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
				b.first("A", flexitest.Fault{Kind: flexitest.ResetAfterCommit})
				_, err := two.Accept(b.t.Context(), b.versioned(flexi.Create, "1", invoice("A")))
				must(b.t, err)
				b.pass(time.Second)
				b.setClock(back)
				b.pushed(flexi.Update, "4", doc{"popis": "čtyři"})
				_, err = two.Accept(b.t.Context(), b.versioned(flexi.Update, "2", doc{"varSym": "22"}))
				must(b.t, err)
				b.pass(100 * time.Minute)
				r := b.row("A")
				b.wantRecords("A", 1)
				if v, p := b.field("A", "varSym"), b.field("A", "popis"); r.State != ledger.Confirmed || v != "33" || p != "čtyři" {
					b.t.Errorf("%s(%s) varSym %s, popis %s", r.State, r.Reason, v, p)
				}
			})
		})
	}
}
