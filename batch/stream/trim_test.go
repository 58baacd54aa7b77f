package stream_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"flexid/batch"
	"flexid/batch/stream"
)

// TestTrimLetsGoOfWhatWasTaken: at half full, and never what was not taken, nor the last one that was.
func TestTrimLetsGoOfWhatWasTaken(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	o := stream.Options{MaxBytes: 64 << 10}
	ensure(t, js, o)
	inbox := stream.NewInbox(js, o)
	store := func(n int) {
		t.Helper()
		if fresh, _, err := inbox.Store(t.Context(), "shop", fmt.Sprint("e", n), nil, []byte(fmt.Sprint(n, strings.Repeat("x", 1000)))); !fresh || err != nil {
			t.Fatalf("%d: %v, %v", n, fresh, err)
		}
	}
	for n := range 10 {
		store(n)
	}
	hold := make(chan struct{})
	taken := make(chan string, 100)
	h := &handler{got: taken, act: func(ctx context.Context, m batch.Message) error {
		if strings.HasPrefix(string(m.Data), "6x") {
			select {
			case <-hold:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}}
	c := stream.NewInboxConsumer(js, stream.ConsumerOptions{Options: o, Handler: h, Log: zerolog.Nop()})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	defer func() { stop(); <-ended }()
	for range 6 { // 0 to 5; 6 is in hand
		next(t, taken)
	}
	trim := func(full bool, want uint64) {
		t.Helper()
		// The acknowledgement of the last one may be on its way.
		var gone uint64
		for range 200 {
			n, err := stream.Trim(t.Context(), js, o, full)
			if gone += n; err != nil || gone > want {
				t.Fatalf("%d went, want %d: %v", gone, want, err)
			}
			if gone == want {
				return
			}
			full = true
		}
		t.Fatalf("%d went, want %d", gone, want)
	}
	trim(false, 0) // a sixth of it is used
	trim(true, 5)
	if all := inInbox(t, js); len(all) != 5 || !strings.HasPrefix(all[0], "5x") {
		t.Fatalf("%d are left, the first is %.3s", len(all), all[0])
	}
	for n := 10; n < 40; n++ {
		store(n)
	}
	trim(false, 0) // it is more than half full, but nothing more was taken
	close(hold)
	for range 34 {
		next(t, taken)
	}
	trim(false, 34)
	for n := 5; n < 39; n++ { // what went may be stored again; the ledger knows it
		if has, err := inbox.Has(t.Context(), "shop", fmt.Sprint("e", n)); has || err != nil {
			t.Fatalf("%d is there: %v", n, err)
		}
	}
	if has, err := inbox.Has(t.Context(), "shop", "e39"); !has || err != nil {
		t.Errorf("the last one that was taken is gone: %v", err)
	}
}
