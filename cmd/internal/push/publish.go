package push

import (
	"context"
	"errors"
	"fmt"

	"flexid/batch/stream"
)

// publishing puts the events of a spool into the stream, in their order. It is for one goroutine.
type publishing struct {
	r     *runner
	to    *stream.Publisher
	most  int // events of the next batch; 0 = the server takes no batches
	limit int // that most never exceeds
	under []flight
	bytes int
	held  held
}

// publish sends what is in the spool. When ctx ends nothing more is sent, and what the stream still acknowledges is noted.
func (r *runner) publish(ctx context.Context) error {
	p := &publishing{r: r, to: stream.NewPublisher(r.o.JS, r.o.Stream), most: batchMost, limit: batchMost, held: newHeld()}
	err := p.all(ctx)
	if err != nil {
		err = errors.Join(err, p.leave(ctx))
	}
	return err
}

func (p *publishing) all(ctx context.Context) error {
	for i := 0; i < p.r.o.Spool.Len(); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		count, bytes := p.most, batchBytes
		if p.most == 0 {
			count, bytes = windowEvents, windowBytes
		}
		entries, err := p.r.o.Spool.Entries(i, count, bytes)
		if err != nil {
			return err
		}
		if p.most > 0 && len(entries) >= batchLeast {
			i, err = p.together(ctx, i, entries)
		} else {
			i, err = p.sideBySide(ctx, i, entries)
		}
		if err != nil {
			return err
		}
	}
	return p.answers(ctx)
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
