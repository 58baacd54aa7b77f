package push

import (
	"context"
	"time"

	"flexid/batch/stream"
)

// This file publishes events one by one, a window of them side by side: where the server takes no batches, and where there are too
// few for one.

// How much may be under way at once. The stream syncs every event to its disk, so a wider window is not faster, and all of
// it is still to be answered when the run is stopped.
const (
	windowEvents = 128
	windowBytes  = 4 << 20
)

// flight is an event that was sent and not answered yet.
type flight struct {
	i     int
	words words
	bytes int
	sent  *stream.Sent // nil = it was not sent by itself
}

// sideBySide sends events from the ith on, and gives the place behind them. They may still be under way.
func (p *publishing) sideBySide(ctx context.Context, i int, entries []Entry) (next int, err error) {
	for k := range entries {
		e := &entries[k]
		f := flight{i: i + k, words: wordsOf(e), bytes: len(e.Body)}
		for len(p.under) > 0 && (len(p.under) >= windowEvents || p.bytes+f.bytes > windowBytes || p.held.meets(f.words)) {
			if err := p.answer(ctx); err != nil {
				return 0, err
			}
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err := p.send(ctx, f, e); err != nil {
			return 0, err
		}
	}
	return i + len(entries), nil
}

func (p *publishing) send(ctx context.Context, f flight, e *Entry) error {
	sent, err := p.to.Send(e.Evidence, e.given(), p.r.header(f.i, e), e.Body)
	f.sent = sent
	p.add(f)
	if err != nil {
		return p.repeat(ctx)
	}
	return nil
}

// add takes an event for one that is under way.
func (p *publishing) add(f flight) {
	p.under, p.bytes = append(p.under, f), p.bytes+f.bytes
	p.held.add(f.words, 1)
}

// answers waits for all that are under way.
func (p *publishing) answers(ctx context.Context) error {
	for len(p.under) > 0 {
		if err := p.answer(ctx); err != nil {
			return err
		}
	}
	return nil
}

// answer waits for the oldest event under way.
func (p *publishing) answer(ctx context.Context) error {
	f := p.under[0]
	limit, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch err := f.sent.Wait(limit); {
	case err == nil:
		return p.landed(0)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case hopeless(err):
		return p.at(f.i, err)
	}
	return p.repeat(ctx)
}

// landed notes that the stream has the nth event under way.
func (p *publishing) landed(n int) error {
	f := p.under[n]
	p.under = append(p.under[:n], p.under[n+1:]...)
	p.bytes -= f.bytes
	p.held.add(f.words, -1)
	return p.r.o.Spool.Published(f.i)
}

// repeat hears about every event under way, then sends those that the stream does not have again, one after another. Nothing
// new goes out before: on a full stream small events would pass by large ones that they refer to.
func (p *publishing) repeat(ctx context.Context) error {
	if err := p.collect(ctx, callTimeout); err != nil {
		return err
	}
	for len(p.under) > 0 {
		f := p.under[0]
		e, err := p.r.o.Spool.Entry(f.i)
		if err != nil {
			return err
		}
		err = p.r.insist(ctx, func(ctx context.Context) error {
			_, err := p.to.Push(ctx, e.Evidence, e.given(), p.r.header(f.i, &e), e.Body)
			return err
		})
		if ctx.Err() != nil && err != nil {
			return err
		}
		if err != nil {
			return p.at(f.i, err)
		}
		if err := p.landed(0); err != nil {
			return err
		}
	}
	return nil
}

// collect keeps those under way that are not acknowledged within the limit.
func (p *publishing) collect(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for n := 0; n < len(p.under); {
		sent := p.under[n].sent
		if sent == nil || sent.Wait(ctx) != nil {
			n++
			continue
		}
		if err := p.landed(n); err != nil {
			return err
		}
	}
	return nil
}

// leave notes what is acknowledged after the end.
func (p *publishing) leave(ctx context.Context) error {
	return p.collect(context.WithoutCancel(ctx), grace)
}
