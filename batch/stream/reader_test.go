package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch"
	"flexid/batch/stream"
	"flexid/verify/ledger"
)

func numbers(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func takes(t *testing.T, s *shelf, want ...string) {
	t.Helper()
	for _, body := range want {
		if got := next(t, s.got); got != body {
			t.Fatalf("got %s, want %s", got, body)
		}
	}
}

func TestEventsAreTakenInOrder(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	s := newShelf(t, js)
	s.most = 7
	want := numbers(300) // more than a batch
	push(t, js, stream.Options{}, want...)
	r := run(t, js, stream.ReaderOptions{Taker: s})
	takes(t, s, want...)
	push(t, js, stream.Options{}, "later")
	takes(t, s, "later")
	if err := r.stop(); err != nil {
		t.Errorf("a clean stop: %v", err)
	}
	if c, _ := s.Cursor(t.Context(), "FLEXID_PUSH"); c.Seq != 301 || c.Digest == "" || c.Time.IsZero() {
		t.Errorf("the cursor is %+v", c)
	}
}

func TestMessagesCarryWhatIntakeNeeds(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	for range 2 {
		if _, err := stream.NewPublisher(js, stream.Options{}).Push(t.Context(), "banka", "K", map[string][]string{"flexid-op": {"update"}}, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	received := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	got := make(chan batch.Message, 2)
	s := newShelf(t, js)
	c := s.cursors["FLEXID_PUSH"]
	c.Replayed = 1
	s.set(c)
	s.act = func(_ context.Context, ms []batch.Message, _ bool) error {
		for _, m := range ms {
			got <- m
		}
		return nil
	}
	run(t, js, stream.ReaderOptions{Now: func() time.Time { return received }, Taker: s})
	m := <-got
	if m.Subject != "flexi.push.banka.K" || m.Stream != "FLEXID_PUSH" || m.Seq != 1 || m.Time.IsZero() || !m.Received.Equal(received) || m.Header["flexid-op"][0] != "update" || !m.Replayed {
		t.Errorf("%+v", m)
	}
	if m = <-got; m.Seq != 2 || m.Replayed {
		t.Errorf("%+v", m)
	}
}

// TestIntakeIsSerialOverReplicas: what one takes the other does not, and the order is that of the stream, whoever takes.
func TestIntakeIsSerialOverReplicas(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		js, other := host.connect(zerolog.Nop()), host.connect(zerolog.Nop())
		ensure(t, js, stream.Options{})
		s := newShelf(t, js)
		s.most = 3
		s.act = func(context.Context, []batch.Message, bool) error {
			<-time.After(10 * time.Millisecond)
			return nil
		}
		want := numbers(100)
		push(t, js, stream.Options{}, want[:60]...)
		a, b := run(t, js, stream.ReaderOptions{Taker: s}), run(t, other, stream.ReaderOptions{Taker: s})
		takes(t, s, want[:60]...)
		_ = a.stop() // whichever took: the other goes on
		push(t, js, stream.Options{}, want[60:]...)
		begun := time.Now()
		takes(t, s, want[60:]...)
		if d := time.Since(begun); d > 10*time.Second {
			t.Errorf("the other one went on after %v", d)
		}
		_ = b.stop()
		if !slices.Equal(s.kept(), want) {
			t.Errorf("taken: %v", s.kept())
		}
		js.Conn().Close()
		other.Conn().Close()
		host.stop()
	})
}

func TestWhatFailsComesAgainBeforeAnythingElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		js := host.connect(zerolog.Nop())
		ensure(t, js, stream.Options{})
		push(t, js, stream.Options{}, "first", "second")
		s := newShelf(t, js)
		tries := 0
		s.act = func(context.Context, []batch.Message, bool) error {
			if tries++; tries < 8 {
				return errors.New("ledger is full")
			}
			return nil
		}
		log := &logs{}
		begun := time.Now()
		r := run(t, js, stream.ReaderOptions{Taker: s, Log: log.logger()})
		takes(t, s, "first", "second")
		if d := time.Since(begun); d < 500*time.Millisecond || d > time.Minute {
			t.Errorf("it took %v", d)
		}
		if log.count("ledger is full") != 1 || log.count("runs again") == 0 {
			t.Errorf("log:\n%s", log)
		}
		_ = r.stop()
		js.Conn().Close()
		host.stop()
	})
}

