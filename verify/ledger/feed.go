package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// How a feed pulls. A pull asks for few enough messages that a slow reader holds little memory.
const (
	pullBatch     = 256
	pullHeartbeat = 2 * time.Second // missed twice: the server is gone
	pullIdle      = time.Minute     // the server forgets an abandoned consumer after this
)

// errGap says that a value was sent to us and got lost on the way; only reading everything again helps.
var errGap = errors.New("a change was lost on the way")

// record is one value of a bucket as a feed delivers it.
type record struct {
	key      string
	value    []byte
	revision uint64
	deleted  bool
}

// feed reads every live value under a prefix, then every change.
type feed struct {
	*store
	prefix string
	value  func(record) error // called in order; an error ends the feed
	begun  func() error       // the server has begun to send; may be nil
	ready  func() error       // all values that were there have been delivered, once

	last    uint64 // sequence of the consumer
	goal    uint64 // where all values that were there have been delivered, 0 = not known yet
	isReady bool
}

// run delivers until ctx ends or something fails. It is not the client's watcher: that one recovers in silence, so that
// nobody can know whether the values seen are still all there is.
func (f *feed) run(ctx context.Context) error {
	cons, err := f.consumer(ctx)
	if err != nil {
		return err
	}
	defer f.drop(ctx, cons.CachedInfo().Name)
	if f.begun != nil {
		if err := f.begun(); err != nil {
			return err
		}
	}
	if cons.CachedInfo().NumPending == 0 {
		if err := f.reach(); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		n, err := f.pull(ctx, cons)
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if err := f.check(ctx, cons); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (f *feed) consumer(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	cons, err := f.js.CreateConsumer(ctx, "KV_"+f.bucket, jetstream.ConsumerConfig{
		Description:       "flexid reads its rows",
		FilterSubject:     subject(f.bucket, f.prefix) + ">",
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: pullIdle,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, &MissingError{Bucket: f.bucket}
	}
	if err != nil {
		return nil, fmt.Errorf("reading bucket %s (NATS does not answer, or the permission for $JS.API.CONSUMER.CREATE.KV_%s.> is missing): %w",
			f.bucket, f.bucket, err)
	}
	return cons, nil
}

// drop is a courtesy to the server; it also runs when ctx is over, within its own deadline.
func (f *feed) drop(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(f.timeout, time.Second))
	defer cancel()
	_ = f.js.DeleteConsumer(ctx, "KV_"+f.bucket, name) // else the server does it after pullIdle
}

func (f *feed) pull(ctx context.Context, cons jetstream.Consumer) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.idle)
	defer cancel()
	batch, err := cons.Fetch(pullBatch, jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(pullHeartbeat))
	if err != nil {
		return 0, fmt.Errorf("reading bucket %s: %w", f.bucket, err)
	}
	for msg := range batch.Messages() {
		n++
		if err := f.take(ctx, cons, msg); err != nil {
			return n, err
		}
	}
	err = batch.Error()
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return n, nil
	}
	return n, fmt.Errorf("reading bucket %s: %w", f.bucket, err)
}

func (f *feed) take(ctx context.Context, cons jetstream.Consumer, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("reading bucket %s: %w", f.bucket, err)
	}
	if meta.Sequence.Consumer != f.last+1 {
		return fmt.Errorf("reading bucket %s: %w", f.bucket, errGap)
	}
	f.last = meta.Sequence.Consumer
	r := record{
		key:      msg.Subject()[len(subject(f.bucket, "")):],
		value:    msg.Data(),
		revision: meta.Sequence.Stream,
		deleted:  isMarker(msg.Headers()),
	}
	if err := f.value(r); err != nil {
		return err
	}
	if meta.NumPending == 0 && !f.isReady && f.goal == 0 {
		f.aim(ctx, cons)
	}
	if f.goal > 0 && f.last >= f.goal {
		return f.reach()
	}
	return nil
}

// aim asks what the last value is, when a message says that it is the last. Its word is not enough: while a value is written
// again, its old message is gone and its new one not counted yet, and a message that is sent in that moment counts none to
// come. The value would be missing in a list. Where nobody answers its word has to do: the server forgets a consumer that is
// read slowly.
func (f *feed) aim(ctx context.Context, cons jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	info, err := cons.Info(ctx)
	switch {
	case err != nil:
		f.goal = f.last
	case info.NumPending == 0: // the rest was sent and is on its way to us
		f.goal = info.Delivered.Consumer
	}
}

// isMarker says that the value was deleted or purged through some key-value client.
func isMarker(h nats.Header) bool {
	return h.Get("KV-Operation") != "" || h.Get(jetstream.MarkerReasonHeader) != ""
}

func (f *feed) reach() error {
	if f.isReady {
		return nil
	}
	f.isReady = true
	return f.ready()
}

// check asks the server while nothing comes: without acknowledgements a value that was lost with a connection is only
// noticed by comparing counts.
func (f *feed) check(ctx context.Context, cons jetstream.Consumer) error {
	if ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	info, err := cons.Info(ctx)
	if err != nil {
		return fmt.Errorf("reading bucket %s: %w", f.bucket, err)
	}
	if info.Delivered.Consumer != f.last {
		return fmt.Errorf("reading bucket %s: %w", f.bucket, errGap)
	}
	if info.NumPending == 0 {
		return f.reach()
	}
	return nil
}
