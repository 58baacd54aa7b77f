package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch"
)

// Durable is the name of the intake consumer. All replicas share it.
const Durable = "flexid"

// Handler takes one message. It returns nil only after the whole event is durable elsewhere: then the message is removed.
// After an error the same message comes again, and nothing after it comes before. It must return soon after ctx ends.
type Handler interface {
	Handle(ctx context.Context, m batch.Message) error
}

// ConsumerOptions of NewConsumer. Zero durations mean their defaults.
type ConsumerOptions struct {
	Options               // of the topology, which is ensured again when it vanishes
	Handler Handler       // required
	AckWait time.Duration // 10 s: after it another replica gets the message of one that died
	Drain   time.Duration // 20 s: how long the message in hand may take when Run is stopped
	Now     func() time.Time
	Log     zerolog.Logger
}

// Consumer hands messages to a Handler, one at a time over all replicas, and keeps doing so whatever happens to server,
// stream and consumer.
type Consumer struct {
	js     jetstream.JetStream
	o      ConsumerOptions
	stream string // whose messages it hands over
	gate   *gate

	// hand is full while a message is in hand. The client calls a subscription closed when its connection is, even if its
	// callback still runs; who waits for the callback waits here.
	hand      chan struct{}
	failedSeq uint64
	failures  int
}

// NewConsumer makes a consumer of the intake stream; Run starts it.
func NewConsumer(js jetstream.JetStream, o ConsumerOptions) *Consumer {
	return newConsumer(js, o, o.Names().Push)
}

// NewInboxConsumer makes a consumer of the inbox: it hands deliveries over in the order in which they were stored.
func NewInboxConsumer(js jetstream.JetStream, o ConsumerOptions) *Consumer {
	return newConsumer(js, o, o.Names().Inbox)
}

func newConsumer(js jetstream.JetStream, o ConsumerOptions, stream string) *Consumer {
	if o.AckWait == 0 {
		o.AckWait = 10 * time.Second
	}
	if o.Drain == 0 {
		o.Drain = 20 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Consumer{js: js, o: o, stream: stream, gate: newGate(), hand: make(chan struct{}, 1)}
}

// Pause stops the pulling: messages stay in the stream. The message in hand is finished. Calls do not count up; the reason
// is logged.
func (c *Consumer) Pause(reason string) {
	if c.gate.close() {
		c.o.Log.Warn().Str("reason", reason).Msg("intake is paused; events wait in the stream")
	}
}

// Resume goes on after Pause.
func (c *Consumer) Resume() {
	if c.gate.open() {
		c.o.Log.Info().Msg("intake goes on")
	}
}

// Run consumes until ctx ends, then finishes the message in hand within the drain time. It returns nil on a clean stop and
// an error when the message in hand was left to a redelivery, or at once on a *ContradictionError or *LostError.
func (c *Consumer) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	wait := backoff{base: 100 * time.Millisecond, cap: 15 * time.Second}
	said := ""
	for c.gate.wait(ctx) {
		err := c.session(ctx, work, cancel, func() {
			wait.reset()
			if said != "" {
				c.o.Log.Info().Msg("intake runs again")
				said = ""
			}
		})
		var contradiction *ContradictionError
		var lost *LostError
		switch {
		case errors.As(err, &contradiction), errors.As(err, &lost), errors.Is(err, errLeft):
			return err
		case err != nil && ctx.Err() == nil:
			if err.Error() != said {
				said = err.Error()
				c.o.Log.Warn().Err(err).Msg("intake is interrupted; events wait in the stream")
			}
			pause(ctx, wait.next())
		}
	}
	return nil
}

// errLeft is a stop whose deadline passed with a message in hand. The message is not acknowledged and comes again.
var errLeft = errors.New("intake was stopped with a message in hand; it will come again")

// session is one life of the pull subscription: it ends when ctx does, on Pause, or when consumer or stream vanish.
func (c *Consumer) session(ctx, work context.Context, stopWork context.CancelFunc, running func()) error {
	consumer, err := c.bind(ctx)
	if err != nil {
		return err
	}
	doubt := make(chan error, 1)
	cc, err := consumer.Consume(func(m jetstream.Msg) { c.take(work, m) },
		// One message at a time: the time to acknowledge runs from the delivery into the client's buffer.
		jetstream.PullMaxMessages(1), jetstream.PullExpiry(10*time.Second), jetstream.PullHeartbeat(2*time.Second),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case doubt <- err:
			default:
			}
		}))
	if err != nil {
		return fmt.Errorf("starting intake: %w", err)
	}
	running()
	closed := c.gate.closed()
	for {
		select {
		case <-ctx.Done():
			cc.Drain()
			return c.finish(ctx, cc, stopWork)
		case <-closed:
			cc.Drain()
			return c.finish(ctx, cc, stopWork)
		case <-cc.Closed():
			return errors.Join(errors.New("the consumer or its stream was removed"), c.finish(ctx, cc, stopWork))
		case err := <-doubt:
			if vanished := c.lookAgain(ctx, err); vanished != nil {
				cc.Stop()
				return errors.Join(vanished, c.finish(ctx, cc, stopWork))
			}
		}
	}
}

