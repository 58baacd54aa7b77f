package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/batch/stream/embedded"
	"flexid/cmd/internal/api"
	"flexid/flexi/flexitest"
)

// invoice is one line of a file.
func invoice(key, note string) string {
	return fmt.Sprintf(`{"evidence":"faktura-vydana","document":{"kod":%q,"typDokl":"code:FAKTURA","varSym":"1","popis":%q,"polozkyFaktury":[{"nazev":"práce","mnozMj":"1","cenaMj":"100"}]}}`, key, note)
}

func write(t *testing.T, dir, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pushed is the report of a push in JSON.
type pushed struct {
	Run       string
	Events    int
	Counts    map[string]int
	Documents []struct {
		File                        string
		Line                        int
		Key, Outcome, Reason, Cause string
		State, Number               string
		FlexiID                     string `json:"flexi_id"`
		EventID                     string `json:"event_id"`
		Errors                      []struct{ Message, For string }
	}
}

// pushing runs flexid push -o json.
func pushing(t *testing.T, ctx context.Context, env []string, args ...string) (code int, rep pushed, talk string) {
	t.Helper()
	out, err := &safeBuffer{}, &safeBuffer{}
	p := &program{env: env, in: strings.NewReader(""), out: out, err: err}
	code = p.run(ctx, append([]string{"push", "-o", "json"}, args...))
	if out.String() != "" {
		if err := json.Unmarshal([]byte(out.String()), &rep); err != nil {
			t.Fatalf("report: %v\n%s", err, out)
		}
	}
	return code, rep, err.String()
}

// counted says whether the report has these counts and no other ones.
func (r *pushed) counted(want map[string]int) bool {
	for o, n := range r.Counts {
		if n != want[o] {
			return false
		}
	}
	sum := 0
	for _, n := range want {
		sum += n
	}
	return sum == r.Events && len(r.Documents) == r.Events
}

func ready(t *testing.T, env []string) {
	t.Helper()
	eventually(t, "ready", func() bool { code, _, _ := call(env, "healthcheck", "--ready"); return code == 0 })
}

func TestPushToARunningDaemon(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "state")
	env := erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t))
	serving(t, env)
	ready(t, env)
	in := t.TempDir()
	file := write(t, in, "a.ndjson", invoice("FV-1", "a"), invoice("FV-2", "a"), "", strings.Replace(invoice("FV-3", "a"), "FAKTURA", "NENI", 1))

	code, rep, talk := pushing(t, t.Context(), env, file)
	if code != exitRejected || !rep.counted(map[string]int{"confirmed": 2, "rejected": 1}) {
		t.Fatalf("exit %d %+v\n%s", code, rep, talk)
	}
	bad := rep.Documents[2]
	if bad.Line != 4 || bad.Key != "FV-3" || bad.Cause == "" || len(bad.Errors) == 0 || bad.Errors[0].Message == "" || bad.File != file {
		t.Errorf("the rejected one is reported as %+v", bad)
	}
	writes := erp.Count("write")

	code, rep, talk = pushing(t, t.Context(), env, write(t, in, "a.ndjson", invoice("FV-1", "a"), invoice("FV-2", "a")))
	if code != 0 || !rep.counted(map[string]int{"repeated": 2}) || erp.Count("write") != writes {
		t.Fatalf("the same file again: exit %d, %d writes, %+v\n%s", code, erp.Count("write")-writes, rep, talk)
	}
	for i, note := range []string{"b", "a"} { // changed, and changed back
		code, rep, talk = pushing(t, t.Context(), env, write(t, in, "a.ndjson", invoice("FV-1", note), invoice("FV-2", "a")))
		if code != 0 || !rep.counted(map[string]int{"confirmed": 1, "repeated": 1}) || erp.Count("write") != writes+1+i {
			t.Fatalf("popis %q: exit %d, %d writes, %+v\n%s", note, code, erp.Count("write")-writes, rep, talk)
		}
	}
	// Three events about one document in one file are three events.
	code, rep, talk = pushing(t, t.Context(), env, write(t, in, "b.ndjson", invoice("FV-9", "a"), invoice("FV-9", "b"), invoice("FV-9", "a")))
	if code != 0 || !rep.counted(map[string]int{"confirmed": 3}) || erp.Count("write") != writes+5 {
		t.Errorf("A, B, A: exit %d, %d writes, %+v\n%s", code, erp.Count("write")-writes, rep, talk)
	}
	if found := erp.Find("faktura-vydana", "code:FV-9"); len(found) != 1 {
		t.Errorf("%d records of FV-9", len(found))
	}
}

