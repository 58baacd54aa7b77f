package verify_test

import (
	"os"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// TestFenceWhereFlexiDrawsTheNumber: nothing but our external id finds such a record and refuses a second one. A record of
// ours from before the attempt in doubt proves nothing, since Flexi may have stopped keeping external ids meanwhile.
func TestFenceWhereFlexiDrawsTheNumber(t *testing.T) {
	drawn := func(varSym string) doc { return invoice("", "varSym", varSym) }
	lost := flexitest.Fault{Kind: flexitest.ResetAfterCommit}
	notDone := flexitest.Fault{Kind: flexitest.ResetAnswer}
	for _, c := range []struct {
		name    string
		fault   flexitest.Fault // of the first write of A
		change  func(*flexitest.Server)
		restart bool
		other   doc // an invoice that comes later, nil = none
		state   ledger.State
		reason  ledger.Reason
		records int // of A
	}{
		{"kept no longer, nobody else", lost, func(s *flexitest.Server) { s.DropExternalIDs(true) }, false, nil, ledger.Maybe, "", 1},
		{"kept no longer, another is made", lost, func(s *flexitest.Server) { s.DropExternalIDs(true) }, false, invoice("B"), ledger.Parked, ledger.Unknown, 1},
		{"kept no longer, restarted", lost, func(s *flexitest.Server) { s.DropExternalIDs(true) }, true, nil, ledger.Maybe, "", 1},
		{"not shown any more, another is made", lost, func(s *flexitest.Server) { s.HideExternalIDs(true) }, false, invoice("B"), ledger.Parked, ledger.Unknown, 1},
		{"kept, nobody else", notDone, nil, false, nil, ledger.Maybe, "", 0},
		{"kept, another is made", notDone, nil, false, invoice("B"), ledger.Confirmed, "", 1},
		{"kept, another is made, empty lists shown", notDone, func(s *flexitest.Server) { s.ShowEmptyExternalIDs(true) }, false, invoice("B"), ledger.Confirmed, "", 1},
		{"kept, another is drawn", notDone, nil, false, drawn("22"), ledger.Confirmed, "", 1},
		{"kept, restarted, another is made", notDone, nil, true, invoice("B"), ledger.Confirmed, "", 1},
		{"kept and done", lost, nil, false, nil, ledger.Confirmed, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.SettleNoAnswer = 2 * time.Minute
				b.start()
				b.created("X", invoice("X"))
				b.pass(3 * time.Minute) // its read-back proves the fence
				if c.change != nil {
					c.change(b.fake)
				}
				b.first("ext:FLEXID:A", c.fault)
				b.push(flexi.Create, "A", drawn("11"))
				b.until(time.Minute, "sent", func() bool { return b.writes() == 2 })
				b.pass(time.Second)
				if c.restart {
					b.halt()
					b.start()
				}
				if c.other != nil {
					b.push(flexi.Create, "B", c.other)
				}
				b.pass(20 * time.Minute)
				if r := b.row("A"); r.State != c.state || r.Reason != c.reason {
					t.Fatalf("it is %s(%s): %+v", r.State, r.Reason, r.Work.Story.Problem)
				}
				n := 0
				for _, r := range b.fake.Records("faktura-vydana") {
					if r.Fields["varSym"] == "11" {
						n++
					}
				}
				if n != c.records {
					t.Errorf("%d records", n)
				}
				if c.state == ledger.Maybe && os.Getenv("FLEXID_SLOW") != "" {
					b.pass(25 * time.Hour)
					if r := b.row("A"); r.State != ledger.Parked || r.Reason != ledger.Unknown {
						t.Errorf("a day later it is %s(%s)", r.State, r.Reason)
					}
				}
			})
		})
	}
}

// TestProofIsReadBackAtOnce: a document that waits for a record made later learns of it in seconds, not at the next round of
// read-backs.
func TestProofIsReadBackAtOnce(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.SettleNoAnswer = 10 * time.Second
		b.set.ReadBack = 5 * time.Minute
		b.start()
		b.created("X", invoice("X"))
		b.pass(10 * time.Minute)
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
		b.push(flexi.Create, "A", invoice("", "varSym", "11"))
		b.pass(10 * time.Minute)
		if r := b.row("A"); r.State != ledger.Maybe {
			t.Fatalf("without another record it is %s", r.State)
		}
		b.push(flexi.Create, "B", invoice("B"))
		b.until(time.Minute, "sent again", func() bool { return b.row("A").State == ledger.Confirmed })
	})
}
