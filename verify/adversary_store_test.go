package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// TestFailedDecisionLosesNoWakeUp: a decision that could not be stored leaves the document to the schedule.
func TestFailedDecisionLosesNoWakeUp(t *testing.T) {
	virtual(t, func(b *bench) {
		h, fail := &hook{}, atomic.Bool{}
		h.settle = func(ctx context.Context, rows []*ledger.Row) []error {
			if fail.Load() && rows[0].State == ledger.Confirmed {
				return each(rows, &ledger.UndecidedError{Err: errStore})
			}
			return h.Ledger.Settle(ctx, rows)
		}
		h.under(b)
		b.start()
		b.unknown("A")
		b.typed(invoice("A"))
		fail.Store(true)
		if err := b.decide("A", verify.DecideConfirm); err == nil {
			b.t.Fatal("a decision that was not stored is reported as done")
		}
		fail.Store(false)
		b.becomes("A", 2*time.Hour, ledger.Confirmed, ledger.Adopted)
	})
}

// TestDecisionLosesTheRace: an event arrives while a person decides; the person hears "try again", nothing is lost.
func TestDecisionLosesTheRace(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.unknown("A")
		b.typed(invoice("A"))
		b.fake.Slow(3 * time.Second)
		ended := make(chan error, 1)
		go func() { ended <- b.decide("A", verify.DecideConfirm) }()
		b.pass(time.Second)
		b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		var refused *verify.DecisionError
		if err := <-ended; !errors.As(err, &refused) || !refused.Retry {
			b.t.Fatalf("the decision was answered %v", err)
		}
		must(b.t, b.decide("A", verify.DecideConfirm))
		b.becomes("A", time.Hour, ledger.Confirmed, "")
		if got := b.field("A", "popis"); got != "Oprava" {
			b.t.Fatalf("popis %q", got)
		}
	})
}

// TestOldLeaderKnowsNoRow: a deposed leader does not know the new row; the document is not forgotten.
func TestOldLeaderKnowsNoRow(t *testing.T) {
	virtual(t, func(b *bench) {
		h, left := &hook{}, atomic.Int64{}
		left.Store(3)
		h.get = func(ctx context.Context, id ledger.ID) (ledger.Row, error) {
			if left.Add(-1) >= 0 {
				return ledger.Row{}, ledger.ErrNoRow
			}
			return h.Ledger.Get(ctx, id)
		}
		h.under(b)
		b.start()
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, "")
	})
}

// TestDeathBetweenTwoEvents: the process dies after one event was told and before the next one is begun.
func TestDeathBetweenTwoEvents(t *testing.T) {
	virtual(t, func(b *bench) {
		h, gone := &hook{}, atomic.Bool{}
		h.settle = func(ctx context.Context, rows []*ledger.Row) []error {
			if gone.Load() {
				return each(rows, errStore)
			}
			errs := h.Ledger.Settle(ctx, rows)
			if r := rows[0]; errs[0] == nil && r.Work != nil && r.Work.Final && r.Head < r.Tail && len(r.ToNotify) == 0 {
				gone.Store(true)
			}
			return errs
		}
		h.claim = func(ctx context.Context, rows []*ledger.Row) []error {
			if gone.Load() {
				return each(rows, errStore)
			}
			return h.Ledger.Claim(ctx, rows)
		}
		h.under(b)
		b.start()
		b.fake.Slow(time.Second)
		b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
		b.push(flexi.Create, "A", invoice("A"))
		b.until(time.Minute, "dead", gone.Load)
		b.halt()
		b.wrap = nil
		b.start()
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		b.wantRecords("A", 1)
	})
}

// TestOutcomeBesideAnAppend: the outcome of a rejected document is stored though the ledger fails at the same moment.
func TestOutcomeBesideAnAppend(t *testing.T) {
	virtual(t, func(b *bench) {
		h, fail, failed := &hook{}, atomic.Bool{}, atomic.Bool{}
		h.settle = func(ctx context.Context, rows []*ledger.Row) []error {
			errs := h.Ledger.Settle(ctx, rows)
			var conflict *ledger.ConflictError
			if a := rows[0].Work; errors.As(errs[0], &conflict) && a != nil && a.Attempt > 0 && !failed.Swap(true) {
				fail.Store(true)
			}
			return errs
		}
		h.get = func(ctx context.Context, id ledger.ID) (ledger.Row, error) {
			if fail.Swap(false) {
				return ledger.Row{}, errStore
			}
			return h.Ledger.Get(ctx, id)
		}
		h.under(b)
		b.start()
		b.created("X", invoice("X"))
		b.fake.Slow(3 * time.Second)
		b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
		b.until(time.Minute, "sending", func() bool { return b.row("A").State == ledger.Sending })
		b.push(flexi.Storno, "A", doc{})
		b.until(time.Hour, "both over", func() bool { r := b.row("A"); return r.Head == 2 && r.State == ledger.Parked })
		if n := len(b.fake.Writes("ext:FLEXID:A")); n != 1 {
			b.t.Fatalf("an invalid document was sent %d times", n)
		}
	})
}