// TestPushOfWhatWasDroppedBefore: the file of the next night repeats a line that a person gave up. That is reported, and no failure.
func TestPushOfWhatWasDroppedBefore(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	env := erpEnv(erp, filepath.Join(t.TempDir(), "state"), "FLEXID_HTTP_ADDR="+freeAddr(t), "USER=jana")
	serving(t, env)
	ready(t, env)
	bad := strings.Replace(invoice("FV-2", "a"), "FAKTURA", "NENI", 1)
	file := write(t, t.TempDir(), "a.ndjson", invoice("FV-1", "a"), bad)
	if code, _, talk := pushing(t, t.Context(), env, file); code != exitRejected {
		t.Fatalf("exit %d: %s", code, talk)
	}
	if code, _, talk := call(env, "maybe", "drop", "faktura-vydana/FV-2", "--why", "x"); code != 0 {
		t.Fatalf("drop: exit %d: %s", code, talk)
	}
	code, rep, talk := pushing(t, t.Context(), env, file)
	if code != 0 || !rep.counted(map[string]int{"repeated": 1, "dropped": 1}) || rep.Documents[1].Reason != "repeated" {
		t.Errorf("exit %d %+v: %s", code, rep, talk)
	}
	if _, out, _ := call(env, "push", file); strings.Contains(out, "FV-2") {
		t.Errorf("listed among what needs somebody: %s", out)
	}
	other := strings.Replace(invoice("FV-3", "a"), "FAKTURA", "NENI", 1)
	if code, rep, talk = pushing(t, t.Context(), env, write(t, t.TempDir(), "b.ndjson", bad, other)); code != exitRejected {
		t.Errorf("beside one that is rejected: exit %d %+v: %s", code, rep, talk)
	}
}

// TestPushDoesNotWaitLongerThanItMay: --wait holds for a daemon that is not ready, and for one that does not answer, as well.
func TestPushDoesNotWaitLongerThanItMay(t *testing.T) {
	file := write(t, t.TempDir(), "a.ndjson", invoice("FV-1", "a"))
	for name, c := range map[string]struct {
		status func(w http.ResponseWriter, r *http.Request)
		talk   string
	}{
		"not ready": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, encode(t, api.Status{Info: api.Info{Phase: "waiting for NATS"}}))
		}, "waiting for NATS"},
		"silent": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "gives no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
			mux.HandleFunc("GET /api/v1/status", c.status)
			d := httptest.NewServer(mux)
			defer d.Close()
			env := []string{"FLEXID_API_URL=" + d.URL, "FLEXID_API_TOKEN=" + testToken, "FLEXID_STATE_DIR=" + t.TempDir()}
			begun := time.Now()
			code, _, talk := pushing(t, t.Context(), env, "--wait", "20ms", file)
			if took := time.Since(begun); code != exitTryAgain || took > 10*time.Second || !strings.Contains(talk, c.talk) {
				t.Errorf("exit %d after %v: %s", code, took, talk)
			}
		})
	}
}

func TestPushKnowsTheDaemonThatItTalksTo(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "state")
	env := erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t))
	serving(t, env)
	ready(t, env)
	file := write(t, t.TempDir(), "a.ndjson", invoice("FV-1", "a"))
	other := t.TempDir()
	token, err := os.ReadFile(filepath.Join(dir, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		more []string
		talk string
	}{
		"no token in that directory": {[]string{"FLEXID_STATE_DIR=" + other}, "FLEXID_STATE_DIR"},
		"another NATS":               {[]string{"FLEXID_STATE_DIR=" + other, "FLEXID_API_TOKEN=" + strings.TrimSpace(string(token))}, "nats.json"},
		"held, asked elsewhere":      {[]string{"FLEXID_HTTP_ADDR=" + freeAddr(t)}, "is held by another flexid"},
		"external, none answers":     {[]string{"FLEXID_NATS_URL=nats://127.0.0.1:1", "FLEXID_API_URL=http://127.0.0.1:1"}, "--alone"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, talk := pushing(t, t.Context(), append(env, tc.more...), file)
			if code == 0 || !strings.Contains(talk, tc.talk) {
				t.Errorf("exit %d %s", code, talk)
			}
		})
	}
	if n := erp.Count("write"); n != 0 {
		t.Errorf("%d writes", n)
	}
}

