package flexi

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// After a refusal callers leave one by one, each at a random moment inside a slot of its own: in no 50 ms more than six.
const (
	slotWidth = 10 * time.Millisecond
	pauseBase = time.Second // most of the first pause that the server did not ask for
	pauseCap  = 30 * time.Second
	// A server that takes few requests at once refuses every second one of six slots. The slots grow until they fit, at most to
	// mostWidth, which is below the patience of a dial; after calmAfter answers without a refusal they are halved.
	mostWidth = 640 * time.Millisecond
	calmAfter = 50
	// dialPatience is short: who dials for a write holds a place among the writes.
	dialPatience = time.Second
)

// ShutError says that nothing is sent because the ERP refused requests for now (429). Inside an *Error without a status
// nothing was sent at all; inside one with status 429 the last try was refused and the next one does not fit into the
// time that is left. It says nothing about whether the ERP is well.
type ShutError struct {
	Until  time.Time // when to come again, jitter included
	Reason string
}

func (e *ShutError) Error() string {
	return fmt.Sprintf("not before %s: %s", e.Until.UTC().Format(time.RFC3339), e.Reason)
}

// DoorState is what a Client knows about refusals, for metrics and for people.
type DoorState struct {
	Shut    bool
	Until   time.Time // when it opens, or opened last; zero without a refusal so far
	Reason  string    // of the last refusal
	InARow  int       // refusals since an answer that was none; those that were under way together count once
	Waiting int       // callers in front of it
}

// Door tells whether the ERP has asked for patience.
func (c *Client) Door() DoorState { return c.door.state() }

// door stands before every request of a Client. A refusal shuts it for all, since the server did not mean one caller:
// others would only be refused too, and everybody together afterwards is what was refused in the first place.
type door struct {
	now    func() time.Time
	random func() float64

	mu      sync.Mutex
	until   time.Time     // shut until then
	spread  time.Duration // how long after until at least everybody takes a slot
	free    time.Time     // the first slot that nobody has taken begins then
	width   time.Duration // of a slot; above slotWidth callers take slots also while the door is open
	calm    int           // answers since the last refusal or halving
	era     int           // how often the door was shut anew
	inARow  int
	reason  string
	waiting int
}

// enter waits until the caller may send. pass is for answered. A wait longer than patience is not begun and is a
// *ShutError; an open door asks for no patience. Other errors are ctx's.
func (d *door) enter(ctx context.Context, patience time.Duration) (pass int, err error) {
	for {
		at, wait, err := d.take(patience)
		if err != nil {
			return 0, err
		}
		if wait > 0 {
			patience -= wait
			if !d.sleep(ctx, wait) {
				return 0, context.Cause(ctx)
			}
		}
		if pass, ok := d.admit(at); ok {
			return pass, nil
		}
	}
}

// take gives the caller its moment.
func (d *door) take(patience time.Duration) (at time.Time, wait time.Duration, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	begin, width := latest(d.until, d.free), max(d.width, slotWidth)
	if !begin.After(now) {
		// Callers that wait elsewhere come when the door is open: they too must not come all together.
		if now.Before(d.until.Add(d.spread)) || width > slotWidth {
			d.free = now.Add(width)
		}
		return now, 0, nil
	}
	at = begin.Add(jitter(d.random, slotWidth))
	if wait = at.Sub(now); wait > patience {
		return at, 0, d.shutError(begin)
	}
	d.free = begin.Add(width)
	return at, wait, nil
}

// admit lets a caller through whose moment has come, unless the door was shut again meanwhile. The clock is not asked:
// one that jumped would let all through or none.
func (d *door) admit(at time.Time) (pass int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.era, !at.Before(d.until)
}

func (d *door) sleep(ctx context.Context, wait time.Duration) bool {
	d.count(1)
	defer d.count(-1)
	return sleep(ctx, wait)
}

func (d *door) count(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting += n
}

// answered tells the door how the request of a pass was answered. wait is how long a caller that was refused stays away
// when it does not wait here: until the door opens, and jitter on top.
func (d *door) answered(pass int, a answer) (wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case a.status == http.StatusTooManyRequests:
		return d.refused(pass, a.header)
	case a.status != 0:
		d.settle(pass)
	}
	return 0
}

// settle takes note of an answer that was no refusal.
func (d *door) settle(pass int) {
	if pass == d.era {
		d.inARow = 0
	}
	if d.calm++; d.calm >= calmAfter {
		d.calm, d.width = 0, d.width/2
	}
}

// refused shuts the door for as long as the server asks, and for a pause on top that grows with every refusal in a row:
// other processes were refused too, and what was asked for last was too little. Requests that were under way when the
// door was shut only extend it: a hundred of them are one refusal and not a hundred in a row.
func (d *door) refused(pass int, h http.Header) (wait time.Duration) {
	now := d.now()
	after, told := ParseRetryAfter(h, now)
	pause := after
	if pass == d.era {
		pause += jitter(d.random, min(pauseBase<<min(d.inARow, 10), pauseCap))
		d.era++
		d.inARow++
		// The first refusal of all may have been a burst; the next ones say that even single callers come too close.
		if d.calm = 0; d.inARow > 1 || d.width > 0 {
			d.width = min(max(2*d.width, 2*slotWidth), mostWidth)
		} else {
			d.width = slotWidth
		}
	}
	if end := now.Add(pause); end.After(d.until) {
		d.until, d.spread = end, spreadOf(after)
		d.reason = "the ERP answered 429"
		if told {
			d.reason += ", Retry-After " + after.String()
		}
	}
	return d.until.Sub(now) + jitter(d.random, d.spread)
}

// shut is the error of a caller that will not wait here.
func (d *door) shut() *ShutError {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shutError(latest(d.until, d.now()))
}

func (d *door) shutError(from time.Time) *ShutError {
	return &ShutError{Until: from.Add(jitter(d.random, max(d.spread, slotWidth))), Reason: d.reason}
}

// left is how long the next caller would wait at least.
func (d *door) left() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(latest(d.until, d.free).Sub(d.now()), 0)
}

func (d *door) state() DoorState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return DoorState{
		Shut: d.now().Before(d.until), Until: d.until, Reason: d.reason, InARow: d.inARow, Waiting: d.waiting,
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
