package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTokenGuard(t *testing.T) {
	r := newRig(t)
	paths := []string{"/api/v1/documents", "/api/v1/documents/banka/1", "/api/v1/queue", "/api/v1/status", "/api/v1/nothing"}
	for name, header := range map[string]string{
		"none": "", "wrong": "Bearer wrong", "empty": "Bearer ", "no scheme": testToken, "other scheme": "Basic " + testToken,
		"prefix": "Bearer " + testToken[:10], "longer": "Bearer " + testToken + "x",
	} {
		for _, path := range paths {
			t.Run(name+path, func(t *testing.T) {
				w := r.do("GET", path, "", func(q *http.Request) { q.Header.Set("Authorization", header) })
				p := r.problem(w)
				if p.Status != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" || !strings.Contains(p.Next, "FLEXID_API_TOKEN") {
					t.Errorf("%+v", p)
				}
			})
		}
	}
	if _, err := New(Options{}); err == nil {
		t.Error("a server without a token would let everybody in")
	}
}

func TestHostGuard(t *testing.T) {
	r := newRig(t)
	for host, want := range map[string]int{
		"127.0.0.1:8480": 200, "localhost:8480": 200, "localhost": 200, "[::1]:8480": 200, "10.1.2.3": 200, "flexid.example.com": 200,
		"FLEXID.example.com.:8480": 200, "evil.example.com": 421, "flexid.example.com.evil.net": 421, "": 421,
	} {
		t.Run(host, func(t *testing.T) {
			for _, path := range []string{"/api/v1/status", "/metrics", "/readyz"} {
				if w := r.do("GET", path, "", func(q *http.Request) { q.Host = host }); w.Code != want {
					t.Errorf("%s: %d, want %d", path, w.Code, want)
				}
			}
			if w := r.do("GET", "/healthz", "", func(q *http.Request) { q.Host = host }); w.Code != 200 {
				t.Errorf("healthz: %d", w.Code)
			}
		})
	}
}

func TestHealthNeedsNoToken(t *testing.T) {
	r := newRig(t)
	r.troubles = []Trouble{{Text: "the ledger is gone", Remedy: "restore it"}}
	bare := func(q *http.Request) { q.Header.Del("Authorization") }
	for path, want := range map[string]string{"/healthz": "200 ok", "/readyz": "503 the ledger is gone; restore it", "/metrics": "200 metrics"} {
		w := r.do("GET", path, "", bare)
		if got := fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String())); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	r.troubles = nil
	if w := r.do("GET", "/readyz", "", bare); w.Code != 200 {
		t.Errorf("readyz: %d", w.Code)
	}
}

func TestBeforeTheLedgerIsThere(t *testing.T) {
	r := newRig(t)
	r.server.Use(nil)
	r.troubles = []Trouble{{Text: "waiting for NATS at nats://x", Remedy: "see that it runs"}}
	for _, c := range [][2]string{
		{"GET", "/api/v1/documents"}, {"GET", "/api/v1/documents/banka/1"}, {"GET", "/api/v1/queue"},
		{"POST", "/api/v1/queue/banka/1/look"}, {"POST", "/api/v1/writes/stop"}, {"POST", "/api/v1/company/accept"},
	} {
		p := r.problem(r.do(c[0], c[1], `{"by":"x"}`))
		if p.Status != http.StatusServiceUnavailable || !p.Retry || !strings.Contains(p.Detail, "waiting for NATS") || p.Next != "see that it runs" {
			t.Errorf("%v: %+v", c, p)
		}
	}
	var st Status
	r.json("GET", "/api/v1/status", "", &st)
	if st.Ready || st.Engine != nil || st.Phase != "waiting for NATS" || len(st.Troubles) != 1 {
		t.Errorf("%+v", st)
	}
	// The way out of a missing ledger must be open while it is missing.
	r.json("POST", "/api/v1/ledger/accept-empty", `{"by":"jana","why":"disk lost"}`, &st)
	if !slices.Equal(r.empty, []string{"jana|disk lost"}) {
		t.Errorf("asked %q", r.empty)
	}
}

