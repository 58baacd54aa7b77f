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

// ThrottledError says that nothing is sent because the ERP refused requests for now (429). Inside an *Error without a status
// nothing was sent at all; inside one with status 429 the last try was refused and the next one does not fit into the
// time that is left. It says nothing about whether the ERP is well.
type ThrottledError struct {
	Until  time.Time // when to come again, jitter included
	Reason string
}

func (e *ThrottledError) Error() string {
	return fmt.Sprintf("not before %s: %s", e.Until.UTC().Format(time.RFC3339), e.Reason)
}

// ThrottleState is what a Client knows about refusals, for metrics and for people.
type ThrottleState struct {
	Throttled bool
	Until     time.Time // when it opens, or opened last; zero without a refusal so far
	Reason    string    // of the last refusal
	InARow    int       // refusals since an answer that was none; those that were under way together count once
	Waiting   int       // callers that wait for it
}

// Throttle tells whether the ERP has asked for patience.
func (c *Client) Throttle() ThrottleState { return c.throttle.state() }

// throttle holds back every request of a Client after a refusal. A refusal holds for all callers, since the server did not mean
// one of them: others would only be refused too, and everybody together afterwards is what was refused in the first place.
type throttle struct {
	now    func() time.Time
	random func() float64

	mu      sync.Mutex
	until   time.Time     // nobody goes before
	spread  time.Duration // how long after until at least everybody takes a slot
	free    time.Time     // the first slot that nobody has taken begins then
	width   time.Duration // of a slot; above slotWidth callers take slots also after until
	calm    int           // answers since the last refusal or halving
	era     int           // how many refusals in a row, those under way together counted once, were taken note of
	inARow  int
	reason  string
	waiting int
}

// enter waits until the caller may send. era is for answered. A wait longer than patience is not begun and is a *ThrottledError;
// without a refusal no patience is asked for. Other errors are ctx's.
func (th *throttle) enter(ctx context.Context, patience time.Duration) (era int, err error) {
	for {
		at, wait, err := th.take(patience)
		if err != nil {
			return 0, err
		}
		if wait > 0 {
			patience -= wait
			if !th.sleep(ctx, wait) {
				return 0, context.Cause(ctx)
			}
		}
		if era, ok := th.admit(at); ok {
			return era, nil
		}
	}
}

// take gives the caller its moment.
func (th *throttle) take(patience time.Duration) (at time.Time, wait time.Duration, err error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	now := th.now()
	begin, width := latest(th.until, th.free), max(th.width, slotWidth)
	if !begin.After(now) {
		// Callers that wait elsewhere come when the wait is over: they too must not come all together.
		if now.Before(th.until.Add(th.spread)) || width > slotWidth {
			th.free = now.Add(width)
		}
		return now, 0, nil
	}
	at = begin.Add(jitter(th.random, slotWidth))
	if wait = at.Sub(now); wait > patience {
		return at, 0, th.errorFrom(begin)
	}
	th.free = begin.Add(width)
	return at, wait, nil
}

// admit lets a caller through whose moment has come, unless there was another refusal meanwhile. The clock is not asked: one that
// jumped would let all through or none.
func (th *throttle) admit(at time.Time) (era int, ok bool) {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.era, !at.Before(th.until)
}

func (th *throttle) sleep(ctx context.Context, wait time.Duration) bool {
	th.count(1)
	defer th.count(-1)
	return sleep(ctx, wait)
}

func (th *throttle) count(n int) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.waiting += n
}

// answered notes how a request that entered in an era was answered. wait is how long a caller that was refused stays away when it
// does not wait here: until the wait is over, and jitter on top.
func (th *throttle) answered(era int, a answer) (wait time.Duration) {
	th.mu.Lock()
	defer th.mu.Unlock()
	switch {
	case a.status == http.StatusTooManyRequests:
		return th.refused(era, a.header)
	case a.status != 0:
		th.settle(era)
	}
	return 0
}

// settle takes note of an answer that was no refusal.
func (th *throttle) settle(era int) {
	if era == th.era {
		th.inARow = 0
	}
	if th.calm++; th.calm >= calmAfter {
		th.calm, th.width = 0, th.width/2
	}
}

// refused begins a wait for as long as the server asks, and for a pause on top that grows with every refusal in a row: other
// processes were refused too, and what was asked for last was too little. Requests that were under way when the wait began only
// extend it: a hundred of them are one refusal and not a hundred in a row.
func (th *throttle) refused(era int, h http.Header) (wait time.Duration) {
	now := th.now()
	after, told := ParseRetryAfter(h, now)
	pause := after
	if era == th.era {
		pause += jitter(th.random, min(pauseBase<<min(th.inARow, 10), pauseCap))
		th.era++
		th.inARow++
		// The first refusal of all may have been a burst; the next ones say that even single callers come too close.
		if th.calm = 0; th.inARow > 1 || th.width > 0 {
			th.width = min(max(2*th.width, 2*slotWidth), mostWidth)
		} else {
			th.width = slotWidth
		}
	}
	if end := now.Add(pause); end.After(th.until) {
		th.until, th.spread = end, spreadOf(after)
		th.reason = "the ERP answered 429"
		if told {
			th.reason += ", Retry-After " + after.String()
		}
	}
	return th.until.Sub(now) + jitter(th.random, th.spread)
}

// throttled is the error of a caller that will not wait here.
func (th *throttle) throttled() *ThrottledError {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.errorFrom(latest(th.until, th.now()))
}

func (th *throttle) errorFrom(from time.Time) *ThrottledError {
	return &ThrottledError{Until: from.Add(jitter(th.random, max(th.spread, slotWidth))), Reason: th.reason}
}

// left is how long the next caller would wait at least.
func (th *throttle) left() time.Duration {
	th.mu.Lock()
	defer th.mu.Unlock()
	return max(latest(th.until, th.free).Sub(th.now()), 0)
}

func (th *throttle) state() ThrottleState {
	th.mu.Lock()
	defer th.mu.Unlock()
	return ThrottleState{
		Throttled: th.now().Before(th.until), Until: th.until, Reason: th.reason, InARow: th.inARow, Waiting: th.waiting,
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
