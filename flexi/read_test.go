package flexi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

const emptyList = `{"winstrom":{"@version":"1.0","@rowCount":"0","banka":[]}}`

func TestListOnTheWire(t *testing.T) {
	s := startRaw(t, answering(200, "", `{"winstrom":{"@version":"1.0","@rowCount":"2","@globalVersion":"77","banka":[{"id":"1"},{"id":2}]}}`))
	var seen []Request
	c := testClient(t, s.url(), func(o *Options) { o.Observe = func(r Request) { seen = append(seen, r) } })
	page, err := c.List(t.Context(), Query{Evidence: "banka", Filter: Eq("kod", "B'1"), Fields: []string{"kod", "polozkyIntDokladu(kod,nazev)"},
		Relations: []string{"polozky"}, Order: "id@D", Lookup: true, GlobalVersion: true})
	if err != nil || len(page.Records) != 2 || page.RowCount != 2 || page.GlobalVersion != 77 || page.Records[1].ID() != "2" {
		t.Fatalf("%+v, %v", page, err)
	}
	_, bytes, reqs := s.seen()
	if len(reqs) != 1 || !strings.HasPrefix(reqs[0].head, "POST /c/demo/banka/query.json?auth=http&limit=0&start=0&add-row-count=true&add-global-version=true HTTP/1.1\r\n") ||
		reqs[0].header("Cache-Control") != "no-cache" || reqs[0].header("Connection") != "close" {
		t.Fatalf("requests: %+v", reqs)
	}
	want := `{"winstrom":{"@version":"1.0","add-global-version":"true","add-row-count":"true",` +
		`"detail":"custom:kod,polozkyIntDokladu(kod,nazev)","filter":"(kod=\"B'1\")","limit":"0","order":["id@D"],"relations":"polozky","start":"0"}}`
	if string(reqs[0].body) != want {
		t.Errorf("body %s\nwant %s", reqs[0].body, want)
	}
	if len(seen) != 1 || seen[0].Kind != "lookup" || seen[0].Outcome != "ok" || seen[0].Sent != bytes {
		t.Errorf("observed %+v of %d bytes", seen, bytes)
	}
}

func TestListAnswers(t *testing.T) {
	list := func(rest string) string { return `{"winstrom":{"@version":"1.0",` + rest + `}}` }
	cases := []struct {
		name, body string
		q          Query
		rows       int // -1 = an error
	}{
		{"empty", emptyList, Query{}, 0},
		{"no list, count zero", list(`"@rowCount":"0"`), Query{}, 0},
		{"no list, no count", list(`"x":1`), Query{}, -1},
		{"no list, count one", list(`"@rowCount":"1"`), Query{}, -1},
		{"list of another evidence", list(`"@rowCount":"1","pokladna":[{"id":"1"}]`), Query{}, -1},
		{"no count", list(`"banka":[{"id":"1"}]`), Query{}, 1},
		{"count is no number", list(`"@rowCount":"many","banka":[]`), Query{}, -1},
		{"native count", list(`"@rowCount":1,"banka":{"id":1}`), Query{}, 1},
		{"more counted than sent", list(`"@rowCount":"2","banka":[{"id":"1"}]`), Query{}, -1},
		{"fewer counted than sent", list(`"@rowCount":"0","banka":[{"id":"1"}]`), Query{}, -1},
		{"more counted, but a limit was set", list(`"@rowCount":"2","banka":[{"id":"1"}]`), Query{Limit: 1}, 1},
		{"count from a start", list(`"@rowCount":"3","banka":[{"id":"1"}]`), Query{Start: 2}, 1},
		{"start beyond the end", list(`"@rowCount":"3","banka":[]`), Query{Start: 9}, 0},
		{"a row that is no record", list(`"@rowCount":"1","banka":["x"]`), Query{}, -1},
		{"failure behind a 200", list(`"success":"false","message":"m","@rowCount":"0","banka":[]`), Query{}, -1},
		{"page", htmlBody, Query{}, -1},
		{"nothing", "", Query{}, -1},
		{"half", emptyList[:40], Query{}, -1},
		{"list as winstrom", `{"winstrom":[]}`, Query{}, -1},
		{"byte order mark", bom + emptyList, Query{}, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := startRaw(t, answering(200, "", tc.body))
			tc.q.Evidence = "banka"
			page, err := testClient(t, s.url()).List(t.Context(), tc.q)
			if tc.rows < 0 {
				if e := asError(t, err); e.MaybeCommitted() || e.Status != 200 {
					t.Errorf("%v is %s", err, e.Outcome)
				}
				return
			}
			if err != nil || len(page.Records) != tc.rows {
				t.Errorf("%+v, %v", page, err)
			}
		})
	}
}

