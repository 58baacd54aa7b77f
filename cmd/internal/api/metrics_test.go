package api

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"flexid/cmd/internal/quota"
	"flexid/flexi"
	"flexid/verify"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	var log bytes.Buffer
	m := NewMetrics(prometheus.NewRegistry(), Build{Version: "1.2.3", Revision: "abc", Go: "go1"}, zerolog.New(&log))
	e := &fakeEngine{}
	if err := m.Watch(e, func() time.Time { return testNow }); err != nil {
		t.Fatal(err)
	}
	var budget *quota.Status
	if err := m.WatchQuota(func() *quota.Status { return budget }); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(scrape(t, m), "flexid_quota_requests{") {
		t.Error("a budget where there is none")
	}
	budget = &quota.Status{Limit: 5000, Used: 123, Reserve: 250}
	m.Call("write")
	m.Call("write")
	m.Call("read")
	for range 3 {
		m.Request(flexi.Request{Kind: "write", Outcome: "maybe"})
	}
	m.Request(flexi.Request{Kind: "probe", Outcome: "accepted"})
	m.Entered("confirmed")
	m.Looked("absent")
	m.WriteTook(0.3)
	e.status.Standings = []verify.Standing{{State: "maybe", Documents: 2}, {State: "parked", Reason: "rejected", Cause: "gone", Documents: 3},
		{State: "parked", Reason: "rejected", Cause: "other", Documents: 4}}
	e.status.MaybeBy = map[string]int{"no_answer": 2}
	e.status.Oldest = testNow.Add(-90 * time.Second)
	e.status.Tokens, e.status.InFlight, e.status.Limit, e.status.Pack = map[string]int{"maybes": 7}, 2, 3, 20
	e.status.Stops = []verify.Stop{{Evidence: "banka", Reason: "right"}, {Reason: "person"}}

	text := scrape(t, m)
	for _, want := range []string{
		`flexid_calls_total{kind="write"} 2`,
		`flexid_wire_requests_total{kind="write",outcome="maybe"} 3`,
		`flexid_amplification{kind="write"} 1.5`,
		`flexid_amplification{kind="read"} 0`,
		`flexid_documents{reason="",state="maybe"} 2`,
		`flexid_documents{reason="rejected",state="parked"} 7`,
		`flexid_documents_total{state="confirmed"} 1`,
		`flexid_maybe_documents{reason="no_answer"} 2`,
		`flexid_maybe_oldest_seconds 90`,
		`flexid_lookups_total{verdict="absent"} 1`,
		`flexid_retry_budget_tokens{bucket="maybes"} 7`,
		`flexid_writes_in_flight 2`,
		`flexid_writes_limit 3`,
		`flexid_pack_limit 20`,
		`flexid_writes_stopped{evidence="banka",reason="right"} 1`,
		`flexid_writes_stopped{evidence="",reason="person"} 1`,
		`flexid_quota_requests{state="limit"} 5000`,
		`flexid_quota_requests{state="used"} 123`,
		`flexid_quota_requests{state="reserve"} 250`,
		`flexid_write_duration_seconds_count 1`,
		`flexid_build_info{goversion="go1",revision="abc",version="1.2.3"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(text, `flexid_amplification{kind="probe"}`) {
		t.Error("a quotient without calls")
	}

	m.Log("writes stopped", [2]string{"reason", "login"}, [2]string{"remedy", "set the password"})
	m.Log("writes go on", [2]string{"remedy", "set the password"})
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"level":"warn"`) || !strings.Contains(lines[0], "set the password") ||
		!strings.Contains(lines[1], `"level":"info"`) {
		t.Errorf("log %q", lines)
	}
}
