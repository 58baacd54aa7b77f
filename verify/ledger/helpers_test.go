package ledger

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// box is an embedded server that can be stopped and started again under a living connection.
type box struct {
	t    testing.TB
	opts server.Options
	mu   sync.Mutex
	srv  *server.Server
}

func newBox(t testing.TB, change ...func(*server.Options)) *box {
	t.Helper()
	b := &box{t: t, opts: server.Options{
		ServerName: "ledger-test", JetStream: true, StoreDir: t.TempDir(), DontListen: true, SyncAlways: true,
		NoSigs: true, NoLog: true, JetStreamMaxStore: 1 << 30, JetStreamMaxMemory: 64 << 20,
	}}
	for _, c := range change {
		c(&b.opts)
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *box) start() {
	b.t.Helper()
	opts := b.opts
	srv, err := server.NewServer(&opts)
	if err != nil {
		b.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		b.t.Fatal("nats-server does not start")
	}
	b.mu.Lock()
	b.srv = srv
	b.mu.Unlock()
}

func (b *box) stop() {
	b.mu.Lock()
	srv := b.srv
	b.srv = nil
	b.mu.Unlock()
	if srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
	}
}

// InProcessConn lets a connection find the server that runs now.
func (b *box) InProcessConn() (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.srv == nil {
		return nil, errors.New("the server is down")
	}
	return b.srv.InProcessConn()
}

func (b *box) connect(opts ...nats.Option) jetstream.JetStream {
	b.t.Helper()
	opts = append([]nats.Option{
		nats.InProcessServer(b), nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond),
		nats.ReconnectBufSize(-1), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	nc, err := nats.Connect("", opts...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.t.Fatal(err)
	}
	return js
}

func (b *box) ledger() (*Ledger, jetstream.JetStream) {
	b.t.Helper()
	js := b.connect()
	return mustOpen(b.t, js, Options{Company: "firma", System: "FLEXID", Create: true}), js
}

func mustOpen(t testing.TB, js jetstream.JetStream, o Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), js, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// memory is a bucket without a server, for tests that count and disturb calls.
type memory struct {
	mu   sync.Mutex
	keys map[string]memEntry
	seq  uint64
	n    atomic.Int64 // updates asked for
}

type memEntry struct {
	jetstream.KeyValueEntry
	value    []byte
	revision uint64
}

func (e memEntry) Value() []byte    { return e.value }
func (e memEntry) Revision() uint64 { return e.revision }

func (m *memory) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.keys[key]
	if !ok {
		return nil, jetstream.ErrKeyNotFound
	}
	return e, nil
}

func (m *memory) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	m.n.Add(1)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys[key].revision != revision {
		return 0, wrongLast(10071)
	}
	m.seq++
	m.keys[key] = memEntry{value: append([]byte(nil), value...), revision: m.seq}
	return m.seq, nil
}

// Commit stores all or nothing, as an atomic batch.
func (m *memory) Commit(ctx context.Context, puts []put) (uint64, error) {
	m.n.Add(1)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range puts {
		if m.keys[p.key].revision != p.revision {
			return 0, wrongLast(10071)
		}
	}
	for _, p := range puts {
		m.seq++
		m.keys[p.key] = memEntry{value: append([]byte(nil), p.value...), revision: m.seq}
	}
	return m.seq, nil
}

func wrongLast(code jetstream.ErrorCode) error {
	return fmt.Errorf("nats: %w", &jetstream.APIError{Code: 400, ErrorCode: code, Description: "wrong last sequence"})
}

func memLedger(kv keyValue) *Ledger {
	var n atomic.Int64
	return &Ledger{
		store: &store{kv: kv, bucket: "mem", timeout: time.Second, log: zerolog.Nop()},
		id:    "L1", now: time.Now, token: func() string { return fmt.Sprintf("token-%d", n.Add(1)) },
	}
}

func newMemory() *memory { return &memory{keys: map[string]memEntry{}} }

// fate is what a disturbed network makes of one update.
type fate struct {
	name   string
	stored bool          // the store has it before the caller hears the error
	late   bool          // the store gets it later, just before the next call
	err    error         // what the caller hears
	block  time.Duration // how long the caller waits for it
}

// fates: every fault comes twice, stored and not stored, and late where that is possible.
func fates() []fate {
	timeout := context.DeadlineExceeded
	return []fate{
		{name: "time-out, not stored", err: timeout, block: time.Second},
		{name: "time-out, stored", err: timeout, block: time.Second, stored: true},
		{name: "time-out, stored late", err: timeout, block: time.Second, late: true},
		{name: "connection lost, not stored", err: nats.ErrConnectionReconnecting},
		{name: "connection lost, stored", err: nats.ErrConnectionReconnecting, stored: true},
		{name: "buffer exceeded, not stored", err: nats.ErrReconnectBufExceeded},
		{name: "no responders", err: jetstream.ErrNoStreamResponse},
		{name: "leader not ready", err: fmt.Errorf("nats: %w", &jetstream.APIError{Code: 503, ErrorCode: 10163})},
		{name: "garbled answer, stored", err: jetstream.ErrInvalidJSAck, stored: true},
		{name: "unknown error, not stored", err: errors.New("strange")},
		{name: "unknown error, stored", err: errors.New("strange"), stored: true},
		{name: "conflict with our own write in flight", err: wrongLast(10164), late: true},
	}
}

// disturbed applies a fate to chosen updates.
type disturbed struct {
	inner keyValue
	hits  func(key string, n int) bool // n counts updates of keys with this key's prefix letter, from 1
	fate  fate

	mu    sync.Mutex
	count map[byte]int
	later func()
}

func (d *disturbed) flush() {
	d.mu.Lock()
	later := d.later
	d.later = nil
	d.mu.Unlock()
	if later != nil {
		later()
	}
}

func (d *disturbed) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	e, err := d.inner.Get(ctx, key)
	d.flush() // a read before the late write lands: it shows the old revision
	return e, err
}

func (d *disturbed) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	d.flush()
	d.mu.Lock()
	if d.count == nil {
		d.count = map[byte]int{}
	}
	d.count[key[0]]++
	hit := d.hits(key, d.count[key[0]])
	d.mu.Unlock()
	if !hit {
		return d.inner.Update(ctx, key, value, revision)
	}
	store := func() { _, _ = d.inner.Update(context.WithoutCancel(ctx), key, value, revision) }
	switch {
	case d.fate.stored:
		store()
	case d.fate.late:
		d.mu.Lock()
		d.later = store
		d.mu.Unlock()
	}
	if d.fate.block > 0 {
		wait(ctx, d.fate.block)
	}
	return 0, d.fate.err
}

func sampleRow(key string) Row {
	return Row{ID: RowID("firma", "faktura-vydana", "ext:FLEXID:x"), Evidence: "faktura-vydana", Key: key, Ext: "ext:FLEXID:x"}
}

func sampleEvent(n int) Event {
	return Event{
		EventID: fmt.Sprintf("ev-%d", n), Op: "create", Digest: "d", Body: []byte(`{"kod":"FV-1"}`),
		Stream: StreamRef{Stream: "FLEXID_PUSH", Seq: uint64(n), Time: time.Unix(int64(n), 0).UTC()},
	}
}

func want[T comparable](t *testing.T, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Fatalf("%s: got %v, want %v", what, got, wanted)
	}
}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
