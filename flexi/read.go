package flexi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ask is one read in words: what is asked, and how it is counted.
type ask struct {
	op     string // for errors
	kind   string // read or lookup
	method string
	path   string // without the ERP's base, with the query
	body   []byte
	once   bool // not retried

	login   bool   // about the session itself: it carries the one given, "" = none
	session string // of a login
	cookie  string
	take    func(answer) error
}

// leastTry is the time a further try must have to be worth its request.
const leastTry = time.Second

// read asks until take is content with an answer, within one budget of time, tries and tokens. Every try has a
// connection of its own: on a pooled one net/http would replay reads behind the back of this policy and of the counts.
func (c *Client) read(ctx context.Context, q ask) error {
	r := reading{c: c, ask: q, deadline: c.o.Now().Add(2 * c.o.ReadTimeout), renewed: q.login}
	for {
		era, err := c.throttle.enter(ctx, r.left(ctx)-leastTry)
		if err != nil {
			return r.turnedAway(err)
		}
		a, e := c.readOnce(ctx, q)
		c.throttle.answered(era, a)
		if e == nil {
			if r.faults+r.refusals == 0 {
				c.budget.Reads.Pay(1)
			}
			return nil
		}
		r.last = e
		if !r.mayRetry(ctx, a) {
			return r.last
		}
	}
}

// reading is one read under way.
type reading struct {
	c                *Client
	ask              ask
	deadline         time.Time
	faults, refusals int
	renewed          bool // a new session was opened for it, or it is about the session
	last             *Error
}

// left is the time that is left for everything. The deadline comes before the number of tries: a server that asks for a
// long wait is not waited for.
func (r *reading) left(ctx context.Context) time.Duration {
	left := r.deadline.Sub(r.c.o.Now())
	if d, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(d))
	}
	return left
}

// mayRetry reports whether the same question is asked once more. It has waited then as a fault asks for; as a refusal asks
// for, the throttle does.
func (r *reading) mayRetry(ctx context.Context, a answer) bool {
	if a.over && !r.renewed {
		r.renewed = true
		return true
	}
	if a.status == http.StatusTooManyRequests {
		return r.refused(ctx)
	}
	c := r.c
	if r.faults++; r.ask.once || r.faults >= readAttempts || !worthAnotherTry(r.last) || ctx.Err() != nil {
		return false
	}
	wait := backoff(r.faults-1, c.o.Rand)
	if _, ok := ParseRetryAfter(a.header, c.o.Now()); ok {
		wait = retryWait(a.header, c.o.Now(), c.o.Rand)
	}
	if r.left(ctx) < wait+leastTry {
		return false
	}
	if _, ok := c.budget.Reads.Take(c.o.Now()); !ok {
		return false
	}
	return sleep(ctx, wait)
}

// refused is again for a 429. A refusal is cheap for the server and says when to come back, so it has a budget of its
// own: with the one for faults, of two hundred callers that were refused together most would give up.
func (r *reading) refused(ctx context.Context) bool {
	c := r.c
	if r.refusals++; r.ask.once || r.refusals >= refusedAttempts || r.left(ctx) < c.throttle.left()+leastTry {
		r.notBefore(c.throttle.throttled())
		return false
	}
	if wait, ok := c.budget.Refusals.Take(c.o.Now()); !ok {
		shut := c.throttle.throttled()
		shut.Until = latest(shut.Until, c.o.Now().Add(wait))
		r.notBefore(shut)
		return false
	}
	return true
}

// notBefore gives the refusal its date.
func (r *reading) notBefore(err *ThrottledError) { r.last.Err = fmt.Errorf("%w: %w", r.last.Err, err) }

