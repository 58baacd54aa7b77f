package flexitest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestFaultsAtTheWire sends one write into every fault, over a real socket and in memory, and compares what the client
// saw with what the books say.
func TestFaultsAtTheWire(t *testing.T) {
	tests := []struct {
		name   string
		fault  Fault
		status int // 0: no answer, or none that could be read whole
		body   string
		done   bool
		logged int // status in the log
	}{
		{"healthy", Fault{}, 201, `"created":"1"`, true, 201},
		{"refuse connection", Fault{Kind: RefuseConnection}, 0, "", false, -1},
		{"refuse connection, done", Fault{Kind: RefuseConnection, Done: true}, 0, "", true, 0},
		{"429", Fault{Kind: TooMany, RetryAfter: "7"}, 429, "", false, 429},
		{"429, done", Fault{Kind: TooMany, Done: true}, 429, "", true, 429},
		{"stale role", Fault{Kind: StaleRole}, 400, `"message"`, false, 400},
		{"401", Fault{Kind: Unauthorized}, 401, "authRequired", false, 401},
		{"401, done", Fault{Kind: Unauthorized, Done: true}, 401, "authRequired", true, 401},
		{"500", Fault{Kind: ServerError}, 500, "winstrom", false, 500},
		{"500, done", Fault{Kind: CommitThenStatus}, 500, "winstrom", true, 500},
		{"500 from a proxy", Fault{Kind: ServerError, Says: Page}, 500, "<html>", false, 500},
		{"502", Fault{Kind: ServerError, Status: 502}, 502, "<html>", false, 502},
		{"502, done", Fault{Kind: ServerError, Status: 502, Done: true}, 502, "<html>", true, 502},
		{"503", Fault{Kind: ServerError, Status: 503}, 503, "<html>", false, 503},
		{"503 of the ERP, done", Fault{Kind: ServerError, Status: 503, Says: Envelope, Done: true}, 503, "winstrom", true, 503},
		{"504", Fault{Kind: ServerError, Status: 504}, 504, "<html>", false, 504},
		{"504, done", Fault{Kind: CommitThenStatus, Status: 504}, 504, "<html>", true, 504},
		{"418 without a body", Fault{Kind: ServerError, Status: 418, Says: Nothing}, 418, "", false, 418},
		{"redirect", Fault{Kind: Redirect, Status: 307, Location: "/x"}, 307, "<html>", false, 307},
		{"reset before", Fault{Kind: ResetBefore}, 0, "", false, 0},
		{"reset before, done", Fault{Kind: ResetBefore, Done: true}, 0, "", true, 0},
		{"reset middle", Fault{Kind: ResetMiddle, Bytes: 20}, 0, "", false, 0},
		{"reset middle, done", Fault{Kind: ResetMiddle, Bytes: 20, Done: true}, 0, "", true, 0},
		{"reset answer", Fault{Kind: ResetAnswer}, 0, "", false, 0},
		{"reset after commit", Fault{Kind: ResetAfterCommit}, 0, "", true, 0},
		{"silence", Fault{Kind: Silence, Delay: time.Millisecond}, 0, "", false, 0},
		{"silence after commit", Fault{Kind: SilenceAfterCommit, Delay: time.Millisecond}, 0, "", true, 0},
		{"half answer", Fault{Kind: HalfAnswer}, 0, `{"winstrom"`, false, 201},
		{"half answer, done", Fault{Kind: HalfAnswer, Done: true, Bytes: 30}, 0, `{"winstrom"`, true, 201},
		{"html 200", Fault{Kind: HTML200}, 200, "<html>", false, 200},
		{"html 200, done", Fault{Kind: HTML200, Done: true}, 200, "<html>", true, 200},
		{"other document", Fault{Kind: OtherDocument}, 201, `"ext:OTHER:990000"`, false, 201},
		{"other document, done", Fault{Kind: OtherDocument, Done: true}, 201, `"ext:OTHER:990000"`, true, 201},
		{"slow body", Fault{Kind: SlowBody, Delay: time.Millisecond, Bytes: 50}, 201, `"created":"1"`, true, 201},
		{"response delay", Fault{Kind: ResponseDelay, Delay: time.Millisecond}, 201, `"created":"1"`, true, 201},
	}
	for _, over := range []string{"tcp", "memory", "tls"} {
		for _, tt := range tests {
			t.Run(over+"/"+tt.name, func(t *testing.T) {
				c := connect(t, over)
				c.s.Script(tt.fault)
				r := c.post("faktura-vydana", invoice("ext:S:1", "FV-1"))
				if got := r.status; r.err == nil && got != tt.status {
					t.Errorf("status %d, want %d", got, tt.status)
				}
				if (r.err != nil) != (tt.status == 0) {
					t.Errorf("error %v", r.err)
				}
				if !strings.Contains(string(r.body), tt.body) {
					t.Errorf("body %q does not hold %q", r.body, tt.body)
				}
				equal(t, "Retry-After", r.header.Get("Retry-After"), tt.fault.RetryAfter)
				checkBooks(t, c.s, tt.done, tt.logged)
				// The fault strikes once. The fence tells which of the two it was.
				if tt.fault.Kind == StaleRole {
					return
				}
				want := 201
				if tt.done {
					want = 400
				}
				equal(t, "the same again", c.post("faktura-vydana", invoice("ext:S:1", "FV-1")).status, want)
				equal(t, "commits in the end", c.s.Commits("ext:S:1"), 1)
			})
		}
	}
}

