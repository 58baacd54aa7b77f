package verify_test

import (
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// TestLastRecordDeletedWhileInDoubt: an evidence that shows nothing any more is doubted for three hours, not for ever: a create in
// doubt ends confirmed, once, whether its request took effect, and whether the records are deleted or only hidden.
func TestLastRecordDeletedWhileInDoubt(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault flexitest.Fault
		lose  func(b *bench, id int64)
		back  func(b *bench) // half an hour later
		state ledger.State
		why   ledger.Reason
	}{
		{"deleted, not done", flexitest.Fault{Kind: flexitest.ResetAnswer}, func(b *bench, id int64) { b.fake.Remove("faktura-vydana", id) },
			nil, ledger.Confirmed, ""},
		{"deleted, done late", flexitest.Fault{Kind: flexitest.LateCommit, Delay: 5 * time.Minute},
			func(b *bench, id int64) { b.fake.Remove("faktura-vydana", id) }, nil, ledger.Confirmed, ""},
		{"rights lost, done", flexitest.Fault{Kind: flexitest.SilenceAfterCommit}, func(b *bench, _ int64) { b.fake.LookLies(flexitest.LostRights, 0) },
			nil, ledger.Parked, ledger.Unknown},
		{"rights lost and back, done", flexitest.Fault{Kind: flexitest.SilenceAfterCommit},
			func(b *bench, _ int64) { b.fake.LookLies(flexitest.LostRights, 0) },
			func(b *bench) { b.fake.LookLies(flexitest.Honest, 0) }, ledger.Confirmed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				x := b.created("X", invoice("X"))
				b.pass(3 * time.Minute)
				b.first("ext:FLEXID:A", c.fault)
				b.push(flexi.Create, "A", invoice("A"))
				b.until(time.Minute, "sent", func() bool { return b.writes() == 2 })
				c.lose(b, atoi(x.FlexiID))
				if c.back != nil {
					b.pass(25 * time.Minute)
					c.back(b)
				}
				b.becomes("A", 5*time.Hour, c.state, c.why)
				b.wantRecords("A", 1)
			})
		})
	}
}