// TestABusyDocumentGoesAlone: a batch that is refused because of one message is looked at with care, and then message after message.
func TestABusyDocumentGoesAlone(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	want := numbers(40)
	push(t, js, stream.Options{}, want...)
	s := newShelf(t, js)
	refused, wary := 0, false
	s.act = func(_ context.Context, ms []batch.Message, careful bool) error {
		wary = wary || careful
		if len(ms) > 1 && slices.ContainsFunc(ms, func(m batch.Message) bool { return string(m.Data) == "17" }) {
			refused++
			return &ledger.ConflictError{Key: "d.busy", Expected: 1, Found: 2}
		}
		return nil
	}
	run(t, js, stream.ReaderOptions{Taker: s})
	takes(t, s, want...)
	if refused == 0 || !wary {
		t.Errorf("refused %d times, careful %v", refused, wary)
	}
}

// TestAServerWithoutBatchesIsTriedAgain: the taker then takes them one by one.
func TestAServerWithoutBatchesIsTriedAgain(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	push(t, js, stream.Options{}, "a", "b")
	s := newShelf(t, js)
	told := false
	s.act = func(context.Context, []batch.Message, bool) error {
		if !told {
			told = true
			s.most = 1
			return fmt.Errorf("storing: %w", ledger.ErrNoBatches)
		}
		return nil
	}
	run(t, js, stream.ReaderOptions{Taker: s})
	takes(t, s, "a", "b")
}

func TestStopFinishesTheBatchInHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		js := host.connect(zerolog.Nop())
		ensure(t, js, stream.Options{})
		push(t, js, stream.Options{}, "in hand", "later")
		s := newShelf(t, js)
		s.most = 1
		begun := make(chan struct{}, 10)
		s.act = func(ctx context.Context, _ []batch.Message, _ bool) error {
			begun <- struct{}{}
			select {
			case <-time.After(5 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		r := run(t, js, stream.ReaderOptions{Taker: s, Drain: 12 * time.Second})
		<-begun
		at := time.Now()
		if err := r.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if d := time.Since(at); !slices.Contains(s.kept(), "in hand") || d > 12*time.Second {
			t.Errorf("taken %v after %v", s.kept(), d)
		}
		// One whose work does not end is cut short when the drain time is over.
		s.act = func(ctx context.Context, _ []batch.Message, _ bool) error { <-ctx.Done(); return ctx.Err() }
		push(t, js, stream.Options{}, "never")
		r = run(t, js, stream.ReaderOptions{Taker: s, Drain: 2 * time.Second})
		synctest.Wait()
		at = time.Now()
		_ = r.stop()
		if d := time.Since(at); d > 4*time.Second {
			t.Errorf("the stop took %v", d)
		}
		js.Conn().Close()
		host.stop()
	})
}

func TestPauseLeavesEventsInTheStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		js := host.connect(zerolog.Nop())
		ensure(t, js, stream.Options{})
		log := &logs{}
		s := newShelf(t, js)
		r := run(t, js, stream.ReaderOptions{Taker: s, Log: log.logger()})
		push(t, js, stream.Options{}, "before")
		takes(t, s, "before")
		r.Pause("ledger is missing")
		r.Pause("ledger is missing")
		synctest.Wait()
		push(t, js, stream.Options{}, "meanwhile")
		<-time.After(time.Minute)
		if got := s.all(); len(got) != 1 {
			t.Fatalf("handed over while paused: %v", got)
		}
		r.Resume()
		takes(t, s, "meanwhile")
		if log.count("ledger is missing") != 1 || log.count("intake goes on") != 1 {
			t.Errorf("log:\n%s", log)
		}
		_ = r.stop()
		js.Conn().Close()
		host.stop()
	})
}

// TestReaderSurvives: a server that restarts, and a consumer that somebody removes, cost a moment.
func TestReaderSurvives(t *testing.T) {
	for _, tc := range []struct {
		name string
		hurt func(t *testing.T, host *host, js jetstream.JetStream)
	}{
		{"its consumer removed", func(t *testing.T, _ *host, js jetstream.JetStream) {
			st, err := js.Stream(t.Context(), "FLEXID_PUSH")
			if err != nil {
				t.Fatal(err)
			}
			for name := range st.ConsumerNames(t.Context()).Name() {
				if err := js.DeleteConsumer(t.Context(), "FLEXID_PUSH", name); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"the server restarted", func(_ *testing.T, host *host, _ jetstream.JetStream) {
			host.stop()
			host.start()
		}},
		{"the server away for a minute", func(_ *testing.T, host *host, _ jetstream.JetStream) {
			host.stop()
			<-time.After(time.Minute)
			host.start()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				host := newHost(t)
				js := host.connect(zerolog.Nop())
				ensure(t, js, stream.Options{})
				s := newShelf(t, js)
				r := run(t, js, stream.ReaderOptions{Taker: s, Log: zerolog.Nop()})
				push(t, js, stream.Options{}, "before")
				takes(t, s, "before")
				synctest.Wait()
				tc.hurt(t, host, js)
				side := host.connect(zerolog.Nop())
				push(t, side, stream.Options{}, "after", "and more")
				begun := time.Now()
				takes(t, s, "after", "and more")
				if d := time.Since(begun); d > time.Minute {
					t.Errorf("it took %v", d)
				}
				if err := r.stop(); err != nil {
					t.Error(err)
				}
				side.Conn().Close()
				js.Conn().Close()
				host.stop()
			})
		})
	}
}