// lookAgain finds out after an error whether the consumer still exists. A client whose consumer was removed while it was
// away gets no word of it: its pulls are answered by nobody, for ever.
func (c *Consumer) lookAgain(ctx context.Context, reported error) error {
	if c.gone(ctx) {
		return fmt.Errorf("the consumer or its stream was removed: %w", reported)
	}
	return nil // the subscription heals by itself
}

// finish waits for the message in hand, with a deadline once ctx has ended. What is still undone then is left alone:
// unacknowledged, it comes again, and the ledger tells whether it was taken.
func (c *Consumer) finish(ctx context.Context, cc jetstream.ConsumeContext, stopWork context.CancelFunc) error {
	idle := make(chan struct{})
	go func() { // ends with the callback; every way out of finish waits for it
		defer close(idle)
		<-cc.Closed()
		c.hand <- struct{}{}
		<-c.hand
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	deadline := time.NewTimer(c.o.Drain)
	defer deadline.Stop()
	select {
	case <-idle:
		return nil
	case <-deadline.C:
		stopWork()
		<-idle
		return errLeft
	}
}

// take is the callback: one message, from delivery to acknowledgement.
func (c *Consumer) take(ctx context.Context, m jetstream.Msg) {
	message, err := c.read(m)
	if err != nil {
		c.o.Log.Error().Err(err).Str("subject", m.Subject()).Msg("message without JetStream metadata ignored")
		return
	}
	stopTicks := c.keepAlive(ctx, m)
	defer stopTicks()
	c.hand <- struct{}{}
	defer func() { <-c.hand }()
	if err := c.o.Handler.Handle(ctx, message); err != nil {
		c.again(m, message, err)
		return
	}
	c.failures = 0
	c.acknowledge(ctx, m, message.Seq)
}

func (c *Consumer) read(m jetstream.Msg) (batch.Message, error) {
	meta, err := m.Metadata()
	if err != nil {
		return batch.Message{}, err
	}
	return batch.Message{
		Subject: m.Subject(), Header: m.Headers(), Data: m.Data(),
		Stream: meta.Stream, Seq: meta.Sequence.Stream, Time: meta.Timestamp, Received: c.o.Now(),
	}, nil
}

// keepAlive tells the server that the message is being worked on, so that AckWait can be short: a replica that dies gives
// its message back within it, one that is merely slow keeps it.
func (c *Consumer) keepAlive(ctx context.Context, m jetstream.Msg) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(c.o.AckWait * 3 / 10)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = m.InProgress() // lost, it costs a redelivery
			}
		}
	})
	return func() {
		cancel()
		ended.Wait()
	}
}

// again asks for the same message later. It stays the one message out, so nothing overtakes it. How often it failed is
// kept in memory: the server's count starts again with the consumer.
func (c *Consumer) again(m jetstream.Msg, message batch.Message, err error) {
	if c.failedSeq != message.Seq {
		c.failedSeq, c.failures = message.Seq, 0
	}
	c.failures++
	wait := min(time.Second<<min(c.failures-1, 5), 30*time.Second)
	c.o.Log.Warn().Err(err).Str("subject", message.Subject).Uint64("seq", message.Seq).Int("failures", c.failures).
		Dur("again_in", wait).Msg("event could not be taken; it stays in the stream")
	_ = m.NakWithDelay(wait) // lost, it costs AckWait
}

// acknowledge insists, because an unconfirmed acknowledgement means a redelivery: harmless, but work for nothing.
func (c *Consumer) acknowledge(ctx context.Context, m jetstream.Msg, seq uint64) {
	wait := backoff{base: 200 * time.Millisecond, cap: 5 * time.Second}
	for tries := 1; ctx.Err() == nil; tries++ {
		once, cancel := context.WithTimeout(ctx, callTimeout)
		err := m.DoubleAck(once)
		cancel()
		if err == nil || errors.Is(err, jetstream.ErrMsgAlreadyAckd) || errors.Is(err, nats.ErrConnectionClosed) {
			return
		}
		if c.settled(ctx, seq) {
			return // nobody will ever confirm
		}
		if tries == 2 {
			c.o.Log.Warn().Err(explain(c.js.Conn(), m.Reply(), err)).Msg("the event is taken, but its acknowledgement is not confirmed; intake waits")
		}
		pause(ctx, wait.next())
	}
}

// settled says that an acknowledgement has no answer to come: the server has it already, or it knows nothing of the delivery.
// A server that lost the last moments of its disk forgets deliveries; it delivers again once the message in hand is let go.
func (c *Consumer) settled(ctx context.Context, seq uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	consumer, err := c.js.Consumer(ctx, c.stream, Durable)
	if err != nil {
		return errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
	}
	info := consumer.CachedInfo()
	return info.AckFloor.Stream >= seq || info.Delivered.Stream < seq
}

// gone says that consumer or stream do not exist any more; false when that cannot be found out.
func (c *Consumer) gone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.js.Consumer(ctx, c.stream, Durable)
	return errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}
