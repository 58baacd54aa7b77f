package verify_test

import (
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// TestResentAfterItsNumberWasTaken: a document that was rejected keeps its number as long as it owes late looks; then another one may
// take it. Sent again by a person after that, it does not believe that the number is still its own.
func TestResentAfterItsNumberWasTaken(t *testing.T) {
	virtual(t, func(b *bench) {
		b.fake.AllowUsedNumbers(true)
		b.set.LateLooks = []time.Duration{20 * time.Minute}
		b.start()
		b.created("X", invoice("X"))
		b.first("ext:FLEXID:K1", flexitest.Fault{Kind: flexitest.ServerError, Status: 504})
		b.push(flexi.Create, "K1", invoice("FV-9"))
		b.inMaybe("K1")
		b.fake.LockPeriod("2026-11-01", "2026-11-30")
		b.becomes("K1", 20*time.Minute, ledger.Parked, ledger.Rejected)
		b.fake.UnlockPeriods()
		b.until(time.Hour, "done with its late looks", func() bool { return len(b.row("K1").Late) == 0 })

		b.first("ext:FLEXID:K2", flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 10 * time.Minute})
		b.push(flexi.Create, "K2", invoice("FV-9", "varSym", "8"))
		b.inMaybe("K2")
		must(t, b.decide("K1", verify.DecideResend))
		b.pass(time.Hour)
		b.wantRecords("FV-9", 1)
		b.becomes("K1", time.Minute, ledger.Parked, ledger.Duplicate)
		b.becomes("K2", time.Minute, ledger.Confirmed, "")
	})
}
