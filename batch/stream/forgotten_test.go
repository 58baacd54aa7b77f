package stream_test

import (
	"context"
	"testing"
	"time"

	"flexid/batch"
	"flexid/batch/stream"
)

// TestAServerThatForgotADelivery: after a power cut a server may know nothing of what it delivered last, and never answers
// the acknowledgement. Intake must let go of the message and take it as it comes again.
func TestAServerThatForgotADelivery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		log := &logs{}
		js := host.connect(log.logger())
		ensure(t, js, stream.Options{})
		push(t, js, stream.Options{}, "first", "second")
		h := &handler{got: make(chan string, 10)}
		forgets := true
		h.act = func(ctx context.Context, _ batch.Message) error {
			if !forgets {
				return nil
			}
			forgets = false
			old, err := js.Consumer(ctx, "FLEXID_PUSH", stream.Durable)
			if err != nil {
				return err
			}
			config := old.CachedInfo().Config
			if err := js.DeleteConsumer(ctx, "FLEXID_PUSH", stream.Durable); err != nil {
				return err
			}
			_, err = js.CreateConsumer(ctx, "FLEXID_PUSH", config)
			return err
		}
		r := run(t, js, stream.ConsumerOptions{Handler: h, Log: log.logger()})
		for _, want := range []string{"first", "first", "second"} {
			select {
			case got := <-h.got:
				if got != want {
					t.Errorf("taken: %s, want %s", got, want)
				}
			case <-time.After(10 * time.Minute):
				t.Fatalf("nothing came, want %s\n%s", want, log)
			}
		}
		empty(t, js, stream.Options{})
		if err := r.stop(); err != nil {
			t.Errorf("a clean stop: %v", err)
		}
		js.Conn().Close()
		host.stop()
	})
}
