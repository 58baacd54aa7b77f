package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"flexid/cmd/internal/api"
	"flexid/flexi/flexitest"
	"flexid/verify"
)

// queueDaemon answers decisions about several documents and keeps what it was asked.
type queueDaemon struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []api.DecideRequest
	found  []api.Decided            // what a dry run finds
	result func(*api.Target) string // of a decision
}

func newQueueDaemon(t *testing.T, found int) *queueDaemon {
	t.Helper()
	q := &queueDaemon{result: func(*api.Target) string { return api.ResultDone }}
	for i := range found {
		q.found = append(q.found, api.Decided{Row: api.Row{Evidence: "banka", Key: fmt.Sprint("G", i), State: "parked", Reason: "conflict", Cause: "gone"},
			Revision: uint64(i + 1), Result: api.ResultWould})
	}
	q.Server = httptest.NewServer(http.HandlerFunc(q.serve))
	t.Cleanup(q.Close)
	return q
}

func (q *queueDaemon) serve(w http.ResponseWriter, r *http.Request) {
	var request api.DecideRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = append(q.asked, request)
	out := json.NewEncoder(w)
	for i := range q.found {
		if request.DryRun {
			_ = out.Encode(q.found[i])
		}
	}
	for i := range request.Documents {
		if t := &request.Documents[i]; !request.DryRun {
			_ = out.Encode(api.Decided{Row: api.Row{Evidence: t.Evidence, Key: t.Key}, Revision: t.Revision, Result: q.result(t)})
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func (q *queueDaemon) env() []string {
	return []string{"FLEXID_API_URL=" + q.URL, "FLEXID_API_TOKEN=" + testToken, "USER=jana"}
}

// decided counts documents that were really decided, each with the revision at which it was seen.
func (q *queueDaemon) decided(t *testing.T) (n int) {
	t.Helper()
	for _, a := range q.asked {
		for _, d := range a.Documents {
			if a.DryRun {
				continue
			}
			if n++; d.Revision == 0 || a.By != "jana" || a.Why == "" {
				t.Fatalf("decided %+v of %q %q", d, a.By, a.Why)
			}
		}
	}
	return n
}

func TestDecisionsByFilter(t *testing.T) {
	drop := []string{"maybe", "drop", "--reason", "conflict", "--cause", "gone", "--why", "restored"}
	for name, tc := range map[string]struct {
		args    []string
		in      string
		answers bool
		found   int
		code    int
		decided int
		talk    string
	}{
		"nobody to ask":      {drop, "", false, 9999, 2, 0, "--yes"},
		"yes":                {append(drop, "--yes"), "", false, 9999, 0, 9999, "9999 done"},
		"the right count":    {append(drop, "--count", "9999"), "", false, 9999, 0, 9999, "9999 done"},
		"another count":      {append(drop, "--count", "9998", "--yes"), "", false, 9999, 1, 0, "9999 documents match, not 9998"},
		"a dry run":          {append(drop, "--dry-run", "--yes"), "", false, 9999, 0, 0, "9999 documents, nothing was changed"},
		"asked and typed":    {drop, "12\n", true, 12, 0, 12, "Type 12 to go on"},
		"asked and mistyped": {drop, "yes\n", true, 12, 1, 0, "nothing was changed"},
		"asked, no answer":   {drop, "", true, 12, 1, 0, "nothing was changed"},
		"nothing matches":    {append(drop, "--yes"), "", false, 0, 3, 0, "nothing matches"},
		"a count below none": {append(drop, "--count", "-5", "--yes"), "", false, 12, 2, 0, "--count"},
		"nothing, dry run":   {append(drop, "--dry-run"), "", false, 0, 3, 0, "nothing matches"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueueDaemon(t, tc.found)
			var out, talk bytes.Buffer
			p := &program{env: q.env(), in: strings.NewReader(tc.in), out: &out, err: &talk, answers: tc.answers}
			code := p.run(t.Context(), tc.args)
			if code != tc.code || q.decided(t) != tc.decided || !strings.Contains(talk.String(), tc.talk) {
				t.Errorf("exit %d, want %d; %d decided, want %d; %q", code, tc.code, q.decided(t), tc.decided, talk.String())
			}
			if len(q.asked) == 0 && tc.code == 2 {
				return // it did not get as far as the daemon
			}
			if f := q.asked[0].Filter; f == nil || f.Cause != "gone" || len(f.Reason) != 1 || f.Reason[0] != "conflict" {
				t.Errorf("asked for %+v", q.asked[0])
			}
			if want := tc.decided; want > 0 && strings.Count(out.String(), "\n") != want+1 {
				t.Errorf("%d lines for %d documents", strings.Count(out.String(), "\n"), want)
			}
		})
	}
}

func TestDecisionsOfSeveralKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		results string
		code    int
		talk    string
	}{
		"all done":     {"done done done", 0, "3 done"},
		"one refused":  {"done refused later", 1, "1 refused"},
		"one changed":  {"done changed done", 75, "1 changed"},
		"one later":    {"later done done", 75, "1 later"},
		"one failed":   {"done done failed", 1, "1 failed"},
		"none is left": {"missing missing missing", 3, "3 missing"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueueDaemon(t, 3)
			results := strings.Fields(tc.results)
			q.result = func(x *api.Target) string { return results[x.Revision-1] }
			code, out, talk := call(q.env(), "maybe", "resend", "banka/G0", "banka/G1", "banka/G2", "--why", "again", "-o", "json")
			if code != tc.code || !strings.Contains(talk, tc.talk) {
				t.Errorf("exit %d, want %d: %q", code, tc.code, talk)
			}
			var rows []api.Decided
			if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 3 {
				t.Errorf("%v: %s", err, out)
			}
			if a := q.asked[0]; !a.DryRun || a.Documents[2].Address != "banka/G2" {
				t.Errorf("asked %+v", a)
			}
		})
	}
}

