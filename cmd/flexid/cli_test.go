package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/cmd/internal/api"
	"flexid/testdata/testenv"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testenv.InMemory()
	testenv.Parallel(8)
	goleak.VerifyTestMain(m)
}

const testToken = "0123456789abcdef0123456789abcdef"

// fakeDaemon answers by path and keeps what it was asked.
type fakeDaemon struct {
	*httptest.Server
	mu      sync.Mutex
	asked   []string
	answers map[string]string // "METHOD path" -> body
	status  int
	cut     bool // break the answer off
	matched string
}

func newFakeDaemon(t *testing.T, answers map[string]string) *fakeDaemon {
	t.Helper()
	f := &fakeDaemon{answers: answers, status: http.StatusOK}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeDaemon) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.asked = append(f.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	f.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+testToken && !strings.HasSuffix(r.URL.Path, "z") {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"status":401,"detail":"the token is missing or wrong","next":"set FLEXID_API_TOKEN"}`)
		return
	}
	answer, ok := f.answers[r.Method+" "+r.URL.EscapedPath()]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"status":404,"detail":"no document `+r.URL.Path+`","next":"see docs list"}`)
		return
	}
	if f.matched != "" {
		w.Header().Set(api.HeaderMatched, f.matched)
	}
	w.WriteHeader(f.status)
	_, _ = io.WriteString(w, answer)
	if f.cut {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func (f *fakeDaemon) env(more ...string) []string {
	return append([]string{"FLEXID_API_URL=" + f.URL, "FLEXID_API_TOKEN=" + testToken, "USER=jana"}, more...)
}

// call runs the program.
func call(env []string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, env, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

func encode(t *testing.T, values ...any) string {
	t.Helper()
	var b strings.Builder
	for _, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
		b.WriteByte('\n')
	}
	return b.String()
}

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func sampleRows() []any {
	return []any{
		api.Row{Evidence: "faktura-vydana", Key: "FV-1", Number: "FV-1", State: "confirmed", Sends: 1, FlexiID: "41", Updated: at},
		api.Row{Evidence: "faktura-vydana", Source: "eshop", Key: "žluťoučký", State: "maybe", Updated: at},
		api.Row{Evidence: "banka", Key: "=1+1\x1b[2J", State: "parked", Reason: "rejected", Cause: "too_long", Updated: at},
	}
}

func TestDocsListFormats(t *testing.T) {
	f := newFakeDaemon(t, map[string]string{"GET /api/v1/documents": encode(t, sampleRows()...)})
	t.Run("table", func(t *testing.T) {
		code, out, _ := call(f.env(), "docs", "list")
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if code != 0 || len(lines) != 4 || !strings.HasPrefix(lines[0], "EVIDENCE") {
			t.Fatalf("%d %q", code, out)
		}
		column := strings.Index(lines[0], "STATE")
		for i, want := range []string{"confirmed", "maybe", "parked"} {
			if got := string([]rune(lines[i+1])[column:]); !strings.HasPrefix(got, want) {
				t.Errorf("line %d: %q is not under STATE", i+1, got)
			}
		}
		if strings.ContainsRune(out, '\x1b') {
			t.Errorf("a key can steer the terminal: %q", out)
		}
	})
	t.Run("json", func(t *testing.T) {
		code, out, _ := call(f.env(), "docs", "list", "-o", "json")
		var rows []api.Row
		if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil || len(rows) != 3 || rows[1].Key != "žluťoučký" {
			t.Errorf("%d %v %q", code, err, out)
		}
	})
	t.Run("ndjson", func(t *testing.T) {
		code, out, _ := call(f.env(), "docs", "list", "-o", "ndjson")
		if n := strings.Count(out, "\n"); code != 0 || n != 3 {
			t.Errorf("%d, %d lines: %q", code, n, out)
		}
	})
	t.Run("csv", func(t *testing.T) {
		code, out, _ := call(f.env(), "docs", "list", "-o", "csv")
		rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if code != 0 || err != nil || len(rows) != 4 {
			t.Fatalf("%d %v %q", code, err, out)
		}
		if want := []string{"evidence", "source", "key", "number", "state", "reason", "cause", "sends", "flexi_id", "updated"}; !slices.Equal(rows[0], want) {
			t.Errorf("head %q", rows[0])
		}
		if !strings.HasPrefix(rows[3][2], "'=") {
			t.Errorf("a cell is a formula: %q", rows[3][2])
		}
	})
}

func TestDocsListAsksTheDaemon(t *testing.T) {
	f := newFakeDaemon(t, map[string]string{"GET /api/v1/documents": encode(t, sampleRows()...)})
	f.matched = "7"
	code, _, talk := call(f.env(), "docs", "list", "--state", "open,parked", "--evidence", "banka", "--number", "a b", "--from", "2026-01-01",
		"--to", "2026-01-31", "--source", "", "--cause", "too_long", "--limit", "3")
	if code != 0 || !strings.Contains(talk, "3 of 7 shown") {
		t.Errorf("%d %q", code, talk)
	}
	want := "GET /api/v1/documents?cause=too_long&evidence=banka&format=ndjson&from=2026-01-01&limit=3&number=a+b&source=&state=open&state=parked&to=2026-01-31"
	if len(f.asked) != 1 || f.asked[0] != want {
		t.Errorf("asked %q\nwant  %q", f.asked, want)
	}
}

func TestExitCodes(t *testing.T) {
	good := newFakeDaemon(t, map[string]string{
		"GET /api/v1/documents": "", "GET /api/v1/queue": "", "GET /healthz": "ok", "GET /readyz": "ready",
		"POST /api/v1/queue/banka/1/look": `{"evidence":"banka","key":"1","state":"maybe"}`,
	})
	busy := newFakeDaemon(t, map[string]string{"POST /api/v1/queue/banka/1/confirm": `{"status":409,"detail":"the settle time is not over","retry":true}`})
	busy.status = 409
	never := newFakeDaemon(t, map[string]string{"POST /api/v1/queue/banka/1/confirm": `{"status":409,"detail":"it is confirmed already"}`})
	never.status = 409
	broken := newFakeDaemon(t, map[string]string{"GET /api/v1/documents": encode(t, sampleRows()...)})
	broken.cut = true
	stranger := newFakeDaemon(t, map[string]string{"GET /api/v1/documents": "<html>hello</html>", "GET /readyz": "no ledger"})
	stranger.status = 502
	gone := httptest.NewServer(nil)
	gone.Close()
	confirm := []string{"maybe", "confirm", "banka/1", "--reason", "seen"}
	for name, tc := range map[string]struct {
		env  []string
		args []string
		code int
		talk string
	}{
		"help":                       {nil, []string{"--help"}, 0, ""},
		"version":                    {nil, []string{"version"}, 0, ""},
		"config docs":                {nil, []string{"config", "docs"}, 0, ""},
		"completion":                 {nil, []string{"completion", "bash"}, 0, ""},
		"alive":                      {good.env(), []string{"healthcheck"}, 0, ""},
		"ready":                      {good.env(), []string{"healthcheck", "--ready"}, 0, ""},
		"not ready":                  {stranger.env(), []string{"healthcheck", "--ready"}, 1, "no ledger"},
		"look":                       {good.env(), []string{"maybe", "look", "banka/1"}, 0, ""},
		"no command":                 {nil, []string{"srve"}, 2, "did you mean serve?"},
		"no subcommand":              {nil, []string{"docs", "lsit"}, 2, "list"},
		"no such flag":               {nil, []string{"docs", "list", "--stat", "x"}, 2, "--stat"},
		"no argument":                {good.env(), []string{"docs", "show"}, 2, "EVIDENCE/[SOURCE:]KEY"},
		"one too many":               {good.env(), []string{"docs", "list", "x"}, 2, "usage"},
		"neither address nor number": {good.env(), []string{"docs", "show", "FV-1"}, 3, "docs list"},
		"version as a flag":          {nil, []string{"--version"}, 0, ""},
		"excel is CSV":               {good.env(), []string{"docs", "list", "--excel", "-o", "json"}, 2, "-o csv"},
		"unknown format":             {good.env(), []string{"docs", "list", "-o", "yaml"}, 2, "table, json"},
		"unknown state":              {good.env(), []string{"docs", "list", "--state", "done"}, 2, "maybe"},
		"wrong date":                 {good.env(), []string{"docs", "list", "--from", "1.1.2026"}, 2, "2026-01-31"},
		"no reason":                  {good.env(), []string{"maybe", "drop", "banka/1"}, 2, "--reason"},
		"nobody":                     {good.env("USER="), []string{"maybe", "look", "banka/1"}, 2, "--by"},
		"both kinds of company":      {good.env(), []string{"company", "accept", "--new", "--restored", "--reason", "x"}, 2, "--restored"},
		"no kind of company":         {good.env(), []string{"company", "accept", "--reason", "x"}, 2, "--new"},
		"named, and nobody to ask":   {good.env(), []string{"company", "accept", "--new", "--company", "firma", "--why", "x"}, 2, "--yes"},
		"company without new":        {good.env(), []string{"company", "accept", "--restored", "--company", "firma", "--why", "x"}, 2, "--new"},
		"neither key nor filter":     {good.env(), []string{"maybe", "drop", "--why", "x"}, 2, "filters"},
		"key and filter":             {good.env(), []string{"maybe", "drop", "banka/1", "--cause", "gone", "--why", "x"}, 2, "not both"},
		"filter without why":         {good.env(), []string{"maybe", "drop", "--reason", "conflict"}, 2, "--why"},
		"unknown reason":             {good.env(), []string{"maybe", "list", "--reason", "gone"}, 2, "conflict"},
		"nothing matches":            {good.env(), []string{"docs", "list"}, 3, "no document matches"},
		"nothing waits":              {good.env(), []string{"maybe", "list"}, 3, "nothing waits"},
		"no such document":           {good.env(), []string{"docs", "show", "banka/2"}, 3, "no document"},
		"not now":                    {busy.env(), confirm, 75, "settle time"},
		"never":                      {never.env(), confirm, 1, "confirmed already"},
		"half a list":                {broken.env(), []string{"docs", "list"}, 1, "broke off"},
		"not a daemon":               {stranger.env(), []string{"docs", "list"}, 1, "is this flexid?"},
		"no daemon":                  {[]string{"FLEXID_API_URL=" + gone.URL, "FLEXID_API_TOKEN=" + testToken}, []string{"docs", "list"}, 1, "is `flexid serve` running?"},
		"no daemon's health":         {[]string{"FLEXID_API_URL=" + gone.URL}, []string{"healthcheck"}, 1, "is `flexid serve` running?"},
		"no token":                   {[]string{"FLEXID_STATE_DIR=" + t.TempDir()}, []string{"docs", "list"}, 1, "is `flexid serve` running"},
		"wrong token":                {[]string{"FLEXID_API_URL=" + good.URL, "FLEXID_API_TOKEN=" + strings.ToUpper(testToken)}, []string{"docs", "list"}, 1, "FLEXID_API_TOKEN"},
		"bad settings, client":       {[]string{"FLEXID_API_URL=nonsense"}, []string{"docs", "list"}, 78, "FLEXID_API_URL"},
		"bad settings, serve":        {[]string{"FLEXID_FLEXI_URL=https://x"}, []string{"serve"}, 78, "FLEXID_FLEXI_COMPANY"},
		"bad settings, doctor":       {nil, []string{"doctor"}, 78, "FLEXID_FLEXI_URL"},
		"bad settings, check":        {[]string{"FLEXID_FLEXI_URLL=x"}, []string{"config", "check"}, 78, "FLEXID_FLEXI_URL"},
		"env file that is missing":   {good.env(), []string{"docs", "list", "--env-file", "/nowhere/flexid.env"}, 78, "/nowhere/flexid.env"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, talk := call(tc.env, tc.args...)
			if code != tc.code || !strings.Contains(talk, tc.talk) {
				t.Errorf("exit %d, want %d\nstdout %q\nstderr %q, want %q", code, tc.code, out, talk, tc.talk)
			}
			if code == 2 && out != "" {
				t.Errorf("talk on stdout: %q", out)
			}
		})
	}
}

