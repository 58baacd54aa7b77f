package push_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch/stream"
	"flexid/batch/stream/embedded"
	"flexid/cmd/internal/push"
	"flexid/verify/ledger"
)

// heard keeps what a run says about its troubles, with when it said it.
type heard struct {
	news chan struct{} // holds one when something was said since; nil = nobody waits

	mu    sync.Mutex
	texts []string
	at    []time.Time
}

func (h *heard) trouble(text string) {
	h.mu.Lock()
	h.texts, h.at = append(h.texts, text), append(h.at, time.Now())
	h.mu.Unlock()
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// await waits until what was said is enough; the time limit only bounds a failing test.
func (h *heard) await(enough func() bool) {
	late := time.After(30 * time.Second)
	for !enough() {
		select {
		case <-h.news:
		case <-late:
			return
		}
	}
}

// when is when a text with the words was said, zero = never.
func (h *heard) when(words string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, text := range h.texts {
		if strings.Contains(text, words) {
			return h.at[i]
		}
	}
	return time.Time{}
}

// TestRunSaysWhyNothingHappens: while writes are stopped a run that waits says so, and why.
func TestRunSaysWhyNothingHappens(t *testing.T) {
	js := stand(t, stream.Options{})
	p := &peer{quiet: true, stopped: "writes are stopped (person): year end", state: always(ledger.Queued, ledger.Blocked)}
	p.work(t, js)
	h := &heard{}
	err := push.Run(t.Context(), push.Options{Spool: spoolOf(t, numbered(3)...), Run: "r", JS: js, Daemon: p, Wait: 3 * time.Second,
		Ask: 2 * time.Second, Trouble: h.trouble, Log: zerolog.Nop()})
	if err != nil || h.when("year end").IsZero() {
		t.Errorf("%v, said %q", err, h.texts)
	}
}

// TestRunSaysThatNATSIsAway: within two seconds, while it waits for results, and that it is back.
func TestRunSaysThatNATSIsAway(t *testing.T) {
	dir := t.TempDir()
	start := func(listen string) *embedded.Server {
		server, err := embedded.Start(embedded.Options{Dir: dir, Listen: listen, InfoFile: dir + "/nats.json", Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	stop := func(s *embedded.Server) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
	server := start("")
	nc, err := stream.Connect(t.Context(), stream.ConnOptions{URL: server.URL(), Token: server.Token(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Ensure(t.Context(), js, stream.Options{}); err != nil {
		t.Fatal(err)
	}
	h := &heard{news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = push.Run(ctx, push.Options{Spool: spoolOf(t, numbered(3)...), Run: "r", JS: js, Wait: time.Minute, Trouble: h.trouble, Log: zerolog.Nop()})
	}()
	// Until all is published, it has something else to say.
	consumer, err := js.CreateConsumer(t.Context(), "FLEXID_PUSH", jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true})
	if err != nil {
		t.Fatal(err)
	}
	events, err := consumer.Fetch(3, jetstream.FetchMaxWait(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for range events.Messages() {
		stored++
	}
	if stored != 3 {
		t.Fatalf("%d events are published", stored)
	}
	listen := strings.TrimPrefix(server.URL(), "nats://")
	stop(server)
	begun := time.Now()
	h.await(func() bool { return !h.when("NATS is away").IsZero() })
	if at := h.when("NATS is away"); at.IsZero() || at.Sub(begun) > 2*time.Second {
		t.Errorf("after %v it had said %q", time.Since(begun), h.texts)
	}
	server = start(listen)
	defer stop(server)
	back := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.texts) > 0 && h.texts[len(h.texts)-1] == ""
	}
	if h.await(back); !back() {
		t.Errorf("it still says %q", h.texts)
	}
	cancel()
	<-ended
}
