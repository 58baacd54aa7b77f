package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch/stream/embedded"
	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

// bench is one engine between a real ledger on an embedded NATS server and a fake Flexi, all in virtual time.
type bench struct {
	t        *testing.T
	fake     *flexitest.Server
	nats     *embedded.Server
	nc       *nats.Conn
	others   []*nats.Conn // of other processes
	ledger   *ledger.Ledger
	state    *ledger.StateBucket
	wrap     func(verify.Ledger) verify.Ledger
	store    verify.Store // in place of state, nil = state itself
	set      verify.Settings
	notices  *notifiers
	seen     counts
	seq      uint64
	ahead    time.Duration // how far the clock of the next engine is ahead
	jumped   atomic.Int64  // how many seconds the clock of all engines was set forward
	log      zerolog.Logger
	quota    flexi.Quota
	budget   *flexi.Budget
	refusals *flexi.Bucket // instead of the budget's own

	eng  *verify.Engine
	stop func() error
	runs int
}

type notifiers struct {
	mu   sync.Mutex
	msgs []verify.Notice
	kind []string
	fail func() error
}

func (t *notifiers) Notify(_ context.Context, kind, token, _ string, body []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fail != nil {
		if err := t.fail(); err != nil {
			return err
		}
	}
	if kind != "done" {
		t.kind = append(t.kind, token)
		return nil
	}
	var m verify.Notice
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	t.msgs = append(t.msgs, m)
	return nil
}

func (t *notifiers) alerts() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.kind...)
}

func (t *notifiers) done() []verify.Notice {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]verify.Notice{}, t.msgs...)
}

func settings() verify.Settings {
	return verify.Settings{
		System: "FLEXID", Company: "firma", LookFirst: true, Instance: "i1",
		Allow: func(string, flexi.Op) bool { return true },
	}
}

// roundTrip is how long every answer of the fake takes. Without it an answer takes no virtual time, and whether the first of
// three writes has failed before the third one leaves is up to the scheduler of a busy machine: what goes at the same
// moment is in flight together only if being in flight takes time.
const roundTrip = 5 * time.Millisecond

func TestMain(m *testing.M) {
	testenv.InMemory()
	testenv.SeldomCollect()
	os.Exit(m.Run())
}

// virtual runs a test in a bubble of virtual time.
func virtual(t *testing.T, fn func(b *bench)) {
	t.Helper()
	dir := t.TempDir()
	// nats.go keeps timers in a pool of the process: one that was made in another bubble must not be found here.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, dir, flexitest.Options{AllowUsedNumbers: true, Seed: 7})
		defer b.close()
		fn(b)
	})
}

func newBench(t *testing.T, dir string, fo flexitest.Options) *bench {
	t.Helper()
	b := &bench{t: t, set: settings(), notices: &notifiers{}, log: zerolog.Nop()}
	if os.Getenv("FLEXID_TEST_LOG") != "" {
		b.log = zerolog.New(zerolog.NewConsoleWriter(zerolog.ConsoleTestWriter(t))).With().Logger()
	}
	b.fake = flexitest.New(fo)
	b.fake.Slow(roundTrip)
	srv, err := embedded.Start(embedded.Options{Dir: dir, Private: true, MaxStore: 1 << 30, Log: zerolog.Nop()})
	must(t, err)
	b.nats = srv
	js := b.connect()
	b.nc = js.Conn()
	o := ledgerOptions(b)
	o.Create = true
	b.ledger, err = ledger.Open(t.Context(), js, o)
	must(t, err)
	b.state, err = ledger.OpenState(t.Context(), js, o)
	must(t, err)
	return b
}

// ledgerOptions lets a ledger that hears nothing check that less often than the daemon's: in hours of virtual time in which
// nothing happens, these checks would be most of what is computed.
func ledgerOptions(b *bench) ledger.Options {
	return ledger.Options{Company: "firma", System: "FLEXID", Idle: 50 * time.Second, Log: b.log, Now: b.clock}
}

func (b *bench) connect() jetstream.JetStream {
	b.t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(b.nats), nats.Token(b.nats.Token()))
	must(b.t, err)
	js, err := jetstream.New(nc)
	must(b.t, err)
	return js
}

