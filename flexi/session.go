package flexi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A session is kept by the server for half an hour without a request. A login that was refused is not repeated for a
// moment: everybody who waited for it would try the same password, and servers lock users out.
const (
	sessionKeep = 10 * time.Minute
	sessionTick = time.Minute
	loginPause  = 5 * time.Second
)

// session is the login of a Client with Options.Session. Its secrets go into headers and nowhere else.
type session struct {
	turn chan struct{} // full while somebody logs in

	mu      sync.Mutex
	id      string    // "" = logged out
	refresh string    // renews the session without the password; "" = none
	used    time.Time // when a request last carried id
	refused error     // of the last login
	since   time.Time // when it was refused
	stale   bool      // the server refused a write as it does with a stale role
}

func newSession() *session { return &session{turn: make(chan struct{}, 1)} }

// current is the open session, "" = none; asking counts as using it.
func (s *session) current(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != "" {
		s.used = now
	}
	return s.id
}

// idle is the open session if no request has carried it for so long, else ""; asking counts as using it.
func (s *session) idle(now time.Time, least time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.used) < least {
		return ""
	}
	s.used = now
	return s.id
}

// recent is the refusal of a login a moment ago.
func (s *session) recent(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if age(s.since, now) < loginPause {
		return s.refused
	}
	return nil
}

// opened takes what a login brought, or remembers that the server said no.
func (s *session) opened(t tokens, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.refresh, s.used, s.refused, s.since = t.id, t.refresh, now, nil, now
	if OutcomeOf(err) == Blocked {
		s.refused = err
	}
}

// ended forgets a session that the server does not know any more. A request that was under way with an older one must not
// end its successor.
func (s *session) ended(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == id {
		s.id = ""
	}
}

// close forgets session and refresh token; "" = there was no session.
func (s *session) close() (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, s.id, s.refresh = s.id, "", ""
	return id
}

// spend takes the refresh token: it is tried once.
func (s *session) spend() (refresh string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refresh, s.refresh = s.refresh, ""
	return refresh
}

func (s *session) setStale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

func (s *session) takeStale() (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, s.stale = s.stale, false
	return was
}

// enter is the session that a request is to carry, opened if need be; "" for a Client that logs in with every request. Of
// several callers one logs in and the others wait for it. Its error is an *Error; nothing of the caller's was sent.
func (c *Client) enter(ctx context.Context) (string, error) {
	s := c.session
	if s == nil {
		return "", nil
	}
	if id := s.current(c.o.Now()); id != "" {
		return id, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return "", &Error{Op: "log in", Outcome: NotSent, Err: context.Cause(ctx)}
	}
	if id := s.current(c.o.Now()); id != "" {
		return id, nil
	}
	if err := s.recent(c.o.Now()); err != nil {
		return "", err
	}
	t, err := c.renew(ctx, s.spend())
	if t.id == "" && OutcomeOf(err) != NotSent {
		t, err = c.login(ctx)
	}
	s.opened(t, err, c.o.Now())
	return t.id, err
}

// tokens are what a login brings.
type tokens struct{ id, refresh string }

// login logs in with user and password. It writes no document, and a session that nobody uses ends by itself.
func (c *Client) login(ctx context.Context) (tokens, error) {
	body, err := loginBody(c.o.User, c.o.Password)
	if err != nil {
		return tokens{}, err
	}
	return c.open(ctx, ask{op: "log in", method: http.MethodPost, path: "/login-logout/login.json", body: body})
}

// renew asks for a new session by the token of an old one; without a token it asks nothing.
func (c *Client) renew(ctx context.Context, refresh string) (tokens, error) {
	if refresh == "" {
		return tokens{}, nil
	}
	cookie := (&http.Cookie{Name: "refreshToken", Value: refresh}).String()
	return c.open(ctx, ask{op: "renew the session", method: http.MethodGet, path: "/login-logout/check.json", cookie: cookie})
}