func TestActsSayWhoAndWhy(t *testing.T) {
	answers := map[string]string{}
	for _, path := range []string{"queue/banka/eshop:a%2Fb/look", "queue/banka/1/confirm", "queue/banka/1/resend", "queue/banka/1/drop", "queue/banka/1/note"} {
		answers["POST /api/v1/"+path] = `{"evidence":"banka","key":"1","state":"queued"}`
	}
	for _, path := range []string{"writes/stop", "writes/resume", "company/accept", "ledger/accept-empty"} {
		answers["POST /api/v1/"+path] = `{"phase":"running","company":"firma","ready":true}`
	}
	for name, tc := range map[string]struct {
		args  []string
		asked string
	}{
		"look":        {[]string{"maybe", "look", "banka/eshop:a/b"}, `queue/banka/eshop:a%2Fb/look {"by":"jana"}`},
		"confirm":     {[]string{"maybe", "confirm", "banka/1", "--reason", "seen"}, `queue/banka/1/confirm {"by":"jana","why":"seen"}`},
		"resend":      {[]string{"maybe", "resend", "banka/1", "--by", "petr", "--reason", "r"}, `queue/banka/1/resend {"by":"petr","why":"r"}`},
		"drop":        {[]string{"maybe", "drop", "banka/1", "--reason", "r"}, `queue/banka/1/drop {"by":"jana","why":"r"}`},
		"note":        {[]string{"maybe", "note", "banka/1", "--reason", "r"}, `queue/banka/1/note {"by":"jana","why":"r"}`},
		"stop":        {[]string{"writes", "stop", "banka", "--reason", "r"}, `writes/stop {"by":"jana","why":"r","evidence":"banka"}`},
		"resume":      {[]string{"writes", "resume", "--reason", "r"}, `writes/resume {"by":"jana","why":"r"}`},
		"new":         {[]string{"company", "accept", "--new", "--reason", "r"}, `company/accept {"by":"jana","why":"r","how":"new"}`},
		"new, named":  {[]string{"company", "accept", "--new", "--company", "firma", "--yes", "--why", "r"}, `company/accept {"by":"jana","why":"r","how":"new","company":"firma"}`},
		"why":         {[]string{"maybe", "drop", "banka/1", "--why", "r, s"}, `queue/banka/1/drop {"by":"jana","why":"r, s"}`},
		"long reason": {[]string{"maybe", "drop", "banka/1", "--reason", `a "b", c`}, `queue/banka/1/drop {"by":"jana","why":"a \"b\", c"}`},
		"restored":    {[]string{"company", "accept", "--restored", "--reason", "r"}, `company/accept {"by":"jana","why":"r","how":"restored"}`},
		"empty":       {[]string{"ledger", "accept-empty", "--reason", "r"}, `ledger/accept-empty {"by":"jana","why":"r"}`},
		"behind sudo": {[]string{"ledger", "accept-empty", "--reason", "r"}, `ledger/accept-empty {"by":"eva","why":"r"}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeDaemon(t, answers)
			env := f.env()
			if name == "behind sudo" {
				env = f.env("USER=root", "SUDO_USER=eva")
			}
			code, out, talk := call(env, tc.args...)
			if code != 0 || out == "" {
				t.Fatalf("exit %d %q %q", code, out, talk)
			}
			if want := "POST /api/v1/" + tc.asked; len(f.asked) != 1 || f.asked[0] != want {
				t.Errorf("asked %q\nwant  %q", f.asked, want)
			}
		})
	}
}

func TestEnvFileBelowTheEnvironment(t *testing.T) {
	f := newFakeDaemon(t, map[string]string{"GET /healthz": "ok"})
	file := filepath.Join(t.TempDir(), "flexid.env")
	if err := os.WriteFile(file, []byte("FLEXID_API_URL=http://127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, talk := call([]string{"FLEXID_API_URL=" + f.URL}, "healthcheck", "--env-file", file); code != 0 {
		t.Errorf("the environment does not win: %d %s", code, talk)
	}
	if code, _, talk := call(nil, "healthcheck", "--env-file", file); code != 1 || !strings.Contains(talk, "127.0.0.1:1") {
		t.Errorf("the file is not read: %d %s", code, talk)
	}
}

func TestTokenDoesNotFollowARedirect(t *testing.T) {
	thief := newFakeDaemon(t, nil)
	moved := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	code, _, _ := call([]string{"FLEXID_API_URL=" + moved.URL, "FLEXID_API_TOKEN=" + testToken}, "docs", "list")
	if code == 0 || len(thief.asked) > 0 {
		t.Errorf("exit %d, the other host was asked %q", code, thief.asked)
	}
}

// TestTableStaysFlat: the widths are fixed by the first rows, so that a long list needs no memory.
func TestTableStaysFlat(t *testing.T) {
	var out bytes.Buffer
	p := &program{out: &out, err: io.Discard, format: "table"}
	pr := p.printer("key", "state")
	for range 3 * sampled {
		pr.row(nil, "k", "queued")
		if len(pr.waiting) > sampled {
			t.Fatalf("%d rows are kept", len(pr.waiting))
		}
	}
	if err := pr.end(); err != nil || strings.Count(out.String(), "\n") != 3*sampled+1 {
		t.Errorf("%v, %d lines", err, strings.Count(out.String(), "\n"))
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestOutputThatCannotBeWritten(t *testing.T) {
	f := newFakeDaemon(t, map[string]string{"GET /api/v1/documents": encode(t, sampleRows()...)})
	for _, format := range []string{"table", "json", "ndjson", "csv"} {
		p := &program{env: f.env(), out: fullDisk{}, err: io.Discard, in: strings.NewReader("")}
		if code := p.run(context.Background(), []string{"docs", "list", "-o", format}); code != 1 {
			t.Errorf("%s: exit %d", format, code)
		}
	}
}
