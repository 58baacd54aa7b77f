package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// Each test here is the one that fails when a guard is switched off.

// TestThreeAbsences: looks that could not be trusted until after the settle time are made up for; one absence is not enough.
func TestThreeAbsences(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
		b.push(flexi.Create, "A", invoice("A"))
		b.fake.LookLies(flexitest.LoseControl, 0)
		b.pass(20 * time.Minute)
		b.fake.LookLies(flexitest.Honest, 0)
		r := b.becomes("A", time.Hour, ledger.Confirmed, "")
		n := 0
		for _, l := range r.Work.Story.Looks {
			if l.Verdict == "not_done" && l.Why == "settle" && l.Time.Before(r.Work.Story.Attempts[1].Claimed) {
				n++
			}
		}
		if n < 3 {
			b.t.Fatalf("sent again after %d absences: %+v", n, r.Work.Story.Looks)
		}
	})
}

// TestConditionsOnTheWire: only a create may make a record, and a change names its record by the Flexi id alone.
func TestConditionsOnTheWire(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		r := b.created("A", invoice("A"))
		for _, op := range []flexi.Op{flexi.Update, flexi.Storno, flexi.Delete} {
			body := doc{}
			if op == flexi.Update {
				body["popis"] = "Oprava"
			}
			b.push(op, "A", body)
			b.becomes("A", 30*time.Minute, ledger.Confirmed, "")
		}
		var bodies []map[string]json.RawMessage
		for _, q := range b.fake.Requests() {
			if q.Kind != flexitest.Write {
				continue
			}
			var env struct {
				Winstrom map[string]json.RawMessage `json:"winstrom"`
			}
			must(b.t, json.Unmarshal(q.Body, &env))
			var recs []map[string]json.RawMessage
			must(b.t, json.Unmarshal(env.Winstrom["faktura-vydana"], &recs))
			bodies = append(bodies, recs...)
		}
		if len(bodies) != 4 {
			b.t.Fatalf("%d records written", len(bodies))
		}
		for i, rec := range bodies {
			update, create, id := string(rec["@update"]), string(rec["@create"]), string(rec["id"])
			want := [3]string{"", `"fail"`, `"` + r.FlexiID + `"`}
			if i == 0 {
				want = [3]string{`"fail"`, "", `["ext:FLEXID:A"]`}
			}
			if got := [3]string{update, create, id}; got != want {
				b.t.Errorf("request %d: @update %s, @create %s, id %s", i+1, update, create, id)
			}
		}
	})
}

// TestPersonChangesWhatIsInDoubt: neither the before-image nor what was sent is shown; nothing is sent over a person's change.
func TestPersonChangesWhatIsInDoubt(t *testing.T) {
	for _, op := range []flexi.Op{flexi.Update, flexi.Delete} {
		t.Run(string(op), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				r := b.created("A", invoice("A"))
				b.fake.Script(flexitest.Fault{Kind: flexitest.ResetAnswer})
				body := doc{}
				if op == flexi.Update {
					body["popis"] = "Oprava"
				}
				b.push(op, "A", body)
				b.inMaybe("A")
				b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"popis": "ručně"})
				b.becomes("A", time.Hour, ledger.Parked, ledger.Conflict)
				b.wantWrites(2)
				if got := b.field("A", "popis"); got != "ručně" {
					b.t.Fatalf("popis %q", got)
				}
			})
		})
	}
}

// TestNumberIsHeldForLateLooks: the rejected holder of a number may still turn up by its lost first attempt.
func TestNumberIsHeldForLateLooks(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.first("ext:FLEXID:K1", flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 30 * time.Minute})
		b.push(flexi.Create, "K1", invoice("FV-9"))
		b.inMaybe("K1")
		b.fake.LockPeriod("2026-11-01", "2026-11-30")
		b.becomes("K1", 20*time.Minute, ledger.Parked, ledger.Rejected)
		b.fake.UnlockPeriods()
		b.push(flexi.Create, "K2", invoice("FV-9", "varSym", "8"))
		b.becomes("K2", time.Minute, ledger.Parked, ledger.Duplicate)
		b.pass(20 * time.Minute)
		b.wantRecords("FV-9", 1)
	})
}

