package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"flexid/verify/ledger"
)

// Event is one event for the intake stream.
type Event struct {
	Evidence, Key string // a key that is no plain token goes into the Flexid-Key header; "" = it is made from the number
	Header        map[string][]string
	Body          []byte
}

// Errors of PushAll that say more than that the events may have been stored or not.
var (
	// ErrNoBatches: the server stores events one by one only. Of a server before 2.12 the first event is stored.
	ErrNoBatches = errors.New("the NATS server takes no atomic batches: it needs version 2.12 and allow_atomic on the stream")
	// ErrTooMany: the server takes fewer events together. None of these is stored.
	ErrTooMany = errors.New("the NATS server takes fewer events together")
)

// PushAll stores events in their order, with nothing between them, and returns nil once all are stored. After any other error than
// ErrTooMany none of them is stored, or some from the first on, or all, and they may still come to be. Which one is to blame is not
// known, only Push tells it; a stream that is full refuses all of them where a few would find room.
func (p *Publisher) PushAll(ctx context.Context, events []Event) error {
	ms := make([]*nats.Msg, len(events))
	for i, e := range events {
		m := p.event(e.Evidence, e.Key, e.Header, e.Body)
		m.Header[jetstream.ExpectedStreamHeader] = []string{p.names.Push} // a foreign stream that catches our subjects must not confirm
		ms[i] = m
	}
	ctx, cancel := whileConnected(ctx, p.js.Conn())
	defer cancel()
	_, err := ledger.PublishAtomic(ctx, p.js.Conn(), p.batch.next(), ms)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrNoBatches) || apiCode(err) == ledger.CodeBatchesOff:
		return fmt.Errorf("publishing %d events together: %w", len(events), ErrNoBatches)
	case apiCode(err) == ledger.CodeBatchTooLarge:
		return fmt.Errorf("publishing %d events together: %w: %w", len(events), ErrTooMany, err)
	}
	return fmt.Errorf("publishing %d events together: %w", len(events), err)
}

// batchName names batches: no two processes may use one name for two.
type batchName struct {
	random string
	count  atomic.Uint64
}

func (b *batchName) next() string { return fmt.Sprintf("%s.%d", b.random, b.count.Add(1)) }

// whileConnected gives a context that ends when the connection is lost: an answer that was on its way then does not come any more.
func whileConnected(ctx context.Context, nc *nats.Conn) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	lost := nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-lost:
			cancel(nats.ErrDisconnected)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		watch.Wait()
		nc.RemoveStatusListener(lost)
	}
}
