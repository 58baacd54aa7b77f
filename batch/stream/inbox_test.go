package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch"
	"flexid/batch/stream"
)

func head(pairs ...string) map[string][]string {
	h := map[string][]string{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = []string{pairs[i+1]}
	}
	return h
}

func TestInboxStoresOnce(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	inbox := stream.NewInbox(js, stream.Options{})
	for _, tc := range []struct {
		name, source, id string
		header           map[string][]string
		body             string
		fresh, same      bool
	}{
		{"first", "shop", "e1", head("Flexid-Evidence", "banka"), "a", true, false},
		{"again", "shop", "e1", head("Flexid-Evidence", "banka"), "a", false, true},
		{"other body", "shop", "e1", head("Flexid-Evidence", "banka"), "b", false, false},
		{"other header", "shop", "e1", head("Flexid-Evidence", "adresar"), "a", false, false},
		{"one header more", "shop", "e1", head("Flexid-Evidence", "banka", "Flexid-Key", "k"), "a", false, false},
		{"another source counts for itself", "mall", "e1", head("Flexid-Evidence", "banka"), "a", true, false},
		{"an id that is no token", "shop", "a.b > *\tč", nil, "a", true, false},
		{"that one again", "shop", "a.b > *\tč", nil, "a", false, true},
		{"source and id do not run together", "sho", "pe1", nil, "a", true, false},
	} {
		fresh, same, err := inbox.Store(t.Context(), tc.source, tc.id, tc.header, []byte(tc.body))
		if err != nil || fresh != tc.fresh || same != tc.same {
			t.Errorf("%s: fresh %v, same %v, %v", tc.name, fresh, same, err)
		}
	}
	s, err := js.Stream(t.Context(), "FLEXID_INBOX")
	if err != nil || s.CachedInfo().State.Msgs != 4 {
		t.Fatalf("%d messages, %v", s.CachedInfo().State.Msgs, err)
	}
	m, err := s.GetMsg(t.Context(), 1)
	if err != nil || !strings.HasPrefix(m.Subject, "flexi.in.shop.") || strings.Count(m.Subject, ".") != 3 || m.Header.Get("Flexid-Evidence") != "banka" {
		t.Errorf("%v %v", m, err)
	}
}

func TestInboxIsFullOrAway(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	js := h.connect(zerolog.Nop())
	inbox := stream.NewInbox(js, stream.Options{})
	if _, _, err := inbox.Store(t.Context(), "shop", "0", nil, nil); err == nil {
		t.Error("stored without a stream")
	}
	ensure(t, js, stream.Options{MaxBytes: 4 << 10})
	var err error
	stored := 0
	for i := 0; err == nil && i < 100; i++ {
		if _, _, err = inbox.Store(t.Context(), "shop", fmt.Sprint(i), nil, []byte(strings.Repeat("x", 500))); err == nil {
			stored++
		}
	}
	var full *stream.FullError
	if !errors.As(err, &full) || full.Stream != "FLEXID_INBOX" {
		t.Fatalf("got %v", err)
	}
	h.stop()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, _, err := inbox.Store(ctx, "shop", "away", nil, nil); err == nil || time.Since(begun) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	h.start()
	if n := len(inInbox(t, h.connect(zerolog.Nop()))); n != stored {
		t.Errorf("%d stored, %d are there: something was stored behind our back", stored, n)
	}
}

// inInbox gives all bodies.
func inInbox(t *testing.T, js jetstream.JetStream) (all []string) {
	t.Helper()
	s, err := js.Stream(t.Context(), "FLEXID_INBOX")
	if err != nil {
		t.Fatal(err)
	}
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		if m, err := s.GetMsg(t.Context(), seq); err == nil {
			all = append(all, string(m.Data))
		}
	}
	return all
}

// TestInboxWhileNATSIsKilled: what was answered with success is there exactly once; everything else is absent, or is
// recognised when it is sent again. Two ids in three are sent twice at the same time.
func TestInboxWhileNATSIsKilled(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	js := h.connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	inbox := stream.NewInbox(js, stream.Options{})
	const deliveries = 2000
	work := make(chan int)
	var mu sync.Mutex
	told := map[string]bool{} // body -> success was told
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for i := range work {
				body := fmt.Sprint(i * 2 / 3)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				fresh, same, err := inbox.Store(ctx, "shop", body, nil, []byte(body))
				cancel()
				if err == nil && !fresh && !same {
					t.Errorf("%s contradicts itself", body)
				}
				mu.Lock()
				told[body] = told[body] || err == nil
				mu.Unlock()
			}
		})
	}
	for i := range deliveries {
		switch i {
		case deliveries / 4, deliveries / 2:
			h.stop()
		case deliveries/4 + 200, deliveries/2 + 200:
			h.start()
		}
		work <- i
	}
	close(work)
	senders.Wait()

	js = h.connect(zerolog.Nop())
	there := map[string]int{}
	for _, body := range inInbox(t, js) {
		there[body]++
	}
	lost := 0
	again := stream.NewInbox(js, stream.Options{})
	for body, ok := range told {
		if ok && there[body] != 1 || there[body] > 1 {
			t.Errorf("%s: told %v, there %d times", body, ok, there[body])
		}
		if !ok {
			lost++
			fresh, same, err := again.Store(t.Context(), "shop", body, nil, []byte(body))
			if err != nil || fresh == (there[body] == 1) || same != (there[body] == 1) {
				t.Errorf("%s sent again: fresh %v, same %v, there %d, %v", body, fresh, same, there[body], err)
			}
		}
	}
	if lost == 0 || lost == len(told) {
		t.Errorf("%d of %d failed: the test proves nothing", lost, len(told))
	}
	if all := inInbox(t, js); len(all) != len(told) {
		t.Errorf("%d messages of %d deliveries", len(all), len(told))
	}
}

func TestInboxReaderKeepsTheOrder(t *testing.T) {
	t.Parallel()
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	inbox := stream.NewInbox(js, stream.Options{})
	s := newShelf(t, js)
	s.most = 1
	failed := false
	s.act = func(_ context.Context, ms []batch.Message, _ bool) error {
		if string(ms[0].Data) == "b" && !failed {
			failed = true
			return errors.New("the ledger is away")
		}
		return nil
	}
	for _, body := range []string{"a", "b", "c"} {
		if _, _, err := inbox.Store(t.Context(), "shop", body, head("Flexid-Key", body), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := stream.NewInboxReader(js, stream.ReaderOptions{Taker: s, Log: zerolog.Nop()})
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	for _, want := range []string{"a", "b", "c"} {
		if got := next(t, s.got); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !slices.Equal(s.all(), []string{"a", "b", "b", "c"}) {
		t.Errorf("%v", s.all())
	}
	if n := len(inInbox(t, js)); n != 3 {
		t.Errorf("%d deliveries are kept: without them a repetition is not recognised", n)
	}
}