func TestPushAlone(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "state")
	env := erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t))
	in := t.TempDir()
	write(t, in, "a.json", "["+invoice("FV-1", "a")+",\n"+invoice("FV-2", "a")+"]")
	write(t, in, ".half.json", "[")
	write(t, in, "b.jsonl", invoice("FV-3", "a"))

	code, _, talk := pushing(t, t.Context(), env, in)
	if _, err := os.Stat(dir); code != exitFailed || !strings.Contains(talk, "--new-ledger") || err == nil {
		t.Fatalf("without a ledger: exit %d %s, state directory made: %v", code, talk, err == nil)
	}
	code, rep, talk := pushing(t, t.Context(), env, "--new-ledger", in)
	if code != 0 || !rep.counted(map[string]int{"confirmed": 3}) {
		t.Fatalf("exit %d %+v\n%s", code, rep, talk)
	}
	for _, d := range rep.Documents {
		if n := len(erp.Find("faktura-vydana", "code:"+d.Key)); n != 1 || d.FlexiID == "" {
			t.Errorf("%s: %d records, reported as %+v", d.Key, n, d)
		}
	}
	writes := erp.Count("write")
	code, rep, talk = pushing(t, t.Context(), env, in)
	if code != 0 || !rep.counted(map[string]int{"repeated": 3}) || erp.Count("write") != writes {
		t.Fatalf("again: exit %d %+v, %d writes\n%s", code, rep, erp.Count("write")-writes, talk)
	}
	// The daemon goes on where push has left.
	serving(t, env)
	ready(t, env)
	if _, out, _ := call(env, "docs", "list", "-o", "csv"); strings.Count(out, ",confirmed,") != 3 {
		t.Errorf("the daemon knows\n%s", out)
	}
}

// TestPushAloneReadsBack: Flexi drops in silence what our user may not write; a lone push finds it before it ends.
func TestPushAloneReadsBack(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "state")
	env := erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t))
	file := write(t, t.TempDir(), "a.ndjson", invoice("FV-1", "a"))
	if code, rep, talk := pushing(t, t.Context(), env, "--new-ledger", file); code != 0 {
		t.Fatalf("exit %d %+v\n%s", code, rep, talk)
	}
	serving(t, env)
	ready(t, env)
	_, out, _ := call(env, "docs", "show", "faktura-vydana/FV-1")
	if !strings.Contains(out, "read_back: as_left") {
		t.Errorf("nothing was read back before the end:\n%s", out)
	}
}

func TestPushNeedsTheERPOnlyAlone(t *testing.T) {
	file := write(t, t.TempDir(), "a.ndjson", invoice("FV-1", "a"))
	env := []string{"FLEXID_STATE_DIR=" + t.TempDir(), "FLEXID_API_URL=http://127.0.0.1:1"}
	if code, _, talk := pushing(t, t.Context(), env, "--new-ledger", file); code != exitConfig || !strings.Contains(talk, "FLEXID_FLEXI_URL") {
		t.Errorf("exit %d %s", code, talk)
	}
	if code, _, talk := pushing(t, t.Context(), append(env, "FLEXID_NATS_URL=nonsense"), file); code != exitConfig || !strings.Contains(talk, "FLEXID_NATS_URL") {
		t.Errorf("exit %d %s", code, talk)
	}
}

