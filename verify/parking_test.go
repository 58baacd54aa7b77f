package verify_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// parkings lead document A into each way of being parked.
func parkings() map[ledger.Reason]func(b *bench) {
	return map[ledger.Reason]func(b *bench){
		ledger.Unknown: func(b *bench) { b.unknown("A") },
		ledger.Rejected: func(b *bench) {
			b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
		},
		ledger.Conflict: func(b *bench) {
			b.created("A", invoice("A"))
			b.push(flexi.Create, "A", invoice("A", "popis", "jiný"))
		},
		ledger.Duplicate: func(b *bench) {
			b.created("B", invoice("FV1"))
			b.push(flexi.Create, "A", invoice("FV1"))
		},
		ledger.Unreadable: func(b *bench) {
			e := b.event(flexi.Create, "A", doc{})
			e.Body, e.Problem, e.Raw = nil, "broken JSON at byte 7", []byte(`{"kod":`)
			b.accept(e)
		},
		ledger.IDReused: func(b *bench) {
			b.accept(b.given("id-1", "B", flexi.Create, invoice("B")))
			b.becomes("B", time.Minute, ledger.Confirmed, "")
			b.accept(b.given("id-1", "A", flexi.Create, invoice("A")))
		},
	}
}

// TestEveryParkingIsToldOnce: one line in the log and one alert for each way of being parked, also where the stream cannot
// be written to for a while and the process starts anew meanwhile, and nothing more after another start.
func TestEveryParkingIsToldOnce(t *testing.T) {
	for reason, lead := range parkings() {
		t.Run(string(reason), func(t *testing.T) {
			virtual(t, func(b *bench) {
				var away atomic.Bool
				b.notices.fail = func() error {
					if away.Load() {
						return errors.New("the stream is away")
					}
					return nil
				}
				b.start()
				lead(b)
				away.Store(true)
				b.becomes("A", 3*time.Hour, ledger.Parked, reason)
				b.pass(30 * time.Second)
				b.halt()
				away.Store(false)
				for range 2 {
					b.start()
					b.pass(5 * time.Minute)
					b.halt()
				}
				if got := b.notices.alerts(); !slices.Equal(got, []string{string(reason)}) {
					b.t.Errorf("alerts %v", got)
				}
				if got := b.seen.lines(); !slices.Equal(got, []string{string(reason)}) {
					b.t.Errorf("lines in the log %v", got)
				}
			})
		})
	}
}

// TestParkedTwiceIsToldTwice: what a person sends again and Flexi rejects again is a parking of its own.
func TestParkedTwiceIsToldTwice(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
		for n := 1; n <= 2; n++ {
			b.until(time.Minute, "parked and told", func() bool { return len(b.notices.alerts()) == n })
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			must(b.t, b.decide("A", verify.DecideResend))
		}
		b.until(time.Minute, "parked and told", func() bool { return len(b.notices.alerts()) == 3 && len(b.seen.lines()) == 3 })
	})
}

// TestStandingsAreCounted: documents by state, reason and cause, also after they moved on and after a restart.
func TestStandingsAreCounted(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
		b.push(flexi.Create, "B", invoice("B", "firma", "code:NENI"))
		b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
		cause := b.becomes("B", time.Minute, ledger.Parked, ledger.Rejected).Cause
		want := func(all ...verify.Standing) {
			b.t.Helper()
			b.until(time.Minute, "counted", func() bool { return slices.Equal(b.eng.Status().Standings, all) })
		}
		want(verify.Standing{State: ledger.Confirmed, Documents: 1},
			verify.Standing{State: ledger.Parked, Reason: ledger.Rejected, Cause: cause, Documents: 2})
		must(b.t, b.decide("B", verify.DecideDrop))
		want(verify.Standing{State: ledger.Confirmed, Documents: 1}, verify.Standing{State: ledger.Dropped, Documents: 1},
			verify.Standing{State: ledger.Parked, Reason: ledger.Rejected, Cause: cause, Documents: 1})
		b.halt()
		b.start()
		<-b.eng.Ready()
		want(verify.Standing{State: ledger.Confirmed, Documents: 1}, verify.Standing{State: ledger.Dropped, Documents: 1},
			verify.Standing{State: ledger.Parked, Reason: ledger.Rejected, Cause: cause, Documents: 1})
	})
}

// failing is a state store whose writes fail, done or not.
type failing struct {
	verify.Store
	fail, done bool
}

func (f *failing) Put(ctx context.Context, key string, value []byte) error {
	if !f.fail {
		return f.Store.Put(ctx, key, value)
	}
	if f.done {
		_ = f.Store.Put(ctx, key, value)
	}
	return errors.New("no answer")
}

// TestStopWorksOrFailsAsAWhole: a stop, and the end of one, that cannot be stored changes nothing, now and later; one whose
// answer alone was lost took effect and says so.
func TestStopWorksOrFailsAsAWhole(t *testing.T) {
	virtual(t, func(b *bench) {
		f := &failing{}
		f.Store = b.state
		b.store = f
		b.start()
		<-b.eng.Ready()
		stopped := func(want bool) {
			b.t.Helper()
			for range 3 {
				g := b.eng.Status().Stops
				if (len(g) == 1 && !g[0].Open) != want {
					b.t.Fatalf("stopped is not %v: %+v", want, g)
				}
				b.pass(15 * time.Second) // the others are followed meanwhile
			}
		}
		var refused *verify.DecisionError
		f.fail = true
		if err := b.eng.StopWrites(b.t.Context(), "", "jana", "uzávěrka"); !errors.As(err, &refused) || !refused.Retry {
			b.t.Fatalf("the stop was answered %v", err)
		}
		stopped(false)
		f.done = true
		must(b.t, b.eng.StopWrites(b.t.Context(), "", "jana", "uzávěrka"))
		stopped(true)
		f.done = false
		if err := b.eng.ResumeWrites(b.t.Context(), "", "jana", "hotovo"); !errors.As(err, &refused) {
			b.t.Fatalf("the resumption was answered %v", err)
		}
		stopped(true)
		f.done = true
		must(b.t, b.eng.ResumeWrites(b.t.Context(), "", "jana", "hotovo"))
		stopped(false)
	})
}
