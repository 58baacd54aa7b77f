package verify

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// TestTurnToSendAgain: however many documents are in doubt, one that waits for a token comes by about as soon as time could
// have brought one: sends that Flexi answers bring many sooner, and nobody must sleep beside a full bucket.
func TestTurnToSendAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, inDoubt := range []int{1, 3, 60, 5000} {
			for _, draw := range []float64{0, 0.5, 0.999} {
				e := &Engine{scheduler: newScheduler(nil), o: Options{
					Budget: flexi.NewBudget(1), Now: time.Now, Rand: func() float64 { return draw },
				}}
				for i := range inDoubt {
					e.scheduler.doubts[ledger.ID(fmt.Sprint(i))] = doubt{reason: settling}
				}
				w := &ledger.Work{Opens: 1}
				if got := e.resendWait(w); got != 0 {
					t.Errorf("%d in doubt, a full bucket: waits %v", inDoubt, got)
				}
				for range 2 {
					e.o.Budget.Maybes.Take(e.o.Now())
				}
				const next = 10 * time.Second
				if got := e.resendWait(w); got < next || got > next+mostResendSpread || got > next*time.Duration(1+inDoubt) {
					t.Errorf("%d in doubt, an empty bucket, draw %v: waits %v, the next token comes after %v", inDoubt, draw, got, next)
				}
				e.o.Budget.Maybes.Return()
				if got := e.resendWait(w); got != 0 {
					t.Errorf("%d in doubt, a token came back: waits %v", inDoubt, got)
				}
			}
		}
	})
}
