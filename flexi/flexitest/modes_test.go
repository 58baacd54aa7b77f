package flexitest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func trust(s *Server) *tls.Config {
	if s.Certificate() == nil {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &tls.Config{RootCAs: pool}
}

func TestLogin(t *testing.T) {
	c := pipe(t, Options{})
	read := func() int { return c.do(http.MethodGet, "/c/firma/adresar.json", "").status }
	equal(t, "right", read(), 200)
	c.pass = "wrong"
	r := c.do(http.MethodGet, "/c/firma/adresar.json", "")
	equal(t, "wrong", r.status, 401)
	equal(t, "mark", r.text("message@messageCode"), "authRequired")
	if !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Basic") {
		t.Error("no WWW-Authenticate")
	}
	c.s.SetPassword("wrong")
	equal(t, "changed", read(), 200)
	c.s.AddUser("eva", "heslo")
	c.user, c.pass = "eva", "heslo"
	equal(t, "other user", read(), 200)
	c.user = ""
	equal(t, "nobody", read(), 401)
	equal(t, "health needs no login", c.do(http.MethodGet, "/status-check.json", "").status, 200)
}

func TestSession(t *testing.T) {
	c := pipe(t, Options{})
	c.user = ""
	for _, body := range []string{`{"username":"flexid","password":"secret"}`, "username=flexid&password=secret"} {
		r := c.do(http.MethodPost, "/login-logout/login.json", body)
		equal(t, "login", r.status, 200)
		_, id, _ := strings.Cut(string(r.body), `"authSessionId":"`)
		id, _, _ = strings.Cut(id, `"`)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.s.URL()+"/status.json", nil)
		req.Header.Set("X-authSessionId", id)
		equal(t, "header", c.send(req).status, 200)
		req.Header.Del("X-authSessionId")
		req.AddCookie(&http.Cookie{Name: "authSessionId", Value: id})
		equal(t, "cookie", c.send(req).status, 200)
		equal(t, "query", c.do(http.MethodGet, "/c.json?authSessionId="+id, "").status, 200)
		equal(t, "logout", c.do(http.MethodPost, "/status/user/flexid/logout.json?authSessionId="+id, "").status, 200)
		equal(t, "over", c.do(http.MethodGet, "/c.json?authSessionId="+id, "").status, 401)
	}
	r := c.do(http.MethodPost, "/login-logout/login.json", `{"username":"flexid","password":"x"}`)
	equal(t, "wrong password", strings.Contains(string(r.body), `"success":false`), true)
	equal(t, "logins", c.s.Logins(), 3)
	for _, q := range c.s.Requests() {
		if strings.Contains(string(q.Body), "secret") {
			t.Error("a password in the log")
		}
	}
}

// A session ends by itself, by a restart and by another password; its refresh token outlives the first two.
func TestSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipe(t, Options{Now: time.Now})
		c.user = ""
		var id, refresh string
		open := func(method, path string) int {
			req, _ := http.NewRequestWithContext(t.Context(), method, c.s.URL()+path, strings.NewReader(`{"username":"flexid","password":"secret"}`))
			req.AddCookie(&http.Cookie{Name: "refreshToken", Value: refresh})
			r := c.send(req)
			if r.status == 200 {
				_, rest, _ := strings.Cut(string(r.body), `"authSessionId":"`)
				id, _, _ = strings.Cut(rest, `"`)
				_, rest, _ = strings.Cut(string(r.body), `"refreshToken":"`)
				refresh, _, _ = strings.Cut(rest, `"`)
			}
			return r.status
		}
		login := func() int { return open(http.MethodPost, "/login-logout/login.json") }
		renew := func() int { return open(http.MethodGet, "/login-logout/check.json") }
		read := func() int { return c.do(http.MethodGet, "/c.json?authSessionId="+id, "").status }

		equal(t, "login", login(), 200)
		for range 3 {
			time.Sleep(29 * time.Minute)
			equal(t, "kept", c.do(http.MethodGet, "/login-logout/session-keep-alive.js?authSessionId="+id, "").status, 200)
		}
		time.Sleep(30 * time.Minute)
		equal(t, "idle", read(), 401)
		equal(t, "sessions", c.s.Sessions("flexid"), 0)
		old := refresh
		equal(t, "renewed", renew(), 200)
		equal(t, "in the new one", read(), 200)
		refresh = old
		equal(t, "a token is good once", renew(), 401)
		equal(t, "login again", login(), 200)
		c.s.EndSessions()
		equal(t, "restarted", read(), 401)
		equal(t, "renewed after it", renew(), 200)
		equal(t, "company left", c.do(http.MethodPost, "/status/user/flexid/logout.json?company=firma&authSessionId="+id, "").status, 200)
		equal(t, "still in", read(), 200)
		c.s.SetPassword("other")
		equal(t, "another password", read(), 401)
		equal(t, "and no way back", renew(), 401)
	})
}