// anotherLedger is the ledger as another process has it: what that one has in hand, this one does not know.
func (b *bench) anotherLedger() *ledger.Ledger {
	b.t.Helper()
	js := b.connect()
	b.others = append(b.others, js.Conn())
	l, err := ledger.Open(b.t.Context(), js, ledgerOptions(b))
	must(b.t, err)
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs an engine over the bench; a second call after halt is a restart.
func (b *bench) start() {
	b.t.Helper()
	b.eng, b.stop = b.engine(b.set, b.wrap)
}

func (b *bench) engine(set verify.Settings, wrap func(verify.Ledger) verify.Ledger) (*verify.Engine, func() error) {
	b.t.Helper()
	b.runs++
	ahead := b.ahead
	set.Run = fmt.Sprint("run", b.runs)
	b.budget = flexi.NewBudget(set.Pack) // one for both, as in the daemon
	if b.refusals != nil {
		b.budget.Refusals = b.refusals
	}
	erp, err := flexi.New(flexi.Options{
		URL: b.fake.URL(), Company: "firma", User: "flexid", Password: "secret", Dial: b.fake.Dial,
		WriteTimeout: 200 * time.Second, Quota: b.quota, Budget: b.budget, Log: b.log, Now: b.clock,
	})
	must(b.t, err)
	var led verify.Ledger = b.ledger
	if wrap != nil {
		led = wrap(led)
	}
	var store verify.Store = b.state
	if b.store != nil {
		store = b.store
	}
	eng, err := verify.New(verify.Options{
		ERP: erp, Ledger: led, State: store, Notifier: b.notices, Observer: &b.seen, Budget: b.budget, Settings: set, Log: b.log,
		Rand: func() float64 { return 0.5 },
		Now:  func() time.Time { return b.clock().Add(ahead) },
	})
	must(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	return eng, func() error { cancel(); return <-ended }
}

// clock is the clock of a machine whose wall clock was set: the monotonic reading goes on as if nothing had happened.
func (b *bench) clock() time.Time {
	const from1885 = 2_682_288_000 // seconds from 1885, where times with a monotonic reading begin, to 1970
	now := time.Now()
	t := time.Now()
	raw := (*struct {
		wall uint64 // 1 bit: a monotonic reading follows; 33 bits: seconds since 1885; 30 bits: nanoseconds
		ext  int64  // the monotonic reading
	})(unsafe.Pointer(&t))
	raw.wall = 1<<63 | uint64(now.Unix()+b.jumped.Load()+from1885)<<30 | uint64(now.Nanosecond())
	raw.ext = now.UnixNano()
	return t
}

// set moves the wall clock of all engines.
func (b *bench) setClock(by time.Duration) { b.jumped.Store(int64(by / time.Second)) }

// halt stops the engine as a SIGTERM would.
func (b *bench) halt() {
	b.t.Helper()
	if b.stop != nil {
		if err := b.stop(); err != nil {
			b.t.Logf("stop: %v", err)
		}
		b.stop = nil
	}
}

func (b *bench) close() {
	b.halt()
	for _, nc := range append(b.others, b.nc) {
		nc.Close()
	}
	b.fake.Close()
	if err := b.nats.Stop(context.Background()); err != nil {
		b.t.Error(err)
	}
	time.Sleep(time.Second) // of virtual time: what a batch left behind in the server ends by itself, and after the bubble it could not
}

type doc map[string]any

func (b *bench) event(op flexi.Op, key string, body doc) verify.Event {
	b.seq++
	raw, err := json.Marshal(body)
	must(b.t, err)
	evidence := "faktura-vydana"
	if e, ok := body["@evidence"]; ok {
		evidence = e.(string)
		delete(body, "@evidence")
		raw, err = json.Marshal(body)
		must(b.t, err)
	}
	return verify.Event{
		EventID: fmt.Sprint("FLEXID_PUSH:", b.seq), Evidence: evidence, Key: key, Op: op, Body: raw,
		Received: time.Now(), Stream: "FLEXID_PUSH", Seq: b.seq, StreamTime: time.Now(),
	}
}

// push hands in one event about an issued invoice.
func (b *bench) push(op flexi.Op, key string, body doc) verify.Receipt {
	b.t.Helper()
	r, err := b.eng.Accept(b.t.Context(), b.event(op, key, body))
	must(b.t, err)
	return r
}

func invoice(kod string, more ...any) doc {
	d := doc{"typDokl": "code:FAKTURA", "varSym": "20260001", "datVyst": "2026-11-30", "popis": "Služby"}
	if kod != "" {
		d["kod"] = kod
	}
	for i := 0; i+1 < len(more); i += 2 {
		d[more[i].(string)] = more[i+1]
	}
	return d
}

func (b *bench) row(key string) ledger.Row { return b.rowOf("faktura-vydana", key) }

func (b *bench) rowOf(evidence, key string) ledger.Row {
	b.t.Helper()
	r, err := b.ledger.Get(b.t.Context(), ledger.RowID("firma", evidence, flexi.NewExternalID("FLEXID", "", key)))
	if errors.Is(err, ledger.ErrNoRow) {
		return ledger.Row{}
	}
	must(b.t, err)
	return r
}

// until waits in virtual time for a condition, and says how long it took.
func (b *bench) until(limit time.Duration, what string, ok func() bool) time.Duration {
	b.t.Helper()
	begun := time.Now()
	for !ok() {
		if time.Since(begun) > limit {
			b.t.Fatalf("after %s: not %s", limit, what)
		}
		b.pass(max(100*time.Millisecond, time.Since(begun)/20))
	}
	return time.Since(begun)
}

// pass lets virtual time go by.
func (b *bench) pass(d time.Duration) {
	tm := time.NewTimer(d)
	<-tm.C
	synctest.Wait()
}

func (b *bench) becomes(key string, limit time.Duration, state ledger.State, reason ledger.Reason) ledger.Row {
	b.t.Helper()
	begun := time.Now()
	for {
		synctest.Wait()
		r := b.row(key)
		if r.State == state && r.Reason == reason && r.Head == r.Tail {
			return r
		}
		if time.Since(begun) > limit {
			b.t.Fatalf("%s: after %s it is %s(%s) head %d tail %d, want %s(%s)\n%s", key, limit, r.State, r.Reason, r.Head, r.Tail, state, reason, pretty(r))
		}
		b.pass(max(100*time.Millisecond, time.Since(begun)/20))
	}
}

func pretty(r ledger.Row) string {
	out, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func (b *bench) records(kod string) []flexitest.Record {
	var rs []flexitest.Record
	for _, r := range b.fake.Records("faktura-vydana") {
		if fmt.Sprint(r.Fields["kod"]) == kod {
			rs = append(rs, r)
		}
	}
	return rs
}

func (b *bench) wantRecords(kod string, n int) {
	b.t.Helper()
	if got := len(b.records(kod)); got != n {
		b.t.Fatalf("%d records of %s in Flexi, want %d", got, kod, n)
	}
}

func (b *bench) writes() int { return b.fake.Count("write") }

func (b *bench) wantWrites(n int) {
	b.t.Helper()
	if got := b.writes(); got != n {
		b.t.Fatalf("%d write requests at Flexi, want %d", got, n)
	}
}