func TestPushCheck(t *testing.T) {
	dir := t.TempDir()
	good := write(t, dir, "good.ndjson", invoice("FV-1", "a"), invoice("FV-2", "a"))
	bad := write(t, dir, "bad.ndjson", invoice("FV-1", "a"), `{"evidence":"faktura-vydana","document":{"kod":"`+strings.Repeat("x", 60)+`"}}`,
		"{broken", `{"evidence":"faktura-vydana","op":"mix","document":{"kod":"A"}}`,
		`{"evidence":"faktura-vydana","document":{"kod":"B","polozkyFaktury":[{"id":"17"}]}}`)
	bare := write(t, dir, "bare.json", `{"kod":"A"}`)
	empty := write(t, dir, "empty.ndjson")
	for name, tc := range map[string]struct {
		args []string
		code int
		talk []string
	}{
		"good":             {[]string{"--check", good}, 0, []string{"2 documents in 1 file, no faults"}},
		"bad":              {[]string{"--check", bad, good}, 1, []string{bad + ":2: kod", bad + ":3: the body is not JSON", bad + ":4: op", bad + ":5: document: polozkyFaktury[0].id", "4 faults, 3 documents"}},
		"bad without":      {[]string{bad}, 1, []string{"nothing was sent"}},
		"no evidence":      {[]string{"--check", bare}, 1, []string{bare + ":1: no evidence"}},
		"evidence beside":  {[]string{"--check", "--evidence", "faktura-vydana", bare}, 0, []string{"1 document in"}},
		"nothing in it":    {[]string{"--check", empty}, exitNothing, []string{"no documents"}},
		"no such file":     {[]string{"--check", filepath.Join(dir, "no")}, exitUsage, []string{"no such file"}},
		"no file":          {[]string{"--check"}, exitUsage, []string{"usage"}},
		"format":           {[]string{"--check", "--format", "xml", good}, exitUsage, []string{"ndjson, json"}},
		"standard input":   {[]string{"--check", "-"}, exitNothing, []string{"no documents"}},
		"twice from there": {[]string{"--check", "-", "-"}, exitUsage, []string{"twice"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, talk := call([]string{"FLEXID_STATE_DIR=" + dir, "FLEXID_API_URL=http://127.0.0.1:1"}, append([]string{"push"}, tc.args...)...)
			if code != tc.code || out != "" {
				t.Errorf("exit %d, want %d; stdout %q", code, tc.code, out)
			}
			for _, want := range tc.talk {
				if !strings.Contains(talk, want) {
					t.Errorf("%q is missing in\n%s", want, talk)
				}
			}
		})
	}
	_, out, _ := call(nil, "push", "--check", "-o", "csv", bad)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 5 || rows[1][1] != "2" {
		t.Errorf("%v %q", err, rows)
	}
}

// TestPushCheckTakesWhatPeopleHave: packed files, folders with other things in them, files that cannot be read.
func TestPushCheckTakesWhatPeopleHave(t *testing.T) {
	dir := t.TempDir()
	packed := func(name string, lines ...string) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := io.WriteString(w, strings.Join(lines, "\n")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	// A broken first line, so that only the name says that it is NDJSON.
	raw := packed("good.ndjson.gz", invoice("FV-1", "a"), invoice("FV-2", "a"))
	packed("bad.ndjson.gz", "{broken", invoice("FV-2", "a"))
	cut := filepath.Join(dir, "cut.json.gz")
	if err := os.WriteFile(cut, raw[:len(raw)-12], 0o600); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write(t, folder, "a.ndjson", invoice("FV-1", "a"))
	write(t, folder, "b.csv", "kod;castka")
	gone := filepath.Join(folder, "gone.json")
	if err := os.Symlink(filepath.Join(folder, "nothing"), gone); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		arg  string
		code int
		talk []string
	}{
		"packed":        {filepath.Join(dir, "good.ndjson.gz"), 0, []string{"2 documents in 1 file, no faults"}},
		"packed faults": {filepath.Join(dir, "bad.ndjson.gz"), 1, []string{"bad.ndjson.gz:1: the body is not JSON: byte 2: ", "1 fault, 1 document"}},
		"packed, cut":   {cut, 1, []string{cut + ":", "the file cannot be read from here on: unexpected EOF"}},
		"a folder":      {folder, 1, []string{filepath.Join(folder, "b.csv") + " is passed over", gone + ": no such file", "1 fault, 1 document"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, talk := call([]string{"FLEXID_STATE_DIR=" + dir}, "push", "--check", tc.arg)
			if code != tc.code {
				t.Errorf("exit %d, want %d", code, tc.code)
			}
			for _, want := range tc.talk {
				if !strings.Contains(talk, want) {
					t.Errorf("%q is missing in\n%s", want, talk)
				}
			}
		})
	}
}