func TestStaleRoleLastsUntilLogout(t *testing.T) {
	c := pipe(t, Options{})
	c.s.AddUser("eva", "heslo")
	c.s.Script(Fault{Kind: StaleRole})
	for range 3 {
		r := c.post("faktura-vydana", invoice("ext:S:1", ""))
		equal(t, "status", r.status, 400)
		equal(t, "bare message", r.text("message") != "" && r.root["results"] == nil, true)
	}
	equal(t, "reads go on", c.do(http.MethodGet, "/c/firma/faktura-vydana.json", "").status, 200)
	other := *c
	other.user, other.pass = "eva", "heslo"
	equal(t, "another user", other.post("faktura-vydana", invoice("ext:S:2", "")).status, 201)
	equal(t, "logout of another", c.do(http.MethodPost, "/status/user/eva/logout.json", "").status, 200)
	equal(t, "still stale", c.post("faktura-vydana", invoice("ext:S:1", "")).status, 400)
	equal(t, "logout", c.do(http.MethodPost, "/status/user/flexid/logout.json", "").status, 200)
	equal(t, "fresh", c.post("faktura-vydana", invoice("ext:S:1", "")).status, 201)
}

func TestLicenceAndRights(t *testing.T) {
	c := pipe(t, Options{})
	read := func() int { return c.do(http.MethodGet, "/c/firma/faktura-vydana.json", "").status }
	write := func() int { return c.post("faktura-vydana", invoice("", "")).status }
	c.s.SetLicence(false)
	equal(t, "write without licence", write(), 402)
	equal(t, "read without licence", read(), 404)
	c.s.SetLicence(true)
	c.s.SetRight("faktura-vydana", false)
	equal(t, "write without right", write(), 403)
	equal(t, "read without right", read(), 403)
	equal(t, "through another address", c.do(http.MethodPost, "/c/firma/adresar.json", envelopeOf("faktura-vydana", invoice("", ""))).status, 403)
	equal(t, "other evidence", c.do(http.MethodGet, "/c/firma/adresar.json", "").status, 200)
	c.s.SetRight("faktura-vydana", true)
	equal(t, "given back", write(), 201)
	equal(t, "records", len(c.s.Records("faktura-vydana")), 1)
}

func TestLies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipe(t, Options{Now: time.Now})
		fill(c, 2)
		c.must(c.post("faktura-vydana", `"id":"1","popis":"old"`))
		time.Sleep(time.Hour)
		fill := c.post("faktura-vydana", `"id":"ext:S:3","kod":"F003","varSym":"3","typDokl":"code:FAKTURA","datVyst":"2026-01-01"`)
		c.must(fill)
		c.must(c.post("faktura-vydana", `"id":"1","popis":"new"`))
		look := "id='ext:S:1' or id='ext:S:3' or id=2"
		seen := func() string {
			var out []string
			for _, r := range c.list("faktura-vydana", look, "limit=0&order=id@A&detail=custom:popis") {
				out = append(out, fmt.Sprint(r["id"], r["popis"]))
			}
			return strings.Join(out, " ")
		}
		bulk := func() int {
			r := c.do(http.MethodPost, "/c/firma/faktura-vydana/get.json", `{"winstrom":{"id":["ext:S:1","2"]}}`)
			return len(r.records("faktura-vydana"))
		}
		equal(t, "honest", seen(), "1new 2 3")
		c.s.LookLies(LostRights, 0)
		equal(t, "rights lost", seen(), "")
		equal(t, "detail", c.do(http.MethodGet, "/c/firma/faktura-vydana/1.json", "").status, 404)
		c.s.LookLies(OnlySome, 0)
		equal(t, "only some", seen(), "2")
		c.s.LookLies(Stale, time.Minute)
		equal(t, "stale", seen(), "1old 2")
		c.s.LookLies(LoseControl, 0)
		equal(t, "control missing", seen(), "1new 3")
		equal(t, "control missing, bulk", bulk(), 1)
		c.s.LookLies(Honest, 0)
		equal(t, "bulk", bulk(), 2)
		c.s.HideWhen(func(r Record) bool { return r.Number == "F003" })
		equal(t, "hidden", seen(), "1new 2")
		c.s.HideWhen(nil)
		equal(t, "truth", len(c.s.Records("faktura-vydana")), 3)
	})
}

