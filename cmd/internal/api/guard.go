package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// hostGuard answers requests that name a host we do not go by. A page on the internet can let its own name point at
// 127.0.0.1 (DNS rebinding) and would then speak to us with the rights of the browser's machine; it always speaks to a
// name of its own, so an address as host is safe.
func (s *Server) hostGuard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := hostOf(r.Host); !s.known(host) {
			newProblem(http.StatusMisdirectedRequest, "this daemon does not go by the name "+host,
				"add the name to FLEXID_HTTP_HOSTS if it is meant").write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func hostOf(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

func (s *Server) known(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	own := hostOf(s.o.Addr)
	return host == "localhost" || own != "" && host == own ||
		slices.ContainsFunc(s.o.Hosts, func(h string) bool { return hostOf(h) == host })
}

// tokenGuard compares digests in constant time: neither length nor prefix of the token shows in how long a no takes.
func (s *Server) tokenGuard(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(s.o.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(token)))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			newProblem(http.StatusUnauthorized, "the token is missing or wrong",
				"send Authorization: Bearer with FLEXID_API_TOKEN, else with the content of admin.token in the state directory").write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}
