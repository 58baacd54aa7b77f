package verify_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// TestTrialsAreNoLivelock: a tripped breaker is reset by a document that had a maybe when no clean one can go through.
func TestTrialsAreNoLivelock(t *testing.T) {
	lost := flexitest.Fault{Kind: flexitest.ServerError, Status: 500}
	all := func(b *bench, n int) {
		b.t.Helper()
		b.until(2*time.Hour, "all confirmed", func() bool { return b.eng.Status().Documents["confirmed"] == n })
	}
	t.Run("a clean one waits for a suspect one", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.push(flexi.Create, "JINA", doc{"@evidence": "adresar", "kod": "JINA", "nazev": "Jiná"})
			b.created("X", invoice("X"))
			b.first("ext:FLEXID:NOVA", lost)
			b.push(flexi.Create, "NOVA", doc{"@evidence": "adresar", "kod": "NOVA", "nazev": "Nová"})
			b.push(flexi.Create, "A", invoice("A", "firma", "code:NOVA"))
			for i := range 2 {
				b.first(fmt.Sprint("ext:FLEXID:S", i), lost)
				b.push(flexi.Create, fmt.Sprint("S", i), invoice(fmt.Sprint("S", i)))
			}
			all(b, 6)
		})
	})
	t.Run("a clean one is stopped by a person", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("X", invoice("X"))
			must(b.t, b.eng.StopWrites(b.t.Context(), "adresar", "jana", "úklid"))
			for i := range 5 {
				b.push(flexi.Create, fmt.Sprint("N", i), doc{"@evidence": "adresar", "kod": fmt.Sprint("N", i), "nazev": "Nová"})
			}
			for i := range 3 {
				b.first(fmt.Sprint("ext:FLEXID:S", i), lost)
				b.push(flexi.Create, fmt.Sprint("S", i), invoice(fmt.Sprint("S", i)))
			}
			all(b, 4)
		})
	})
	t.Run("a clean one has no right", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("X", invoice("X"))
			b.fake.SetRight("adresar", false)
			for i := range 5 {
				b.push(flexi.Create, fmt.Sprint("N", i), doc{"@evidence": "adresar", "kod": fmt.Sprint("N", i), "nazev": "Nová"})
			}
			for i := range 3 {
				b.first(fmt.Sprint("ext:FLEXID:S", i), lost)
				b.push(flexi.Create, fmt.Sprint("S", i), invoice(fmt.Sprint("S", i)))
			}
			all(b, 4)
		})
	})
}

// TestClosedDoorIsNotPolled: while the one that tries hangs at the ERP, the others do not ask the ledger again and again.
func TestClosedDoorIsNotPolled(t *testing.T) {
	virtual(t, func(b *bench) {
		h := &hook{}
		h.under(b)
		b.start()
		b.created("X", invoice("X"))
		b.fake.Probability(1, flexitest.Fault{Kind: flexitest.Silence})
		const n = 200
		for i := range n {
			b.push(flexi.Create, fmt.Sprint("A", i), invoice(fmt.Sprint("A", i)))
		}
		b.until(time.Hour, "closed", func() bool { return !b.eng.Status().Stops[0].Open })
		b.pass(time.Minute)
		before := h.gets.Load()
		b.pass(10 * time.Minute)
		if got := h.gets.Load() - before; got > n*60 {
			b.t.Fatalf("%d reads of the ledger in ten minutes for %d waiting documents", got, n)
		}
		b.fake.NoFaults()
		b.until(2*time.Hour, "all confirmed", func() bool { return b.eng.Status().Documents["confirmed"] == n+1 })
	})
}

// TestLedgerTroubleIsNoOutage: Flexi is not blamed for a ledger that fails for a moment.
func TestLedgerTroubleIsNoOutage(t *testing.T) {
	virtual(t, func(b *bench) {
		h, fail := &hook{}, atomic.Bool{}
		h.holder = func(ctx context.Context, evidence, number string) (ledger.ID, bool, error) {
			if fail.Load() {
				return "", false, errStore
			}
			return h.Ledger.HolderOf(ctx, evidence, number)
		}
		h.under(b)
		b.start()
		b.created("X", invoice("X"))
		fail.Store(true)
		for i := range 5 {
			b.push(flexi.Create, fmt.Sprint("A", i), invoice(fmt.Sprint("A", i)))
		}
		for range 100 {
			b.pass(time.Second)
			for _, g := range b.eng.Status().Stops {
				if !g.Open {
					b.t.Fatalf("the breaker says %s: %s", g.Reason, g.Text)
				}
			}
		}
		fail.Store(false)
		b.until(time.Minute, "all confirmed", func() bool { return b.eng.Status().Documents["confirmed"] == 6 })
	})
}

// TestNumberTakenByNobody: a number that was taken for a row which never came is not a document for a person.
func TestNumberTakenByNobody(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		_, err := b.ledger.TakeNumber(b.t.Context(), "faktura-vydana", "FV-9", ledger.RowID("firma", "faktura-vydana", "ext:FLEXID:k1"))
		must(b.t, err)
		b.push(flexi.Create, "k2", invoice("FV-9"))
		b.becomes("k2", 5*time.Minute, ledger.Confirmed, "")
	})
}