func TestBrokenFences(t *testing.T) {
	c := pipe(t, Options{AllowUsedNumbers: true})
	c.must(c.post("faktura-vydana", invoice("ext:S:1", "FV-1")))
	c.s.IgnoreFence(true)
	r := c.post("faktura-vydana", invoice("ext:S:1", "FV-1"))
	equal(t, "a create answered as an update", r.stat("updated"), "1")
	c.s.IgnoreFence(false)
	equal(t, "fence again", c.post("faktura-vydana", invoice("ext:S:1", "FV-1")).status, 400)

	c.s.DropExternalIDs(true)
	for range 2 {
		c.must(c.post("faktura-vydana", invoice("ext:S:2", "FV-2")))
	}
	equal(t, "found by it", len(c.s.Find("faktura-vydana", "ext:S:2")), 0)
	equal(t, "commits are known nevertheless", c.s.Commits("ext:S:2"), 2)
}

func TestDown(t *testing.T) {
	c := connect(t, "tcp")
	read := func() reply { return c.do(http.MethodGet, "/c/firma/adresar.json", "") }
	equal(t, "up", read().status, 200)
	url := c.s.URL()
	c.s.SetDown(true)
	if r := read(); r.err == nil {
		t.Error("answered while down")
	}
	if r := read(); !errors.Is(r.err, syscall.ECONNREFUSED) {
		t.Errorf("a closed port refuses, got %v", r.err)
	}
	if _, err := c.s.Dial(t.Context(), "tcp", "x"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("in memory: %v", err)
	}
	c.s.SetDown(false)
	equal(t, "same address", c.s.URL(), url)
	equal(t, "up again", read().status, 200)
}

func TestDownForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipe(t, Options{Now: time.Now})
		read := func() reply { return c.do(http.MethodGet, "/c/firma/adresar.json", "") }
		c.s.Slow(3 * time.Second)
		began := time.Now()
		equal(t, "slow", read().status, 200)
		equal(t, "took", time.Since(began), 3*time.Second)
		c.s.DownFor(time.Minute)
		if r := read(); r.err == nil {
			t.Error("answered while down")
		}
		time.Sleep(61 * time.Second)
		equal(t, "up again", read().status, 200)
	})
}

// TestSlowDocuments: a request takes its time and each of its documents takes some more, as a transaction does.
func TestSlowDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipe(t, Options{Now: time.Now})
		c.s.Slow(100 * time.Millisecond)
		c.s.SlowDocuments(2 * time.Millisecond)
		took := func(ask func() reply) time.Duration {
			began := time.Now()
			if r := ask(); r.err != nil || r.status > 201 {
				t.Errorf("%d %v", r.status, r.err)
			}
			return time.Since(began)
		}
		equal(t, "one", took(func() reply { return c.post("faktura-vydana", invoice("ext:S:1", "")) }), 102*time.Millisecond)
		three := took(func() reply {
			return c.post("faktura-vydana", invoice("ext:S:2", ""), invoice("ext:S:3", ""), invoice("ext:S:4", ""))
		})
		equal(t, "three", three, 106*time.Millisecond)
		equal(t, "a read", took(func() reply { return c.do(http.MethodGet, "/c/firma/adresar.json", "") }), 100*time.Millisecond)
	})
}

// TestSlowServerWorksOnAfterTheClientLeft is the danger that all of flexid is about.
func TestSlowServerWorksOnAfterTheClientLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipe(t, Options{Now: time.Now})
		c.http.Timeout = time.Second
		c.s.Slow(time.Minute)
		if r := c.post("faktura-vydana", invoice("ext:S:1", "")); r.err == nil {
			t.Error("no timeout")
		}
		equal(t, "not yet", c.s.Commits("ext:S:1"), 0)
		time.Sleep(2 * time.Minute)
		equal(t, "committed", c.s.Commits("ext:S:1"), 1)
	})
}

func TestConcurrencyLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipe(t, Options{ConcurrencyLimit: 2, Now: time.Now})
		c.s.Script(Fault{Kind: ResponseDelay, Delay: time.Minute}, Fault{Kind: ResponseDelay, Delay: time.Minute})
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() { c.post("faktura-vydana", invoice(fmt.Sprint("ext:S:", i), "")) })
		}
		synctest.Wait()
		equal(t, "third at once", c.post("faktura-vydana", invoice("", "")).status, 429)
		wg.Wait()
		equal(t, "later", c.post("faktura-vydana", invoice("", "")).status, 201)
	})
}

func TestBackupAndRestore(t *testing.T) {
	c := pipe(t, Options{})
	c.must(c.post("faktura-vydana", invoice("ext:S:1", "")))
	backup, version := c.s.Snapshot(), c.s.GlobalVersion()
	id := c.must(c.post("faktura-vydana", invoice("ext:S:2", "")))
	c.must(c.post("faktura-vydana", `"id":"1","popis":"later"`))
	c.s.Restore(backup)
	equal(t, "records", len(c.s.Records("faktura-vydana")), 1)
	equal(t, "content", c.s.Records("faktura-vydana")[0].Fields["popis"], nil)
	equal(t, "version fell", c.s.GlobalVersion(), version)
	equal(t, "external id is free", c.must(c.post("faktura-vydana", invoice("ext:S:2", ""))), id)
	equal(t, "commits stay", c.s.Commits("ext:S:2"), 2)
	c.s.Restore(backup)
	equal(t, "twice", len(c.s.Records("faktura-vydana")), 1)
}