// TestDecisionsThatAreCutOff: whatever ends the answer, it is said how many are done, of how many nobody knows, and how to go on.
func TestDecisionsThatAreCutOff(t *testing.T) {
	keys := []string{"banka/G0", "banka/G1", "banka/G2", "banka/G3", "banka/G4"}
	for name, tc := range map[string]struct {
		args   []string
		by     func(interrupt context.CancelFunc) // ends the answer after two documents
		result string                             // of the third and later ones, where nothing ends it
		code   int
		talk   []string
	}{
		"the daemon dies": {append([]string{"resend"}, keys...), func(context.CancelFunc) {}, "", 75,
			[]string{"2 done, 3 not heard of", "may be repeated: what is decided already is left alone"}},
		"Ctrl-C": {append([]string{"drop"}, keys...), func(interrupt context.CancelFunc) { interrupt() }, "", 75,
			[]string{"not heard of, which may be decided or not", "may be repeated"}},
		"with a count": {[]string{"drop", "--reason", "conflict", "--count", "5"}, func(context.CancelFunc) {}, "", 75,
			[]string{"2 done, 3 not heard of", "--count is then the number of the rest"}},
		"notes": {append([]string{"note"}, keys...), func(context.CancelFunc) {}, "", 75, []string{"2 done, 3 not heard of", "gets the note once more"}},
		"NATS is gone": {append([]string{"resend"}, keys...), nil, api.ResultFailed, 1,
			[]string{"2 done, 3 failed", "may be repeated: what is decided already is left alone"}},
		"Flexi is down": {append([]string{"resend"}, keys...), nil, api.ResultLater, 75, []string{"2 done, 3 later", "may be repeated"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			q := newQueueDaemon(t, len(keys))
			q.result = func(x *api.Target) string {
				switch {
				case x.Revision <= 2:
					return api.ResultDone
				case tc.by == nil:
					return tc.result
				}
				tc.by(interrupt)
				panic(http.ErrAbortHandler)
			}
			var out, talk bytes.Buffer
			p := &program{env: q.env(), in: strings.NewReader(""), out: &out, err: &talk}
			code := p.run(ctx, append(append([]string{"maybe"}, tc.args...), "--why", "x"))
			if code != tc.code {
				t.Errorf("exit %d, want %d", code, tc.code)
			}
			for _, want := range tc.talk {
				if !strings.Contains(talk.String(), want) {
					t.Errorf("%q is missing in %q", want, talk.String())
				}
			}
		})
	}
}