func connect(t *testing.T, over string) *client {
	t.Helper()
	if over == "memory" {
		return pipe(t, Options{})
	}
	s := New(Options{TLS: over == "tls", Now: fixedNow})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return newClient(t, s, &http.Transport{TLSClientConfig: trust(s)})
}

func checkBooks(t *testing.T, s *Server, done bool, logged int) {
	t.Helper()
	want := 0
	if done {
		want = 1
	}
	equal(t, "commits", s.Commits("ext:S:1"), want)
	equal(t, "records", len(s.Records("faktura-vydana")), want)
	reqs := s.Requests()
	if logged < 0 {
		equal(t, "requests", len(reqs), 0)
		return
	}
	equal(t, "requests", len(reqs), 1)
	equal(t, "logged status", reqs[0].Status, logged)
	equal(t, "logged commit", reqs[0].Committed, done)
	equal(t, "kind", reqs[0].Kind, Write)
}

func TestHalfAnswerWithoutLengthCannotBeSeen(t *testing.T) {
	c := pipe(t, Options{})
	c.s.Script(Fault{Kind: HalfAnswer, Done: true, Unbounded: true})
	r := c.post("faktura-vydana", invoice("ext:S:1", ""))
	equal(t, "transport's error", r.err, nil)
	equal(t, "status", r.status, 201)
	if r.root != nil || !strings.HasPrefix(string(r.body), `{"winstrom"`) {
		t.Errorf("want half an envelope, got %s", r.body)
	}
}

func TestLateCommit(t *testing.T) {
	for _, status := range []int{504, 0} {
		t.Run(fmt.Sprint("status ", status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := pipe(t, Options{Now: time.Now})
				c.s.Script(Fault{Kind: LateCommit, Status: status, Delay: 10 * time.Minute})
				began := time.Now()
				r := c.post("faktura-vydana", invoice("ext:S:1", ""))
				equal(t, "status", r.status, status)
				equal(t, "answered at once", time.Since(began), 0)
				equal(t, "pending", c.s.Pending(), 1)
				time.Sleep(10*time.Minute - time.Second)
				equal(t, "too early", len(c.list("faktura-vydana", "id='ext:S:1'", "")), 0)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				equal(t, "late", len(c.list("faktura-vydana", "id='ext:S:1'", "")), 1)
				equal(t, "logged", c.s.Requests()[0].Committed, true)
				equal(t, "pending", c.s.Pending(), 0)
			})
		})
	}
}

