package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// undo is what has to be taken back at the end, last thing first.
type undo struct {
	log   zerolog.Logger
	steps []step
}

type step struct {
	name string
	do   func(ctx context.Context) error
}

// push registers how to take something back; it is called right after (or before) the thing is done, so that a failed
// start leaves nothing behind.
func (u *undo) push(name string, do func(ctx context.Context) error) {
	u.steps = append(u.steps, step{name, do})
}

// run takes everything back within the time given, whatever fails, and joins the errors by name.
func (u *undo) run(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var errs []error
	for i := len(u.steps) - 1; i >= 0; i-- {
		s := u.steps[i]
		if err := s.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", s.name, err))
		}
		u.log.Debug().Str("part", s.name).Msg("stopped")
	}
	u.steps = nil
	return errors.Join(errs...)
}