// TestAStreamThatIsNotAsItWas: nothing is taken of it, and what is missing is counted. A cursor that moves meanwhile means that
// another replica was at it.
func TestAStreamThatIsNotAsItWas(t *testing.T) {
	remove := func(t *testing.T, js jetstream.JetStream, seqs ...uint64) {
		t.Helper()
		st, err := js.Stream(t.Context(), "FLEXID_PUSH")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range seqs {
			if err := st.DeleteMsg(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	purge := func(t *testing.T, js jetstream.JetStream, below uint64) {
		t.Helper()
		st, err := js.Stream(t.Context(), "FLEXID_PUSH")
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Purge(t.Context(), jetstream.WithPurgeSequence(below)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(seq uint64) func(*testing.T, jetstream.JetStream, *shelf) {
		return func(t *testing.T, js jetstream.JetStream, s *shelf) { s.set(stillAt(t, js, s, "FLEXID_PUSH", seq)) }
	}
	for _, c := range []struct {
		name    string
		taken   func(*testing.T, jetstream.JetStream, *shelf)
		change  func(*testing.T, jetstream.JetStream, *shelf)
		says    string // "" = it goes on
		missing uint64
		want    []string
	}{
		{"as it was", at(2), func(*testing.T, jetstream.JetStream, *shelf) {}, "", 0, []string{"2", "3", "4"}},
		{"taken ones purged but for the last", at(3), func(t *testing.T, js jetstream.JetStream, _ *shelf) { purge(t, js, 3) }, "", 0, []string{"3", "4"}},
		{"taken ones purged by hand", at(3), func(t *testing.T, js jetstream.JetStream, _ *shelf) { purge(t, js, 4) }, "", 0, []string{"3", "4"}},
		{"a taken one removed", at(3), func(t *testing.T, js jetstream.JetStream, _ *shelf) { remove(t, js, 1) }, "", 0, []string{"3", "4"}},
		{"the last taken one removed", at(3), func(t *testing.T, js jetstream.JetStream, _ *shelf) { remove(t, js, 3) }, "is another one", 0, nil},
		{"one that is to be taken removed", at(2), func(t *testing.T, js jetstream.JetStream, _ *shelf) { remove(t, js, 3) }, "1 are missing", 1, nil},
		{"the next removed, later ones taken first", at(2), func(t *testing.T, js jetstream.JetStream, _ *shelf) { remove(t, js, 4) }, "1 are missing", 1, []string{"2"}},
		{"what is to be taken purged", at(1), func(t *testing.T, js jetstream.JetStream, _ *shelf) { purge(t, js, 4) }, "2 are missing", 2, nil},
		{"all purged, nothing comes", at(1), func(t *testing.T, js jetstream.JetStream, _ *shelf) { purge(t, js, 6) }, "4 are missing", 4, nil},
		{"ends below the cursor", at(3), func(_ *testing.T, _ jetstream.JetStream, s *shelf) {
			c := s.cursors["FLEXID_PUSH"]
			c.Seq = 9
			s.set(c)
		}, "the last 4 are missing", 4, nil},
		{"another message at the cursor", at(3), func(_ *testing.T, _ jetstream.JetStream, s *shelf) {
			c := s.cursors["FLEXID_PUSH"]
			c.Digest = "other"
			s.set(c)
		}, "is another one", 0, nil},
		{"the same message at another time", at(3), func(_ *testing.T, _ jetstream.JetStream, s *shelf) {
			c := s.cursors["FLEXID_PUSH"]
			c.Time = c.Time.Add(time.Second)
			s.set(c)
		}, "is another one", 0, nil},
		{"given up by a person", at(1), func(t *testing.T, js jetstream.JetStream, s *shelf) {
			purge(t, js, 4)
			c := s.cursors["FLEXID_PUSH"]
			c.Seq, c.GivenUp = 0, 3
			s.set(c)
		}, "", 0, []string{"3", "4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			js := newHost(t).connect(zerolog.Nop())
			ensure(t, js, stream.Options{})
			s := newShelf(t, js)
			push(t, js, stream.Options{}, numbers(5)...)
			c.taken(t, js, s)
			c.change(t, js, s)
			r := run(t, js, stream.ReaderOptions{Taker: s})
			if c.says == "" {
				takes(t, s, c.want...)
				return
			}
			err := <-r.ended
			r.ended <- err
			var back *stream.SetBackError
			if !errors.As(err, &back) || !strings.Contains(err.Error(), c.says) || back.Missing != c.missing {
				t.Errorf("got %v", err)
			}
			if got := s.kept(); !slices.Equal(got, c.want) {
				t.Errorf("taken: %v", got)
			}
		})
	}
}

// TestAnotherStream: one that was made anew, or is gone, is no stream of the cursor's.
func TestAnotherStream(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	s := newShelf(t, js)
	push(t, js, stream.Options{}, "a")
	if err := js.DeleteStream(t.Context(), "FLEXID_PUSH"); err != nil {
		t.Fatal(err)
	}
	c, _ := s.Cursor(t.Context(), "FLEXID_PUSH")
	var lost *stream.LostError
	if _, err := stream.Fits(t.Context(), js, "FLEXID_PUSH", c); !errors.As(err, &lost) {
		t.Errorf("gone: %v", err)
	}
	err := stream.NewReader(js, stream.ReaderOptions{Taker: s}).Run(t.Context()) // it is made again, and is another one
	if !errors.As(err, &lost) || lost.Other.IsZero() {
		t.Errorf("made anew: %v", err)
	}
}

// TestStaleCursorIsNoLoss: a stream that does not fit what was read of the cursor a moment ago is looked at again with the cursor
// of now.
func TestStaleCursorIsNoLoss(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	s := newShelf(t, js)
	push(t, js, stream.Options{}, numbers(5)...)
	s.set(stillAt(t, js, s, "FLEXID_PUSH", 1))
	old := &staleOnce{shelf: s, first: s.cursors["FLEXID_PUSH"]}
	s.set(stillAt(t, js, s, "FLEXID_PUSH", 4))
	st, err := js.Stream(t.Context(), "FLEXID_PUSH")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Purge(t.Context(), jetstream.WithPurgeSequence(4)); err != nil {
		t.Fatal(err)
	}
	run(t, js, stream.ReaderOptions{Taker: old})
	takes(t, s, "4")
}

// staleOnce gives an old cursor the first time.
type staleOnce struct {
	*shelf
	first ledger.Cursor
	asked bool
}

func (s *staleOnce) Cursor(ctx context.Context, name string) (ledger.Cursor, error) {
	if !s.asked {
		s.asked = true
		return s.first, nil
	}
	return s.shelf.Cursor(ctx, name)
}

// TestAServerOfSmallBatches: where the server takes fewer keys together, fewer messages are taken together; nothing waits for ever.
func TestAServerOfSmallBatches(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	want := numbers(100)
	push(t, js, stream.Options{}, want...)
	s := newShelf(t, js)
	refused := 0
	s.act = func(_ context.Context, ms []batch.Message, _ bool) error {
		if len(ms) > 3 {
			refused++
			return fmt.Errorf("storing: %w", &ledger.TooManyError{Keys: 3 * len(ms)})
		}
		return nil
	}
	run(t, js, stream.ReaderOptions{Taker: s})
	takes(t, s, want...)
	if refused > 20 {
		t.Errorf("refused %d times: it is found out once", refused)
	}
}

// TestLargeEventsBehindSmallOnes: what is read and handed over together is bounded in bytes, whatever the average of the stream.
func TestLargeEventsBehindSmallOnes(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	push(t, js, stream.Options{}, numbers(600)...)
	s := newShelf(t, js)
	s.set(stillAt(t, js, s, "FLEXID_PUSH", 600))
	large := strings.Repeat("x", 500<<10)
	for range 60 {
		push(t, js, stream.Options{}, large)
	}
	most := 0
	s.act = func(_ context.Context, ms []batch.Message, _ bool) error {
		bytes := 0
		for _, m := range ms {
			bytes += len(m.Data)
		}
		most = max(most, bytes)
		return nil
	}
	run(t, js, stream.ReaderOptions{Taker: s})
	for range 60 {
		next(t, s.got)
	}
	if most > 5<<20 {
		t.Errorf("%d MiB were handed over together", most>>20)
	}
}
