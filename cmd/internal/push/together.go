package push

import (
	"context"
	"errors"
	"time"

	"flexid/batch/stream"
)

// This file publishes events in atomic batches. Only one is under way: were the next one stored while it is not, an event would be in
// the stream behind a later one of its document. Inside a batch the order is kept, so that events of one document may be in it together.
//
// After an error nothing new goes out before every event of the batch is acknowledged by itself. The batch may have been stored all the
// same, or be stored yet. Its events are then in the stream twice, an earlier one of a document also behind a later one: the daemon
// knows each by its id, wherever it comes. Looking for them in the stream instead would take a server that was killed and started again
// by its word for what is not on its disk yet.

// How much is in a batch. The server syncs about five times whatever is in one, takes 1,000 messages at most, and looks at the subjects
// of all events for each of them. Fewer than the least are faster one by one.
const (
	batchLeast = 8
	batchMost  = 800
	batchBytes = 4 << 20
)

// together publishes events from the ith on in one batch, and gives the place behind those that the stream has.
func (p *publishing) together(ctx context.Context, i int, entries []Entry) (next int, err error) {
	if err := p.answers(ctx); err != nil {
		return 0, err
	}
	events := make([]stream.Event, len(entries))
	for k := range entries {
		e := &entries[k]
		events[k] = stream.Event{Evidence: e.Evidence, Key: e.given(), Header: p.r.header(i+k, e), Body: e.Body}
	}
	call, cancel := outlast(ctx, callTimeout)
	defer cancel()
	switch err := p.to.PushAll(call, events); {
	case err == nil:
		p.most = min(2*p.most, p.limit)
		return i + len(entries), p.r.o.Spool.AllPublished(i, len(entries))
	case errors.Is(err, stream.ErrNoBatches):
		p.r.o.Log.Debug().Err(err).Msg("events are published one by one")
		p.most = 0
		return i, nil
	case errors.Is(err, stream.ErrTooMany):
		p.limit = max(len(entries)/2, 1)
		p.most = p.limit
		return i, nil
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	default:
		p.r.o.Log.Debug().Err(err).Int("events", len(entries)).Msg("a batch was not acknowledged; its events are published one by one")
	}
	// A server that is too slow for a batch in the time that one may take gets smaller ones.
	p.most = max(p.most/2, batchLeast)
	for k := range entries {
		p.add(flight{i: i + k, bytes: len(entries[k].Body)})
	}
	return i + len(entries), p.repeat(ctx)
}

// grace is how long what is under way may still be acknowledged after the end: it is in the stream whatever the report says.
const grace = 2 * time.Second

// outlast gives a context that ends after most, or grace after ctx.
func outlast(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	stop := context.AfterFunc(ctx, func() {
		sleep(call, grace)
		cancel()
	})
	return call, func() {
		stop()
		cancel()
	}
}