// TestADecisionThatIsCutOff: of a single document it is said that nobody knows, not that no daemon runs.
func TestADecisionThatIsCutOff(t *testing.T) {
	d := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer d.Close()
	env := []string{"FLEXID_API_URL=" + d.URL, "FLEXID_API_TOKEN=" + testToken, "USER=jana"}
	if code, _, talk := call(env, "maybe", "resend", "banka/1", "--why", "x"); code != 75 || !strings.Contains(talk, "whether it was decided is not known") {
		t.Errorf("exit %d %q", code, talk)
	}
	d.Close()
	if code, _, talk := call(env, "maybe", "resend", "banka/1", "--why", "x"); code != 1 || strings.Contains(talk, "not known") {
		t.Errorf("without a daemon: exit %d %q", code, talk)
	}
}

// TestADocumentNamedTwiceIsDecidedOnce: its second turn would find it changed, by the first, and say so with exit code 75.
func TestADocumentNamedTwiceIsDecidedOnce(t *testing.T) {
	q := newQueueDaemon(t, 2)
	code, _, talk := call(q.env(), "maybe", "drop", "banka/G0", "banka/G1", "banka/G0", "--why", "x")
	if code != 0 || len(q.asked) == 0 || len(q.asked[0].Documents) != 2 {
		t.Errorf("exit %d %q, asked %+v", code, talk, q.asked)
	}
}

// TestDecisionOfOneByRevision: what `docs show` told is passed on; it makes no sense for several documents.
func TestDecisionOfOneByRevision(t *testing.T) {
	f := newFakeDaemon(t, map[string]string{"POST /api/v1/queue/banka/1/resend": encode(t, api.Row{Evidence: "banka", Key: "1"})})
	if code, _, talk := call(f.env(), "maybe", "resend", "banka/1", "--why", "x", "--by", "jana", "--revision", "7"); code != 0 ||
		!strings.Contains(f.asked[0], `"revision":7`) {
		t.Errorf("exit %d %q, asked %q", code, talk, f.asked)
	}
	for _, args := range [][]string{{"banka/1", "banka/2"}, {"--reason", "conflict"}, {"banka/1", "--dry-run"}} {
		if code, _, _ := call(f.env(), append(append([]string{"maybe", "resend"}, args...), "--why", "x", "--by", "jana", "--revision", "7")...); code != 2 {
			t.Errorf("%q: exit %d", args, code)
		}
	}
}

// TestADryRunNeedsNoName: it decides nothing.
func TestADryRunNeedsNoName(t *testing.T) {
	q := newQueueDaemon(t, 2)
	env := slices.DeleteFunc(q.env(), func(kv string) bool {
		return strings.HasPrefix(kv, "USER=") || strings.HasPrefix(kv, "LOGNAME=") || strings.HasPrefix(kv, "SUDO_USER=")
	})
	if code, _, talk := call(env, "maybe", "drop", "--reason", "conflict", "--dry-run"); code != 0 || !strings.Contains(talk, "nothing was changed") {
		t.Errorf("exit %d %q", code, talk)
	}
	if code, _, talk := call(env, "maybe", "drop", "--reason", "conflict", "--yes", "--why", "x"); code != 2 || !strings.Contains(talk, "who decides") {
		t.Errorf("a decision: exit %d %q", code, talk)
	}
}