func TestDecisions(t *testing.T) {
	for name, tc := range map[string]struct {
		path, body string
		status     int
		asked      string
	}{
		"look":              {"queue/banka/1/look", `{"by":"jana"}`, 200, "look|banka/1|jana|"},
		"confirm":           {"queue/banka/1/confirm", `{"by":" jana ","why":" seen "}`, 200, "confirm|banka/1|jana|seen"},
		"resend":            {"queue/banka/1/resend", `{"by":"jana","why":"w"}`, 200, "resend|banka/1|jana|w"},
		"drop":              {"queue/banka/1/drop", `{"by":"jana","why":"w"}`, 200, "drop|banka/1|jana|w"},
		"note":              {"queue/banka/1/note", `{"by":"jana","why":"w"}`, 200, "note|banka/1|jana|w"},
		"key with a slash":  {"queue/banka/a%2Fb/look", `{"by":"jana"}`, 200, "look|banka/a/b|jana|"},
		"key called look":   {"queue/banka/look/look", `{"by":"jana"}`, 200, "look|banka/look|jana|"},
		"with source":       {"queue/banka/eshop:1/look", `{"by":"jana"}`, 200, "look|banka/eshop:1|jana|"},
		"no name":           {"queue/banka/1/look", `{}`, 422, ""},
		"no body":           {"queue/banka/1/look", ``, 422, ""},
		"blank name":        {"queue/banka/1/look", `{"by":"  "}`, 422, ""},
		"no reason":         {"queue/banka/1/resend", `{"by":"jana"}`, 422, ""},
		"unknown decision":  {"queue/banka/1/accept", `{"by":"jana"}`, 404, ""},
		"no decision":       {"queue/banka/look", `{"by":"jana"}`, 404, ""},
		"unknown document":  {"queue/banka/2/look", `{"by":"jana"}`, 404, ""},
		"unknown field":     {"queue/banka/1/look", `{"by":"jana","force":true}`, 400, ""},
		"two values":        {"queue/banka/1/look", `{"by":"jana"}{}`, 400, ""},
		"too large":         {"queue/banka/1/note", `{"by":"` + strings.Repeat("x", maxBody) + `"}`, 413, ""},
		"stop":              {"writes/stop", `{"by":"jana","why":"year end","evidence":"banka"}`, 200, "stop|banka|jana|year end"},
		"resume":            {"writes/resume", `{"by":"jana","why":"done"}`, 200, "resume||jana|done"},
		"stop, no reason":   {"writes/stop", `{"by":"jana"}`, 422, ""},
		"unknown verb":      {"writes/pause", `{"by":"jana","why":"x"}`, 404, ""},
		"company new":       {"company/accept", `{"by":"jana","why":"x","how":"new","company":"firma"}`, 200, "company|new|jana|x"},
		"company restored":  {"company/accept", `{"by":"jana","why":"x","how":"restored"}`, 200, "company|restored|jana|x"},
		"company, how else": {"company/accept", `{"by":"jana","why":"x","how":"old"}`, 422, ""},
		"empty, no reason":  {"ledger/accept-empty", `{"by":"jana"}`, 422, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for _, a := range []verify.Address{{Evidence: "banka", Key: "1"}, {Evidence: "banka", Key: "a/b"}, {Evidence: "banka", Key: "look"},
				{Evidence: "banka", Source: "eshop", Key: "1"}} {
				r.ledger.add(ledger.Row{Evidence: a.Evidence, Source: a.Source, Key: a.Key, State: ledger.Parked, Reason: ledger.Unknown})
			}
			w := r.do("POST", "/api/v1/"+tc.path, tc.body)
			if w.Code != tc.status {
				t.Fatalf("status %d, want %d: %s", w.Code, tc.status, w.Body)
			}
			if tc.status != 200 {
				r.problem(w)
			}
			if got := strings.Join(r.engine.asked, ";"); got != tc.asked {
				t.Errorf("the engine was asked %q, want %q", got, tc.asked)
			}
		})
	}
}

