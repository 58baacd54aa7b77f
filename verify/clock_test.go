package verify_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

func TestTheBenchSetsTheWallClockAlone(t *testing.T) {
	virtual(t, func(b *bench) {
		before := b.clock()
		b.pass(time.Second)
		b.setClock(-24 * time.Hour)
		after := b.clock()
		if d := after.Sub(before); d != time.Second {
			t.Errorf("by the monotonic clock %s went by", d)
		}
		if d := after.Round(0).Sub(before.Round(0)); d != time.Second-24*time.Hour {
			t.Errorf("by the wall clock %s went by", d)
		}
	})
}

// wait is something that a document waits for.
type wait struct {
	name  string
	begin func(b *bench)
	over  func(b *bench) bool
	least time.Duration // from the end of begin, in true time: a clock that is set ends nothing before
	most  time.Duration // and holds nothing up longer
}

func (b *bench) doubt(sends int) {
	if b.set.Sends = sends; sends > 0 {
		b.halt()
		b.start()
	}
	b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
	b.push(flexi.Create, "A", invoice("A"))
	b.inMaybe("A")
}

func written(key string, n int) func(*bench) bool {
	return func(b *bench) bool { return len(b.fake.Writes("ext:FLEXID:"+key)) == n }
}

func became(s ledger.State) func(*bench) bool {
	return func(b *bench) bool { return b.row("A").State == s }
}

func waits() []wait {
	const settle = 15*time.Minute - time.Second
	return []wait{
		{"settle time of a create", func(b *bench) { b.doubt(0) }, written("A", 2), settle, 18 * time.Minute},
		{"settle time of an update", func(b *bench) {
			b.created("A", invoice("A"))
			b.fake.Script(flexitest.Fault{Kind: flexitest.ResetAnswer})
			b.push(flexi.Update, "A", doc{"popis": "nově"})
			b.inMaybe("A")
		}, func(b *bench) bool { return b.field("A", "popis") == "nově" }, settle, 18 * time.Minute},
		{"settle time before a decision", func(b *bench) { b.doubt(1) }, func(b *bench) bool {
			err := b.decide("A", verify.DecideResend)
			var refused *verify.DecisionError
			return err == nil || !errors.As(err, &refused)
		}, settle, 18 * time.Minute},
		{"looks of a maybe", func(b *bench) { b.doubt(0) }, func(b *bench) bool { return len(b.row("A").Work.Story.Looks) > 4 }, 0, time.Minute},
		{"hourly look at an unknown", func(b *bench) {
			b.doubt(1)
			b.becomes("A", time.Hour, ledger.Parked, ledger.Unknown)
			b.typed(invoice("A"))
		}, became(ledger.Confirmed), 0, 62 * time.Minute},
		{"Retry-After", func(b *bench) {
			b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.TooMany, RetryAfter: "600"})
			b.push(flexi.Create, "A", invoice("A"))
			b.until(time.Minute, "refused", func() bool { return written("A", 1)(b) })
		}, written("A", 2), 10*time.Minute - time.Second, 13 * time.Minute},
		{"read-back", func(b *bench) {
			b.pass(3 * time.Minute)
			b.fake.ReadOnlyColumns("faktura-vydana", "datSplat")
			b.created("A", invoice("A", "datSplat", "2026-12-24"))
		}, became(ledger.Parked), 0, 2 * time.Minute},
		{"late look", func(b *bench) {
			b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAfterCommit})
			b.push(flexi.Create, "A", invoice("A"))
			b.becomes("A", time.Minute, ledger.Confirmed, "")
			b.fake.Remove("faktura-vydana", b.records("A")[0].ID)
		}, became(ledger.Parked), 30 * time.Minute, 63 * time.Minute},
	}
}

// TestClockIsSet: whatever is done to the wall clock while a document waits, it waits its time, no less and hardly more. For a
// process that starts after the clock was set back the wait counts again; one that starts after it was set forward cannot know.
func TestClockIsSet(t *testing.T) {
	type jump struct {
		name    string
		by      time.Duration
		back    bool // set right a minute later
		restart bool
	}
	const day = 24 * time.Hour
	jumps := []jump{{"a day back", -day, false, false}, {"a day forth", day, false, false}, {"a year forth and back", 365 * day, true, false},
		{"a day back, restarted", -day, false, true}}
	if os.Getenv("FLEXID_SLOW") != "" {
		for name, by := range map[string]time.Duration{"an hour": time.Hour, "a day": day, "a year": 365 * day} {
			jumps = append(jumps, jump{name + " back", -by, false, false}, jump{name + " forth", by, false, false}, jump{name + " back and forth", -by, true, false},
				jump{name + " back, restarted", -by, false, true}, jump{name + " forth, restarted", by, false, true}, jump{name + " back, restarted, set right", -by, true, true})
		}
	}
	pick := testenv.OneOf(t, 5)
	for _, w := range waits() {
		for _, j := range jumps {
			if !pick.Take() {
				continue
			}
			t.Run(w.name+"/"+j.name, func(t *testing.T) {
				virtual(t, func(b *bench) {
					b.setClock(1000 * day) // so that there is room for a jump back
					b.start()
					b.created("X", invoice("X"))
					w.begin(b)
					begun := time.Now()
					b.pass(5 * time.Second)
					b.setClock(1000*day + j.by)
					if j.restart {
						b.halt()
						b.start()
						<-b.eng.Ready()
					}
					righted := !j.back
					for !w.over(b) {
						if !righted && time.Since(begun) > time.Minute {
							b.setClock(1000 * day)
							righted = true
						}
						if time.Since(begun) > w.most+2*time.Minute {
							t.Fatalf("it still waits after %s: %s", time.Since(begun), pretty(b.row("A")))
						}
						b.pass(time.Second)
					}
					if took := time.Since(begun); took < w.least && !(j.restart && (j.by > 0 || j.back)) {
						t.Errorf("it waited %s only", took)
					}
				})
			})
		}
	}
}
