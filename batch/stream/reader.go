package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch"
	"flexid/verify/ledger"
)

// Taker takes messages over for good, with how far their stream was taken.
type Taker interface {
	// Cursor reads how far a stream was taken, from the store and not from memory.
	Cursor(ctx context.Context, stream string) (ledger.Cursor, error)
	// Take makes the first of the messages durable, as many as go together, moves the cursor in the same step, and says how
	// many. After an error nothing is known to be taken, and everything is read again. careful: the last batch was refused.
	Take(ctx context.Context, ms []batch.Message, cursor func(n int) *ledger.Cursor, careful bool) (int, error)
}

// ReaderOptions of NewReader. Zero durations mean their defaults.
type ReaderOptions struct {
	Options               // of the topology, which is ensured again when it vanishes
	Taker   Taker         // required
	Drain   time.Duration // 20 s: how long the batch in hand may take when Run is stopped
	Now     func() time.Time
	Log     zerolog.Logger
}

// Reader reads one stream from its cursor on and has what it reads taken, batch after batch, whatever happens to server and
// stream. Several readers of one stream, in one process or in many, do not disturb each other but for work done in vain.
type Reader struct {
	js      jetstream.JetStream
	o       ReaderOptions
	stream  string
	running *runState
}

// How a reader reads.
const (
	readMost  = 256             // messages of a batch
	readBytes = 4 << 20         // of a batch, about
	readWait  = 5 * time.Second // for the first message of a batch
	leaveTo   = time.Second     // another replica that takes: how often is looked whether it still does
	wary      = 20              // batches that look at everything after one was refused
)

// NewReader makes a reader of the intake stream; Run starts it.
func NewReader(js jetstream.JetStream, o ReaderOptions) *Reader {
	return newReader(js, o, o.Names().Push)
}

// NewInboxReader makes a reader of the inbox.
func NewInboxReader(js jetstream.JetStream, o ReaderOptions) *Reader {
	return newReader(js, o, o.Names().Inbox)
}

func newReader(js jetstream.JetStream, o ReaderOptions, stream string) *Reader {
	if o.Drain == 0 {
		o.Drain = 20 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Reader{js: js, o: o, stream: stream, running: newRunState()}
}

// Pause stops the reading: messages stay in the stream. The batch in hand is finished. Calls do not count up; the reason is
// logged.
func (r *Reader) Pause(reason string) {
	if r.running.pause() {
		r.o.Log.Warn().Str("reason", reason).Msg("intake is paused; events wait in the stream")
	}
}

// Resume goes on after Pause.
func (r *Reader) Resume() {
	if r.running.resume() {
		r.o.Log.Info().Msg("intake goes on")
	}
}

// errMoved: somebody else moved the cursor, so what was read is theirs.
var errMoved = errors.New("another replica takes the stream in")

// Run reads until ctx ends, then finishes the batch in hand within the drain time. It returns nil on a clean stop; else a
// *ContradictionError, *LostError or *SetBackError, which only a person can decide about.
func (r *Reader) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(r.o.Drain)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-work.Done():
		}
	})
	defer stop()
	wait := backoff{base: 100 * time.Millisecond, cap: 15 * time.Second}
	said := ""
	for r.running.wait(ctx) {
		err := r.session(ctx, work, func() {
			wait.reset()
			if said != "" {
				r.o.Log.Info().Str("stream", r.stream).Msg("intake runs again")
				said = ""
			}
		})
		var contradiction *ContradictionError
		var lost *LostError
		var back *SetBackError
		switch {
		case errors.As(err, &contradiction), errors.As(err, &lost), errors.As(err, &back):
			return err
		case errors.Is(err, errMoved):
			r.leave(ctx)
		case err != nil && ctx.Err() == nil:
			if err.Error() != said {
				said = err.Error()
				r.o.Log.Warn().Err(err).Str("stream", r.stream).Msg("intake is interrupted; events wait in the stream")
			}
			pause(ctx, wait.next())
		}
	}
	return nil
}

// leave lets another replica take, for as long as its cursor moves.
func (r *Reader) leave(ctx context.Context) {
	last := uint64(0)
	for ctx.Err() == nil {
		c, err := r.o.Taker.Cursor(ctx, r.stream)
		if err != nil || c.Revision == last {
			return
		}
		last = c.Revision
		pause(ctx, leaveTo)
	}
}

