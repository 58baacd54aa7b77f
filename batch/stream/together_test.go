package stream_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch/stream"
)

// told gives what FLEXID_OUT holds, each body with how often.
func told(t *testing.T, js jetstream.JetStream) map[string]int {
	t.Helper()
	s, err := js.Stream(t.Context(), "FLEXID_OUT")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for n := uint64(1); n <= s.CachedInfo().State.LastSeq; n++ {
		m, err := s.GetMsg(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		all[string(m.Data)]++
	}
	return all
}

// tellMany tells n messages at the same time.
func tellMany(t *testing.T, p *stream.Publisher, n int) []error {
	t.Helper()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			errs[i] = p.Notify(ctx, "done", "banka", fmt.Sprint("id", i), fmt.Append(nil, i))
		})
	}
	all.Wait()
	return errs
}

// TestTellsGoTogether: many at once are stored, each once, with and without batches at the server.
func TestTellsGoTogether(t *testing.T) {
	for _, batches := range []bool{true, false} {
		t.Run(fmt.Sprint("batches ", batches), func(t *testing.T) {
			js := newHost(t).connect(zerolog.Nop())
			ensure(t, js, stream.Options{})
			if !batches {
				c := config(t, js, "FLEXID_OUT")
				c.AllowAtomicPublish = false
				if _, err := js.UpdateStream(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			const n = 500
			for i, err := range tellMany(t, stream.NewPublisher(js, stream.Options{}), n) {
				if err != nil {
					t.Fatalf("%d: %v", i, err)
				}
			}
			have := told(t, js)
			if len(have) != n {
				t.Errorf("%d of %d are there", len(have), n)
			}
			for body, times := range have {
				if times != 1 {
					t.Errorf("%s is there %d times", body, times)
				}
			}
			batched := false
			s, err := js.Stream(t.Context(), "FLEXID_OUT")
			if err != nil {
				t.Fatal(err)
			}
			for seq := uint64(1); seq <= n && !batched; seq++ {
				m, err := s.GetMsg(t.Context(), seq)
				if err != nil {
					t.Fatal(err)
				}
				batched = m.Header.Get("Nats-Batch-Id") != ""
			}
			if batched != batches {
				t.Errorf("some went together: %v", batched)
			}
		})
	}
}

// TestTellsWhileNATSIsRestarted: every one that is told as stored is there; one whose answer was lost may be there twice.
func TestTellsWhileNATSIsRestarted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		js := host.connect(zerolog.Nop())
		ensure(t, js, stream.Options{})
		p := stream.NewPublisher(js, stream.Options{})
		var errs []error
		var all sync.WaitGroup
		all.Go(func() { errs = tellMany(t, p, 300) })
		host.stop()
		host.start()
		all.Wait()
		side := host.connect(zerolog.Nop())
		have := told(t, side)
		for i, err := range errs {
			if err == nil && have[fmt.Sprint(i)] == 0 {
				t.Errorf("%d was told as stored and is not there", i)
			}
		}
		// Nobody waits for one who is gone: it goes on as ever, once the client is connected again.
		<-time.After(10 * time.Second)
		if err := p.Notify(t.Context(), "done", "banka", "last", []byte("last")); err != nil {
			t.Error(err)
		}
		if have := told(t, side); have["last"] != 1 {
			t.Errorf("the last one is there %d times", have["last"])
		}
		side.Conn().Close()
		js.Conn().Close()
		host.stop()
	})
}

// TestATellThatIsGivenUp leaves the others alone, whoever leads.
func TestATellThatIsGivenUp(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	p := stream.NewPublisher(js, stream.Options{})
	errs := make([]error, 200)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%3 == 0 {
				cancel()
			}
			errs[i] = p.Notify(ctx, "done", "banka", fmt.Sprint("id", i), fmt.Append(nil, i))
			cancel()
		})
	}
	all.Wait()
	have := told(t, js)
	for i, err := range errs {
		if i%3 != 0 && err != nil || err == nil && have[fmt.Sprint(i)] == 0 {
			t.Errorf("%d: %v, there %d times", i, err, have[fmt.Sprint(i)])
		}
	}
	if slices.IndexFunc(errs, func(err error) bool { return err != nil }) < 0 {
		t.Error("nobody gave up")
	}
}
