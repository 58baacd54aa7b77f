package flexitest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"time"
)

// session is a login by JSON or form. Requests with HTTP authentication make none.
type session struct {
	user string
	used time.Time
}

// signIn opens a session. Clients send JSON or a form; here the booleans of the answer are real ones.
func (s *Server) signIn(x *exchange) answer {
	if x.r.Method != http.MethodPost {
		return message(http.StatusMethodNotAllowed, "Metoda není povolena.", "")
	}
	var in struct{ Username, Password string }
	if json.Unmarshal(x.body, &in) != nil {
		if form, err := url.ParseQuery(string(x.body)); err == nil {
			in.Username, in.Password = form.Get("username"), form.Get("password")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins++
	if !x.mayLogIn() {
		return notSignedIn("Přihlašovací údaje chybí.")
	}
	if want, ok := s.users[in.Username]; !ok || want != in.Password {
		return notSignedIn("Chybné uživatelské jméno nebo heslo.")
	}
	return s.open(in.Username)
}

// renew opens a session by the refresh token of an older one.
func (s *Server) renew(x *exchange) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	cookie, err := x.r.Cookie("refreshToken")
	if err != nil || s.refresh[cookie.Value] == "" {
		return notSignedIn("Přihlášení vypršelo.")
	}
	user := s.refresh[cookie.Value]
	delete(s.refresh, cookie.Value)
	return s.open(user)
}

func notSignedIn(why string) answer {
	return jsonAnswer(http.StatusUnauthorized, map[string]any{"success": false, "errors": map[string]any{"reason": why}})
}

// open needs mu.
func (s *Server) open(user string) answer {
	id, refresh := s.newUUID(), s.newUUID()
	s.sessions[id] = &session{user: user, used: s.now()}
	s.refresh[refresh] = user
	return jsonAnswer(http.StatusOK, map[string]any{
		"success": true, "authSessionId": id, "refreshToken": refresh, "csrfToken": s.newUUID(),
	})
}

// userOf needs mu. It is whose session this is, and a sign of life for it; "" = nobody's, or it has ended.
func (s *Server) userOf(id string) string {
	in := s.sessions[id]
	if in == nil {
		return ""
	}
	now := s.now()
	if now.Sub(in.used) >= s.opt.SessionIdle {
		delete(s.sessions, id)
		return ""
	}
	in.used = now
	return in.user
}

// endSessions needs mu.
func (s *Server) endSessions(user string) {
	maps.DeleteFunc(s.sessions, func(_ string, in *session) bool { return in.user == user })
	maps.DeleteFunc(s.refresh, func(_, owner string) bool { return owner == user })
}

// logout ends the sessions of a user and what is cached about him; with a company only what is cached for that.
func (s *Server) logout(x *exchange) answer {
	if x.r.Method != http.MethodPost && x.r.Method != http.MethodPut {
		return message(http.StatusMethodNotAllowed, "Metoda není povolena.", "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stale, x.rt.arg)
	if x.r.URL.Query().Get("company") == "" {
		s.endSessions(x.rt.arg)
	}
	return done(x)
}

// Sessions is how many sessions a user has open.
func (s *Server) Sessions(user string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, in := range s.sessions {
		if in.user == user && s.now().Sub(in.used) < s.opt.SessionIdle {
			n++
		}
	}
	return n
}

// EndSessions ends all sessions, as a restart of the server does; refresh tokens stay good.
func (s *Server) EndSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// Logins is how often somebody tried to log in by JSON or form.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}
