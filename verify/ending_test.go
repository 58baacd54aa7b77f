package verify_test

import (
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// TestDoubtsEndWhileWritesAreHeld: what needs no further send is settled by looks, however long a person holds the writes.
func TestDoubtsEndWhileWritesAreHeld(t *testing.T) {
	for _, c := range []struct {
		name   string
		sends  int
		event  func(b *bench)
		state  ledger.State
		reason ledger.Reason
	}{
		{"a delete that was done", 0, func(b *bench) {
			b.created("A", invoice("A"))
			b.pass(10 * time.Minute)
			b.fake.Script(flexitest.Fault{Kind: flexitest.ResetAfterCommit})
			b.push(flexi.Delete, "A", doc{})
		}, ledger.Confirmed, ""},
		{"a create that was sent as often as may be", 1, func(b *bench) {
			b.fake.Script(flexitest.Fault{Kind: flexitest.ResetAnswer})
			b.push(flexi.Create, "A", invoice("A"))
		}, ledger.Parked, ledger.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.Sends = c.sends
				b.start()
				b.created("X", invoice("X"))
				b.pass(10 * time.Minute)
				c.event(b)
				b.inMaybe("A")
				b.pass(time.Minute)
				must(b.t, b.eng.StopWrites(b.t.Context(), "", "jana", "uzávěrka"))
				before := b.writes()
				b.becomes("A", 20*time.Minute, c.state, c.reason)
				b.wantRecords("A", 0)
				b.wantWrites(before)
			})
		})
	}
}

// TestAbsencesOfADeleteAreInARow: looks that still showed the record do not count as absences of it.
func TestAbsencesOfADeleteAreInARow(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.SettleNoAnswer = 2 * time.Minute
		b.start()
		b.created("X", invoice("X"))
		b.created("A", invoice("A"))
		b.pass(10 * time.Minute)
		b.fake.Script(flexitest.Fault{Kind: flexitest.ResetAnswer})
		b.push(flexi.Delete, "A", doc{})
		b.inMaybe("A")
		b.pass(time.Minute)
		b.hide("A") // reads that lag, for one look
		b.pass(65 * time.Second)
		b.fake.HideWhen(nil)
		b.becomes("A", time.Hour, ledger.Confirmed, "")
		b.wantRecords("A", 0)
	})
}