// TestPushSubfolders: a folder inside a folder is not entered, and never left out in silence.
func TestPushSubfolders(t *testing.T) {
	const night = "../../../shared/data/cases/dated-subfolder/night"
	if _, err := os.Stat(night); err != nil {
		t.Skip("the shared cases are not here: ", err)
	}
	linked := t.TempDir()
	there, err := filepath.Abs(night)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(there, filepath.Join(linked, "night")); err != nil {
		t.Fatal(err)
	}
	only := t.TempDir()
	for _, name := range []string{"2026-11-30", ".being-written"} {
		if err := os.Mkdir(filepath.Join(only, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		arg  string
		code int
		talk []string
		not  string
	}{
		"beside a file":       {night, 0, []string{night + "/2026-11-30 is passed over", "flexid push " + night + "/2026-11-30", "1 document in 1 file"}, ""},
		"by its name":         {night + "/2026-11-30", 0, []string{"1 document in 1 file"}, "passed over"},
		"nothing but folders": {only, 1, []string{only + "/2026-11-30 is passed over", "no file to push, only 1 folder"}, "being-written"},
		"behind a link":       {linked, 1, []string{linked + "/night is passed over"}, ""},
		"an empty folder":     {t.TempDir(), 3, []string{"no documents"}, "passed over"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, talk := call([]string{"FLEXID_STATE_DIR=" + t.TempDir()}, "push", "--check", tc.arg)
			if code != tc.code || tc.not != "" && strings.Contains(talk, tc.not) {
				t.Errorf("exit %d, want %d\n%s", code, tc.code, talk)
			}
			for _, want := range tc.talk {
				if !strings.Contains(talk, want) {
					t.Errorf("%q is missing in\n%s", want, talk)
				}
			}
		})
	}
}

// TestPushWrongEncoding: a file that a Czech program exported is refused in words that say what to do with it.
func TestPushWrongEncoding(t *testing.T) {
	const dir = "../../../shared/data/cases/wrong-encoding"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the shared cases are not here: ", err)
	}
	for name, want := range map[string]string{
		"cp1250.ndjson": `cp1250.ndjson:1: the body is not UTF-8: byte 103 in field "popis"; it looks like Windows-1250, in which it says "Příliš žluťoučký kůň"`,
		"envelope.xml":  "envelope.xml:1: the file is XML, which flexid does not read",
		"table.csv":     "table.csv:1: the file is a table (CSV)",
	} {
		t.Run(name, func(t *testing.T) {
			code, _, talk := call([]string{"FLEXID_STATE_DIR=" + t.TempDir()}, "push", "--check", filepath.Join(dir, name))
			if code != exitFailed || !strings.Contains(talk, want) {
				t.Errorf("exit %d\n%s\nwant %s", code, talk, want)
			}
		})
	}
}

// TestPushStoppedWhileItChecks sends nothing and says so.
func TestPushStoppedWhileItChecks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := write(t, t.TempDir(), "a.ndjson", invoice("FV-1", "a"))
	code, rep, talk := pushing(t, ctx, []string{"FLEXID_STATE_DIR=" + t.TempDir(), "FLEXID_API_URL=http://127.0.0.1:1"}, file)
	if code != exitTryAgain || !strings.Contains(talk, "nothing was sent") || rep.Events != 0 {
		t.Errorf("exit %d %+v %s", code, rep, talk)
	}
}

func TestPushTableNamesWhatNeedsSomebody(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	env := erpEnv(erp, filepath.Join(t.TempDir(), "state"), "FLEXID_HTTP_ADDR="+freeAddr(t))
	serving(t, env)
	ready(t, env)
	file := write(t, t.TempDir(), "a.ndjson", invoice("FV-1", "a"), strings.Replace(invoice("FV-2", "a"), "FAKTURA", "NENI", 1))
	out, talk := &safeBuffer{}, &safeBuffer{}
	p := &program{env: env, in: strings.NewReader(""), out: out, err: talk}
	if code := p.run(t.Context(), []string{"push", file}); code != exitRejected {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"confirmed  1", "rejected   1", "FV-2", "NENI"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "FV-1") || !strings.Contains(talk.String(), "2 documents: 1 confirmed, 1 rejected") {
		t.Errorf("%s\n%s", out, talk)
	}
}

