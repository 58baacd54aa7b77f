package push

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch/stream"
)

// Options of Run. Daemon, FollowUps, Trouble, Log and Now may be left out; everything else is required.
type Options struct {
	Spool  *Spool // checked and flushed
	Run    string // names this run; never used twice
	JS     jetstream.JetStream
	Stream stream.Options
	Daemon Daemon // nil = stragglers are not asked about

	// Wait is how long no news are waited for before Run gives up, also where nothing can be published; the daemon goes on without
	// it. 0 = publish only, however long that takes.
	Wait time.Duration
	// Ask is how long no news come before stragglers are asked about; 0 = 15 s, less where Wait is short.
	Ask time.Duration
	// FollowUps counts the documents that still have to be read back, where the daemon ends with this run; nil = it goes on.
	FollowUps func(ctx context.Context) (int, error)
	Trouble   func(text string) // why nothing is published right now, "" = it goes on
	Log       zerolog.Logger
	Now       func() time.Time
}

// runner is one Run.
type runner struct {
	o     Options
	next  int    // whom askSome asks next
	begun uint64 // last sequence of flexi.done's stream when the listening began

	heardTo atomic.Uint64 // sequence of the last message heard

	news   chan struct{} // full while something has changed
	mu     sync.Mutex
	fault  error     // of noting, which no caller can be told
	toldAt time.Time // when the last news came

	reasons reasons
}

const askAfter = 15 * time.Second

// Run publishes all events and waits for what becomes of them. The result stands in the spool, whatever the error: when
// ctx ends nothing more is published, what is known is gathered and the cause of ctx comes back. Waiting in vain is no
// error. Errors: *stream.UnavailableError with Denied, a spool that cannot be read or written.
func Run(ctx context.Context, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Ask == 0 {
		o.Ask = min(askAfter, max(o.Wait/4, time.Millisecond))
	}
	if o.Trouble == nil {
		o.Trouble = func(string) {}
	}
	r := &runner{o: o, news: make(chan struct{}, 1)}
	r.reasons.say = o.Trouble
	r.o.Trouble = func(text string) { r.reasons.set(ofRun, text) }
	defer r.watchNATS(ctx)()
	stop, err := r.listen(ctx)
	if err != nil {
		return err
	}
	defer stop()
	err = r.publish(ctx)
	inVain := errors.Is(err, errInVain)
	if inVain {
		o.Log.Warn().Err(err).Msg("nothing can be published; the rest is not sent")
		err = nil
	}
	if err == nil && o.Wait > 0 && !inVain {
		err = r.wait(ctx)
	}
	if err == nil && o.Wait > 0 && o.FollowUps != nil {
		err = r.settle(ctx)
	}
	r.catchUp(ctx)
	return errors.Join(err, r.gather(ctx), r.failed())
}

// wait returns when every event is over, or when no news have come for Wait.
func (r *runner) wait(ctx context.Context) error {
	heard := r.o.Now()
	tick := time.NewTicker(r.o.Ask)
	defer tick.Stop()
	why := time.NewTicker(askWhy)
	defer why.Stop()
	defer r.reasons.set(ofDaemon, "")
	for {
		if _, open := r.o.Spool.Counts(); open == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.news:
			heard = r.o.Now()
			tick.Reset(r.o.Ask)
			why.Reset(askWhy)
			r.reasons.set(ofDaemon, "")
		case <-why.C:
			r.askWhy(ctx)
		case <-tick.C:
			if r.o.Now().Sub(heard) >= r.o.Wait {
				return nil
			}
			if err := r.askSome(ctx, asked); err != nil && ctx.Err() == nil {
				r.o.Log.Debug().Err(err).Msg("stragglers cannot be asked about")
			}
		}
		if err := r.failed(); err != nil {
			return err
		}
	}
}

// settle waits until everything confirmed was read back: Flexi silently drops what our user may not write, and nobody would
// look after this process is gone. It gives up when the number stands still for Wait; the next daemon goes on with the rest.
func (r *runner) settle(ctx context.Context) error {
	const pause = 500 * time.Millisecond
	least, moved := -1, r.o.Now()
	for {
		followUps, err := r.o.FollowUps(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && followUps == 0:
			r.o.Trouble("")
			return r.failed()
		case err == nil && (least < 0 || followUps < least):
			least, moved = followUps, r.o.Now()
		case r.o.Now().Sub(moved) >= r.o.Wait:
			r.o.Log.Warn().Int("documents", least).Msg("confirmed documents could not be read back; the next start does it")
			return nil
		}
		r.o.Trouble(fmt.Sprintf("%d documents still to be read back", max(followUps, 0)))
		sleep(ctx, pause)
	}
}

// gather asks once more about what is not over, for the report. It works after ctx has ended, within a limit of its own.
func (r *runner) gather(ctx context.Context) error {
	if _, open := r.o.Spool.Counts(); open == 0 || r.o.Wait == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*callTimeout)
	defer cancel()
	r.next = 0
	if err := errors.Join(r.askMaybes(ctx), r.askSome(ctx, asked)); err != nil {
		// The report then says "waiting" where it might say more.
		r.o.Log.Warn().Err(err).Msg("the daemon cannot be asked what became of the rest")
	}
	return nil
}

func (r *runner) note(i int, result Result) {
	news, err := r.o.Spool.Set(i, result)
	r.mu.Lock()
	if err != nil {
		r.fault = err
	}
	if news {
		r.toldAt = r.o.Now()
	}
	r.mu.Unlock()
	if news || err != nil {
		select {
		case r.news <- struct{}{}:
		default: // it is full: whoever reads it looks at everything
		}
	}
}

func (r *runner) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
