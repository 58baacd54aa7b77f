package verify_test

import (
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// TestTakenAgainIsNotSent: an event that may have been taken before a restore is looked up. What Flexi shows is confirmed, what it
// does not show is a person's to send: it may have been dropped, deleted or replaced since.
func TestTakenAgainIsNotSent(t *testing.T) {
	there := func(b *bench) {
		b.fake.Type("faktura-vydana", map[string]any(invoice("A", "id", "ext:FLEXID:A")))
	}
	for _, c := range []struct {
		name    string
		books   func(*bench)
		look    bool
		op      flexi.Op
		body    doc
		state   ledger.State
		reason  ledger.Reason
		resent  ledger.State // after a person's resend; "" = none is tried
		records int
	}{
		{"a create that is not there", nil, true, flexi.Create, invoice("A"), ledger.Parked, ledger.Unknown, ledger.Confirmed, 1},
		{"a create that is not there, without the first look", nil, false, flexi.Create, invoice("A"), ledger.Parked, ledger.Unknown, ledger.Confirmed, 1},
		{"a create that is there", there, true, flexi.Create, invoice("A"), ledger.Confirmed, ledger.Adopted, "", 1},
		{"an update that is not shown", there, true, flexi.Update, doc{"popis": "jinak"}, ledger.Parked, ledger.Unknown, ledger.Confirmed, 1},
		{"an update that is shown", there, true, flexi.Update, doc{"popis": "Služby"}, ledger.Confirmed, ledger.Adopted, "", 1},
		{"a storno that is not done", there, true, flexi.Storno, doc{}, ledger.Parked, ledger.Unknown, ledger.Confirmed, 1},
		{"a delete that is not done", there, true, flexi.Delete, doc{}, ledger.Parked, ledger.Unknown, ledger.Confirmed, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.LookFirst = c.look
				b.start()
				b.created("X", invoice("X"))
				b.pass(5 * time.Minute)
				if c.books != nil {
					c.books(b)
				}
				writes := b.writes()
				ev := b.event(c.op, "A", c.body)
				ev.Replayed = true
				b.take(ev)
				b.becomes("A", 10*time.Minute, c.state, c.reason)
				b.pass(time.Hour)
				if n := b.writes(); n != writes {
					t.Fatalf("%d writes before a person said so", n-writes)
				}
				if c.resent == "" {
					b.wantRecords("A", c.records)
					return
				}
				must(t, b.decide("A", verify.DecideResend))
				b.becomes("A", time.Hour, c.resent, "")
				b.wantRecords("A", c.records)
				if n := b.writes(); n != writes+1 {
					t.Errorf("%d writes for one resend", n-writes)
				}
				// What comes next is as ever.
				b.push(flexi.Upsert, "A", invoice("A", "popis", "dále"))
				b.becomes("A", 10*time.Minute, ledger.Confirmed, "")
			})
		})
	}
}
