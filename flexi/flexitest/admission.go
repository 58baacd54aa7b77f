package flexitest

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// limits are the numbers that this server holds its clients to; they need Server.mu.
type limits struct {
	body       int // bytes of a request
	address    int // characters of path and query
	day        int // requests a calendar day
	dayStatus  int
	dayOf      string
	used       int
	retryAfter string // of the limit of requests at once
	users      int    // every so many-th write meets too many users
	writes     int
	maintained time.Time // until then everything is 503
	patience   time.Duration
}

// LimitBodies answers requests of more bytes with a 413 of the box in front; 0 = no limit.
func (s *Server) LimitBodies(bytes int) {
	s.setMode(func(m *modes) { m.habits.limits.body = bytes })
}

// LimitAddresses answers longer addresses with a 414; 0 = no limit.
func (s *Server) LimitAddresses(characters int) {
	s.setMode(func(m *modes) { m.habits.limits.address = characters })
}

// LimitPerDay answers with status what comes after so many requests of a calendar day in the server's zone; 0 = no limit.
func (s *Server) LimitPerDay(requests, status int) {
	s.setMode(func(m *modes) {
		l := &m.habits.limits
		l.day, l.dayStatus, l.used, l.dayOf = requests, status, 0, ""
	})
}

// LimitAtOnce answers 429 to more requests than n at once, with this Retry-After; n 0 = no limit.
func (s *Server) LimitAtOnce(n int, retryAfter string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt.ConcurrencyLimit, s.modes.habits.limits.retryAfter = n, retryAfter
}

// LimitUsers refuses every n-th write with a 403, as when too many users are logged in just then; 0 = none.
func (s *Server) LimitUsers(n int) {
	s.setMode(func(m *modes) { m.habits.limits.users, m.habits.limits.writes = n, 0 })
}

// Maintain answers everything with a 503 in the ERP's own envelope for a while.
func (s *Server) Maintain(d time.Duration) {
	until := s.now().Add(d)
	s.setMode(func(m *modes) { m.habits.limits.maintained = until })
}

// ProxyPatience lets a proxy in front answer 504 to every write that takes longer, while the server works on; 0 = none.
func (s *Server) ProxyPatience(d time.Duration) {
	s.setMode(func(m *modes) { m.habits.limits.patience = d })
}

// admit is what stands before the server: a proxy's limits, maintenance, how much a client may ask. It needs Server.mu.
func (x *exchange) admit() *answer {
	s := x.s
	l := &s.modes.habits.limits
	refuse := func(a answer) *answer { return &a }
	switch {
	case l.body > 0 && len(x.body) > l.body:
		return refuse(page(http.StatusRequestEntityTooLarge, "413 Request Entity Too Large"))
	case l.address > 0 && len(x.r.URL.RequestURI()) > l.address:
		return refuse(page(http.StatusRequestURITooLong, "414 URI Too Long"))
	case s.now().Before(l.maintained):
		return refuse(message(http.StatusServiceUnavailable, "Probíhá údržba.", ""))
	case l.overDay(s.now().In(s.zone).Format(time.DateOnly)):
		return refuse(message(l.dayStatus, "Byl překročen denní limit požadavků na REST API.", ""))
	}
	if x.oneTooMany {
		return refuse(Fault{Kind: TooMany, RetryAfter: l.retryAfter}.answer())
	}
	return nil
}

func (l *limits) overDay(today string) bool {
	if l.day == 0 {
		return false
	}
	if l.dayOf != today {
		l.dayOf, l.used = today, 0
	}
	l.used++
	return l.used > l.day
}

// loginForm is what a server with a login page does with a request that does not ask for HTTP authentication by auth=http.
// It needs Server.mu.
func (x *exchange) loginForm() *answer {
	h := x.s.modes.habits
	if !h.has(LoginRedirect) && !h.has(LoginPage) {
		return nil
	}
	if x.r.URL.Query().Get("auth") == "http" || x.s.userOf(x.sessionID()) != "" {
		return nil
	}
	a := page(http.StatusOK, "Přihlášení")
	if h.has(LoginRedirect) {
		a = page(http.StatusFound, "Přihlášení")
		a.header = map[string]string{"Location": x.origin() + "/login-logout/login.html?returnUrl=" + x.r.URL.EscapedPath()}
	}
	return &a
}

// tooManyUsers needs Server.mu.
func (s *Server) tooManyUsers() bool {
	l := &s.modes.habits.limits
	if l.users == 0 {
		return false
	}
	l.writes++
	return l.writes%l.users == 0
}

// staleAnswer is how a stale role speaks; it needs Server.mu.
func (s *Server) staleAnswer() answer {
	words := s.modes.staleText
	switch {
	case s.modes.habits.has(StaleIs403):
		return message(http.StatusForbidden, words, "")
	case s.modes.habits.has(StaleIsError):
		return winstrom(http.StatusBadRequest, map[string]any{"success": "false", "stats": stats{}.render(1),
			"results": []any{map[string]any{"errors": []any{map[string]any{"message": words}}}}})
	}
	return message(http.StatusBadRequest, words, s.modes.staleCode)
}

// mayLogIn says whether the login may be written in this form.
func (x *exchange) mayLogIn() bool {
	json := strings.HasPrefix(strings.TrimSpace(string(x.body)), "{")
	return !(json && x.s.modes.habits.has(LoginFormOnly) || !json && x.s.modes.habits.has(LoginJSONOnly))
}

// workOn lets the proxy give up on a write: the answer comes when its patience is over, the work goes on. It says whether
// the proxy answered.
func (x *exchange) workOn() bool {
	x.s.mu.Lock()
	patience, slow := x.s.modes.habits.limits.patience, x.s.modes.slow
	x.s.mu.Unlock()
	if patience == 0 || x.kind != Write || slow <= patience {
		return false
	}
	later := Fault{Kind: LateCommit, Status: http.StatusGatewayTimeout, Delay: slow - patience}
	if !x.s.pause(context.Background(), patience) {
		x.abort()
		return true
	}
	x.commitLate(later)
	return true
}