func TestStatusCommand(t *testing.T) {
	st := api.Status{Info: api.Info{Company: "firma", Phase: "running", Version: "1.2.3", Started: at}, Ready: true, WritesStopped: true,
		Parts: []api.Part{{Name: "erp", State: "down", Text: "login: refused", Remedy: "set the password"}, {Name: "nats", State: "ok"}},
		Waits: []api.Wait{{State: "parked", Reason: "rejected", Cause: "period_locked", Documents: 7, Who: "operator", Text: "Unlock the period.", Do: "`flexid maybe list`"}},
		Engine: &verify.Status{Stops: []verify.Stop{{Reason: "login", Text: "Flexi refuses", Remedy: "set the password", Since: at, NextTry: at}},
			Documents: map[string]int{"parked": 7}, Oldest: at}}
	f := newFakeDaemon(t, map[string]string{"GET /api/v1/status": encode(t, st)})
	code, out, _ := call(f.env(), "status")
	for _, want := range []string{"erp     down; login: refused; set the password", "nats    ok", "writes stopped: all evidences (login): Flexi refuses",
		"since 2026-03-01T12:00:00Z", "parked     7", "operator      7 parked (rejected, period_locked): Unlock the period; `flexid maybe list`", "is of 2026-03-01T12:00:00Z"} {
		if code != exitTryAgain || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is missing in\n%s", code, want, out)
		}
	}
	code, out, _ = call(f.env(), "status", "-o", "json")
	var back map[string]any
	if err := json.Unmarshal([]byte(out), &back); err != nil || code != exitTryAgain || back["writes_stopped"] != true || back["waits"] == nil || back["parts"] == nil {
		t.Errorf("exit %d %v %s", code, err, out)
	}
	st.WritesStopped, st.Engine.Stops = false, []verify.Stop{{Open: true}}
	f = newFakeDaemon(t, map[string]string{"GET /api/v1/status": encode(t, st)})
	if code, out, _ = call(f.env(), "status"); code != 0 || !strings.Contains(out, "writes are open") {
		t.Errorf("exit %d %s", code, out)
	}
	for _, a := range f.asked {
		if !strings.HasPrefix(a, "GET ") {
			t.Errorf("status asked %q", a)
		}
	}
}

// TestRejectedOnesAreClosedTogether: with a real daemon, a whole night of rejected documents is listed, put right, sent
// again in one command, and what stays rejected is dropped in another: then nothing is parked any more.
func TestRejectedOnesAreClosedTogether(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	env := erpEnv(erp, filepath.Join(t.TempDir(), "state"), "FLEXID_HTTP_ADDR="+freeAddr(t), "USER=jana")
	serving(t, env)
	ready(t, env)
	var all []string
	for i := range 30 {
		line := invoice(fmt.Sprint("FV-", i), "a")
		if i >= 10 {
			line = strings.Replace(line, `"varSym"`, `"firma":"code:NOVAK99","varSym"`, 1)
		}
		if i >= 25 {
			line = strings.Replace(line, "FAKTURA", "NENI", 1)
		}
		all = append(all, line)
	}
	if code, rep, talk := pushing(t, t.Context(), env, write(t, t.TempDir(), "a.ndjson", all...)); code != exitRejected || !rep.counted(map[string]int{"confirmed": 10, "rejected": 20}) {
		t.Fatalf("exit %d %+v\n%s", code, rep.Counts, talk)
	}
	code, out, talk := call(env, "maybe", "list", "--reason", "rejected", "-o", "ndjson")
	if code != 0 || strings.Count(out, "\n") != 20 || !strings.Contains(out, `"can":["look","resend","drop","note"]`) {
		t.Fatalf("exit %d %s %s", code, out, talk)
	}
	if code, out, talk = call(env, "status"); code != 0 || !strings.Contains(out, "parked (rejected") {
		t.Fatalf("status: exit %d %s %s", code, out, talk)
	}
	erp.Type("adresar", map[string]any{"kod": "NOVAK99", "nazev": "Novák"})
	if code, _, talk = call(env, "maybe", "resend", "--reason", "rejected", "--why", "the partner is there now", "--yes"); code != 0 || !strings.Contains(talk, "20 done") {
		t.Fatalf("resend: exit %d %s", code, talk)
	}
	eventually(t, "confirmed or rejected again", func() bool {
		_, out, _ := call(env, "docs", "list", "--state", "confirmed", "-o", "ndjson")
		_, rest, _ := call(env, "maybe", "list", "--reason", "rejected", "-o", "ndjson")
		return strings.Count(out, "\n") == 25 && strings.Count(rest, "\n") == 5
	})
	if code, out, talk = call(env, "maybe", "drop", "--reason", "rejected", "--why", "wrong at the sender", "--count", "5", "-o", "ndjson"); code != 0 || strings.Count(out, `"result":"done"`) != 5 {
		t.Fatalf("drop: exit %d %s %s", code, out, talk)
	}
	if code, _, talk = call(env, "maybe", "list"); code != exitNothing {
		t.Errorf("something still waits: exit %d %s", code, talk)
	}
	for i := range 30 {
		want := 1
		if i >= 25 {
			want = 0
		}
		if n := len(erp.Find("faktura-vydana", fmt.Sprint("code:FV-", i))); n != want {
			t.Errorf("%d records of FV-%d", n, i)
		}
	}
}