// TestLookOnceMore: after an attempt that was ever in doubt the next event looks first, also where first looks are off.
func TestLookOnceMore(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.LookFirst = false
		b.start()
		b.created("X", invoice("X"))
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 30 * time.Minute})
		b.push(flexi.Create, "A", invoice("A"))
		b.inMaybe("A")
		b.fake.LockPeriod("2026-11-01", "2026-11-30")
		b.becomes("A", 20*time.Minute, ledger.Parked, ledger.Rejected)
		b.fake.UnlockPeriods()
		b.pass(20 * time.Minute)
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, ledger.Adopted)
		if n := len(b.fake.Writes("ext:FLEXID:A")); n != 2 {
			b.t.Fatalf("%d writes", n)
		}
	})
}

// TestRejectionWithAnAttemptOpen: the second attempt was rejected, the first one shows a few seconds later.
func TestRejectionWithAnAttemptOpen(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 15*time.Minute + 5*time.Second})
		b.push(flexi.Create, "A", invoice("A"))
		b.inMaybe("A")
		b.fake.LockPeriod("2026-11-01", "2026-11-30")
		b.pass(time.Until(b.row("A").Work.Settle) + time.Second)
		b.fake.UnlockPeriods()
		if n := len(b.fake.Writes("ext:FLEXID:A")); n != 2 {
			b.t.Fatalf("%d writes", n)
		}
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		b.wantRecords("A", 1)
	})
}

// TestRejectionAboutTheNumber may mean that the document is there: one look first.
func TestRejectionAboutTheNumber(t *testing.T) {
	virtual(t, func(b *bench) {
		b.fake.AllowUsedNumbers(false)
		b.start()
		b.created("X", invoice("X"))
		var sent atomic.Bool
		b.fake.OnWrite(1, func(q flexitest.Request) bool { sent.Store(sent.Load() || q.Has("ext:FLEXID:A")); return false }, flexitest.Fault{})
		b.typed(invoice("A"))
		b.fake.HideWhen(func(r flexitest.Record) bool { return r.Number == "A" && !sent.Load() })
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, ledger.Adopted)
		b.wantWrites(2)
	})
}

// TestNextEventWaitsForTheSettleTime: a person did by hand what our lost request asked for; that the record shows it says
// nothing about the request.
func TestNextEventWaitsForTheSettleTime(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		r := b.created("A", invoice("A"))
		b.fake.Script(flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 10 * time.Minute})
		b.push(flexi.Update, "A", doc{"popis": "jedna"})
		b.inMaybe("A")
		b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"popis": "jedna"})
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		b.push(flexi.Update, "A", doc{"popis": "dvě"})
		b.becomes("A", time.Hour, ledger.Confirmed, "")
		b.pass(10 * time.Minute)
		if got := b.field("A", "popis"); got != "dvě" {
			b.t.Fatalf("popis %q: it went backwards", got)
		}
	})
}

// TestRightsLostAfterTheControl: the control is known, then the user sees nothing any more. An absence without its control is
// no look.
func TestRightsLostAfterTheControl(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		var sent atomic.Bool
		b.fake.OnWrite(1, func(q flexitest.Request) bool {
			sent.Store(sent.Load() || q.Has("ext:FLEXID:A"))
			return q.Has("ext:FLEXID:A")
		}, flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500})
		b.fake.HideWhen(func(flexitest.Record) bool { return sent.Load() })
		b.push(flexi.Create, "A", invoice("A"))
		b.pass(5 * time.Minute)
		b.hide("")
		b.becomes("A", time.Hour, ledger.Confirmed, "")
		b.wantWrites(2)
	})
}