// TestLateCommitAgainstAResend: whichever of two commits comes first, the fence lets only one through.
func TestLateCommitAgainstAResend(t *testing.T) {
	for _, hold := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := pipe(t, Options{Now: time.Now})
			c.s.Script(Fault{Kind: LateCommit, Status: 504, Delay: time.Minute, HoldLock: hold})
			c.post("faktura-vydana", invoice("ext:S:1", ""))
			began := time.Now()
			r := c.post("faktura-vydana", invoice("ext:S:1", ""))
			if hold {
				equal(t, "resend waits for the locks of the first", time.Since(began), time.Minute)
				equal(t, "and is refused", r.status, 400)
			} else {
				equal(t, "resend overtakes", r.status, 201)
			}
			time.Sleep(2 * time.Minute)
			equal(t, "commits", c.s.Commits("ext:S:1"), 1)
		})
	}
}

func TestSilenceLastsUntilTheClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipe(t, Options{Now: time.Now})
		c.http.Timeout = time.Hour
		c.s.Script(Fault{Kind: SilenceAfterCommit})
		r := c.post("faktura-vydana", invoice("ext:S:1", ""))
		var ne net.Error
		if !errors.As(r.err, &ne) || !ne.Timeout() {
			t.Errorf("want a timeout, got %v", r.err)
		}
		synctest.Wait()
		equal(t, "duration", c.s.Requests()[0].Duration, time.Hour)
		equal(t, "commits", c.s.Commits("ext:S:1"), 1)
	})
}

func TestCloseEndsWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipe(t, Options{Now: time.Now})
		c.s.Script(Fault{Kind: Silence}, Fault{Kind: LateCommit, Status: 504, Delay: time.Hour})
		hung := make(chan reply, 1)
		go func() { hung <- c.post("faktura-vydana", invoice("ext:S:1", "")) }()
		synctest.Wait()
		c.post("faktura-vydana", invoice("ext:S:2", ""))
		began := time.Now()
		c.s.Close()
		c.s.Close()
		if r := <-hung; r.err == nil {
			t.Error("a hanging request was answered")
		}
		equal(t, "close took", time.Since(began), 0)
		equal(t, "late commit after close", c.s.Commits("ext:S:2"), 0)
		if _, err := c.s.Dial(t.Context(), "tcp", "x"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial after close: %v", err)
		}
	})
}

// TestResetIsAReset looks at the bare socket: an orderly end and a reset are different proofs for a client.
func TestResetIsAReset(t *testing.T) {
	c := connect(t, "tcp")
	for _, kind := range []FaultKind{ResetBefore, ResetAfterCommit} {
		c.s.Script(Fault{Kind: kind})
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.s.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		body := envelopeOf("faktura-vydana", invoice("", ""))
		_, _ = fmt.Fprintf(conn, "POST /c/firma/faktura-vydana.json HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ZmxleGlkOnNlY3JldA==\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err = bufio.NewReader(conn).ReadByte()
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v: read error %v, want a reset", Fault{Kind: kind}, err)
		}
		_ = conn.Close()
	}
	equal(t, "records", len(c.s.Records("faktura-vydana")), 1)
}

func TestReadFaults(t *testing.T) {
	c := pipe(t, Options{})
	c.must(c.post("faktura-vydana", invoice("ext:S:1", "")))
	c.s.ScriptReads(Fault{Kind: ServerError, Status: 503}, Fault{}, Fault{Kind: HalfAnswer}, Fault{Kind: HTML200})
	c.s.Script(Fault{Kind: TooMany}) // must wait for a write
	get := func() reply { return c.do(http.MethodGet, "/c/firma/faktura-vydana.json", "") }
	equal(t, "503", get().status, 503)
	equal(t, "healthy", get().status, 200)
	if r := get(); !errors.Is(r.err, io.ErrUnexpectedEOF) {
		t.Errorf("half: %v", r.err)
	}
	equal(t, "page", get().header.Get("Content-Type"), "text/html; charset=utf-8")
	equal(t, "metadata are not records", c.do(http.MethodGet, "/c/firma/faktura-vydana/properties.json", "").status, 200)
	equal(t, "the write's own", c.post("faktura-vydana", invoice("", "")).status, 429)
}
