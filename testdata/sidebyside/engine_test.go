package sidebyside

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch/stream/embedded"
	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// engine is flexid's way for documents, with its ledger on a NATS server, before a fake ERP.
type engine struct {
	t     *testing.T
	fake  *flexitest.Server
	e     *verify.Engine
	count *counter
	begun time.Time
}

// counter counts the claimed sends: the logical calls that the writes on the wire are compared with.
type counter struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *counter) Call(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[kind]++
}

func (c *counter) of(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[kind]
}

func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.calls)
}

func (*counter) Entered(string)           {}
func (*counter) Looked(string)            {}
func (*counter) WriteTook(float64)        {}
func (*counter) Log(string, ...[2]string) {}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// withEngine runs fn in virtual time with an engine at flexid's defaults.
func withEngine(t *testing.T, set func(*flexitest.Server), fn func(x *engine)) {
	t.Helper()
	withSeed(t, 7, set, fn)
}

func withSeed(t *testing.T, seed uint64, set func(*flexitest.Server), fn func(x *engine)) {
	t.Helper()
	dir := t.TempDir()
	// nats.go keeps timers in a pool of the process: one that was made in another bubble must not be found here.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		x := &engine{t: t, fake: erp(nil), count: &counter{calls: make(map[string]int)}}
		defer x.fake.Close()
		srv, err := embedded.Start(embedded.Options{Dir: dir, Private: true, MaxStore: 1 << 30, Log: zerolog.Nop()})
		must(t, err)
		defer func() { must(t, srv.Stop(context.Background())) }()
		nc, err := nats.Connect("", nats.InProcessServer(srv), nats.Token(srv.Token()))
		must(t, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		must(t, err)
		x.start(js, chance(seed), func(x *engine) {
			x.prove()
			if set != nil {
				set(x.fake)
			}
			fn(x)
		})
	})
}

// first is the document that proves, before a scenario begins, that the ERP keeps external ids: a daemon that has run for
// a minute knows it, and without it every absence would wait for it.
const first = 9999

func (x *engine) prove() {
	x.t.Helper()
	x.push(first, first+1)
	for begun := time.Now(); x.e.Status().Fence["faktura-vydana"] != "proved"; after(time.Second) {
		if time.Since(begun) > time.Hour {
			x.t.Fatalf("the fence is not proved: %v", x.e.Status())
		}
	}
	x.fake.ResetLog()
	x.count.reset()
	x.begun = time.Now()
}

func (x *engine) start(js jetstream.JetStream, random func() float64, fn func(*engine)) {
	o := ledger.Options{Company: "firma", System: "FLEXID", Create: true, Log: zerolog.Nop()}
	led, err := ledger.Open(x.t.Context(), js, o)
	must(x.t, err)
	state, err := ledger.OpenState(x.t.Context(), js, o)
	must(x.t, err)
	client, err := flexi.New(flexi.Options{
		URL: x.fake.URL(), Company: "firma", User: "flexid", Password: "secret", Dial: x.fake.Dial, Log: zerolog.Nop(),
		Rand: random,
	})
	must(x.t, err)
	x.e, err = verify.New(verify.Options{
		ERP: client, Ledger: led, State: state, Observer: x.count, Log: zerolog.Nop(), Rand: random,
		Settings: verify.Settings{System: "FLEXID", Company: "firma", LookFirst: true, Instance: "i1", Run: "run1"},
	})
	must(x.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.e.Run(ctx) }()
	defer func() {
		cancel()
		must(x.t, <-ended)
	}()
	<-x.e.Ready()
	fn(x)
}

// push hands in the documents from..to-1.
func (x *engine) push(from, to int) {
	x.t.Helper()
	for i := from; i < to; i++ {
		body, err := json.Marshal(fields(i))
		must(x.t, err)
		_, err = x.e.Accept(x.t.Context(), verify.Event{
			EventID: fmt.Sprint("FLEXID_PUSH:", i+1), Evidence: "faktura-vydana", Key: number(i), Op: flexi.Create, Body: body,
			Received: time.Now(), Stream: "FLEXID_PUSH", Seq: uint64(i + 1), StreamTime: time.Now(),
		})
		must(x.t, err)
	}
}

// confirmed does not count the first document.
func (x *engine) confirmed() int { return x.e.Status().Documents["confirmed"] - 1 }

// parked is documents that are left to a person: the ERP failed at every send that they may have.
func (x *engine) parked() int { return x.e.Status().Documents["parked"] }