// turnedAway is the error of a read that the throttle did not let through.
func (r *reading) turnedAway(err error) error {
	var shut *ThrottledError
	switch {
	case r.last == nil:
		return &Error{Op: r.ask.op, Method: r.ask.method, URL: r.c.base.Path + r.ask.path, Outcome: NotSent, Err: err}
	case errors.As(err, &shut):
		r.notBefore(shut)
	}
	return r.last
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// readOnce is one try.
func (c *Client) readOnce(ctx context.Context, q ask) (answer, *Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.ReadTimeout, errors.New("the time for the read is over"))
	defer cancel()
	start := c.o.Now()
	a, err := c.roundTrip(ctx, q)
	if err == nil && a.err == nil {
		err = readStatus(a)
		if err == nil {
			err = q.take(a)
		}
	} else if err == nil {
		err = a.err
	}
	e := c.readError(q, a, err)
	took := c.o.Now().Sub(start)
	r := Request{
		Time: start, Kind: c.kind(q.kind), Method: q.method, URL: c.base.Path + q.path, Status: a.status, Outcome: "ok",
		Sent: a.sent, Received: a.received, Duration: took, Millis: took.Milliseconds(),
	}
	if e != nil {
		r.Outcome, r.Error = e.Outcome.String(), clip(e.Error())
	}
	c.observe(r)
	return a, e
}

func (c *Client) roundTrip(ctx context.Context, q ask) (answer, error) {
	session, quotaKind := q.session, KindLogin
	if !q.login {
		var err error
		quotaKind = q.kind
		if session, err = c.enter(ctx); err != nil {
			return answer{}, err
		}
	}
	undo, err := c.take(ctx, quotaKind)
	if err != nil {
		return answer{}, err
	}
	cc, gc, err := c.dial(ctx)
	if err != nil {
		undo()
		return answer{}, err
	}
	defer cc.Close() //nolint:errcheck // one request per connection
	if d, ok := ctx.Deadline(); ok {
		_ = gc.SetDeadline(d)
	}
	gc.allow(func(bool) error { return nil })
	req := c.request(ctx, q.method, "", q.body)
	if req.URL, err = req.URL.Parse(c.base.Path + q.path); err != nil {
		return answer{}, err
	}
	req.Header.Set("Cache-Control", "no-cache")
	if q.cookie != "" {
		req.Header.Set("Cookie", q.cookie)
	}
	c.sign(req, session)
	a := exchange(cc, gc, req, limits{bytes: maxReadAnswer})
	a.over = c.loggedOut(a, session)
	return a, nil
}

// readError makes the error of one try; nil for nil.
func (c *Client) readError(q ask, a answer, err error) *Error {
	if err == nil {
		return nil
	}
	e := &Error{Op: q.op, Method: q.method, URL: c.base.Path + q.path, Status: a.status, Outcome: Refused, Err: err}
	if env, ok := decodeEnvelope(a.body); ok && a.whole {
		e.Messages = env.all()
	}
	var login *Error
	switch s := a.status; {
	case s == 0 && a.sent == 0 && errors.As(err, &login): // of the login that goes before
		e.Outcome, e.Status = login.Outcome, login.Status
	case s == 0 && a.sent == 0:
		e.Outcome = NotSent
	case s == 401, s == 402, s == 403, s == 404, s == 405, s == 406:
		e.Outcome = Blocked
	case s == 408, s == 421, s == 425, s == 429:
	case s >= 300 && s < 500:
		e.Outcome = Rejected
	}
	return e
}

// readStatus is nil for an answer that can be looked into.
func readStatus(a answer) error {
	if enc := a.header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return fmt.Errorf("the answer is compressed (%s), which was not asked for: some box in front of the ERP changes its answers", enc)
	}
	if a.status >= 200 && a.status < 300 {
		return nil
	}
	if a.status >= 300 && a.status < 400 {
		return fmt.Errorf("a redirect to %q, which is not followed", a.header.Get("Location"))
	}
	return fmt.Errorf("the ERP answered %d %s", a.status, http.StatusText(a.status))
}

// worthAnotherTry reports whether the same question may be answered a moment later.
func worthAnotherTry(e *Error) bool {
	var cert *CertError
	var unfit *UnfitError
	switch {
	case errors.As(e, &unfit):
		return false
	case isQuota(e), errors.As(e, &cert), e.Status == http.StatusNotImplemented, e.Status == http.StatusHTTPVersionNotSupported:
		return false
	case e.Outcome == NotSent, e.Outcome == Refused:
		return !errors.Is(e, errAnswerLimit)
	}
	return false
}