// narrow passes connections on and holds back what the client says after its first 20,000 bytes until ctx ends. Without it a
// quick machine has published a whole file before its first document is written, and a stop in between cannot be told.
func narrow(t *testing.T, ctx context.Context, target string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	carry := func(client net.Conn) {
		defer client.Close()
		server, err := net.Dial("tcp", strings.TrimPrefix(target, "nats://"))
		if err != nil {
			return
		}
		all.Go(func() {
			defer client.Close()
			_, _ = io.Copy(client, server)
		})
		defer server.Close()
		if _, err := io.CopyN(server, client, 20_000); err != nil {
			return
		}
		<-ctx.Done()
		_, _ = io.Copy(server, client)
	}
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { carry(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// TestPushStoppedAndRepeated: Ctrl-C stops the publishing; the same file again brings every document in, none twice.
func TestPushStoppedAndRepeated(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "state")
	env := erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t))
	var all []string
	for i := range 300 {
		all = append(all, invoice(fmt.Sprintf("FV-%d", i), "a"))
	}
	file := write(t, t.TempDir(), "a.ndjson", all...)
	serving(t, env)
	ready(t, env)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	erp.OnWrite(0, func(flexitest.Request) bool { cancel(); return false }, flexitest.Fault{})
	info, err := embedded.ReadInfo(filepath.Join(dir, "nats.json"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(dir, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	code, rep, talk := pushing(t, ctx, append(env, "FLEXID_NATS_URL=nats://"+narrow(t, ctx, info.URL), "FLEXID_NATS_TOKEN="+info.Token,
		"FLEXID_API_TOKEN="+strings.TrimSpace(string(token))), file)
	if code != exitTryAgain || rep.Counts["unsent"] == 0 || rep.Events != 300 || !strings.Contains(talk, "stopped") {
		t.Fatalf("exit %d %v\n%s", code, rep.Counts, talk)
	}
	code, rep, talk = pushing(t, t.Context(), env, file)
	if code != 0 || rep.Counts["confirmed"]+rep.Counts["repeated"] != 300 || rep.Counts["repeated"] == 0 {
		t.Fatalf("exit %d %v\n%s", code, rep.Counts, talk)
	}
	for i := range 300 {
		if n := len(erp.Find("faktura-vydana", fmt.Sprintf("code:FV-%d", i))); n != 1 {
			t.Errorf("FV-%d: %d records", i, n)
		}
	}
}

// TestPushTellsAMaybe: what is not known when nobody waits longer is reported as such.
func TestPushTellsAMaybe(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "state")
	env := erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t))
	serving(t, env)
	ready(t, env)
	erp.Script(flexitest.Fault{Kind: flexitest.ServerError, Status: 502})
	file := write(t, t.TempDir(), "a.ndjson", invoice("FV-1", "a"))
	code, rep, talk := pushing(t, t.Context(), env, "--wait", "2s", file)
	if code != exitUnknown || !rep.counted(map[string]int{"maybe": 1}) || rep.Documents[0].State != "maybe" {
		t.Errorf("exit %d %+v\n%s", code, rep, talk)
	}
}

func TestPushWaitsWhileWritesAreStopped(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "state")
	env := erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t))
	serving(t, env)
	ready(t, env)
	if code, _, talk := call(env, "writes", "stop", "--reason", "year end"); code != 0 {
		t.Fatal(talk)
	}
	file := write(t, t.TempDir(), "a.ndjson", invoice("FV-1", "a"))
	code, rep, talk := pushing(t, t.Context(), env, "--wait", "4s", file)
	if code != exitTryAgain || !rep.counted(map[string]int{"waiting": 1}) || strings.Count(talk, "writes are stopped (person): year end; `flexid writes resume`") < 2 {
		t.Errorf("exit %d %+v\n%s", code, rep, talk)
	}
	if _, out, _ := call(env, "docs", "show", "faktura-vydana/FV-1"); !strings.Contains(out, "year end") || !strings.Contains(out, "who acts     operator") {
		t.Errorf("docs show does not say why it waits:\n%s", out)
	}
	if code, out, _ := call(env, "status"); code != exitTryAgain || !strings.Contains(out, "year end") {
		t.Errorf("status: exit %d\n%s", code, out)
	}
	if code, rep, talk := pushing(t, t.Context(), env, "--wait", "0", file); code != 0 || !rep.counted(map[string]int{"waiting": 1}) {
		t.Errorf("exit %d %+v\n%s", code, rep, talk)
	}
	if n := erp.Count("write"); n != 0 {
		t.Errorf("%d writes", n)
	}
}