// counted answers with one status after the other; the last one stays.
func counted(s *atomic.Int64, answers ...func(*rawConn)) func(*rawConn) {
	return func(c *rawConn) { answers[min(int(s.Add(1))-1, len(answers)-1)](c) }
}

// The count at the server, not the result, says what a read did.
func TestReadRetries(t *testing.T) {
	ok := answering(200, "", emptyList)
	fail := func(status int) func(*rawConn) { return answering(status, "", "") }
	cases := []struct {
		name    string
		answers []func(*rawConn)
		sends   int64
		outcome Outcome
	}{
		{"at once", []func(*rawConn){ok}, 1, Accepted},
		{"503, then well", []func(*rawConn){fail(503), ok}, 2, Accepted},
		{"500 502 504, then well", []func(*rawConn){fail(500), fail(502), fail(504), ok}, 4, Accepted},
		{"500 for ever", []func(*rawConn){fail(500)}, 4, Refused},
		{"429 for ever", []func(*rawConn){fail(429)}, 10, Refused},
		{"429 twice, 503 thrice, then well", []func(*rawConn){fail(429), fail(503), fail(429), fail(503), fail(503), ok}, 6, Accepted},
		{"408", []func(*rawConn){fail(408), ok}, 2, Accepted},
		{"half an answer", []func(*rawConn){func(c *rawConn) { _, _ = c.request(); _, _ = c.Write([]byte("HTTP/1.1 2")); c.hangUp() }, ok}, 2, Accepted},
		{"reset", []func(*rawConn){func(c *rawConn) { _, _ = c.request(); c.reset() }, ok}, 2, Accepted},
		{"page behind a 200", []func(*rawConn){answering(200, "", htmlBody), ok}, 2, Accepted},
		{"400", []func(*rawConn){fail(400)}, 1, Rejected},
		{"401", []func(*rawConn){fail(401)}, 1, Blocked},
		{"402", []func(*rawConn){fail(402)}, 1, Blocked},
		{"403", []func(*rawConn){fail(403)}, 1, Blocked},
		{"404", []func(*rawConn){fail(404)}, 1, Blocked},
		{"501", []func(*rawConn){fail(501)}, 1, Refused},
		{"505", []func(*rawConn){fail(505)}, 1, Refused},
		{"redirect", []func(*rawConn){answering(302, "Location: /login\r\n", "")}, 1, Rejected},
		{"304", []func(*rawConn){fail(304)}, 1, Rejected},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var n atomic.Int64
			s := startRaw(t, counted(&n, tc.answers...))
			seen := 0
			c := testClient(t, s.url(), func(o *Options) { o.Observe = func(Request) { seen++ } })
			_, err := c.List(t.Context(), Query{Evidence: "banka"})
			if OutcomeOf(err) != tc.outcome {
				t.Errorf("%s: %v", OutcomeOf(err), err)
			}
			if n.Load() != tc.sends || int64(seen) != tc.sends {
				t.Errorf("%d requests at the server, %d observed, want %d", n.Load(), seen, tc.sends)
			}
		})
	}
}

// In virtual time: waits are within their bounds, and a wait that does not fit into the deadline is not begun.
func TestReadWaits(t *testing.T) {
	most := func(o *Options) { o.Rand = func() float64 { return 0.999999 } }
	run := func(t *testing.T, handle func(*rawConn), more ...func(*Options)) (took time.Duration, sends int64, err error) {
		var n atomic.Int64
		_, dial := pipes(counted(&n, handle))
		c := testClient(t, "http://erp.test", append(more, dial, most)...)
		start := time.Now()
		_, err = c.List(t.Context(), Query{Evidence: "banka"})
		return time.Since(start).Round(time.Millisecond), n.Load(), err
	}
	t.Run("backoff", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if took, n, _ := run(t, answering(503, "", "")); took != 1400*time.Millisecond || n != 4 {
				t.Errorf("%d tries in %s", n, took)
			}
		})
	})
	t.Run("Retry-After with jitter on top", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			took, n, err := run(t, answering(429, "Retry-After: 2\r\n", ""), func(o *Options) { o.ReadTimeout = 30 * time.Second })
			// 2 s each time, and on top 1, 2, 4, 8, 16 s: the next wait would be 32 s of the last 19.
			if took.Round(100*time.Millisecond) != 41100*time.Millisecond || n != 6 || !errors.As(err, new(*ThrottledError)) {
				t.Errorf("%d tries in %s: %v", n, took, err)
			}
		})
	})
	t.Run("a wait beyond the deadline is not begun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if took, n, err := run(t, answering(429, "Retry-After: 60\r\n", "")); took != 0 || n != 1 || OutcomeOf(err) != Refused {
				t.Errorf("%d tries in %s: %v", n, took, err)
			}
		})
	})
	t.Run("silence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			took, n, err := run(t, func(c *rawConn) { _, _ = io.Copy(io.Discard, c) }, func(o *Options) { o.ReadTimeout = 30 * time.Second })
			if n != 2 || took < 60*time.Second || took > 61*time.Second || OutcomeOf(err) != Refused {
				t.Errorf("%d tries in %s: %v", n, took, err)
			}
		})
	})
}

