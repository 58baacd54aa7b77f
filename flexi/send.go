package flexi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// maxWriteAnswer bounds the answer to a write, maxReadAnswer that to a read.
const (
	maxWriteAnswer = 8 << 20
	maxReadAnswer  = 64 << 20
)

// writeQuery asks for the document's number in the answer, and for a 401 instead of a login page.
const writeQuery = "code-in-response=true&auth=http"

// defaultFirstByte is how old a claim may be when the first byte leaves.
const defaultFirstByte = 5 * time.Second

// Conn is a connection for one write. It is dialled before the claim, so that a claim never waits for a handshake.
type Conn struct {
	c    *Client
	cc   *http.ClientConn
	g    *guardedConn
	era  int // of the throttle
	used atomic.Bool

	session string // that the request will carry
	undo    func() // gives the quota its request back
}

// Dial connects for one write. The error is an *Error with Outcome NotSent; certificate trouble is a *CertError in it, a
// used-up budget a *QuotaError, and a *ThrottledError says until when the ERP wants no requests; Dial waits for that at most a
// second. Status is that of a login that was refused.
func (c *Client) Dial(ctx context.Context) (*Conn, error) {
	notSent := func(err error) error {
		return &Error{Op: "connect to the ERP", Outcome: NotSent, Status: statusOf(err), Err: err}
	}
	session, err := c.enter(ctx)
	if err != nil {
		return nil, notSent(err)
	}
	era, err := c.throttle.enter(ctx, patience(ctx))
	if err != nil {
		return nil, notSent(err)
	}
	undo, err := c.take(ctx, "write")
	if err != nil {
		return nil, notSent(err)
	}
	cc, gc, err := c.dial(ctx)
	if err != nil {
		undo()
		return nil, notSent(err)
	}
	return &Conn{c: c, cc: cc, g: gc, era: era, session: session, undo: undo}, nil
}

// patience is how long a caller that holds something waits for the throttle.
func patience(ctx context.Context) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return min(dialPatience, time.Until(d))
	}
	return dialPatience
}

// Close gives the connection up. It may be called at any time, also after Send.
func (cn *Conn) Close() error {
	if !cn.used.Swap(true) {
		cn.undo()
	}
	return ignoreClosed(cn.cc.Close())
}

// Send sends the request once and says what became of it; the connection is used up then. It blocks until there is an
// answer or the write's time is over. It never sends on behalf of a claim that is too old, by the wall clock or the
// monotonic one, whichever shows more.
func (cn *Conn) Send(ctx context.Context, p Prepared, permit Permit) Result {
	start := cn.c.o.Now()
	a := cn.try(ctx, p, permit)
	r := classify(a, p, permit)
	if errors.Is(a.err, errSecondSend) && a.sent == 0 {
		r.Outcome, r.Scope, r.Remedy = Blocked, ScopeAll, remedyGuard
		cn.c.tripped(permit.Attempt)
	}
	if cn.c.session != nil && r.Outcome == Refused && r.Status == http.StatusBadRequest {
		cn.c.session.setStale()
	}
	if r.Wait = cn.c.throttle.answered(cn.era, a); r.Outcome == Refused {
		r.Wait = cn.c.refusedWait(r.Wait, a)
	}
	cn.c.record(&r, p, a, start)
	return r
}

// refusedWait is how long a refused write waits in its queue: what the throttle says, if it waits, and for a token of the
// budget, which the next send has paid for then.
func (c *Client) refusedWait(wait time.Duration, a answer) time.Duration {
	if wait == 0 {
		wait = retryWait(a.header, c.o.Now(), c.o.Rand)
	}
	if next, ok := c.budget.Refusals.Take(c.o.Now()); !ok {
		wait = max(wait, next+jitter(c.o.Rand, next))
	}
	return wait
}

// try is Send without judgement: it gathers what is known.
func (cn *Conn) try(ctx context.Context, p Prepared, permit Permit) answer {
	if cn.used.Swap(true) {
		return answer{err: errConnUsed}
	}
	defer cn.Close() //nolint:errcheck // the request is over either way
	if len(p.body) == 0 || permit.Attempt == "" || permit.Claimed.IsZero() {
		return answer{err: errNoClaim}
	}
	if ctx.Err() != nil { // else the request could leave before the cancellation is noticed
		return answer{err: context.Cause(ctx)}
	}
	left := cn.c.o.WriteTimeout - age(permit.Claimed, cn.c.o.Now())
	ctx, cancel := context.WithTimeoutCause(ctx, left, errors.New("the time for the write is over"))
	defer cancel()
	// Also for a write that hangs in the operating system when a stopped process goes on.
	_ = cn.g.SetDeadline(time.Now().Add(left))
	cn.g.allow(cn.check(permit))
	req := cn.c.request(ctx, http.MethodPost, cn.c.companyPath("/"+p.write.Evidence+".json"), p.body)
	req.URL.RawQuery = writeQuery
	cn.c.sign(req, cn.session)
	a := exchange(cn.cc, cn.g, req, limits{bytes: maxWriteAnswer, head: left * 9 / 10})
	cn.c.loggedOut(a, cn.session)
	return a
}