// session reads from the cursor on until something is not as it should be.
func (r *Reader) session(ctx, work context.Context, running func()) error {
	if _, err := Ensure(ctx, r.js, r.o.Options); err != nil {
		return err
	}
	cursor, err := r.o.Taker.Cursor(ctx, r.stream)
	if err != nil {
		return err
	}
	most, err := r.surely(ctx, cursor)
	if err != nil {
		return err
	}
	consumer, err := r.consumer(ctx, behind(cursor))
	if err != nil {
		return err
	}
	defer r.drop(ctx, consumer)
	careful, together, limit := 0, readMost, readMost
	for paused := r.running.paused(); ctx.Err() == nil; {
		select {
		case <-paused:
			return nil
		default:
		}
		ms, gap, err := r.read(ctx, consumer, cursor, most)
		if err != nil {
			return err
		}
		if len(ms) == 0 && !gap {
			// Nothing came. Is that because nothing is there, or because the stream is another one, or another replica took it?
			now, err := r.o.Taker.Cursor(ctx, r.stream)
			if err != nil {
				return err
			}
			if now.Revision != cursor.Revision {
				return errMoved
			}
			running()
		}
		if most, err = r.surely(ctx, cursor); err != nil {
			return err
		}
		if len(ms) == 0 && gap {
			return r.hole(ctx, cursor)
		}
		if len(ms) > 0 { // the next ones are like these, rather than like the average of the stream
			most = min(most, max(readBytes*len(ms)/max(size(ms), 1), 1))
		}
		for len(ms) > 0 {
			next, first := cursor, ms[:min(limit, together, within(ms, readBytes))]
			n, err := r.o.Taker.Take(work, first, func(n int) *ledger.Cursor {
				m := ms[n-1]
				next.Seq, next.Time, next.Digest = m.Seq, m.Time.UTC(), Digest(m.Subject, m.Data)
				return &next
			}, careful > 0)
			var conflict *ledger.ConflictError
			var many *ledger.TooManyError
			switch {
			case err == nil && n > 0:
				cursor, ms, careful, limit = next, ms[n:], max(careful-1, 0), min(2*limit, readMost)
				running()
			case errors.As(err, &conflict) && conflict.OfCursor():
				return errMoved
			case errors.As(err, &conflict):
				// Something that the batch builds on was changed meanwhile. A smaller one passes between two changes of a busy document.
				if careful > 0 {
					limit = max(len(first)/4, 1)
				}
				careful = wary
			case errors.As(err, &many) && len(first) > 1:
				together = len(first) / 2 // the server will not take more later either
			case errors.Is(err, ledger.ErrNoBatches):
			case err == nil:
				return errors.New("of a batch nothing was taken")
			default:
				return err
			}
			if work.Err() != nil {
				return errors.New("intake was stopped with a batch in hand; it is read again")
			}
		}
		if gap {
			return nil // the next session tells whether messages are missing, or were lost on the way to us
		}
	}
	return nil
}

// within is how many of the messages, at least one, have no more than so many bytes.
func within(ms []batch.Message, most int) int {
	n, bytes := 0, 0
	for ; n < len(ms); n++ {
		if bytes += len(ms[n].Data); bytes > most {
			break
		}
	}
	return max(n, 1)
}

func size(ms []batch.Message) (bytes int) {
	for _, m := range ms {
		bytes += len(m.Data)
	}
	return bytes
}

// behind is the first sequence that is not taken.
func behind(c ledger.Cursor) uint64 { return max(c.Seq, c.GivenUp) + 1 }

// consumer is one that forgets us when we go: nothing but the cursor says how far we are.
func (r *Reader) consumer(ctx context.Context, from uint64) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := r.js.CreateConsumer(ctx, r.stream, jetstream.ConsumerConfig{
		Description: "flexid: intake", DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		AckPolicy: jetstream.AckNonePolicy, ReplayPolicy: jetstream.ReplayInstantPolicy,
		InactiveThreshold: time.Minute, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.stream, explain(r.js.Conn(), "$JS.API.CONSUMER.CREATE."+r.stream+".>", err))
	}
	return c, nil
}

// drop is a courtesy to the server, which else forgets the consumer after a minute.
func (r *Reader) drop(ctx context.Context, c jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = r.js.DeleteConsumer(ctx, r.stream, c.CachedInfo().Name)
}

// read gives the messages behind the cursor that are there, at most so many; it waits for the first one. gap: the next one that
// came is not the next in the stream.
func (r *Reader) read(ctx context.Context, c jetstream.Consumer, cursor ledger.Cursor, most int) (ms []batch.Message, gap bool, err error) {
	batch, err := c.FetchNoWait(most)
	if err == nil {
		ms, gap, err = r.collect(batch, cursor)
	}
	if err != nil || gap || len(ms) > 0 {
		return ms, gap, err
	}
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	paused := r.running.paused()
	go func() {
		select {
		case <-paused:
			cancel()
		case <-stop:
		}
	}()
	if batch, err = c.Fetch(1, jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(2*time.Second)); err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", r.stream, err)
	}
	return r.collect(batch, cursor)
}

func (r *Reader) collect(b jetstream.MessageBatch, cursor ledger.Cursor) (ms []batch.Message, gap bool, err error) {
	for m := range b.Messages() {
		meta, err := m.Metadata()
		if err != nil {
			return nil, false, fmt.Errorf("reading %s: %w", r.stream, err)
		}
		if gap = gap || meta.Sequence.Stream != behind(cursor)+uint64(len(ms)); gap {
			continue
		}
		ms = append(ms, batch.Message{
			Subject: m.Subject(), Header: m.Headers(), Data: m.Data(),
			Stream: meta.Stream, Seq: meta.Sequence.Stream, Time: meta.Timestamp, Received: r.o.Now(),
			Replayed: meta.Sequence.Stream <= cursor.Replayed,
		})
	}
	err = b.Error()
	if err == nil || len(ms) > 0 || gap || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, jetstream.ErrNoMessages) {
		return ms, gap, nil
	}
	return nil, false, fmt.Errorf("reading %s: %w", r.stream, err)
}