// TestEmptyEvidenceFillsUp: the evidence was empty when the control was asked for, and is not after the look.
func TestEmptyEvidenceFillsUp(t *testing.T) {
	virtual(t, func(b *bench) {
		b.typed(invoice("A"))
		var reads atomic.Int64
		b.fake.HideWhen(func(flexitest.Record) bool { return reads.Add(1) <= 2 })
		b.start()
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, ledger.Adopted)
		b.wantWrites(0)
	})
}

// TestEmptiedEvidenceIsNotBelieved: an evidence that had records shows none; nothing is sent on that word.
func TestEmptiedEvidenceIsNotBelieved(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.typed(invoice("A"))
		b.pass(2 * time.Minute)
		b.fake.LookLies(flexitest.LostRights, 0)
		b.push(flexi.Create, "A", invoice("A"))
		b.pass(10 * time.Minute)
		b.wantWrites(1)
		b.fake.LookLies(flexitest.Honest, 0)
		b.becomes("A", 10*time.Minute, ledger.Confirmed, ledger.Adopted)
	})
}

// TestDropWithARecordInFlexi: what stands under our external id is not dropped.
func TestDropWithARecordInFlexi(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.unknown("A")
		b.typed(invoice("A", "id", "ext:FLEXID:A", "varSym", "9"))
		var refused *verify.DecisionError
		if err := b.decide("A", verify.DecideDrop); !errors.As(err, &refused) || !strings.Contains(refused.Text, "confirm it") {
			b.t.Fatalf("the decision was answered %v", err)
		}
		if r := b.row("A"); r.State != ledger.Parked {
			b.t.Fatalf("it is %s", r.State)
		}
	})
}

// TestEventBesideAVisit: an event arrives while a worker is about to put the row away. It is not forgotten.
func TestEventBesideAVisit(t *testing.T) {
	virtual(t, func(b *bench) {
		h := &hook{}
		stuck, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		h.settle = func(ctx context.Context, rows []*ledger.Row) []error {
			errs := h.Ledger.Settle(ctx, rows)
			if r := rows[0]; r.State == ledger.Confirmed && len(r.ToNotify) == 0 && r.ReadBack.IsZero() {
				once.Do(func() { close(stuck); <-release }) // the last write of the visit
			}
			return errs
		}
		h.under(b)
		b.start()
		b.push(flexi.Create, "A", invoice("A"))
		<-stuck
		b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		b.pass(10 * time.Second)
		close(release)
		b.until(time.Minute, "done", func() bool { return b.row("A").Head == 2 && b.row("A").State == ledger.Confirmed })
	})
}

// TestCleanDocumentsTryFirst: of the documents that wait for a tripped breaker one without a bad outcome of its own goes first.
func TestCleanDocumentsTryFirst(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.Probe, b.set.Pack = time.Minute, 1
		b.start()
		b.created("X", invoice("X"))
		for i := range 3 {
			b.first(fmt.Sprint("ext:FLEXID:S", i), flexitest.Fault{Kind: flexitest.ServerError, Status: 500})
			b.push(flexi.Create, fmt.Sprint("S", i), invoice(fmt.Sprint("S", i)))
		}
		b.until(time.Minute, "closed", func() bool { return !b.eng.Status().Stops[0].Open })
		b.pass(10 * time.Second)
		b.push(flexi.Create, "C", invoice("C"))
		b.until(time.Hour, "all confirmed", func() bool { return b.eng.Status().Documents["confirmed"] == 5 })
		var order []string
		for _, q := range b.fake.Requests() {
			if q.Kind == flexitest.Write && q.Has("ext:FLEXID:C") {
				order = append(order, "C")
			} else if q.Kind == flexitest.Write {
				order = append(order, "other")
			}
		}
		if order[4] != "C" {
			b.t.Fatalf("writes in the order %v", order)
		}
	})
}
