package stream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"flexid/batch"
	"flexid/batch/stream"
	"flexid/batch/stream/embedded"
	"flexid/testdata/testenv"
	"flexid/verify/ledger"
)

func TestMain(m *testing.M) {
	testenv.InMemory()
	testenv.Parallel(8)
	goleak.VerifyTestMain(m)
}

// host is a server that can be stopped and started again under a connection that stays.
type host struct {
	t    *testing.T
	dir  string
	info string // keeps the token over restarts

	mu     sync.Mutex
	server *embedded.Server
	token  string
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir := t.TempDir()
	h := &host{t: t, dir: dir, info: filepath.Join(dir, "nats.json")}
	if err := os.WriteFile(h.info, []byte(`{"url":"nats://nowhere","token":"`+strings.Repeat("t", 32)+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	t.Cleanup(h.stop)
	return h
}

// bubble runs f in virtual time. The client keeps timers in a pool, and one from another bubble ends the process: two
// collections empty the pool.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	emptyPools := func() {
		runtime.GC()
		runtime.GC()
	}
	emptyPools()
	defer emptyPools()
	synctest.Test(t, func(t *testing.T) {
		f(t)
		time.Sleep(time.Second) // of virtual time: what a batch left behind in the server ends by itself
	})
}

func (h *host) start() {
	h.t.Helper()
	s, err := embedded.Start(embedded.Options{Dir: h.dir, Private: true, InfoFile: h.info, Log: zerolog.Nop()})
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.server, h.token = s, s.Token()
}

func (h *host) stop() {
	h.mu.Lock()
	s := h.server
	h.server = nil
	h.mu.Unlock()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		h.t.Error(err)
	}
}

// InProcessConn connects to whichever server runs now.
func (h *host) InProcessConn() (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server == nil {
		return nil, net.ErrClosed
	}
	return h.server.InProcessConn()
}

func (h *host) connect(log zerolog.Logger) jetstream.JetStream {
	h.t.Helper()
	h.mu.Lock()
	token := h.token
	h.mu.Unlock()
	nc, err := stream.Connect(h.t.Context(), stream.ConnOptions{InProcess: h, Token: token, Log: log})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(nc.Close)
	return newJS(h.t, nc)
}

func newJS(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func ensure(t *testing.T, js jetstream.JetStream, o stream.Options) stream.Topology {
	t.Helper()
	topology, err := stream.Ensure(t.Context(), js, o)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// logs collects lines of a logger.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) logger() zerolog.Logger { return zerolog.New(l) }

func (l *logs) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), part)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// shelf is a taker that keeps what it was given, in memory, and runs act before it takes a batch. Several readers may share it.
type shelf struct {
	act  func(ctx context.Context, ms []batch.Message, careful bool) error // an error: nothing is taken
	most int                                                               // messages together, 0 = all
	got  chan string                                                       // of taken messages, nil = nobody listens

	mu      sync.Mutex
	cursors map[string]ledger.Cursor
	seen    []string // handed over
	taken   []string
	inUse   int
	atOnce  int
}

// newShelf begins where the streams are now.
func newShelf(t *testing.T, js jetstream.JetStream) *shelf {
	t.Helper()
	s := &shelf{got: make(chan string, 1000), cursors: map[string]ledger.Cursor{}}
	for _, name := range []string{"FLEXID_PUSH", "FLEXID_INBOX"} {
		c, err := stream.Begin(t.Context(), js, name)
		if err != nil {
			t.Fatal(err)
		}
		c.Replayed, c.Revision = 0, 1
		s.cursors[name] = c
	}
	return s
}

func (s *shelf) Cursor(_ context.Context, name string) (ledger.Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursors[name], nil
}

func (s *shelf) set(c ledger.Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Revision = s.cursors[c.Stream].Revision + 1
	s.cursors[c.Stream] = c
}

func (s *shelf) Take(ctx context.Context, ms []batch.Message, cursor func(n int) *ledger.Cursor, careful bool) (int, error) {
	if s.most > 0 {
		ms = ms[:min(s.most, len(ms))]
	}
	s.mu.Lock()
	s.inUse++
	s.atOnce = max(s.atOnce, s.inUse)
	for _, m := range ms {
		s.seen = append(s.seen, string(m.Data))
	}
	s.mu.Unlock()
	var err error
	if s.act != nil {
		err = s.act(ctx, ms, careful)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse--
	c := cursor(len(ms))
	if now := s.cursors[c.Stream]; err == nil && now.Revision != c.Revision {
		err = &ledger.ConflictError{Key: "c." + c.Stream, Expected: c.Revision, Found: now.Revision}
	}
	if err != nil {
		return 0, err
	}
	c.Revision++
	s.cursors[c.Stream] = *c
	for _, m := range ms {
		s.taken = append(s.taken, string(m.Data))
		s.got <- string(m.Data)
	}
	return len(ms), nil
}

func (s *shelf) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func (s *shelf) kept() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.taken...)
}

// running is a reader that Run has in hand.
type running struct {
	*stream.Reader
	stop  func() error // ends Run and gives its error
	ended chan error
}

func run(t *testing.T, js jetstream.JetStream, o stream.ReaderOptions) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Reader: stream.NewReader(js, o), ended: make(chan error, 1)}
	go func() { r.ended <- r.Run(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-r.ended
	})
	t.Cleanup(func() { _ = r.stop() })
	return r
}

func push(t *testing.T, js jetstream.JetStream, o stream.Options, bodies ...string) {
	t.Helper()
	p := stream.NewPublisher(js, o)
	for _, body := range bodies {
		if _, err := p.Push(t.Context(), "faktura-vydana", "", nil, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
}

// next waits for a message that was taken; the time limit only bounds a failing test.
func next(t *testing.T, got <-chan string) string {
	t.Helper()
	select {
	case s := <-got:
		return s
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
		return ""
	}
}

func asJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func pushUntilStored(t *testing.T, js jetstream.JetStream, o stream.Options, body string) {
	t.Helper()
	p := stream.NewPublisher(js, o)
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, err := p.Push(t.Context(), "banka", "", nil, []byte(body))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