// TestClaimThatTook: NATS took three minutes to store the claim; what was seen before is too old to be written upon.
func TestClaimThatTook(t *testing.T) {
	virtual(t, func(b *bench) {
		h, slow := &hook{}, atomic.Bool{}
		h.claim = func(ctx context.Context, rows []*ledger.Row) []error {
			if slow.Swap(false) {
				tm := time.NewTimer(3 * time.Minute)
				<-tm.C
			}
			return h.Ledger.Claim(ctx, rows)
		}
		h.under(b)
		b.start()
		r := b.created("A", invoice("A"))
		slow.Store(true)
		b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		b.pass(time.Minute)
		b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"popis": "ručně"})
		b.becomes("A", 10*time.Minute, ledger.Parked, ledger.Conflict)
		b.wantWrites(1)
		if got := b.field("A", "popis"); got != "ručně" {
			b.t.Fatalf("popis %q: a person's change was written over", got)
		}
	})
}

// TestStaleSightOfALease: a replica that last saw the row an hour ago finds it being sent by the other one since a moment:
// it has watched nothing yet.
func TestStaleSightOfALease(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		h := &hook{}
		h.watch = func(ctx context.Context) (<-chan ledger.Change, error) { return delayed(ctx, b.ledger, 20*time.Second) }
		set := b.set
		set.Instance = "i2"
		two, stop := b.engine(set, func(l verify.Ledger) verify.Ledger { h.Ledger = l; return h })
		defer func() { _ = stop() }()
		<-two.Ready()
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500})
		b.push(flexi.Create, "A", invoice("A"))
		r := b.becomes("A", 5*time.Minute, ledger.Confirmed, "")
		b.pass(time.Until(r.Late[0]) - 2*time.Second)
		b.fake.Script(flexitest.Fault{Kind: flexitest.ResponseDelay, Delay: 30 * time.Second})
		b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		b.until(time.Hour, "over", func() bool { r := b.row("A"); return r.Head == 2 && r.State == ledger.Confirmed })
		a := b.row("A").Work.Story.Attempts
		if len(a) != 1 || a[0].Outcome != "accepted" {
			b.t.Fatalf("attempts %+v", a)
		}
	})
}

// delayed is a watch that runs behind.
func delayed(ctx context.Context, l *ledger.Ledger, by time.Duration) (<-chan ledger.Change, error) {
	in, err := l.Watch(ctx)
	if err != nil {
		return nil, err
	}
	out, queue := make(chan ledger.Change), make(chan ledger.Change, 10_000)
	at := make(chan time.Time, 10_000)
	go func() {
		defer close(queue)
		for c := range in {
			at <- time.Now().Add(by)
			queue <- c
		}
	}()
	go func() {
		defer close(out)
		for c := range queue {
			tm := time.NewTimer(time.Until(<-at))
			<-tm.C
			select {
			case out <- c:
			case <-ctx.Done():
			}
		}
	}()
	return out, nil
}

// TestClocksApart: a replica whose clock is ahead does not end the settle time early.
func TestClocksApart(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		set := b.set
		set.Instance = "i2"
		b.ahead = 20 * time.Minute
		two, stop := b.engine(set, nil)
		b.ahead = 0
		defer func() { _ = stop() }()
		<-two.Ready()
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
		b.push(flexi.Create, "A", invoice("A"))
		b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		b.becomes("A", 2*time.Hour, ledger.Confirmed, "")
		w := b.fake.Writes("ext:FLEXID:A")
		if len(w) < 2 || w[1].Time.Sub(w[0].Time) < 15*time.Minute {
			b.t.Fatalf("%d writes, the second after %s", len(w), w[1].Time.Sub(w[0].Time))
		}
	})
}

// TestLongKey: a key that no row could hold stays visible and holds up nothing.
func TestLongKey(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		e := b.event(flexi.Create, strings.Repeat("k", 40_000), invoice("A"))
		r, err := b.eng.Accept(b.t.Context(), e)
		must(b.t, err)
		b.until(time.Minute, "parked", func() bool { return b.row(r.Key).Reason == ledger.Unreadable })
	})
}

// TestWideUpdate: the before-image of very many long fields still fits into the row.
func TestWideUpdate(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		body := doc{}
		r := b.created("A", invoice("A"))
		long := map[string]any{}
		for i := range 400 {
			name := fmt.Sprintf("popis%03d", i)
			long[name], body[name] = strings.Repeat("x", 110), fmt.Sprint("nově ", i)
		}
		b.fake.Edit("faktura-vydana", atoi(r.FlexiID), long)
		b.push(flexi.Update, "A", body)
		b.until(10*time.Minute, "over", func() bool { r := b.row("A"); return r.Head == 2 && r.State != ledger.Queued })
	})
}