func TestRestoreUnseen(t *testing.T) {
	c := pipe(t, Options{})
	backup := c.s.Snapshot()
	id := c.must(c.post("faktura-vydana", invoice("ext:S:1", "")))
	version := c.s.GlobalVersion()
	c.s.RestoreUnseen(backup)
	equal(t, "records", len(c.s.Records("faktura-vydana")), 0)
	equal(t, "version stays", c.s.GlobalVersion(), version)
	stranger := c.s.Type("faktura-vydana", map[string]any{"kod": "CIZI", "varSym": "1", "typDokl": "code:FAKTURA"})
	equal(t, "id is given again", fmt.Sprint(stranger), id)
	equal(t, "version rises", c.s.GlobalVersion() > version, true)
}

func TestAPerson(t *testing.T) {
	c := pipe(t, Options{})
	id := c.s.Type("faktura-vydana", map[string]any{
		"kod": "FV-1", "varSym": "1", "typDokl": "code:FAKTURA",
		"polozkyFaktury": []map[string]any{{"nazev": "x", "cenaMj": 10}},
	})
	equal(t, "typed", c.s.Find("faktura-vydana", "code:FV-1")[0].ID, id)
	equal(t, "refused", c.s.Type("faktura-vydana", map[string]any{"kod": "FV-1", "varSym": "1", "typDokl": "code:FAKTURA"}), 0)
	equal(t, "no such evidence", c.s.Type("neni", nil), 0)
	equal(t, "edited", c.s.Edit("faktura-vydana", id, map[string]any{"popis": "ručně"}), true)
	equal(t, "shown", c.list("faktura-vydana", "kod='FV-1'", "")[0]["popis"], any("ručně"))
	equal(t, "locked", c.s.Lock("faktura-vydana", id), true)
	equal(t, "edit of a locked one", c.s.Edit("faktura-vydana", id, map[string]any{"popis": "x"}), false)
	equal(t, "removal of a locked one", c.s.Remove("faktura-vydana", id), false)
	equal(t, "removal of nothing", c.s.Remove("faktura-vydana", 999), false)
	equal(t, "the log knows no person", c.s.Count(Write), 0)
	other := c.s.Type("adresar", map[string]any{"nazev": "Nový"})
	equal(t, "removed", c.s.Remove("adresar", other), true)
}

func TestRefusedConnections(t *testing.T) {
	c := connect(t, "tcp")
	c.s.RefuseConnections(1)
	// The reset may arrive before dialling is over.
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.s.URL(), "http://"))
	if err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("want a reset, got %v", err)
	}
	equal(t, "the next one", c.do(http.MethodGet, "/c.json", "").status, 200)
	c.s.ScriptReads(Fault{Kind: RefuseConnection})
	c.http.CloseIdleConnections()
	equal(t, "requests so far", c.s.Count(""), 1)
	_ = c.do(http.MethodPost, "/c/firma/faktura-vydana/query.json", `{"winstrom":{}}`)
	equal(t, "nothing of it arrived", c.s.Count(Read), 0)
}

func TestStartIsForOnce(t *testing.T) {
	s := New(Options{})
	equal(t, "before", s.URL(), "http://flexi.test:5434")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if s.Start() == nil {
		t.Error("started twice")
	}
	s.Close()
	if s.Start() == nil {
		t.Error("started after close")
	}
	taken := New(Options{Addr: "127.0.0.1:-1"})
	defer taken.Close()
	if taken.Start() == nil {
		t.Error("started on no port")
	}
	equal(t, "certificate without TLS", s.Certificate(), nil)
}

// TestTLSInMemory: the certificate fits both the name that Dial is known by and the loopback address.
func TestTLSInMemory(t *testing.T) {
	s := New(Options{TLS: true, Now: fixedNow})
	c := newClient(t, s, &http.Transport{DialContext: s.Dial, TLSClientConfig: trust(s)})
	equal(t, "address", s.URL(), "https://flexi.test:5434")
	equal(t, "status", c.do(http.MethodGet, "/c.json", "").status, 200)
	stranger := newClient(t, s, &http.Transport{DialContext: s.Dial})
	var unknown x509.UnknownAuthorityError
	if r := stranger.do(http.MethodGet, "/c.json", ""); !errors.As(r.err, &unknown) {
		t.Errorf("a client that does not know the certificate: %v", r.err)
	}
	c.s.MakeStale("flexid")
	equal(t, "stale", c.post("faktura-vydana", invoice("", "")).status, 400)
}
