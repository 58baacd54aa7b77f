package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// goneRig is a queue as a restore leaves it: many conflicts of one cause, and some other documents.
func goneRig(t *testing.T, many int) *rig {
	t.Helper()
	r := newRig(t)
	for i := range many {
		r.ledger.add(ledger.Row{Evidence: "banka", Key: fmt.Sprint("G", i), State: ledger.Parked, Reason: ledger.Conflict, Cause: "gone", Revision: uint64(i + 10)})
	}
	r.ledger.add(ledger.Row{Evidence: "banka", Key: "locked", State: ledger.Parked, Reason: ledger.Conflict, Cause: "gone", Revision: 5})
	r.ledger.add(ledger.Row{Evidence: "banka", Key: "other", State: ledger.Parked, Reason: ledger.Conflict, Revision: 6})
	r.ledger.add(ledger.Row{Evidence: "banka", Key: "done", State: ledger.Confirmed, Cause: "gone", Revision: 7})
	r.engine.choices = func(row *ledger.Row) []verify.What {
		if row.Key == "locked" {
			return []verify.What{verify.DecideConfirm}
		}
		return verify.Decisions()
	}
	return r
}

func (r *rig) decided(what, body string) map[string]int {
	r.t.Helper()
	var all []Decided
	r.json("POST", "/api/v1/queue/"+what, body, &all)
	n := map[string]int{}
	for _, d := range all {
		n[d.Result]++
		if d.Key == "" || d.Result != ResultDone && d.Result != ResultWould && d.Text == "" {
			r.t.Errorf("a line that says nothing: %+v", d)
		}
	}
	return n
}

func TestDecideManyByFilter(t *testing.T) {
	const many = 9998
	r := goneRig(t, many)
	if n := r.decided("drop", `{"filter":{"cause":"gone"},"dry_run":true}`); n[ResultWould] != many || n[ResultRefused] != 1 || len(r.engine.asked) != 0 {
		t.Fatalf("dry run: %v, %d asked", n, len(r.engine.asked))
	}
	for name, body := range map[string]string{
		"no count":    `{"by":"jana","why":"x","filter":{"cause":"gone"}}`,
		"other count": `{"by":"jana","why":"x","filter":{"cause":"gone"},"count":9999}`,
	} {
		p := r.problem(r.do("POST", "/api/v1/queue/drop", body))
		if p.Status != http.StatusConflict || !strings.Contains(p.Detail, "9998") || len(r.engine.asked) != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if n := r.decided("drop", `{"by":"jana","why":"x","filter":{"cause":"gone"},"count":9998}`); n[ResultDone] != many || n[ResultRefused] != 1 {
		t.Fatalf("%v", n)
	}
	if len(r.engine.asked) != many || r.engine.asked[0][:10] != "drop|banka" {
		t.Errorf("%d decisions", len(r.engine.asked))
	}
}

// TestDecideManyByRevision: each document is decided as it was seen, and each says for itself what became of it.
func TestDecideManyByRevision(t *testing.T) {
	r := goneRig(t, 6)
	r.engine.decided = func(a verify.Address, d verify.Decision) error {
		if d.Revision == 0 {
			return errors.New("decided blindly")
		}
		switch a.Key {
		case "G1":
			return &verify.DecisionError{Changed: true, Text: "it changed"}
		case "G2":
			return &verify.DecisionError{Retry: true, Text: "not yet"}
		case "G3":
			return &verify.DecisionError{Text: "never"}
		case "G4":
			return &flexi.Error{Op: "list", Outcome: flexi.NotSent, Err: errors.New("connection refused")}
		}
		return nil
	}
	body := `{"by":"jana","why":"x","documents":[{"address":"banka/G0"},{"evidence":"banka","key":"G1","revision":11},{"address":"banka/G2"},
		{"address":"banka/G3"},{"address":"banka/G4"},{"evidence":"banka","key":"G5","revision":3},{"address":"banka/nobody"},{"address":"banka/locked"}]}`
	want := map[string]int{ResultDone: 1, ResultChanged: 2, ResultLater: 2, ResultRefused: 2, ResultMissing: 1}
	if n := r.decided("drop", body); fmt.Sprint(n) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", n, want)
	}
	if !slices.Equal(r.engine.asked, []string{"drop|banka/G0|jana|x"}) {
		t.Errorf("asked %q", r.engine.asked)
	}
}