// TestNumberFreedInARace: the holder gets a new event between being judged idle and losing its number.
func TestNumberFreedInARace(t *testing.T) {
	virtual(t, func(b *bench) {
		h, once := &hook{}, atomic.Bool{}
		h.free = func(ctx context.Context, evidence, number string, owner ledger.ID) error {
			if !once.Swap(true) {
				b.push(flexi.Create, "k1", invoice("FV-9"))
				for b.row("k1").State != ledger.Sending { // not until: the test itself waits
					tm := time.NewTimer(10 * time.Millisecond)
					<-tm.C
				}
			}
			return h.Ledger.FreeNumber(ctx, evidence, number, owner)
		}
		h.under(b)
		b.set.LookFirst = false
		b.start()
		b.push(flexi.Create, "k1", invoice("FV-9", "firma", "code:NENI"))
		b.becomes("k1", time.Minute, ledger.Parked, ledger.Rejected)
		b.nth(1, "ext:FLEXID:k1", flexitest.Fault{Kind: flexitest.ResponseDelay, Delay: 20 * time.Second})
		b.push(flexi.Create, "k2", invoice("FV-9"))
		b.becomes("k1", time.Minute, ledger.Confirmed, "")
		b.becomes("k2", 5*time.Minute, ledger.Parked, ledger.Duplicate)
		b.wantRecords("FV-9", 1)
	})
}

// TestDrawnNumberFoundByALook is owned as one that was told in the answer.
func TestDrawnNumberFoundByALook(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.LookFirst = false
		b.start()
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAfterCommit})
		b.push(flexi.Create, "A", invoice(""))
		r := b.becomes("A", time.Minute, ledger.Confirmed, "")
		b.push(flexi.Create, "B", invoice(r.Number))
		b.becomes("B", time.Minute, ledger.Parked, ledger.Duplicate)
		b.wantRecords(r.Number, 1)
	})
}

// TestFenceOfAQuietEvidence: after a restart a lone maybe finds a witness for the fence among the confirmed documents.
func TestFenceOfAQuietEvidence(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.pass(5 * time.Minute)
		b.typed(invoice("JINA"))
		b.halt()
		b.start()
		<-b.eng.Ready()
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", 40*time.Minute, ledger.Confirmed, "")
		b.wantRecords("A", 1)
	})
}

// TestRestoredOwesEverything: after a restore every document that had a record is looked at, whatever happens meanwhile.
func TestRestoredOwesEverything(t *testing.T) {
	accept := func(b *bench) error { return b.eng.AcceptCompany(b.t.Context(), "restored", "jana", "obnova") }
	t.Run("last event rejected", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("X", invoice("X"))
			r := b.created("A", invoice("A"))
			b.push(flexi.Update, "A", doc{"firma": "code:NENI"})
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			b.pass(5 * time.Minute)
			b.fake.Remove("faktura-vydana", atoi(r.FlexiID))
			must(b.t, accept(b))
			b.becomes("A", 10*time.Minute, ledger.Parked, ledger.Conflict)
		})
	})
	t.Run("the row changes meanwhile", func(t *testing.T) {
		virtual(t, func(b *bench) {
			h, races := &hook{}, atomic.Int64{}
			h.settle = func(ctx context.Context, rows []*ledger.Row) []error {
				if rows[0].Key == "A" && races.Add(-1) >= 0 {
					return each(rows, &ledger.ConflictError{})
				}
				return h.Ledger.Settle(ctx, rows)
			}
			h.under(b)
			b.start()
			b.created("X", invoice("X"))
			r := b.created("A", invoice("A"))
			b.pass(5 * time.Minute)
			b.fake.Remove("faktura-vydana", atoi(r.FlexiID))
			races.Store(2)
			must(b.t, accept(b))
			b.becomes("A", 10*time.Minute, ledger.Parked, ledger.Conflict)
		})
	})
	t.Run("while a person looks", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("X", invoice("X"))
			r := b.created("A", invoice("A"))
			b.pass(5 * time.Minute)
			b.fake.Slow(3 * time.Second)
			ended := make(chan error, 1)
			go func() { ended <- b.decide("A", verify.DecideLook) }()
			b.pass(time.Second)
			b.fake.Remove("faktura-vydana", atoi(r.FlexiID))
			must(b.t, accept(b))
			<-ended
			b.fake.Slow(0)
			b.becomes("A", 10*time.Minute, ledger.Parked, ledger.Conflict)
		})
	})
}

// TestStopsOfTwoReplicas: two stops at the same moment, from two replicas, both take effect everywhere.
func TestStopsOfTwoReplicas(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		set := b.set
		set.Instance = "i2"
		two, stop := b.engine(set, nil)
		defer func() { _ = stop() }()
		<-two.Ready()
		<-b.eng.Ready()
		must(b.t, b.eng.StopWrites(b.t.Context(), "adresar", "jana", "úklid"))
		must(b.t, two.StopWrites(b.t.Context(), "faktura-vydana", "petr", "uzávěrka"))
		b.pass(time.Minute)
		for i, e := range []*verify.Engine{b.eng, two} {
			if n := len(e.Status().Stops); n != 2 {
				b.t.Errorf("replica %d has %d stops: %+v", i+1, n, e.Status().Stops)
			}
		}
		must(b.t, b.eng.ResumeWrites(b.t.Context(), "faktura-vydana", "jana", "hotovo"))
		b.pass(time.Minute)
		for i, e := range []*verify.Engine{b.eng, two} {
			if g := e.Status().Stops; len(g) != 1 || g[0].Evidence != "adresar" {
				b.t.Errorf("replica %d: %+v", i+1, g)
			}
		}
	})
}
