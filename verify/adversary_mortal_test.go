package verify_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

// brittle is the ledger of a process that dies at one of its durable steps: that step is stored or not, nothing after it is.
type brittle struct {
	verify.Ledger
	at    int64
	done  bool
	calls atomic.Int64
}

func (m *brittle) dead() bool { return m.calls.Load() >= m.at }

// step counts one durable step and says whether it is carried out, and whether the process hears of it.
func (m *brittle) step() (do bool, err error) {
	n := m.calls.Add(1)
	if n < m.at {
		return true, nil
	}
	return n == m.at && m.done, &ledger.UndecidedError{Err: errStore}
}

func (m *brittle) rows(rows []*ledger.Row, do func([]*ledger.Row) []error) []error {
	ok, err := m.step()
	switch {
	case err == nil:
		return do(rows)
	case ok:
		copies := make([]*ledger.Row, len(rows))
		for i, r := range rows {
			c := r.Clone()
			copies[i] = &c
		}
		do(copies)
	}
	errs := make([]error, len(rows))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func (m *brittle) Claim(ctx context.Context, rows []*ledger.Row) []error {
	return m.rows(rows, func(r []*ledger.Row) []error { return m.Ledger.Claim(ctx, r) })
}

func (m *brittle) Settle(ctx context.Context, rows []*ledger.Row) []error {
	return m.rows(rows, func(r []*ledger.Row) []error { return m.Ledger.Settle(ctx, r) })
}

func (m *brittle) Commit(ctx context.Context, b *ledger.Batch, c *ledger.Cursor) (rows []ledger.Row, err error) {
	err = m.one(func() error { rows, err = m.Ledger.Commit(ctx, b, c); return err })
	return rows, err
}

func (m *brittle) one(do func() error) error {
	ok, dead := m.step()
	var err error
	if ok {
		err = do()
	}
	if dead != nil {
		return dead
	}
	return err
}

func (m *brittle) PutEvent(ctx context.Context, id ledger.ID, ev ledger.Event) error {
	return m.one(func() error { return m.Ledger.PutEvent(ctx, id, ev) })
}

func (m *brittle) SetMarks(ctx context.Context, k ledger.Marks, revision uint64) error {
	return m.one(func() error { return m.Ledger.SetMarks(ctx, k, revision) })
}

func (m *brittle) FreeNumber(ctx context.Context, evidence, number string, owner ledger.ID) error {
	return m.one(func() error { return m.Ledger.FreeNumber(ctx, evidence, number, owner) })
}

func (m *brittle) TakeNumber(ctx context.Context, evidence, number string, owner ledger.ID) (id ledger.ID, err error) {
	err = m.one(func() error { id, err = m.Ledger.TakeNumber(ctx, evidence, number, owner); return err })
	return id, err
}

// life drives a scenario through one death: what was refused is tried again after the restart.
type life struct {
	*bench
	m    *brittle
	died bool
}

func (l *life) reborn() {
	if l.died || !l.m.dead() {
		return
	}
	l.died = true
	l.halt()
	l.wrap = nil
	l.start()
}

func (l *life) take(e verify.Event) {
	l.t.Helper()
	l.reborn()
	if _, err := l.eng.Accept(l.t.Context(), e); err != nil {
		l.reborn()
		_, err = l.eng.Accept(l.t.Context(), e)
		must(l.t, err)
	}
}

func (l *life) rest(d time.Duration) {
	for range 4 {
		l.pass(d / 4)
		l.reborn()
	}
}

// decided carries a decision out, as soon as it is taken.
func (l *life) decided(key string, what verify.What) {
	l.t.Helper()
	l.until(2*time.Hour, key+" decided", func() bool {
		l.reborn()
		return l.row(key).State != ledger.Parked || l.decide(key, what) == nil
	})
}

// settled waits until nothing is left to do for a document.
func (l *life) settled(key string) ledger.Row {
	l.t.Helper()
	l.until(30*time.Hour, key+" over", func() bool {
		l.reborn()
		r := l.row(key)
		return !r.More() && r.Tail > 0 && (r.State == ledger.Confirmed || r.State == ledger.Parked || r.State == ledger.Dropped)
	})
	return l.row(key)
}

// stride keeps the test short: a death at every step of every scenario takes minutes.
const stride = 7

// TestDeathOnTheWay lets the process die at durable steps of what a document may go through, that step stored or not.
func TestDeathOnTheWay(t *testing.T) {
	scenarios := []struct {
		name string
		do   func(l *life)
	}{
		{"too early", func(l *life) {
			l.take(l.versioned(flexi.Update, "3", doc{"varSym": "33"}))
			l.rest(time.Minute)
			l.first("A", flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500})
			l.take(l.versioned(flexi.Create, "1", invoice("A")))
			l.rest(time.Second)
			l.take(l.versioned(flexi.Update, "4", doc{"popis": "čtyři"}))
			if r := l.settled("A"); r.State != ledger.Confirmed || len(r.Redo)+len(r.Refused) > 0 {
				l.t.Errorf("it is %s", pretty(r))
			}
			l.wantRecords("A", 1)
			if v, p := l.field("A", "varSym"), l.field("A", "popis"); v != "33" || p != "čtyři" {
				l.t.Errorf("varSym %s, popis %s", v, p)
			}
		}},
		{"restored", func(l *life) {
			l.take(l.event(flexi.Create, "A", invoice("A")))
			l.settled("A")
			l.take(l.event(flexi.Create, "B", invoice("B")))
			l.settled("B")
			snap := l.fake.Snapshot()
			l.take(l.event(flexi.Update, "A", doc{"varSym": "2"}))
			l.settled("A")
			l.take(l.event(flexi.Create, "C", invoice("C")))
			l.settled("C")
			l.rest(6 * time.Minute)
			l.fake.RestoreUnseen(snap)
			if err := l.eng.AcceptCompany(l.t.Context(), "restored", "jana", "obnova"); err != nil {
				l.reborn()
				must(l.t, l.eng.AcceptCompany(l.t.Context(), "restored", "jana", "obnova"))
			}
			l.take(l.event(flexi.Create, "N", invoice("N")))
			for _, key := range []string{"A", "C"} {
				l.until(time.Hour, key+" parked", func() bool { l.reborn(); return l.row(key).State == ledger.Parked })
				l.decided(key, verify.DecideResend)
			}
			l.rest(time.Hour)
			for _, key := range []string{"A", "B", "C", "N"} {
				if r := l.settled(key); r.State != ledger.Confirmed {
					l.t.Errorf("%s is %s", key, pretty(r))
				}
				l.wantRecords(key, 1)
			}
			if v := l.field("A", "varSym"); v != "2" {
				l.t.Errorf("varSym %s", v)
			}
		}},
		{"aside", func(l *life) {
			l.take(l.event(flexi.Create, "A", invoice("A")))
			large := l.event(flexi.Upsert, "A", invoice("A", "popis", strings.Repeat("x", 1_200_000)))
			large.Given, large.EventID = true, "velká"
			l.take(large)
			l.take(l.event(flexi.Update, "A", doc{"varSym": "2"}))
			l.settled("A")
			l.rest(time.Minute)
			ids, err := l.ledger.AsideEvent(l.t.Context(), "velká")
			must(l.t, err)
			if len(ids) != 1 {
				l.t.Fatalf("%d rows aside", len(ids))
			}
			r, err := l.ledger.Get(l.t.Context(), ids[0])
			must(l.t, err)
			if r.State != ledger.Parked || r.Reason != ledger.Unreadable {
				l.t.Errorf("aside is %s(%s)", r.State, r.Reason)
			}
			if v := l.field("A", "varSym"); v != "2" {
				l.t.Errorf("varSym %s", v)
			}
		}},
		{"dropped", func(l *life) {
			l.take(l.event(flexi.Create, "A", invoice("A", "typDokl", "code:NENI")))
			l.until(time.Hour, "parked", func() bool { l.reborn(); return l.row("A").State == ledger.Parked })
			l.decided("A", verify.DecideDrop)
			l.take(l.event(flexi.Create, "A", invoice("A", "typDokl", "code:NENI")))
			if r := l.settled("A"); r.State != ledger.Dropped {
				l.t.Errorf("again it is %s(%s)", r.State, r.Reason)
			}
			l.take(l.event(flexi.Create, "B", invoice("A")))
			if r := l.settled("B"); r.State != ledger.Confirmed && len(l.row("A").Late) == 0 {
				l.t.Errorf("the number is not free: %s", pretty(r))
			}
		}},
	}
	step := int64(stride)
	if !testenv.Wide() {
		step *= 4
	}
	for _, s := range scenarios {
		for first, done := range []bool{false, true} {
			for at, died := int64(1+first), true; died && at < 120; at += step {
				t.Run(fmt.Sprintf("%s/step %d/stored %v", s.name, at, done), func(t *testing.T) {
					virtual(t, func(b *bench) {
						b.set.Drain = time.Second
						b.start()
						b.created("X", invoice("X"))
						b.pass(10 * time.Minute)
						b.halt()
						l := &life{bench: b, m: &brittle{at: at, done: done}}
						b.wrap = func(led verify.Ledger) verify.Ledger { l.m.Ledger = led; return l.m }
						b.start()
						<-b.eng.Ready()
						s.do(l)
						died = l.died
					})
				})
			}
		}
	}
}
