package changes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"flexid/flexi"
)

const (
	pageSize = 1000            // the most that Flexi gives
	shortest = time.Second     // between two reads: wake-ups may be many, and reads cost of the licence's budget
	firstTry = 5 * time.Second // after a failure; doubled up to Every
)

// Feed is Flexi's log of changes; met by *flexi.Client.
type Feed interface {
	// Changes gives at most limit changes from version start on, that one included, by rising version.
	Changes(ctx context.Context, start int64, limit int) (flexi.Changes, error)
}

// Store keeps the cursor; met by *ledger.StateBucket.
type Store interface {
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
}

// Notifier publishes; it returns nil only when the message is durable. Met by *stream.Publisher.
type Notifier interface {
	Notify(ctx context.Context, kind, token, id string, body []byte) error
}

// Options of a Reader. Feed, Store and Notifier are required.
type Options struct {
	Feed     Feed
	Store    Store
	Notifier Notifier
	Every    time.Duration // between reads without a wake-up; 0 = 5 min
	// Fell is told, before the cursor goes back, that Flexi's version is below one that was read. nil = nobody cares.
	Fell func(known, now int64)
	Read func(next int64) // the cursor stands here after a read; nil = nobody cares
	Now  func() time.Time
	Log  zerolog.Logger
}

// Reader reads and publishes. One Run at a time.
type Reader struct {
	o    Options
	wake chan struct{}
	said string // the failure that was logged last
}

// New makes a reader; Run starts it.
func New(o Options) *Reader {
	if o.Every == 0 {
		o.Every = 5 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Fell == nil {
		o.Fell = func(int64, int64) {}
	}
	if o.Read == nil {
		o.Read = func(int64) {}
	}
	return &Reader{o: o, wake: make(chan struct{}, 1)}
}

// Wake asks for a read soon. It never blocks; wake-ups during a read lead to one more read.
func (r *Reader) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run reads until ctx ends. Failures are logged and tried again.
func (r *Reader) Run(ctx context.Context) {
	pause := firstTry
	for ctx.Err() == nil {
		err := r.catchUp(ctx)
		if err == nil {
			pause = firstTry
			r.healthy()
			if sleep(ctx, shortest, nil) {
				sleep(ctx, r.o.Every-shortest, r.wake)
			}
			continue
		}
		r.failed(ctx, err)
		// A wake-up does not shorten this one: what is broken would be asked as often as hooks come.
		sleep(ctx, pause, nil)
		pause = min(2*pause, r.o.Every)
	}
}

func (r *Reader) healthy() {
	if r.said != "" {
		r.said = ""
		r.o.Log.Info().Msg("changes of Flexi are read again")
	}
}

func (r *Reader) failed(ctx context.Context, err error) {
	if ctx.Err() != nil || err.Error() == r.said {
		return
	}
	r.said = err.Error()
	r.o.Log.Warn().Err(err).Msg("changes of Flexi cannot be read; none is lost, they are read later")
}

// sleep waits; true when the time was over or somebody woke us, false when ctx ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-wake:
		return true
	case <-ctx.Done():
		return false
	}
}

// catchUp reads pages until there is no more.
func (r *Reader) catchUp(ctx context.Context) error {
	at, err := r.load(ctx)
	if err != nil {
		return err
	}
	if at.revision == 0 {
		return r.begin(ctx, &at)
	}
	for {
		page, err := r.o.Feed.Changes(ctx, at.Next, pageSize)
		if err != nil {
			return fmt.Errorf("reading changes from version %d on: %w", at.Next, err)
		}
		if now := page.GlobalVersion; now > 0 && now < at.Next-1 {
			return r.fell(ctx, &at, now)
		}
		news := newest(page.Changes, at.Next)
		for _, n := range news {
			if err := r.publish(ctx, n); err != nil {
				return err
			}
		}
		next := at.Next
		if len(news) > 0 {
			next = news[len(news)-1].Version + 1
		}
		if page.Next != 0 && page.Next <= at.Next {
			return fmt.Errorf("changes do not advance: from version %d on there are more, from %d on", at.Next, page.Next)
		}
		// Where there is no more, the cursor stands behind the last change that was shown: @globalVersion may be that of a
		// change that is not in the list yet.
		if err := r.move(ctx, &at, max(next, page.Next)); err != nil {
			return err
		}
		if page.Next == 0 {
			return nil
		}
	}
}

// begin sets the cursor behind the newest change.
func (r *Reader) begin(ctx context.Context, at *cursor) error {
	page, err := r.o.Feed.Changes(ctx, 0, 1)
	if err != nil {
		return fmt.Errorf("asking for the newest version: %w", err)
	}
	now := page.GlobalVersion
	if now == 0 && len(page.Changes) > 0 {
		return errors.New("asking for the newest version: there are changes, but no @globalVersion")
	}
	r.o.Log.Info().Int64("version", now).Msg("changes of Flexi are read from here on")
	return r.move(ctx, at, now+1)
}

// fell goes back to Flexi's version. It is told first: after a crash in between it is noticed again.
func (r *Reader) fell(ctx context.Context, at *cursor, now int64) error {
	known := at.Next - 1
	r.o.Log.Error().Int64("known", known).Int64("now", now).
		Msg("Flexi's version of all changes fell: it was restored from a backup; changes are read from its new end on")
	r.o.Fell(known, now)
	return r.move(ctx, at, now+1)
}
