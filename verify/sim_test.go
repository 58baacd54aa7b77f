package verify_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

// TestSimulation lets a seed choose the events, the faults, the deaths of processes and the second replica. Whatever it
// chooses: one record per document at most, the content of its last event, and nothing left to a person.
func TestSimulation(t *testing.T) {
	seeds := 2
	if testenv.Wide() {
		seeds = 6
	}
	if os.Getenv("FLEXID_SLOW") != "" {
		seeds = 30
	}
	first := 1
	if s := os.Getenv("FLEXID_SEED"); s != "" {
		first, _ = strconv.Atoi(s)
		seeds = 1
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			virtual(t, func(b *bench) { simulate(b, rand.New(rand.NewPCG(uint64(seed), 1))) })
		})
	}
}

// wish is what a document should end as, by the events that were sent.
type wish struct {
	exists bool
	popis  string
	storno bool
}

func simulate(b *bench, r *rand.Rand) {
	faults := []flexitest.Fault{
		{Kind: flexitest.ServerError, Status: 500}, {Kind: flexitest.CommitThenStatus, Status: 500},
		{Kind: flexitest.ServerError, Status: 504}, {Kind: flexitest.CommitThenStatus, Status: 502},
		{Kind: flexitest.ResetBefore}, {Kind: flexitest.ResetMiddle, Bytes: 30}, {Kind: flexitest.ResetAfterCommit},
		{Kind: flexitest.Silence}, {Kind: flexitest.SilenceAfterCommit}, {Kind: flexitest.HalfAnswer, Done: true},
		{Kind: flexitest.LateCommit, Delay: 4 * time.Minute}, {Kind: flexitest.LateCommit, Status: 504, Delay: 10 * time.Minute},
		{Kind: flexitest.TooMany, RetryAfter: "3"}, {Kind: flexitest.StaleRole}, {Kind: flexitest.Unauthorized},
		{Kind: flexitest.HTML200, Done: true}, {Kind: flexitest.OtherDocument, Done: true}, {Kind: flexitest.Redirect, Status: 307},
	}
	const docs = 8
	want := make([]wish, docs)
	for i := range docs { // the n-th write of a document strikes a fault of its own
		key := fmt.Sprint("D", i)
		for n := 1; n <= 4; n++ {
			if r.Float64() < 0.5 {
				f := faults[r.IntN(len(faults))]
				b.fake.OnWrite(n, func(q flexitest.Request) bool { return q.Has("ext:FLEXID:" + key) }, f)
			}
		}
	}
	b.fake.Type("faktura-vydana", map[string]any(invoice("RUCNE")))
	b.set.Sends = 9 // the script may strike every write of an event
	w := &world{b: b}
	w.begin()
	w.push(flexi.Create, "X", invoice("X")) // proves the fence now and after each restart
	if r.Float64() < 0.5 {
		second := b.set
		second.Instance = "i2"
		eng, stop := b.engine(second, nil)
		<-eng.Ready()
		defer func() {
			if err := stop(); err != nil {
				b.t.Log(err)
			}
		}()
	}
	for step := range 30 {
		i := r.IntN(docs)
		key, x := fmt.Sprint("D", i), &want[i]
		text := fmt.Sprint("popis ", step)
		switch {
		case !x.exists:
			w.push(flexi.Create, key, invoice(key, "popis", text))
			*x = wish{exists: true, popis: text}
		case r.Float64() < 0.15:
			w.push(flexi.Delete, key, doc{})
			*x = wish{}
		case r.Float64() < 0.1 && !x.storno:
			w.push(flexi.Storno, key, doc{})
			x.storno = true
		default:
			w.push(flexi.Upsert, key, invoice(key, "popis", text))
			x.popis = text
		}
		b.pass(time.Duration(r.Int64N(int64(20 * time.Second))))
		if r.Float64() < 0.15 {
			w.die()
			w.begin()
			w.push(flexi.Create, fmt.Sprint("X", step), invoice(fmt.Sprint("X", step)))
		}
	}
	w.settled(docs)
	for i := range docs {
		key := fmt.Sprint("D", i)
		rs := b.records(key)
		switch {
		case want[i].exists != (len(rs) == 1) || len(rs) > 1:
			b.t.Errorf("%s: %d records, wanted %v", key, len(rs), want[i].exists)
		case want[i].exists && fmt.Sprint(rs[0].Fields["popis"]) != want[i].popis:
			b.t.Errorf("%s: popis %v, wanted %s", key, rs[0].Fields["popis"], want[i].popis)
		case want[i].exists && (fmt.Sprint(rs[0].Fields["storno"]) == "true") != want[i].storno:
			b.t.Errorf("%s: storno %v, wanted %v", key, rs[0].Fields["storno"], want[i].storno)
		}
	}
}

// world is the engine that dies and comes back.
type world struct {
	b *bench
	d *dead
}

func (w *world) begin() {
	w.d = &dead{}
	w.b.set.Drain = time.Millisecond
	w.b.wrap = func(l verify.Ledger) verify.Ledger { w.d.Ledger = l; return w.d }
	w.b.start()
	<-w.b.eng.Ready()
}

// die kills the process: what it has on the wire stays there, what it did not store is forgotten.
func (w *world) die() {
	w.d.gone.Store(true)
	w.b.halt()
}

func (w *world) push(op flexi.Op, key string, body doc) { w.b.push(op, key, body) }

// settled waits until every document is over, late looks aside.
func (w *world) settled(docs int) {
	b := w.b
	b.until(48*time.Hour, "every document over", func() bool {
		for i := range docs {
			r := b.row(fmt.Sprint("D", i))
			if r.ID == "" {
				continue
			}
			if r.State == ledger.Parked {
				b.t.Fatalf("D%d is parked(%s)\n%s", i, r.Reason, pretty(r))
			}
			if r.State != ledger.Confirmed || r.Head != r.Tail {
				return false
			}
		}
		return true
	})
	b.pass(2 * time.Hour) // what is still on its way comes now
	for i := range docs {
		if r := b.row(fmt.Sprint("D", i)); r.ID != "" && r.State != ledger.Confirmed {
			b.t.Fatalf("D%d is %s(%s) two hours later\n%s", i, r.State, r.Reason, pretty(r))
		}
	}
}