// all waits until n documents are confirmed or parked, and says how long it took; limit is for a scenario that does not
// end.
func (x *engine) all(n int, limit time.Duration) time.Duration {
	x.t.Helper()
	begun := time.Now()
	for x.confirmed()+x.parked() < n {
		if time.Since(begun) > limit {
			x.t.Errorf("after %s: %v", limit, x.e.Status().Documents)
			break
		}
		after(max(100*time.Millisecond, time.Since(begun)/50))
	}
	return time.Since(begun)
}

// cost is what a run of documents cost at the server.
type cost struct {
	documents, calls, writes, wire, parked int
	took                                   time.Duration
}

// amplification is writes on the wire by claimed sends.
func (c cost) amplification() float64 { return float64(c.writes) / float64(c.calls) }

func (c cost) String() string {
	n := float64(c.documents)
	return fmt.Sprintf("%5d documents  writes %.2f  all requests %.2f a document  %s  left to a person %d",
		c.documents, float64(c.writes)/n, float64(c.wire)/n, c.took.Round(time.Second), c.parked)
}

func (x *engine) cost(n int, took time.Duration) cost {
	return cost{
		documents: n, calls: x.count.of("write"), writes: x.fake.Count(flexitest.Write), wire: x.fake.Count(""),
		parked: x.parked(), took: took,
	}
}

// costOf sends n documents into a script of faults.
func costOf(t *testing.T, n int, set func(*flexitest.Server)) (out cost) {
	withEngine(t, set, func(x *engine) {
		x.push(0, n)
		took := x.all(n, 24*time.Hour)
		out = x.cost(n, took)
	})
	return out
}

// outage is ten minutes in which every write is answered 500, with documents waiting: what was sent into it, and that
// everything is confirmed afterwards.
func outage(t *testing.T, n int) (into, whole cost) {
	withEngine(t, func(s *flexitest.Server) {
		s.OnWrite(0, nil, flexitest.Fault{Kind: flexitest.ServerError, Status: 500})
	},
		func(x *engine) {
			x.push(0, n)
			after(time.Until(x.begun.Add(10 * time.Minute)))
			into = x.cost(n, 10*time.Minute)
			x.fake.NoFaults()
			took := x.all(n, 24*time.Hour)
			whole = x.cost(n, took+10*time.Minute)
		})
	return into, whole
}

// through sends all documents into a trouble and waits until none is in doubt.
func through(t *testing.T, tr trouble) (out books, paid cost) {
	withEngine(t, tr.set, func(x *engine) {
		x.push(0, documents)
		took := x.all(documents, 24*time.Hour)
		for x.fake.Pending() > 0 {
			after(time.Second)
		}
		out = audit(x.fake, documents, func(int) bool { return false })
		out.wronged = documents - x.confirmed()
		paid = x.cost(documents, took)
	})
	return out, paid
}

// stampedeOfEngine lets every document be refused once.
func stampedeOfEngine(t *testing.T, seed uint64) (out stampede) {
	withSeed(t, seed, func(s *flexitest.Server) {
		s.OnWrite(1, nil, flexitest.Fault{Kind: flexitest.TooMany, RetryAfter: "2"})
	},
		func(x *engine) {
			x.push(0, herd)
			x.all(herd, 24*time.Hour)
			out = judge(x.writes())
		})
	return out
}

// endlessOfEngine lets one document be refused for ever with an impossible wait.
func endlessOfEngine(t *testing.T) (n int) {
	withEngine(t, func(s *flexitest.Server) {
		s.OnWrite(0, nil, flexitest.Fault{Kind: flexitest.TooMany, RetryAfter: "9300000000"})
	}, func(x *engine) {
		x.push(0, 1)
		after(patience)
		n = x.fake.Count(flexitest.Write)
	})
	return n
}

// writes is the log of writes as arrivals of documents.
func (x *engine) writes() []arrival {
	var out []arrival
	calls, count := make(map[string]int), make(map[string]int)
	for _, r := range x.fake.Requests() {
		if r.Kind != flexitest.Write {
			continue
		}
		for _, d := range r.Docs {
			id := d.ID()
			if _, known := calls[id]; !known {
				calls[id] = len(calls)
			}
			count[id]++
			out = append(out, arrival{call: calls[id], n: count[id], request: r.N, at: r.Time})
		}
	}
	return out
}