// A server that fails for long is not asked four times by everyone: the bucket runs dry.
func TestReadBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		_, dial := pipes(counted(&n, answering(503, "", "")))
		c := testClient(t, "http://erp.test", dial)
		begun := time.Now()
		for range 100 {
			if _, err := c.List(t.Context(), Query{Evidence: "banka"}); err == nil {
				t.Fatal("no error")
			}
		}
		paid := int64(time.Since(begun) / (10 * time.Second)) // by time
		if got, left := n.Load(), c.budget.Reads.Tokens(time.Now()); got != 100+10+paid || left >= 1 {
			t.Errorf("%d requests for 100 reads, %d retries paid by time, %v tokens left", got, paid, left)
		}
	})
}

func TestReadNotSent(t *testing.T) {
	s := startRaw(t, answering(200, "", emptyList))
	c := testClient(t, s.url())
	_ = s.ln.Close()
	s.wg.Wait()
	if _, err := c.List(t.Context(), Query{Evidence: "banka"}); OutcomeOf(err) != NotSent {
		t.Errorf("%v", err)
	}
}

func TestReadErrorKeepsTheWords(t *testing.T) {
	s := startRaw(t, answering(404, "", `{"winstrom":{"@version":"1.0","success":"false","message":"Záznam nebyl nalezen","message@messageCode":"formZaznamNenalezen"}}`))
	_, err := testClient(t, s.url()).Company(t.Context())
	e := asError(t, err)
	if len(e.Messages) != 1 || e.Messages[0].Code != "formZaznamNenalezen" || !strings.Contains(err.Error(), "Záznam nebyl nalezen") {
		t.Errorf("%v: %+v", err, e.Messages)
	}
	if strings.Contains(err.Error(), "tajne") || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("the error tells too much: %v", err)
	}
}

func TestClip(t *testing.T) {
	if got := clip("short"); got != "short" {
		t.Error(got)
	}
	if got := clip(strings.Repeat("č", 1000)); len(got) > 510 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
}

func TestProbeKind(t *testing.T) {
	s := startRaw(t, answering(201, "", okBody))
	kind := ""
	c := testClient(t, s.url(), func(o *Options) { o.Probe, o.Observe = true, func(r Request) { kind = r.Kind } })
	send(t, c, mustPrepare(t, createWrite()), permit("a1"))
	if kind != "probe" {
		t.Errorf("kind %q", kind)
	}
}

func TestErrors(t *testing.T) {
	inner := errors.New("inside")
	e := &Error{Op: "create banka", Method: "POST", URL: "/c/x/banka.json", Status: 500, Err: inner,
		Messages: []Message{{Text: "m", For: "kod", Code: "INVALID"}}}
	if got, want := e.Error(), "create banka: POST /c/x/banka.json: status 500: inside: kod: m (INVALID)"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if !errors.Is(fmt.Errorf("around: %w", e), inner) || !e.MaybeCommitted() {
		t.Error("what is inside is lost")
	}
	for name, tc := range map[string]struct {
		err  error
		want Outcome
	}{
		"nothing": {nil, Accepted}, "unknown": {inner, Maybe}, "wrapped": {fmt.Errorf("x: %w", &Error{Outcome: Refused}), Refused},
		"of net/http": {http.ErrServerClosed, Maybe}, "of JSON": {&json.SyntaxError{}, Maybe},
	} {
		if got := OutcomeOf(tc.err); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