// TestPushOutlivesTheDaemon: the daemon restarts, on another port, while push publishes and waits.
func TestPushOutlivesTheDaemon(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "state")
	env := erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t))
	var all []string
	for i := range 150 {
		all = append(all, invoice(fmt.Sprintf("FV-%d", i), "a"))
	}
	file := write(t, t.TempDir(), "a.ndjson", all...)
	_, stop := serving(t, env)
	ready(t, env)
	var restart sync.WaitGroup
	restart.Go(func() {
		eventually(t, "some are written", func() bool { return erp.Count("write") > 0 })
		stop()
		serving(t, env)
	})
	code, rep, talk := pushing(t, t.Context(), env, "--wait", "60s", file)
	restart.Wait()
	if code != 0 || rep.Counts["confirmed"]+rep.Counts["repeated"]+rep.Counts["adopted"] != 150 {
		t.Errorf("exit %d %v\n%s", code, rep.Counts, talk)
	}
	for i := range 150 {
		if n := len(erp.Find("faktura-vydana", fmt.Sprintf("code:FV-%d", i))); n != 1 {
			t.Errorf("FV-%d: %d records", i, n)
		}
	}
}

// TestPushForAWebhookSource: what a webhook brought and what the nightly file of the same source holds is one document; the
// same key without the source is another one.
func TestPushForAWebhookSource(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	intake := freeAddr(t)
	secret := "0123456789abcdef01234567"
	env := erpEnv(erp, filepath.Join(t.TempDir(), "state"), "FLEXID_HTTP_ADDR="+freeAddr(t), "FLEXID_WEBHOOK_ADDR="+intake,
		"FLEXID_WEBHOOK_SOURCES=eshop", "FLEXID_WEBHOOK_ESHOP_KIND=token", "FLEXID_WEBHOOK_ESHOP_SECRET="+secret)
	serving(t, env)
	ready(t, env)
	document := `{"kod":"FV-1","typDokl":"code:FAKTURA","varSym":"1","popis":"a"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+intake+"/in/eshop/faktura-vydana?wait=20s", strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Flexid-Key", "order/7")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s", resp.Status, text)
	}
	eventually(t, "confirmed", func() bool {
		_, out, _ := call(env, "docs", "list", "--source", "eshop", "--state", "confirmed", "-o", "ndjson")
		return strings.Contains(out, `"key":"order/7"`)
	})
	writes := erp.Count("write")
	line := func(popis string) string {
		return `{"evidence":"faktura-vydana","key":"order/7","document":` + strings.Replace(document, `"a"`, `"`+popis+`"`, 1) + `}`
	}
	in := t.TempDir()
	if code, rep, talk := pushing(t, t.Context(), env, "--source", "eshop", write(t, in, "a.ndjson", line("a"))); code != 0 || !rep.counted(map[string]int{"repeated": 1}) || erp.Count("write") != writes {
		t.Fatalf("the same again: exit %d %+v, %d writes\n%s", code, rep, erp.Count("write")-writes, talk)
	}
	if code, rep, talk := pushing(t, t.Context(), env, write(t, in, "b.ndjson", strings.Replace(line("b"), `"key"`, `"source":"eshop","key"`, 1))); code != 0 || !rep.counted(map[string]int{"confirmed": 1}) {
		t.Fatalf("changed, the source in the event: exit %d %+v\n%s", code, rep, talk)
	}
	if found := erp.Find("faktura-vydana", "code:FV-1"); len(found) != 1 || fmt.Sprint(found[0].Fields["popis"]) != "b" {
		t.Errorf("records %+v", found)
	}
	if code, rep, talk := pushing(t, t.Context(), env, write(t, in, "c.ndjson", line("c"))); code != exitRejected || !rep.counted(map[string]int{"conflict": 1}) {
		t.Errorf("without the source it claims another's number: exit %d %+v\n%s", code, rep, talk)
	}
	if code, _, talk := call(env, "push", "--check", "--source", "eshob", filepath.Join(in, "a.ndjson")); code != 0 || !strings.Contains(talk, "eshob is none of FLEXID_WEBHOOK_SOURCES (eshop)") {
		t.Errorf("a source that is none: exit %d %s", code, talk)
	}
	if code, _, talk := call(env, "push", "--check", "--source", "eshop", filepath.Join(in, "a.ndjson")); code != 0 || strings.Contains(talk, "warning") {
		t.Errorf("a source that is one: exit %d %s", code, talk)
	}
	if code, _, talk := call(env, "push", "--source", "E shop", filepath.Join(in, "a.ndjson")); code != 2 || !strings.Contains(talk, "--source") {
		t.Errorf("exit %d %s", code, talk)
	}
}
