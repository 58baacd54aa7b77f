package flexi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"

	"github.com/rs/zerolog"
)

// inSession is a fake ERP and a client that logs in by a session, with its log.
func inSession(t *testing.T, change ...func(*flexi.Options)) (*flexitest.Server, *flexi.Client, *bytes.Buffer) {
	t.Helper()
	s := flexitest.New(flexitest.Options{Now: time.Now})
	t.Cleanup(s.Close)
	var log bytes.Buffer
	o := flexi.Options{URL: s.URL(), Company: "firma", User: "flexid", Password: "secret", Session: true, Dial: s.Dial,
		Rand: func() float64 { return 0 }, Log: zerolog.New(&log)}
	for _, f := range change {
		f(&o)
	}
	c, err := flexi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, c, &log
}

func look(t *testing.T, c *flexi.Client) error {
	t.Helper()
	_, err := c.List(t.Context(), flexi.Query{Evidence: evidence, Fields: []string{"id"}, Limit: 1, Lookup: true})
	return err
}

// Two callers never log in twice at once, and nothing but the login carries the password.
func TestSessionIsSharedByAllCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]int{}
		s, c, _ := inSession(t, func(o *flexi.Options) {
			o.Observe = func(r flexi.Request) {
				mu.Lock()
				defer mu.Unlock()
				seen[r.Kind]++
			}
		})
		s.Slow(time.Second) // so that all are there while one logs in
		var wg sync.WaitGroup
		for n := range 20 {
			wg.Go(func() {
				if err := look(t, c); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() { want(t, "write", do(t, c, fmt.Sprint(n), flexi.Create, invoice(n)), flexi.Accepted) })
		}
		wg.Wait()
		if s.Logins() != 1 || s.Sessions("flexid") != 1 || s.Count("write") != 20 || s.Count("") != 41 {
			t.Errorf("%d logins, %d sessions, %d writes, %d requests", s.Logins(), s.Sessions("flexid"), s.Count("write"), s.Count(""))
		}
		if seen["read"] != 1 || seen["lookup"] != 20 || seen["write"] != 20 {
			t.Errorf("observed %v: a login is a read", seen)
		}
		for _, r := range s.Requests() {
			if r.Header.Get("Authorization") != "" || (r.Header.Get("X-authSessionId") == "") != (r.Path == "/login-logout/login.json") {
				t.Errorf("%s %s carries %v", r.Method, r.Path, r.Header)
			}
		}
	})
}

func prepared(t *testing.T, n int) flexi.Prepared {
	t.Helper()
	p, err := flexi.Prepare(flexi.Write{Evidence: evidence, Op: flexi.Create, Docs: []flexi.Doc{invoice(n)}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A session that ends meanwhile costs a refused write a second send, and no second document.
func TestSessionThatEndsMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		end    func(*flexitest.Server)
		logins int // by password, with the first
	}{
		"by itself":                    {func(*flexitest.Server) { time.Sleep(31 * time.Minute) }, 1},
		"by a restart":                 {func(s *flexitest.Server) { s.EndSessions() }, 1},
		"by another password and back": {func(s *flexitest.Server) { s.SetPassword("other"); s.SetPassword("secret") }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, _ := inSession(t)
				if err := look(t, c); err != nil {
					t.Fatal(err)
				}
				tc.end(s)
				before := s.Count("")
				if err := look(t, c); err != nil {
					t.Fatal(err)
				}
				// refused, renewed (by token, then by password), asked again
				if n := s.Count("") - before; n != 2+tc.logins {
					t.Errorf("a read took %d requests", n)
				}
				var conns []*flexi.Conn // all with the session that ends
				for range 5 {
					cn, err := c.Dial(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					conns = append(conns, cn)
				}
				tc.end(s)
				var wg sync.WaitGroup
				for n := range 5 {
					wg.Go(func() {
						r := conns[n].Send(t.Context(), prepared(t, n), flexi.Permit{Attempt: fmt.Sprintf("%d/1", n), Claimed: time.Now()})
						want(t, "in an old session", r, flexi.Refused)
						if r.Refresh != flexi.RefreshUser {
							t.Errorf("nothing to refresh: %+v", r)
						}
						if err := c.EndUserContext(t.Context()); err != nil {
							t.Error(err)
						}
						want(t, "again", do(t, c, fmt.Sprintf("%d/2", n), flexi.Create, invoice(n)), flexi.Accepted)
					})
				}
				wg.Wait()
				if len(s.Records(evidence)) != 5 || s.Count("write") != 10 || s.Sessions("flexid") != 1 {
					t.Errorf("%d records, %d writes, %d sessions", len(s.Records(evidence)), s.Count("write"), s.Sessions("flexid"))
				}
				if s.Logins() > 1+2*(tc.logins-1) {
					t.Errorf("%d logins by password", s.Logins())
				}
			})
		})
	}
}

func TestStaleRoleInASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, _ := inSession(t)
		s.MakeStale("flexid")
		want(t, "stale", do(t, c, "a1", flexi.Create, invoice(1)), flexi.Refused)
		if err := c.EndUserContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, "after the logout", do(t, c, "a2", flexi.Create, invoice(1)), flexi.Accepted)
		if s.Logins() != 1 || s.Count("") != 4 {
			t.Errorf("%d logins, %d requests: the session of a user whose context ends stays open", s.Logins(), s.Count(""))
		}
	})
}

func TestKeepSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, _ := inSession(t)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { c.KeepSession(ctx) })
		time.Sleep(24 * time.Hour)
		if s.Count("") != 0 {
			t.Errorf("%d requests to keep a session that nobody opened", s.Count(""))
		}
		if err := look(t, c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		if n := s.Count(""); n > 2+24*6 || s.Sessions("flexid") != 1 {
			t.Errorf("%d requests in a day, %d sessions", n, s.Sessions("flexid"))
		}
		s.SetDown(true)
		time.Sleep(time.Hour)
		s.SetDown(false)
		if err := look(t, c); err != nil {
			t.Error("after an outage:", err)
		}
		cancel()
		wg.Wait()
		before := s.Count("")
		if err := c.Logout(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Logout(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Sessions("flexid") != 0 || s.Count("")-before != 1 {
			t.Errorf("%d sessions after %d requests", s.Sessions("flexid"), s.Count("")-before)
		}
	})
}

// A server that hangs does not hold up the stop for longer than the caller allows.
func TestLogoutHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, _ := inSession(t)
		if err := look(t, c); err != nil {
			t.Fatal(err)
		}
		s.Slow(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if err := c.Logout(ctx); err == nil || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// A wrong password blocks like a 401, is not tried by everybody at once, and stands in no error and no log.
func TestLoginRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const password = "tajne-heslo"
		s, c, log := inSession(t, func(o *flexi.Options) { o.Password = password })
		var wg sync.WaitGroup
		fail := func(err error) {
			var e *flexi.Error
			if !errors.As(err, &e) || e.Status != 401 || strings.Contains(err.Error(), password) {
				t.Errorf("%v", err)
			}
		}
		for range 50 {
			wg.Go(func() {
				err := look(t, c)
				fail(err)
				if flexi.OutcomeOf(err) != flexi.Blocked {
					t.Errorf("a read ends %s", flexi.OutcomeOf(err))
				}
			})
			wg.Go(func() {
				_, err := c.Dial(t.Context())
				fail(err)
				if flexi.OutcomeOf(err) != flexi.NotSent {
					t.Errorf("a write ends %s", flexi.OutcomeOf(err))
				}
			})
		}
		wg.Wait()
		if s.Logins() != 1 || s.Count("") != 1 || strings.Contains(log.String(), password) {
			t.Errorf("%d logins, %d requests; log %s", s.Logins(), s.Count(""), log)
		}
		s.SetPassword(password)
		time.Sleep(5 * time.Second)
		want(t, "with the password mended", do(t, c, "a1", flexi.Create, invoice(1)), flexi.Accepted)
	})
}

// What a login costs is asked of the quota too, and a quota that is used up opens no session.
func TestSessionAsksTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &counter{left: 2, asked: map[string]int{}, returned: map[string]int{}}
		s, c, _ := inSession(t, func(o *flexi.Options) { o.Quota = q })
		if err := look(t, c); err != nil {
			t.Fatal(err)
		}
		s.EndSessions()
		var quota *flexi.QuotaError
		if err := look(t, c); !errors.As(err, &quota) || flexi.OutcomeOf(err) != flexi.NotSent {
			t.Errorf("%v", err)
		}
		if s.Count("") != 2 || q.asked[flexi.KindLogin] != 1 {
			t.Errorf("%d requests, asked %v", s.Count(""), q.asked)
		}
	})
}