// check is asked before each piece of the request.
func (cn *Conn) check(permit Permit) func(first bool) error {
	limit := permit.FirstByte
	if limit == 0 {
		limit = defaultFirstByte
	}
	return func(first bool) error {
		old := age(permit.Claimed, cn.c.o.Now())
		switch {
		case first && old > limit:
			return fmt.Errorf("%w: %s", errClaimOld, old.Round(time.Millisecond))
		case old > cn.c.o.WriteTimeout:
			return errWriteOver
		case first && !cn.c.guard.First(append(permit.Others, permit.Attempt)...):
			return errSecondSend
		}
		return nil
	}
}

// age is how long ago a moment was, by the wall clock or the monotonic one, whichever shows more: one of them stands
// still when a machine sleeps, the other when somebody sets it back.
func age(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// request is made by hand so that nothing in it invites a replay: no GetBody, no key, Connection: close. It is not signed.
func (c *Client) request(ctx context.Context, method, path string, body []byte) *http.Request {
	u := *c.base
	u.Path += path
	req := (&http.Request{
		Method: method, URL: &u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Accept":          {"application/json"},
			"Accept-Language": {"cs"}, // causes are told apart by Czech words where the ERP gives no code
			"User-Agent":      {"flexid"},
		},
		Close: true,
	}).WithContext(ctx)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.ContentLength = int64(len(body))
	}
	return req
}

// limits bound an exchange.
type limits struct {
	bytes int64
	head  time.Duration // until the first byte of the answer; 0 = as long as the whole
}

// exchange sends one request over its connection and reads the answer to its end. Afterwards the connection is sealed: the
// count of bytes in the answer is final.
func exchange(cc *http.ClientConn, gc *guardedConn, req *http.Request, l limits) answer {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	if l.head > 0 {
		timer := time.AfterFunc(l.head, func() { cancel(errors.New("no first byte of an answer in time")) })
		defer timer.Stop()
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { timer.Stop() }})
	}
	resp, err := cc.RoundTrip(req.WithContext(ctx))
	var a answer
	if err == nil {
		a = readAnswer(resp, l.bytes)
	} else {
		a.err = err
	}
	var refusal error
	if a.sent, a.received, refusal = gc.seal(); refusal != nil && a.status == 0 {
		a.err = refusal
	}
	return a
}

func readAnswer(resp *http.Response, limit int64) answer {
	defer resp.Body.Close() //nolint:errcheck // read to its end or given up
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.body, a.err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case a.err != nil:
	case int64(len(a.body)) > limit:
		a.err = errAnswerLimit
	default:
		a.whole = true
	}
	return a
}

// record fills in the wire record and tells the observer.
func (c *Client) record(r *Result, p Prepared, a answer, start time.Time) {
	took := c.o.Now().Sub(start)
	r.Request = Request{
		Time: start, Kind: c.kind("write"), Method: http.MethodPost,
		URL:    c.base.Path + c.companyPath("/"+p.write.Evidence+".json?"+writeQuery),
		Status: r.Status, Outcome: r.Outcome.String(), Sent: a.sent, Received: a.received, Duration: took,
		Millis: took.Milliseconds(),
	}
	var e *Error
	if errors.As(r.Err, &e) {
		e.Outcome, e.Method, e.URL = r.Outcome, r.Request.Method, r.Request.URL
		r.Request.Error = clip(e.Error())
	}
	if r.FenceBroken {
		c.o.Log.Error().Str("evidence", p.write.Evidence).Msg("a create was answered as an update: the fence does not hold")
	}
	c.observe(r.Request)
}

// clip keeps an error short enough for the story of a document, which has to fit into its row.
func clip(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func (c *Client) tripped(attempt string) {
	c.o.Log.Error().Str("attempt", attempt).Msg(remedyGuard)
	if c.o.Tripped != nil {
		c.o.Tripped(attempt)
	}
}
