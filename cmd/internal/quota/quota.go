package quota

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"flexid/flexi"

	"github.com/rs/zerolog"
)

// Options of a Quota. Everything is required.
type Options struct {
	Limit int           // requests a day
	Reset time.Duration // since midnight in Zone, when the day begins
	Zone  *time.Location
	Store Store
	Owner string // another for every run of every replica
	// Tell publishes a notice; it is called again until it returns nil.
	Tell func(ctx context.Context, text string) error
	Now  func() time.Time
	Log  zerolog.Logger
}

const (
	mostBlock   = 50              // requests drawn at once
	askTimeout  = 3 * time.Second // of the store
	askPause    = 5 * time.Second // after the store could not be asked
	refreshTime = time.Minute     // between two looks at what the other replicas used
	noticeAt    = 80              // per cent
)

// Quota is the budget of one ERP as one process sees it. Safe for concurrent use; it is a flexi.Quota.
type Quota struct {
	o       Options
	written atomic.Int64
	drawing chan struct{} // full while somebody draws
	news    chan struct{} // wakes Run

	mu       sync.Mutex
	today    day
	used     int // by all replicas in today, as the store last said
	known    bool
	ordinary int // drawn and not spent
	reserve  int // the same from the last twentieth, for look-ups only
	block    int // how much is drawn next
	sick     time.Time
	why      error // the store could not be asked, until sick

	giving attempt // of another replica, as Run last saw it; only Run uses it
}

var _ flexi.Quota = (*Quota)(nil)

// New makes a Quota that has drawn nothing.
func New(o Options) *Quota {
	return &Quota{o: o, drawing: make(chan struct{}, 1), news: make(chan struct{}, 1), block: 1}
}

// Status is how the budget stands.
type Status struct {
	Limit   int       `json:"limit"`   // requests a day
	Used    int       `json:"used"`    // of them, by all replicas; too high by what others have drawn and not spent
	Reserve int       `json:"reserve"` // the last of them, which only look-ups may use
	Begins  time.Time `json:"begins"`
	Resets  time.Time `json:"resets"`
	// Known is false until the count of the day was read.
	Known bool `json:"known"`
	// Waiting: writes wait for the reset.
	Waiting bool   `json:"waiting,omitempty"`
	Trouble string `json:"trouble,omitempty"` // why the count cannot be drawn on
}

// Status is how the budget stands now.
func (q *Quota) Status() Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.o.Now()
	q.roll(now)
	s := Status{Limit: q.o.Limit, Reserve: q.kept(), Begins: q.today.begin.UTC(), Resets: q.today.end.UTC(), Known: q.known,
		Used: q.used - q.ordinary - q.reserve, Waiting: q.known && q.ordinary == 0 && q.used >= q.line(false)}
	if now.Before(q.sick) && q.why != nil {
		s.Trouble = q.why.Error()
	}
	return s
}

// kept is how many of the day's requests only look-ups may use.
func (q *Quota) kept() int { return min((q.o.Limit+19)/20, max(q.o.Limit-1, 0)) }

// line is up to where requests may be drawn.
func (q *Quota) line(lookup bool) int {
	if lookup {
		return q.o.Limit
	}
	return q.o.Limit - q.kept()
}

// roll begins a new day: what was drawn for the old one is gone. It needs mu.
func (q *Quota) roll(now time.Time) {
	if now.Before(q.today.end) && !now.Before(q.today.begin) {
		return
	}
	q.today = dayOf(now, q.o.Reset, q.o.Zone)
	q.used, q.known, q.ordinary, q.reserve, q.block = 0, false, 0, 0, 1
}

// Take spends one request. Kinds lookup and login may use the reserve.
func (q *Quota) Take(ctx context.Context, kind string) (undo func(), err error) {
	lookup := kind == "lookup" || kind == flexi.KindLogin
	if undo, err := q.spend(lookup); undo != nil || err != nil {
		return undo, err
	}
	select {
	case q.drawing <- struct{}{}:
		defer func() { <-q.drawing }()
	case <-ctx.Done():
		return nil, q.unasked(context.Cause(ctx))
	}
	for {
		if undo, err := q.spend(lookup); undo != nil || err != nil {
			return undo, err
		}
		if err := q.draw(ctx, lookup); err != nil {
			return nil, q.unasked(err)
		}
	}
}

// spend takes from what is drawn, or says why nothing may be drawn; neither undo nor error when the store has to be asked.
func (q *Quota) spend(lookup bool) (undo func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.o.Now()
	q.roll(now)
	from := &q.ordinary
	if lookup && q.ordinary == 0 {
		from = &q.reserve
	}
	switch {
	case *from > 0:
		*from--
		return q.undo(from, q.today), nil
	case q.known && q.used >= q.line(lookup):
		return nil, &flexi.QuotaError{Until: q.today.end}
	case q.why != nil && now.Before(q.sick):
		return nil, &flexi.QuotaError{Until: q.sick, Err: q.why}
	}
	return nil, nil
}

// undo puts one request back where it was taken from, if its day is not over.
func (q *Quota) undo(to *int, taken day) func() {
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.roll(q.o.Now()); q.today == taken {
			*to++
		}
	}
}

func (q *Quota) unasked(err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return &flexi.QuotaError{Until: q.o.Now().Add(askPause), Err: err}
}

// draw takes a block from the store. Where none is left it only learns so. It is called by one at a time.
func (q *Quota) draw(ctx context.Context, lookup bool) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	q.mu.Lock()
	today, most := q.today, q.block
	q.mu.Unlock()
	got, deep := 0, false
	c, err := q.change(ctx, today, func(c *count) bool {
		got, deep = 0, false
		room := q.line(false) - c.Used
		if room <= 0 && lookup {
			room, deep = q.o.Limit-c.Used, true
		}
		if room > 0 {
			// The end of a day is shared in small pieces: what one replica holds, the others miss.
			got = min(most, max(room/8, 1))
		}
		c.Used += got
		return got > 0
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		if caller.Err() == nil { // else it is not the store's fault
			q.why, q.sick = err, q.o.Now().Add(askPause)
		}
		return err
	}
	q.why = nil
	if q.roll(q.o.Now()); q.today != today {
		return nil // drawn for a day that is over
	}
	q.learn(c.Used)
	if deep {
		q.reserve += got
	} else {
		q.ordinary += got
	}
	q.block = min(2*q.block, mostBlock)
	return nil
}

// learn takes a count from the store. It only rises within a day. It needs mu.
func (q *Quota) learn(used int) {
	q.used, q.known = max(q.used, used), true
	if q.notice(q.used) > 0 {
		select {
		case q.news <- struct{}{}:
		default:
		}
	}
}
