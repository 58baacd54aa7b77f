package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"flexid/batch/stream"
)

// How much may be under way at once. The stream syncs every event to its disk, so a wider window is not faster, and all of
// it is still to be answered when the run is stopped.
const (
	windowEvents = 128
	windowBytes  = 4 << 20
)

// publishing puts the events of a spool into the stream, in their order. It is for one goroutine.
type publishing struct {
	r     *runner
	to    *stream.Publisher
	under []flight // oldest first
	bytes int
	held  held
}

// flight is an event that was sent and not answered yet.
type flight struct {
	i     int
	words words
	bytes int
	sent  *stream.Sent // nil = the connection did not take it
}

// publish sends what is in the spool. When ctx ends nothing more is sent, and what the stream still acknowledges is noted.
func (r *runner) publish(ctx context.Context) error {
	p := &publishing{r: r, to: stream.NewPublisher(r.o.JS, r.o.Stream), held: newHeld()}
	err := p.all(ctx)
	if err != nil {
		err = errors.Join(err, p.leave(ctx))
	}
	return err
}

func (p *publishing) all(ctx context.Context) error {
	for i := range p.r.o.Spool.Len() {
		e, err := p.r.o.Spool.Entry(i)
		if err != nil {
			return err
		}
		w := wordsOf(&e)
		for len(p.under) > 0 && (len(p.under) >= windowEvents || p.bytes+len(e.Body) > windowBytes || p.held.meets(w)) {
			if err := p.answer(ctx); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.send(ctx, flight{i: i, words: w, bytes: len(e.Body)}, &e); err != nil {
			return err
		}
	}
	for len(p.under) > 0 {
		if err := p.answer(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *publishing) send(ctx context.Context, f flight, e *Entry) error {
	sent, err := p.to.Send(e.Evidence, e.given(), p.r.header(f.i, e), e.Body)
	f.sent = sent
	p.under, p.bytes = append(p.under, f), p.bytes+f.bytes
	p.held.add(f.words, 1)
	if err != nil {
		return p.repeat(ctx)
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

// leave notes what is acknowledged after the end: it is in the stream whatever the report says.
func (p *publishing) leave(ctx context.Context) error {
	const grace = 2 * time.Second
	return p.collect(context.WithoutCancel(ctx), grace)
}

func (p *publishing) at(i int, err error) error {
	e, readErr := p.r.o.Spool.Entry(i)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	return fmt.Errorf("%s:%d: %w", e.File, e.Line, err)
}

func (r *runner) header(i int, e *Entry) map[string][]string {
	header := map[string][]string{"Flexid-Op": {e.Op}, "Flexid-Event-Id": {eventID(r.o.Run, i)}}
	if e.Version != "" {
		header["Flexid-Version"] = []string{e.Version}
	}
	if e.Source != "" {
		header["Flexid-Source"] = []string{e.Source}
	}
	return header
}

// insist repeats a publish until it is acknowledged: one that was not may be in the stream all the same, and going on with
// the next would let a later one overtake it.
func (r *runner) insist(ctx context.Context, publish func(context.Context) error) error {
	const least, most = 200 * time.Millisecond, 5 * time.Second
	for pause := least; ; pause = min(2*pause, most) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := publish(ctx)
		var full *stream.FullError
		switch {
		case err == nil:
			if pause > least {
				r.o.Trouble("")
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case hopeless(err):
			return err
		case errors.As(err, &full):
			r.o.Trouble("the stream is full; waiting until the daemon has taken some of it")
		default:
			r.o.Trouble(err.Error())
		}
		sleep(ctx, pause)
	}
}

// hopeless errors are the same at every try.
func hopeless(err error) bool {
	var away *stream.UnavailableError
	var full *stream.FullError
	var answer *jetstream.APIError
	switch {
	case errors.As(err, &full):
		return false
	case errors.As(err, &away):
		return away.Denied
	case errors.As(err, &answer):
		return answer.Code == 400 // the request does not suit the stream
	}
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload)
}