// TestDecideManyWithoutFlexi: where Flexi does not answer, thousands of documents do not each wait for it.
func TestDecideManyWithoutFlexi(t *testing.T) {
	r := goneRig(t, 3000)
	tried := 0
	r.engine.decided = func(verify.Address, verify.Decision) error {
		tried++
		return &flexi.Error{Op: "list", Outcome: flexi.NotSent, Err: errors.New("connection refused")}
	}
	n := r.decided("resend", `{"by":"jana","why":"x","filter":{"cause":"gone"},"count":3000}`)
	if n[ResultLater] != 3000 || tried > tiredAfter+bulkWorkers {
		t.Errorf("%v, %d tried", n, tried)
	}
}

func TestDecideManyRefusesWhatItCannotMean(t *testing.T) {
	r := goneRig(t, 1)
	for name, tc := range map[string]struct {
		what, body string
		status     int
	}{
		"no documents":        {"drop", `{"by":"j","why":"x"}`, 422},
		"both":                {"drop", `{"by":"j","why":"x","documents":[{"address":"banka/G0"}],"filter":{}}`, 422},
		"nobody":              {"drop", `{"why":"x","documents":[{"address":"banka/G0"}]}`, 422},
		"no reason":           {"drop", `{"by":"j","documents":[{"address":"banka/G0"}]}`, 422},
		"unknown decision":    {"burn", `{"by":"j","why":"x","documents":[{"address":"banka/G0"}]}`, 404},
		"unknown filter":      {"drop", `{"by":"j","why":"x","filter":{"colour":"red"}}`, 400},
		"unknown reason":      {"drop", `{"by":"j","why":"x","filter":{"reason":["gone"]}}`, 400},
		"no address":          {"drop", `{"by":"j","why":"x","documents":[{"address":"G0"}]}`, 400},
		"what a look reports": {"look", `{"by":"j","documents":[{"address":"banka/G0"}]}`, 200},
	} {
		t.Run(name, func(t *testing.T) {
			if w := r.do("POST", "/api/v1/queue/"+tc.what, tc.body); w.Code != tc.status {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// TestCompanyIsNotCalledNewByASlip: where nothing asks for it, the company has to be named.
func TestCompanyIsNotCalledNewByASlip(t *testing.T) {
	for name, tc := range map[string]struct {
		stop   string
		body   string
		status int
	}{
		"nothing asks":         {"", `{"by":"j","why":"x","how":"new"}`, 409},
		"another name":         {"", `{"by":"j","why":"x","how":"new","company":"jina"}`, 409},
		"named":                {"", `{"by":"j","why":"x","how":"new","company":"firma"}`, 200},
		"a login is no reason": {"login", `{"by":"j","why":"x","how":"new"}`, 409},
		"another company":      {"company", `{"by":"j","why":"x","how":"new"}`, 200},
		"restored":             {"restored", `{"by":"j","why":"x","how":"new"}`, 200},
		"a restore said first": {"", `{"by":"j","why":"x","how":"restored"}`, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if tc.stop != "" {
				r.engine.status.Stops = []verify.Stop{{Reason: tc.stop, NeedsYou: true}}
			}
			if w := r.do("POST", "/api/v1/company/accept", tc.body); w.Code != tc.status || (len(r.engine.asked) > 0) != (tc.status == 200) {
				t.Errorf("%d %s, asked %q", w.Code, w.Body, r.engine.asked)
			}
		})
	}
}

func TestStatusSaysWhatIsDownAndWhatWaits(t *testing.T) {
	r := newRig(t)
	r.engine.status.Standings = []verify.Standing{
		{State: ledger.Confirmed, Documents: 9}, {State: ledger.Maybe, Documents: 1},
		{State: ledger.Parked, Reason: ledger.Rejected, Cause: string(flexi.PeriodLocked), Documents: 3},
		{State: ledger.Queued, Reason: ledger.Blocked, Documents: 2},
	}
	state := func() (Status, string) {
		var st Status
		r.json("GET", "/api/v1/status", "", &st)
		var parts []string
		for _, p := range st.Parts {
			parts = append(parts, p.Name+" "+p.State)
			if p.State == "down" && (p.Text == "" || p.Remedy == "") {
				t.Errorf("%+v", p)
			}
		}
		return st, strings.Join(parts, ", ")
	}
	r.checked = &Check{Time: testNow}
	st, parts := state()
	if parts != "erp ok, nats ok, ledger ok, intake ok" || st.WritesStopped || len(st.Waits) != 3 {
		t.Errorf("healthy: %s, %+v", parts, st)
	}
	for _, w := range st.Waits {
		if w.Who == OwnerOperator != (w.State == "parked") || w.Text == "" {
			t.Errorf("%+v", w)
		}
		if w.State == "parked" && (!strings.Contains(w.Do, "maybe list --reason rejected --cause period_locked") ||
			!strings.Contains(w.Do, "maybe resend --reason rejected --cause period_locked")) {
			t.Errorf("a person is told to %s", w.Do)
		}
	}
	r.engine.status.Stops = []verify.Stop{{Reason: "login", Text: "Flexi refuses the login", Remedy: "set the password", NeedsYou: true}}
	st, parts = state()
	if parts != "erp down, nats ok, ledger ok, intake ok" || !st.WritesStopped || st.Waits[2].Who != OwnerOperator {
		t.Errorf("login: %s, %+v", parts, st.Waits)
	}
	r.engine.status.Stops = []verify.Stop{{Reason: "person", Evidence: "banka", Text: "year end", Remedy: "resume", NeedsYou: true}}
	if st, parts = state(); parts != "erp ok, nats ok, ledger ok, intake ok" || !st.WritesStopped {
		t.Errorf("a person: %s", parts)
	}
	r.engine.status.Stops = nil
	r.troubles = []Trouble{{Part: PartNATS, Text: "NATS is gone", Remedy: "see that it runs"}}
	if st, parts = state(); parts != "erp ok, nats down, ledger unknown, intake unknown" || !st.WritesStopped || st.Ready {
		t.Errorf("NATS: %s", parts)
	}
	r.checked = nil
	r.server.Use(nil)
	if st, parts = state(); parts != "erp unknown, nats down, ledger unknown, intake unknown" || st.Engine != nil || st.Waits == nil {
		t.Errorf("before NATS: %s", parts)
	}
}

// TestNothingBlamesAPermissionWhileNATSIsGone: what needs NATS is answered at once, with what is wrong.
func TestNothingBlamesAPermissionWhileNATSIsGone(t *testing.T) {
	r := newRig(t)
	r.troubles = []Trouble{{Part: PartNATS, Text: "NATS at nats://x is gone", Remedy: "see that the NATS server runs"}}
	r.ledger.listErr = errStore
	for path, body := range map[string]string{
		"GET /api/v1/documents": "", "GET /api/v1/documents/banka/1": "", "GET /api/v1/queue": "",
		"POST /api/v1/writes/stop":    `{"by":"j","why":"x"}`,
		"POST /api/v1/queue/drop":     `{"by":"j","why":"x","filter":{}}`,
		"POST /api/v1/queue/b/1/drop": `{"by":"j","why":"x"}`,
	} {
		method, path, _ := strings.Cut(path, " ")
		begun := time.Now()
		p := r.problem(r.do(method, path, body))
		if p.Status != 503 || !p.Retry || !strings.Contains(p.Detail, "is gone") || p.Next == "" || len(r.engine.asked) > 0 || time.Since(begun) > time.Second {
			t.Errorf("%s: %+v, asked %q", path, p, r.engine.asked)
		}
	}
}

// TestBulkAnswersAsLines: a script reads each result when it is known.
func TestBulkAnswersAsLines(t *testing.T) {
	r := goneRig(t, 3)
	w := r.do("POST", "/api/v1/queue/note?format=ndjson", `{"by":"j","why":"x","filter":{"cause":"gone"},"count":3}`)
	lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
	if w.Code != 200 || len(lines) != 4 {
		t.Fatalf("%d %q", w.Code, lines)
	}
	for _, l := range lines {
		var d Decided
		if err := json.Unmarshal([]byte(l), &d); err != nil || d.Result == "" {
			t.Errorf("%q: %v", l, err)
		}
	}
}
