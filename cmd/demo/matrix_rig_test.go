package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch"
	"flexid/batch/stream/embedded"
	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// world is the demo's piece between a fake in some mode and the engine with its ledger, all in virtual time. What the
// daemon has around the engine (HTTP, files, a NATS server that strangers reach) would stop the clock.
type world struct {
	t      *testing.T
	erp    *flexitest.Server
	ledger *ledger.Ledger
	engine *verify.Engine
	piece  *piece
	before int
	edited bool
	seq    uint64
}

// roundTrip is how long an answer takes at least. In virtual time an answer that takes none would let whatever asks in a row
// ask for ever without a moment passing.
const roundTrip = 5 * time.Millisecond

// virtually plays a piece of so many documents, so many of them in a request, and calls fn when all is published.
func virtually(t *testing.T, docs, pack int, session bool, set func(*flexitest.Server), fn func(*world)) {
	t.Helper()
	dir := t.TempDir()
	// nats.go keeps timers in a pool of the process: one that was made in another bubble must not be found here.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Second) // of virtual time: what a batch left behind in the server ends by itself
		p, err := compose(42, 7)
		must(t, err)
		p.thin(docs)
		w := &world{t: t, piece: p, erp: flexitest.New(flexitest.Options{AllowUsedNumbers: true, Seed: 7})}
		defer w.erp.Close()
		p.install(w.erp)
		for _, evidence := range p.evidences() {
			w.before += len(w.erp.Records(evidence))
		}
		w.erp.Slow(roundTrip)
		set(w.erp)
		srv, err := embedded.Start(embedded.Options{Dir: dir, Private: true, MaxStore: 1 << 30, Log: zerolog.Nop()})
		must(t, err)
		defer func() { must(t, srv.Stop(context.Background())) }()
		nc, err := nats.Connect("", nats.InProcessServer(srv), nats.Token(srv.Token()))
		must(t, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		must(t, err)
		stop := w.begin(js, pack, session)
		defer stop()
		fn(w)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// thin leaves so many documents, some of every evidence, and deals the mishaps out anew.
func (p *piece) thin(docs int) {
	by := map[string][]*document{}
	for _, d := range p.documents {
		by[d.evidence] = append(by[d.evidence], d)
	}
	kept := map[*document]bool{}
	for n := 0; n < len(p.documents) && len(kept) < docs; n++ {
		for _, list := range by {
			if n < len(list) {
				kept[list[n]] = true
			}
		}
	}
	p.documents = slices.DeleteFunc(p.documents, func(d *document) bool { return !kept[d] && !d.vital() })
	p.events = slices.DeleteFunc(p.events, func(ev *event) bool { return !slices.Contains(p.documents, ev.doc) })
	for _, ev := range p.events {
		ev.mishap = nil
	}
	p.drawMishaps(rand.New(rand.NewPCG(7, 7)))
}

// begin runs the engine with the demo's times.
func (w *world) begin(js jetstream.JetStream, pack int, session bool) (stop func()) {
	t, log := w.t, zerolog.Nop()
	if os.Getenv("FLEXID_TEST_LOG") != "" {
		log = zerolog.New(zerolog.NewConsoleWriter(zerolog.ConsoleTestWriter(t)))
	}
	o := ledger.Options{Company: "firma", System: system, Create: true, Log: log}
	var err error
	w.ledger, err = ledger.Open(t.Context(), js, o)
	must(t, err)
	state, err := ledger.OpenState(t.Context(), js, o)
	must(t, err)
	client, err := flexi.New(flexi.Options{
		URL: w.erp.URL(), Company: "firma", User: "flexid", Password: "secret", Session: session, Dial: w.erp.Dial,
		WriteTimeout: writeTimeout, Log: log,
	})
	must(t, err)
	steps := []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 6 * time.Second, time.Minute}
	w.engine, err = verify.New(verify.Options{
		ERP: client, Ledger: w.ledger, State: state, Log: log,
		Settings: verify.Settings{
			System: system, Company: "firma", LookFirst: true, Instance: "i1", Run: "run1", Pack: pack, WriteTimeout: writeTimeout,
			Looks: steps, SettleServerError: settleError, SettleProxy: settleError, SettleNoAnswer: settleSilent,
			Probe: 500 * time.Millisecond, Sends: 8,
		},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.engine.Run(ctx) }()
	<-w.engine.Ready()
	return func() {
		cancel()
		must(t, <-ended)
		must(t, client.Logout(context.Background()))
	}
}

// publish hands an event in as intake does.
func (w *world) publish(ev *event) {
	w.t.Helper()
	w.seq++
	header := map[string][]string{"Flexid-Op": {string(ev.op)}, "Nats-Msg-Id": {ev.id}}
	if ev.key != "" {
		header["Flexid-Key"] = []string{ev.key}
	}
	e := batch.Decoder{System: system}.Decode(batch.Message{
		Subject: "flexi.push." + ev.doc.evidence, Header: header, Data: ev.body,
		Stream: "FLEXID_PUSH", Seq: w.seq, Time: time.Now(), Received: time.Now(),
	})
	if e.Problem != "" {
		w.t.Fatalf("%s of %s: %s", ev.op, ev.doc.key, e.Problem)
	}
	_, err := w.engine.Accept(w.t.Context(), e)
	must(w.t, err)
}

func (w *world) row(d *document) ledger.Row {
	w.t.Helper()
	r, err := w.ledger.Get(w.t.Context(), ledger.RowID("firma", d.evidence, flexi.ExternalID(d.ext)))
	if errors.Is(err, ledger.ErrNoRow) {
		w.t.Fatalf("%s/%s has no row", d.evidence, d.key)
	}
	must(w.t, err)
	return r
}

// edit is the person: once the document is confirmed, its text is changed by hand, and the event comes that knows nothing
// of it.
func (w *world) edit() {
	d := w.piece.conflict.doc
	if w.edited || w.row(d).State != ledger.Confirmed {
		return
	}
	for _, r := range w.erp.Find(d.evidence, "code:"+d.number) {
		if w.erp.Edit(d.evidence, r.ID, map[string]any{"popis": personText}) {
			w.edited = true
			w.publish(w.piece.conflict)
			return
		}
	}
}

// open is the documents that are not over.
func (w *world) open() (out []ledger.Row) {
	for _, d := range w.piece.documents {
		if r := w.row(d); r.State == ledger.Queued || r.State == ledger.Sending || r.State == ledger.Maybe {
			out = append(out, r)
		}
	}
	return out
}

// play publishes everything and waits until nothing is open any more, at most for limit.
func (w *world) play(limit time.Duration) (took time.Duration) {
	begun := time.Now()
	for _, ev := range w.piece.events {
		w.publish(ev)
	}
	for time.Since(begun) < limit {
		pass(500 * time.Millisecond)
		w.edit()
		if w.edited && len(w.open()) == 0 && w.erp.Pending() == 0 {
			break
		}
	}
	return time.Since(begun)
}

// pass lets virtual time go by.
func pass(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

func describe(r ledger.Row) string {
	return fmt.Sprintf("%s/%s %s(%s) %s head %d tail %d sends %d", r.Evidence, r.Key, r.State, r.Reason, r.Cause, r.Head, r.Tail, r.Sends)
}
