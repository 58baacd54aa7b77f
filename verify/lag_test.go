package verify_test

import (
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// TestReadBackOfAnERPThatLags: what was accepted a moment ago and is not shown yet is not lost.
func TestReadBackOfAnERPThatLags(t *testing.T) {
	virtual(t, func(b *bench) {
		b.fake.LookLies(flexitest.Stale, 5*time.Second)
		b.start()
		b.push(flexi.Create, "FV-1", invoice("FV-1"))
		b.becomes("FV-1", 5*time.Second, ledger.Confirmed, "")
		b.pass(3 * time.Minute)
		r := b.becomes("FV-1", time.Second, ledger.Confirmed, "")
		if !r.ReadBack.IsZero() {
			t.Error("it was never read back")
		}
		b.wantRecords("FV-1", 1)
		b.wantWrites(1)
	})
}

// TestReadBackOfWhatSomebodyDeletes: what stays away after a minute is a conflict all the same.
func TestReadBackOfWhatSomebodyDeletes(t *testing.T) {
	virtual(t, func(b *bench) {
		b.fake.Type("faktura-vydana", map[string]any(invoice("RUCNE")))
		b.fake.LookLies(flexitest.Stale, 5*time.Second)
		b.start()
		b.push(flexi.Create, "FV-1", invoice("FV-1"))
		r := b.becomes("FV-1", 5*time.Second, ledger.Confirmed, "")
		for _, found := range b.records("FV-1") {
			b.fake.Remove("faktura-vydana", found.ID)
		}
		b.becomes("FV-1", 3*time.Minute, ledger.Parked, ledger.Conflict)
		if r.FlexiID == "" {
			t.Error("it had no id")
		}
	})
}
