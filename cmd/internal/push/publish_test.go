package push_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flexid/batch"
	"flexid/batch/stream"
	"flexid/cmd/internal/push"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// wire takes the place of the intake stream: it keeps what is published, and fails as told. Everything else is the server's.
type wire struct {
	jetstream.JetStream
	fault func(n int) fault // of the nth publish from 0; nil = none
	held  bool              // acknowledgements come only from release

	mu     sync.Mutex
	n      int
	stored []arrival
	under  []*future
	faults map[fault]int
}

type arrival struct{ key, id string }

// fault of a publish, done and not done.
type fault int

const (
	none fault = iota
	full
	brokenNotDone
	brokenDone
	silentNotDone
	silentDone
	numFaults
)

func (f fault) err() error {
	switch f {
	case full:
		return &jetstream.APIError{Code: 503, ErrorCode: 10077, Description: "maximum bytes exceeded"}
	case brokenNotDone, brokenDone:
		return nats.ErrDisconnected
	}
	return nil
}

// future is an acknowledgement that may never come.
type future struct {
	key string
	msg *nats.Msg
	ok  chan *jetstream.PubAck
	err chan error
}

func (f *future) Ok() <-chan *jetstream.PubAck { return f.ok }
func (f *future) Err() <-chan error            { return f.err }
func (f *future) Msg() *nats.Msg               { return f.msg }

func (w *wire) take(m *nats.Msg) (f *future, what fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		what = w.fault(w.n)
	}
	w.n++
	if w.faults == nil {
		w.faults = map[fault]int{}
	}
	w.faults[what]++
	e := batch.Decoder{}.Decode(batch.Message{Subject: m.Subject, Header: m.Header, Data: m.Data})
	f = &future{e.Key, m, make(chan *jetstream.PubAck, 1), make(chan error, 1)}
	if what == none || what == brokenDone || what == silentDone {
		w.stored = append(w.stored, arrival{e.Key, e.EventID})
	}
	return f, what
}

func (w *wire) PublishMsgAsync(m *nats.Msg, _ ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	f, what := w.take(m)
	switch {
	case what.err() != nil:
		f.err <- what.err()
	case what != none:
	case w.held:
		w.mu.Lock()
		w.under = append(w.under, f)
		w.mu.Unlock()
	default:
		f.ok <- &jetstream.PubAck{Stream: "FLEXID_PUSH"}
	}
	return f, nil
}

func (w *wire) PublishMsg(ctx context.Context, m *nats.Msg, _ ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	switch _, what := w.take(m); {
	case what.err() != nil:
		return nil, what.err()
	case what == none:
		return &jetstream.PubAck{Stream: "FLEXID_PUSH"}, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// keys that are under way now.
func (w *wire) keys() (keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.under {
		keys = append(keys, f.key)
	}
	return keys
}

// release acknowledges the first n under way, at most all.
func (w *wire) release(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n = min(n, len(w.under))
	for _, f := range w.under[:n] {
		f.ok <- &jetstream.PubAck{Stream: "FLEXID_PUSH"}
	}
	w.under = w.under[n:]
}

// singly lets the intake stream take no batches, as before NATS 2.12.
func singly(t *testing.T, js jetstream.JetStream) jetstream.JetStream {
	t.Helper()
	s, err := js.Stream(t.Context(), "FLEXID_PUSH")
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.AllowAtomicPublish = false
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return js
}

// onWire runs a test in virtual time, of events that are published one by one.
func onWire(t *testing.T, fn func(t *testing.T, w *wire)) {
	// nats.go keeps timers in a pool of the process: one that was made in another bubble must not be found here.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) { fn(t, &wire{JetStream: singly(t, stand(t, stream.Options{}))}) })
}

// publishing runs push without waiting for outcomes.
func (w *wire) publishing(ctx context.Context, s *push.Spool) error {
	return push.Run(ctx, push.Options{Spool: s, Run: "r1", JS: w, Log: zerolog.Nop()})
}

// TestPublishKeepsTheOrderOfADocument: whatever fails, done or not done, an event of a document is never in the stream before
// an earlier one, and never comes again after a later one.
func TestPublishKeepsTheOrderOfADocument(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		rnd := rand.New(rand.NewPCG(1, 2))
		var lines []string
		for i := range 2000 {
			lines = append(lines, fmt.Sprintf(`{"kod":"B%d","popis":"%d"}`, rnd.IntN(300), i))
		}
		w.fault = func(int) fault { return fault(max(0, rnd.IntN(100)-100+int(numFaults))) }
		s := spoolOf(t, lines...)
		if err := w.publishing(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if got := counts(s); got != "waiting 2000, open 2000" {
			t.Error(got)
		}
		at, seen := map[string]int{}, map[string]bool{}
		for _, a := range w.stored {
			var n int
			if _, err := fmt.Sscanf(a.id, "push.r1.%d", &n); err != nil || n < at[a.key] {
				t.Errorf("%s: event %d after event %d, %v", a.key, n, at[a.key], err)
			}
			at[a.key], seen[a.id] = n, true
		}
		if len(seen) != 2000 {
			t.Errorf("%d events are in the stream", len(seen))
		}
		for f := range numFaults {
			if w.faults[f] == 0 {
				t.Errorf("fault %d never happened", f)
			}
		}
	})
}

// TestPublishLetsNothingOvertake: what may not be under way together is not, and everything else is.
func TestPublishLetsNothingOvertake(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		first string // under way before anything is acknowledged
	}{
		"others":                {[]string{`{"kod":"A"}`, `{"kod":"B"}`, `{"kod":"C"}`}, "A B C"},
		"one document":          {[]string{`{"kod":"A"}`, `{"kod":"B"}`, `{"kod":" a "}`, `{"kod":"C"}`}, "A B"},
		"one key":               {[]string{`{"evidence":"banka","key":"k 1","document":{}}`, `{"evidence":"banka","key":"k 1","document":{"kod":"B"}}`}, "k 1"},
		"one number, two keys":  {[]string{`{"evidence":"banka","key":"k1","document":{"kod":"A"}}`, `{"kod":"A"}`}, "k1"},
		"refers by number":      {[]string{`{"evidence":"adresar","document":{"kod":"NOVAK"}}`, `{"kod":"A","firma":"code:novák"}`, `{"kod":"B","firma":"code:novak"}`}, "NOVAK A"},
		"refers by key":         {[]string{`{"evidence":"adresar","key":"p/1","document":{"kod":"X"}}`, `{"kod":"A","firma":"ext:FLEXID:p/1"}`}, "p/1"},
		"is referred to":        {[]string{`{"kod":"A","firma":"code:NOVAK"}`, `{"evidence":"adresar","op":"delete","document":{"kod":"NOVAK"}}`}, "A"},
		"refers to a third one": {[]string{`{"kod":"A","firma":"code:NOVAK"}`, `{"kod":"B","firma":"code:NOVAK"}`}, "A B"},
		"a supplier's number": {[]string{`{"evidence":"faktura-prijata","document":{"firma":"code:N","cisDosle":"7","datVyst":"2026-01-02"}}`,
			`{"evidence":"faktura-prijata","document":{"firma":"ext:FLEXID:n","cisDosle":"7","datVyst":"2026-01-02"}}`}, "code:N/2026/7"},
		"as many as there may be": {numbered(200), fmt.Sprintf("%d of them", 128)},
		"as large as they may be": {large(15), fmt.Sprintf("%d of them", 10)},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, func(t *testing.T, w *wire) {
				w.held = true
				s := spoolOf(t, tc.lines...)
				var done sync.WaitGroup
				done.Go(func() {
					if err := w.publishing(t.Context(), s); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				first := strings.Join(w.keys(), " ")
				if n := len(w.keys()); n > 9 {
					first = fmt.Sprintf("%d of them", n)
				}
				if first != tc.first {
					t.Errorf("under way at first: %s, want %s", first, tc.first)
				}
				for range tc.lines {
					w.release(1)
					synctest.Wait()
				}
				done.Wait()
				if got, want := counts(s), fmt.Sprintf("waiting %d, open %d", len(tc.lines), len(tc.lines)); got != want || w.n != len(tc.lines) {
					t.Errorf("%s, want %s; %d publishes", got, want, w.n)
				}
			})
		})
	}
}

