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
)

func numbers(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestEventsComeInOrderAndLeaveTheStream(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	want := numbers(50)
	push(t, js, stream.Options{}, want...)
	h := &handler{got: make(chan string, 100)}
	r := run(t, js, stream.ConsumerOptions{Handler: h})
	for _, body := range want {
		if got := next(t, h.got); got != body {
			t.Fatalf("got %s, want %s", got, body)
		}
	}
	empty(t, js, stream.Options{})
	if err := r.stop(); err != nil {
		t.Errorf("a clean stop: %v", err)
	}
}

func TestMessagesCarryWhatIntakeNeeds(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	if _, err := stream.NewPublisher(js, stream.Options{}).Push(t.Context(), "banka", "K", map[string][]string{"flexid-op": {"update"}}, []byte("x")); err != nil {
		t.Fatal(err)
	}
	received := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	got := make(chan batch.Message, 1)
	run(t, js, stream.ConsumerOptions{Now: func() time.Time { return received }, Handler: &handler{act: func(_ context.Context, m batch.Message) error {
		got <- m
		return nil
	}}})
	m := <-got
	if m.Subject != "flexi.push.banka.K" || m.Stream != "FLEXID_PUSH" || m.Seq != 1 || m.Time.IsZero() || !m.Received.Equal(received) || m.Header["flexid-op"][0] != "update" {
		t.Errorf("%+v", m)
	}
}

func TestIntakeIsSerialOverReplicas(t *testing.T) {
	host := newHost(t)
	ensure(t, host.connect(zerolog.Nop()), stream.Options{})
	h := &handler{got: make(chan string, 100)} // both replicas share it, so that it sees both at work
	js := host.connect(zerolog.Nop())
	want := numbers(40)
	push(t, js, stream.Options{}, want...)
	run(t, js, stream.ConsumerOptions{Handler: h})
	run(t, host.connect(zerolog.Nop()), stream.ConsumerOptions{Handler: h})
	for range want {
		next(t, h.got)
	}
	empty(t, js, stream.Options{})
	if h.most != 1 || !slices.Equal(h.all(), want) {
		t.Errorf("%d in hand at once, order %v", h.most, h.all())
	}
}

func TestWhatFailsComesAgainBeforeAnythingElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		js := host.connect(zerolog.Nop())
		ensure(t, js, stream.Options{})
		push(t, js, stream.Options{}, "first", "second")
		var times []time.Time
		h := &handler{got: make(chan string, 10)}
		h.act = func(_ context.Context, m batch.Message) error {
			if string(m.Data) == "first" {
				times = append(times, time.Now())
				if len(times) < 8 {
					return errors.New("ledger is full")
				}
			}
			return nil
		}
		r := run(t, js, stream.ConsumerOptions{Handler: h})
		if a, b := <-h.got, <-h.got; a != "first" || b != "second" {
			t.Errorf("taken: %s, %s", a, b)
		}
		want := append(slices.Repeat([]string{"first"}, 8), "second")
		if !slices.Equal(h.all(), want) {
			t.Errorf("handed over: %v", h.all())
		}
		for i, least := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			if wait := times[i+1].Sub(times[i]); wait < least*time.Second || wait > (least+1)*time.Second {
				t.Errorf("pause %d: %v, want %v s", i+1, wait, int(least))
			}
		}
		_ = r.stop()
		js.Conn().Close()
		host.stop()
	})
}

func TestSlowWorkIsNotHandedToAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		js := host.connect(zerolog.Nop())
		other := host.connect(zerolog.Nop())
		ensure(t, js, stream.Options{})
		push(t, js, stream.Options{}, "slow", "next")
		h := &handler{got: make(chan string, 10)}
		h.act = func(ctx context.Context, m batch.Message) error {
			if string(m.Data) == "slow" {
				<-time.After(5 * time.Minute)
			}
			return nil
		}
		a, b := run(t, js, stream.ConsumerOptions{Handler: h}), run(t, other, stream.ConsumerOptions{Handler: h})
		<-h.got
		<-h.got
		if !slices.Equal(h.all(), []string{"slow", "next"}) || h.most != 1 {
			t.Errorf("handed over: %v, %d at once", h.all(), h.most)
		}
		_, _ = a.stop(), b.stop()
		js.Conn().Close()
		other.Conn().Close()
		host.stop()
	})
}

func TestADeadReplicaGivesItsMessageBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		js, dead := host.connect(zerolog.Nop()), host.connect(zerolog.Nop())
		ensure(t, js, stream.Options{})
		push(t, js, stream.Options{}, "once")
		taken := make(chan string, 2)
		stuck := run(t, dead, stream.ConsumerOptions{Drain: time.Millisecond, Handler: &handler{act: func(ctx context.Context, m batch.Message) error {
			taken <- string(m.Data)
			<-ctx.Done()
			return ctx.Err()
		}}})
		<-taken
		dead.Conn().Close() // no more signs of life
		begun := time.Now()
		h := &handler{got: make(chan string, 1)}
		r := run(t, js, stream.ConsumerOptions{Handler: h})
		if got := <-h.got; got != "once" || time.Since(begun) > 15*time.Second {
			t.Errorf("%s after %v", got, time.Since(begun))
		}
		if err := stuck.stop(); err == nil {
			t.Error("a stop that left a message in hand was called clean")
		}
		_ = r.stop()
		js.Conn().Close()
		host.stop()
	})
}

func TestStopFinishesTheMessageInHand(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	push(t, js, stream.Options{}, "in hand", "later")
	begun, release := make(chan struct{}), make(chan struct{})
	h := &handler{act: func(ctx context.Context, _ batch.Message) error {
		close(begun)
		<-release
		return ctx.Err()
	}}
	r := run(t, js, stream.ConsumerOptions{Handler: h})
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	close(release)
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	if n, _ := stream.Waiting(t.Context(), js, stream.Options{}); n != 1 || len(h.all()) != 1 {
		t.Errorf("%d in the stream, handed over %v", n, h.all())
	}
}

func TestPauseLeavesEventsInTheStream(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	log := &logs{}
	h := &handler{got: make(chan string, 10)}
	r := run(t, js, stream.ConsumerOptions{Handler: h, Log: log.logger()})
	push(t, js, stream.Options{}, "before")
	next(t, h.got)
	empty(t, js, stream.Options{})
	r.Pause("ledger is missing")
	r.Pause("ledger is missing")
	waitPulls(t, js, 0)
	push(t, js, stream.Options{}, "meanwhile")
	waitPending(t, js, 1) // the server counts it a moment after it has acknowledged it
	info, err := js.Consumer(t.Context(), "FLEXID_PUSH", stream.Durable)
	if err != nil || info.CachedInfo().NumAckPending != 0 {
		t.Errorf("%+v, %v", info.CachedInfo(), err)
	}
	if len(h.all()) != 1 {
		t.Fatalf("handed over while paused: %v", h.all())
	}
	r.Resume()
	if got := next(t, h.got); got != "meanwhile" {
		t.Errorf("got %s", got)
	}
	if log.count("ledger is missing") != 1 || log.count("intake goes on") != 1 {
		t.Errorf("log:\n%s", log)
	}
}

// waitPulls waits until the server holds so many open pulls of the intake consumer.
func waitPulls(t *testing.T, js jetstream.JetStream, n int) {
	t.Helper()
	waitConsumer(t, js, func(info *jetstream.ConsumerInfo) bool { return info.NumWaiting == n })
}

// waitPending waits until the consumer counts n messages that it has not handed over.
func waitPending(t *testing.T, js jetstream.JetStream, n uint64) {
	t.Helper()
	waitConsumer(t, js, func(info *jetstream.ConsumerInfo) bool { return info.NumPending == n })
}

func waitConsumer(t *testing.T, js jetstream.JetStream, ok func(*jetstream.ConsumerInfo) bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		consumer, err := js.Consumer(t.Context(), "FLEXID_PUSH", stream.Durable)
		if err == nil && ok(consumer.CachedInfo()) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the consumer never stood as wanted: %v", err)
		}
	}
}

