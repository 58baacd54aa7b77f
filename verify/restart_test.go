package verify_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

// faulty is a ledger that fails at one call: the change was stored, or it was not.
type faulty struct {
	verify.Ledger
	mu    sync.Mutex
	calls int
	at    int // the call that fails, from 1; 0 = none
	done  bool
	hit   bool
}

func (f *faulty) arm(at int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.at = 0, at
}

var errStore = errors.New("the store did not answer")

func (f *faulty) strike(rows []*ledger.Row, do func([]*ledger.Row) []error) []error {
	f.mu.Lock()
	f.calls++
	strike := f.calls == f.at
	f.hit = f.hit || strike
	f.mu.Unlock()
	if !strike {
		return do(rows)
	}
	if f.done {
		copies := make([]*ledger.Row, len(rows))
		for i, r := range rows {
			c := r.Clone()
			copies[i] = &c
		}
		do(copies)
	}
	errs := make([]error, len(rows))
	for i := range errs {
		errs[i] = &ledger.UndecidedError{Err: errStore}
	}
	return errs
}

func (f *faulty) Claim(ctx context.Context, rows []*ledger.Row) []error {
	return f.strike(rows, func(r []*ledger.Row) []error { return f.Ledger.Claim(ctx, r) })
}

func (f *faulty) Settle(ctx context.Context, rows []*ledger.Row) []error {
	return f.strike(rows, func(r []*ledger.Row) []error { return f.Ledger.Settle(ctx, r) })
}

// TestEveryStoreFault breaks every store call of a create, an update and a delete once, stored and not stored, healthy and
// under a lost answer: one record at most, and every event ends confirmed or with a person.
func TestEveryStoreFault(t *testing.T) {
	pick := testenv.OneOf(t, 5)
	for _, fault := range []flexitest.Fault{{}, {Kind: flexitest.SilenceAfterCommit, Delay: time.Second}, {Kind: flexitest.ServerError, Status: 500}} {
		for _, done := range []bool{false, true} {
			for at := 1; at <= 9; at++ {
				if !pick.Take() {
					continue
				}
				t.Run(fmt.Sprintf("%s/call %d/stored %v", fault, at, done), func(t *testing.T) {
					virtual(t, func(b *bench) {
						f := &faulty{done: done}
						b.wrap = func(l verify.Ledger) verify.Ledger { f.Ledger = l; return f }
						b.start()
						b.created("X", invoice("X")) // proves the fence: with two maybes alone nothing would
						b.pass(2 * time.Minute)
						f.arm(at)
						if fault.Kind != flexitest.Healthy {
							b.first("A", fault)
						}
						b.push(flexi.Create, "A", invoice("A"))
						b.push(flexi.Update, "A", doc{"popis": "Oprava"})
						b.push(flexi.Create, "B", invoice("B"))
						b.becomes("B", 3*time.Hour, ledger.Confirmed, "")
						b.becomes("A", 3*time.Hour, ledger.Confirmed, "")
						b.wantRecords("A", 1)
						b.wantRecords("B", 1)
						if got := b.field("A", "popis"); got != "Oprava" {
							t.Fatalf("popis is %q", got)
						}
					})
				})
			}
		}
	}
}

// frozen is a ledger whose process stands still: calls block until it goes on.
type frozen struct {
	verify.Ledger
	at      string // claimed, settle
	release chan struct{}
	stuck   chan struct{}
	once    sync.Once
}

func (f *frozen) stop(at string) {
	if f.at == at {
		f.once.Do(func() { close(f.stuck); <-f.release })
	}
}

func (f *frozen) Claim(ctx context.Context, rows []*ledger.Row) []error {
	f.stop("dial")
	errs := f.Ledger.Claim(ctx, rows)
	f.stop("claimed")
	return errs
}

func (f *frozen) Settle(ctx context.Context, rows []*ledger.Row) []error {
	for _, r := range rows {
		if r.Work != nil && r.Work.Attempt > 0 {
			f.stop("settle")
		}
	}
	return f.Ledger.Settle(ctx, rows)
}

// TestTakeOver: a worker stands still past its lease and goes on after another one took the document over.
func TestTakeOver(t *testing.T) {
	for _, at := range []string{"dial", "claimed", "settle"} {
		t.Run(at, func(t *testing.T) {
			virtual(t, func(b *bench) {
				f := &frozen{at: at, release: make(chan struct{}), stuck: make(chan struct{})}
				b.fake.Type("faktura-vydana", map[string]any(invoice("JINA")))
				b.start()
				b.created("X", invoice("X")) // proves the fence for the one that takes over
				set := b.set
				set.Instance = "i2"
				slow, stop := b.engine(set, func(l verify.Ledger) verify.Ledger { f.Ledger = l; return f })
				<-slow.Ready()
				if _, err := slow.Accept(b.t.Context(), b.event(flexi.Create, "A", invoice("A"))); err != nil {
					t.Fatal(err)
				}
				<-f.stuck
				b.becomes("A", 2*time.Hour, ledger.Confirmed, "")
				b.push(flexi.Update, "A", doc{"popis": "novější"})
				b.becomes("A", time.Hour, ledger.Confirmed, "")
				close(f.release)
				b.pass(time.Hour)
				if err := stop(); err != nil {
					t.Log(err)
				}
				b.wantRecords("A", 1)
				if got := b.field("A", "popis"); got != "novější" {
					t.Fatalf("popis is %q: the update went backwards", got)
				}
				if r := b.row("A"); r.State != ledger.Confirmed {
					t.Fatalf("it is %s(%s)", r.State, r.Reason)
				}
			})
		})
	}
}

// dead is the ledger of a process that was killed: nothing is stored any more.
type dead struct {
	verify.Ledger
	gone atomic.Bool
}

func (d *dead) Settle(ctx context.Context, rows []*ledger.Row) []error {
	if d.gone.Load() {
		return each(rows, errStore)
	}
	return d.Ledger.Settle(ctx, rows)
}

// TestRestart stops the engine hard in the middle of a write and starts it again: found sending means maybe.
func TestRestart(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault flexitest.Fault
		sends int
	}{
		{"done", flexitest.Fault{Kind: flexitest.SilenceAfterCommit}, 1},
		{"not done", flexitest.Fault{Kind: flexitest.Silence}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				d := &dead{}
				b.wrap = func(l verify.Ledger) verify.Ledger { d.Ledger = l; return d }
				b.set.Drain = time.Second
				b.start()
				b.created("X", invoice("X"))
				b.first("A", c.fault)
				b.push(flexi.Create, "A", invoice("A"))
				b.until(10*time.Second, "sending", func() bool { return b.row("A").State == ledger.Sending && len(b.fake.Writes("A")) == 1 })
				d.gone.Store(true)
				b.halt()
				if r := b.row("A"); r.State != ledger.Sending {
					t.Fatalf("the dead process stored %s", r.State)
				}
				b.wrap = nil
				b.start()
				b.push(flexi.Create, "Y", invoice("Y")) // proves the fence again
				b.becomes("A", time.Hour, ledger.Confirmed, "")
				b.wantRecords("A", 1)
				if got := len(b.fake.Writes("A")); got != c.sends {
					t.Fatalf("%d writes, want %d", got, c.sends)
				}
			})
		})
	}
}