// large are documents of 400 KiB.
func large(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"kod":"B%d","popis":%q}`, i+1, strings.Repeat("x", 400<<10)))
	}
	return lines
}

// TestPublishStops: Ctrl-C sends nothing more, and the report says exactly what was acknowledged.
func TestPublishStops(t *testing.T) {
	for name, late := range map[string]bool{"acknowledged in the end": true, "never answered": false} {
		t.Run(name, func(t *testing.T) {
			onWire(t, func(t *testing.T, w *wire) {
				w.held = true
				s := spoolOf(t, numbered(1000)...)
				ctx, cancel := context.WithCancelCause(t.Context())
				stopped := errors.New("Ctrl-C")
				var done sync.WaitGroup
				done.Go(func() {
					if err := w.publishing(ctx, s); !errors.Is(err, stopped) {
						t.Error(err)
					}
				})
				synctest.Wait()
				w.release(50)
				synctest.Wait()
				sent := w.n
				cancel(stopped)
				synctest.Wait()
				want := "unsent 950, waiting 50, open 1000"
				if late {
					w.release(100)
					want = "unsent 850, waiting 150, open 1000"
				}
				begun := time.Now()
				done.Wait()
				if got := counts(s); got != want || w.n != sent || time.Since(begun) > 3*time.Second {
					t.Errorf("%s, want %s; %d publishes after the end, in %v", got, want, w.n-sent, time.Since(begun))
				}
			})
		})
	}
}

// TestPublishGivesUpWhatIsHopeless names the line, and does not try again for ever.
func TestPublishGivesUpWhatIsHopeless(t *testing.T) {
	t.Parallel()
	js := stand(t, stream.Options{})
	s := spoolOf(t, slices.Concat(numbered(5), []string{`{"evidence":"banka","op":"update","document":{"kod":"BIG"}}`}, numbered(3))...)
	w := &hopeless{&wire{JetStream: singly(t, js)}}
	err := push.Run(t.Context(), push.Options{Spool: s, Run: "r1", JS: w, Log: zerolog.Nop()})
	if err == nil || !strings.Contains(err.Error(), "-:6: ") || !strings.Contains(err.Error(), "524288") {
		t.Errorf("got %v", err)
	}
	if got := counts(s); !strings.HasPrefix(got, "unsent ") || strings.HasPrefix(got, "unsent 9") {
		t.Error(got)
	}
}

// hopeless says of updates that they are too large.
type hopeless struct{ *wire }

func (h *hopeless) PublishMsgAsync(m *nats.Msg, opts ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	if m.Header.Get("Flexid-Op") == "update" {
		f := &future{"", m, make(chan *jetstream.PubAck), make(chan error, 1)}
		f.err <- jetstream.ErrStreamMessageExceedsMaximum
		return f, nil
	}
	return h.wire.PublishMsgAsync(m, opts...)
}