// open asks once for a session and reads it.
func (c *Client) open(ctx context.Context, q ask) (tokens, error) {
	var t tokens
	q.kind, q.login = "read", true
	q.take = func(a answer) error {
		m := object(a.body)
		if yes, known := truth(m["success"]); known && !yes {
			return errLoginRefused
		}
		t = tokens{id: text(m["authSessionId"]), refresh: text(m["refreshToken"])}
		if !headerValue(t.id) || t.refresh != "" && !headerValue(t.refresh) {
			t = tokens{}
			return errors.New("no session in it")
		}
		return nil
	}
	era, err := c.throttle.enter(ctx, patience(ctx))
	if err != nil {
		return t, &Error{Op: q.op, Method: q.method, URL: c.base.Path + q.path, Outcome: NotSent, Err: err}
	}
	a, e := c.readOnce(ctx, q)
	c.throttle.answered(era, a)
	if e == nil {
		return t, nil
	}
	if errors.Is(e, errLoginRefused) || e.Outcome == Blocked || e.Outcome == Rejected {
		// Whatever status the server gives it: a login that is refused is mended as a 401 is.
		e.Outcome, e.Status = Blocked, http.StatusUnauthorized
		if why := text(object(object(a.body)["errors"])["reason"]); why != "" {
			e.Messages = append(e.Messages, Message{Text: clip(why)})
		}
	}
	for i, m := range e.Messages { // a server may repeat what it was sent
		hide := func(s string) string { return strings.ReplaceAll(s, c.o.Password, "…") }
		e.Messages[i] = Message{Text: hide(m.Text), For: hide(m.For), Path: hide(m.Path), Value: hide(m.Value), Code: hide(m.Code)}
	}
	return tokens{}, e
}

var errLoginRefused = errors.New("the ERP refused the login")

// headerValue tells a token from something that would break out of its header.
func headerValue(s string) bool {
	return s != "" && len(s) <= 4096 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ';' || r == ',' || r == '"' })
}

// sign puts the login into a request.
func (c *Client) sign(req *http.Request, session string) {
	switch {
	case c.session == nil:
		req.SetBasicAuth(c.o.User, c.o.Password)
	case session != "":
		req.Header.Set("X-authSessionId", session)
	}
}

// loggedOut reports whether an answer means that the session it was asked with has ended, and forgets it then.
func (c *Client) loggedOut(a answer, session string) bool {
	if c.session == nil || session == "" {
		return false
	}
	over := a.status == http.StatusUnauthorized ||
		a.status >= 300 && a.status < 400 && strings.Contains(a.header.Get("Location"), "login")
	if over {
		c.session.ended(session)
	}
	return over
}

// KeepSession keeps an idle session alive until ctx ends; it returns at once where there are no sessions.
func (c *Client) KeepSession(ctx context.Context) {
	if c.session == nil {
		return
	}
	for sleep(ctx, sessionTick) {
		if id := c.session.idle(c.o.Now(), sessionKeep); id != "" {
			err := c.read(ctx, ask{op: "keep the session", kind: "read", method: http.MethodGet, path: "/login-logout/session-keep-alive.js",
				login: true, session: id, once: true, take: func(answer) error { return nil }})
			if err != nil && ctx.Err() == nil {
				c.o.Log.Debug().Err(err).Msg("keeping the session")
			}
		}
	}
}

// Logout ends the sessions of our user at the server, of other replicas too: those log in again. It is sent once, within
// the time of ctx and that of a read; without a session it asks nothing. A later request logs in again.
func (c *Client) Logout(ctx context.Context) error {
	if c.session == nil {
		return nil
	}
	id := c.session.close()
	if id == "" {
		return nil
	}
	return c.read(ctx, ask{op: "log out", kind: "read", method: http.MethodPost, path: c.logoutPath(), login: true, session: id,
		once: true, take: func(answer) error { return nil }})
}

func (c *Client) logoutPath() string {
	return "/status/user/" + url.PathEscape(c.o.User) + "/logout.json?auth=http"
}