// TestDecisionByRevision: a decision about one document names what was seen, if the one who decides knows it.
func TestDecisionByRevision(t *testing.T) {
	for body, want := range map[string]uint64{`{"by":"jana","why":"w","revision":7}`: 7, `{"by":"jana","why":"w"}`: 0} {
		r := newRig(t)
		r.ledger.add(ledger.Row{Evidence: "banka", Key: "1", State: ledger.Parked, Reason: ledger.Unknown})
		got := uint64(99)
		r.engine.decided = func(_ verify.Address, d verify.Decision) error { got = d.Revision; return nil }
		if w := r.do("POST", "/api/v1/queue/banka/1/resend", body); w.Code != http.StatusOK || got != want {
			t.Errorf("status %d, revision %d, want %d", w.Code, got, want)
		}
	}
}

func TestNothingIsChangedByGET(t *testing.T) {
	r := newRig(t)
	r.ledger.add(ledger.Row{Evidence: "banka", Key: "1", State: ledger.Maybe})
	for _, path := range []string{"queue/banka/1/look", "writes/stop", "company/accept", "ledger/accept-empty"} {
		if w := r.do("GET", "/api/v1/"+path, `{"by":"jana","why":"x"}`); w.Code == 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if len(r.engine.asked)+len(r.empty) > 0 {
		t.Errorf("asked %q %q", r.engine.asked, r.empty)
	}
}

func TestErrorsOfTheEngine(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		status int
		retry  bool
		text   string
	}{
		"not now":     {&verify.DecisionError{Text: "the settle time is not over", Retry: true}, 409, true, "settle time"},
		"never":       {fmt.Errorf("deciding: %w", &verify.DecisionError{Text: "it is confirmed"}), 409, false, "confirmed"},
		"gone":        {&verify.NotFoundError{Address: verify.Address{Evidence: "banka", Key: "1"}}, 404, false, "banka/1"},
		"ledger gone": {fmt.Errorf("reading: %w", &ledger.MissingError{Bucket: "flexid_ledger"}), 503, false, "flexid_ledger"},
		"ERP away":    {fmt.Errorf("asking: %w", &flexi.Error{Op: "company", Err: errors.New("no route")}), 503, true, "no route"},
		"newer":       {ledger.ErrNewer, 409, false, "newer"},
		"other":       {errors.New("disk on fire"), 500, false, "disk on fire"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.ledger.add(ledger.Row{Evidence: "banka", Key: "1", State: ledger.Maybe})
			r.engine.err = tc.err
			p := r.problem(r.do("POST", "/api/v1/queue/banka/1/look", `{"by":"jana"}`))
			if p.Status != tc.status || p.Retry != tc.retry || !strings.Contains(p.Detail, tc.text) {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestStartAndStop(t *testing.T) {
	r := newRig(t)
	r.server.o.Addr = "127.0.0.1:0"
	if err := r.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + r.server.Addr() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(text) != "ok\n" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%q %v", text, resp.Header)
	}
	second, err := New(r.server.o)
	if err != nil {
		t.Fatal(err)
	}
	second.o.Addr = r.server.Addr()
	if err := second.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "FLEXID_HTTP_ADDR") {
		t.Errorf("a taken address gave %v", err)
	}
	if err := r.server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if resp, err := client.Get("http://" + r.server.Addr() + "/healthz"); err == nil {
		resp.Body.Close()
		t.Error("it answers after Stop")
	}
}

// TestStopBesideAConnectionInStore: browsers open connections before they need them. Such a one neither makes the stop an error
// nor takes the time that the rest of it needs.
func TestStopBesideAConnectionInStore(t *testing.T) {
	s, err := New(Options{Addr: "127.0.0.1:0", Token: testToken, Info: func() Info { return Info{} }, Troubles: func() []Trouble { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
	if ctx.Err() != nil {
		t.Error("the stop took all the time that there was")
	}
}
