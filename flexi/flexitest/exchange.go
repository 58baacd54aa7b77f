package flexitest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxBody bounds what one request may make the server hold.
const maxBody = 32 << 20

// exchange is one request on its way through the server.
type exchange struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	rt     route
	badURL bool
	kind   string // read, write, other
	entry  *entry
	body   []byte
	user   string
	env    *envelope
	envErr error
	docs   int  // that a write names
	locked bool // the series lock is held already
	// oneTooMany: it came while as many as are allowed at once were at work.
	oneTooMany bool

	deaf, deafBody []string // parameters without effect, anywhere and in the body
}

// answer is a finished response.
type answer struct {
	status int
	kind   string // media type
	header map[string]string
	body   []byte
}

// Kinds of requests in the log.
const (
	Read  = "read"  // of records
	Write = "write" // of records
	Other = "other" // metadata, changes, login, …
)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.wg.Done()
	x := &exchange{s: s, w: w, r: r, kind: Other}
	rt, ok := parseRoute(r.URL.EscapedPath())
	x.rt, x.badURL = rt, !ok
	switch {
	case rt.isWrite(r.Method):
		x.kind = Write
	case rt.isRead(r.Method):
		x.kind = Read
	}
	x.run()
}

func (x *exchange) run() {
	s := x.s
	s.mu.Lock()
	x.entry = s.log.add(x, s.now())
	early, scripted := s.faults.scripted(x.kind)
	slow, slowEach := s.modes.slow, s.modes.slowEach
	if x.kind == Read {
		x.deaf, x.deafBody = s.modes.deaf, s.modes.deafBody
	}
	x.oneTooMany = s.opt.ConcurrencyLimit > 0 && s.inflight >= s.opt.ConcurrencyLimit
	if x.oneTooMany {
		slow, slowEach = 0, 0 // what is not let in costs the server nothing
	} else {
		s.inflight++
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !x.oneTooMany {
			s.inflight--
		}
	}()
	if early.cutsBody() {
		x.note(early)
		x.cutBody(early)
		return
	}
	if err := x.readBody(); err != nil {
		x.abort() // the client went away in the middle
		return
	}
	if !scripted && x.workOn() {
		return
	}
	// A client that goes away meanwhile does not stop the server: it works on, and commits.
	if !s.pause(context.Background(), slow+slowEach*time.Duration(x.docs)) {
		x.abort()
		return
	}
	f := early
	if !scripted {
		if f = x.pick(); f.Kind == Healthy {
			f = x.sickness()
		}
	}
	x.note(f)
	x.perform(f)
}

// pick counts the request for the rules about single documents and takes the first fault that fits.
func (x *exchange) pick() Fault {
	if x.kind != Write {
		return Fault{}
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	return x.s.faults.pick(x.entry.Request, x.s.opt.Seed)
}

func (x *exchange) note(f Fault) {
	if f.Kind == Healthy {
		return
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.entry.Fault = f.String()
}

func (x *exchange) readBody() error {
	if x.r.Body == nil {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(x.r.Body, maxBody+1))
	if err != nil {
		return err
	}
	if len(body) > maxBody {
		return errors.New("body too large")
	}
	x.take(body)
	return nil
}

// take decodes a whole body and names the documents in it for the log.
func (x *exchange) take(body []byte) {
	x.body = body
	if x.kind == Write && len(body) > 0 || x.rt.kind == rQuery || x.rt.kind == rGet {
		x.env, x.envErr = decodeEnvelope(body)
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	keep := min(len(body), x.s.opt.KeepBody)
	if x.rt.kind == rLogin {
		keep = 0 // a password
	}
	x.entry.Body = append([]byte(nil), body[:keep]...)
	x.entry.Bytes = len(body)
	if x.kind == Write {
		x.entry.Docs = x.s.docsOf(x)
		x.docs = len(x.entry.Docs)
	}
}

// perform does what the fault leaves to be done and says what the fault lets be said.
func (x *exchange) perform(f Fault) {
	s := x.s
	if f.Kind == StaleRole {
		s.mu.Lock()
		s.stale[x.login()] = true
		s.mu.Unlock()
	}
	if f.Kind == LateCommit {
		x.commitLate(f)
		return
	}
	ans := x.dress(x.handle(f.commits() && !x.has(NothingSaved)))
	if f.Kind != SlowBody && !s.pause(x.r.Context(), f.Delay) {
		x.abort()
		return
	}
	x.deliver(f, ans)
}

// commitLate answers now and commits later, as a server does behind a proxy that stopped waiting.
func (x *exchange) commitLate(f Fault) {
	s := x.s
	if a := x.refusal(); a != nil {
		x.send(*a)
		return
	}
	s.mu.Lock()
	s.late++
	s.mu.Unlock()
	later := *x
	later.locked = f.HoldLock && s.lockSeries()
	s.wg.Go(func() {
		if s.pause(context.Background(), f.Delay) {
			later.write(true)
		}
		if later.locked {
			s.unlockSeries()
		}
		s.mu.Lock()
		s.late--
		s.mu.Unlock()
	})
	if f.Status == 0 {
		x.abort()
		return
	}
	x.send(f.answer())
}

// lockSeries waits for the write that is committing now; false when the server closes.
func (s *Server) lockSeries() bool {
	select {
	case s.series <- struct{}{}:
		return true
	case <-s.done:
		return false
	}
}

func (s *Server) unlockSeries() { <-s.series }

func (x *exchange) login() string {
	if user, _, ok := x.r.BasicAuth(); ok {
		return user
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	return x.s.userOf(x.sessionID())
}

func (x *exchange) sessionID() string {
	if c, err := x.r.Cookie("authSessionId"); err == nil {
		return c.Value
	}
	if h := x.r.Header.Get("X-authSessionId"); h != "" {
		return h
	}
	return x.r.URL.Query().Get("authSessionId")
}

// param reads an option of the query, or of the envelope, which wins.
func (x *exchange) param(name string) string {
	if slices.Contains(x.deaf, name) {
		return ""
	}
	if x.env != nil && !(x.rt.kind == rQuery && slices.Contains(x.deafBody, name)) {
		if v, ok := x.env.attrs[name]; ok {
			return v
		}
	}
	return x.r.URL.Query().Get(name)
}

func (x *exchange) flag(name string) bool { return strings.EqualFold(x.param(name), "true") }

// Pending is how many late commits are still to come.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late
}

func stamp(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("2006-01-02T15:04:05.000-07:00")
}