func TestConsumerSurvives(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		hurt func(t *testing.T, host *host, js jetstream.JetStream)
		kept bool // whether what lay in the stream is still there
	}{
		{"its consumer removed", func(t *testing.T, _ *host, js jetstream.JetStream) {
			if err := js.DeleteConsumer(t.Context(), "FLEXID_PUSH", stream.Durable); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"its stream removed", func(t *testing.T, _ *host, js jetstream.JetStream) {
			if err := js.DeleteStream(t.Context(), "FLEXID_PUSH"); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"the server restarted", func(_ *testing.T, host *host, _ jetstream.JetStream) {
			host.stop()
			host.start()
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			host := newHost(t)
			o := stream.Options{LedgerID: "mine"}
			js := host.connect(zerolog.Nop())
			ensure(t, js, o)
			log := &logs{}
			h := &handler{got: make(chan string, 100)}
			r := run(t, js, stream.ConsumerOptions{Options: o, Handler: h, Log: log.logger()})
			push(t, js, o, "before")
			next(t, h.got)
			empty(t, js, o)
			tc.hurt(t, host, js)
			pushUntilStored(t, js, o, "after")
			if got := next(t, h.got); got != "after" {
				t.Errorf("got %s", got)
			}
			empty(t, js, o)
			if id, exists, err := stream.PushLedger(t.Context(), js, o); id != "mine" || !exists || err != nil {
				t.Errorf("the stream does not name its ledger any more: %q, %v, %v", id, exists, err)
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			if !tc.kept && log.count("interrupted") != 1 {
				t.Errorf("log:\n%s", log)
			}
		})
	}
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

// TestConsumerRemovedWhileAway is the silent case: nobody tells a client that was away that its consumer is gone.
func TestConsumerRemovedWhileAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		js := host.connect(zerolog.Nop())
		ensure(t, js, stream.Options{})
		h := &handler{got: make(chan string, 10)}
		r := run(t, js, stream.ConsumerOptions{Handler: h})
		push(t, js, stream.Options{}, "before")
		<-h.got
		synctest.Wait()
		host.stop()
		host.start()
		side := host.connect(zerolog.Nop())
		if err := side.DeleteConsumer(t.Context(), "FLEXID_PUSH", stream.Durable); err != nil {
			t.Fatal(err)
		}
		push(t, side, stream.Options{}, "after")
		begun := time.Now()
		if got := <-h.got; got != "after" || time.Since(begun) > time.Minute {
			t.Errorf("%s after %v", got, time.Since(begun))
		}
		_ = r.stop()
		side.Conn().Close()
		js.Conn().Close()
		host.stop()
	})
}

func TestAContradictingConsumerEndsRun(t *testing.T) {
	for _, tc := range []struct {
		name, says string
		config     jetstream.ConsumerConfig
	}{
		{"a filter", "filter", jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "flexi.push.banka"}},
		{"memory", "memory", jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy, MemoryStorage: true}},
		{"inactivity", "inactive", jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy, InactiveThreshold: time.Hour}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			js := newHost(t).connect(zerolog.Nop())
			ensure(t, js, stream.Options{})
			tc.config.Durable = stream.Durable
			if _, err := js.CreateConsumer(t.Context(), "FLEXID_PUSH", tc.config); err != nil {
				t.Fatal(err)
			}
			err := stream.NewConsumer(js, stream.ConsumerOptions{Handler: &handler{}}).Run(t.Context())
			var contradiction *stream.ContradictionError
			if !errors.As(err, &contradiction) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestALooseConsumerIsTightened(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	if _, err := js.CreateConsumer(t.Context(), "FLEXID_PUSH", jetstream.ConsumerConfig{Durable: stream.Durable, AckPolicy: jetstream.AckExplicitPolicy,
		MaxAckPending: 100, MaxDeliver: 5, AckWait: time.Hour}); err != nil {
		t.Fatal(err)
	}
	h := &handler{got: make(chan string, 1)}
	run(t, js, stream.ConsumerOptions{Handler: h})
	push(t, js, stream.Options{}, "x")
	next(t, h.got)
	consumer, err := js.Consumer(t.Context(), "FLEXID_PUSH", stream.Durable)
	if err != nil {
		t.Fatal(err)
	}
	if c := consumer.CachedInfo().Config; c.MaxAckPending != 1 || c.MaxDeliver != -1 || c.AckWait != 10*time.Second {
		t.Errorf("%+v", c)
	}
}
