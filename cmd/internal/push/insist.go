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

// errInVain: nothing was published, and nothing was told, for as long as Options.Wait says.
var errInVain = errors.New("nothing happened for as long as was to be waited")

// insist repeats a publish until it is acknowledged: one that was not may be in the stream all the same, and going on with
// the next would let a later one overtake it. Where it is to wait no longer it ends with errInVain.
func (r *runner) insist(ctx context.Context, publish func(context.Context) error) error {
	const least, most = 200 * time.Millisecond, 5 * time.Second
	begun := r.o.Now()
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
		if left := r.patience(begun); left > 0 {
			sleep(ctx, min(pause, left))
			continue
		}
		return fmt.Errorf("%w: %w", errInVain, err)
	}
}

// patience is how much longer to wait for something that has been tried since begun: what is told meanwhile begins the time anew.
func (r *runner) patience(begun time.Time) time.Duration {
	if r.o.Wait == 0 { // publish only: then somebody wants it published
		return time.Hour
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.toldAt.After(begun) {
		begun = r.toldAt
	}
	return r.o.Wait - r.o.Now().Sub(begun)
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
