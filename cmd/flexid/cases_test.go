package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexid/flexi/flexitest"
)

// caseFile is a file of a case folder.
func caseFile(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("../../../shared/data/cases", name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("the shared cases are not here: ", err)
	}
	return path
}

// caseDaemon is a daemon beside a fake, ready for files.
func caseDaemon(t *testing.T) (erp *flexitest.Server, env []string) {
	t.Helper()
	erp = startERP(t, flexitest.Options{})
	env = erpEnv(erp, filepath.Join(t.TempDir(), "state"), "FLEXID_HTTP_ADDR="+freeAddr(t))
	serving(t, env)
	ready(t, env)
	return erp, env
}

// pushCase pushes a file and compares exit code and counts.
func pushCase(t *testing.T, env []string, file string, code int, want map[string]int) pushed {
	t.Helper()
	got, rep, talk := pushing(t, t.Context(), env, "--wait", "20s", file)
	if got != code || !rep.counted(want) {
		t.Fatalf("%s: exit %d, want %d; %+v, want %v\n%s", filepath.Base(file), got, code, rep.Counts, want, talk)
	}
	return rep
}

// TestCaseReceivedNumberRestarts: another year's invoice with the number of last year's changes nothing of it.
func TestCaseReceivedNumberRestarts(t *testing.T) {
	last, this := caseFile(t, "received-number-restarts/1-last-year.ndjson"), caseFile(t, "received-number-restarts/2-this-year.ndjson")
	erp, env := caseDaemon(t)
	pushCase(t, env, last, 0, map[string]int{"confirmed": 2})
	before := erp.Records("faktura-prijata")
	rep := pushCase(t, env, this, exitRejected, map[string]int{"conflict": 1})
	if r := rep.Documents[0]; r.Reason != "conflict" || len(r.Errors) == 0 || !strings.Contains(r.Errors[0].Message+r.Errors[0].For, "another year") {
		t.Errorf("reported as %+v", r)
	}
	if after := erp.Records("faktura-prijata"); len(after) != 1 || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("last year's record was touched: %v, before %v", after, before)
	}
	// A correction of the same invoice goes through.
	text, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	corrected := write(t, t.TempDir(), "corrected.ndjson", strings.Split(strings.TrimSpace(strings.Replace(string(text), `"1000"`, `"1100"`, 1)), "\n")...)
	pushCase(t, env, corrected, 0, map[string]int{"repeated": 1, "confirmed": 1})
	if after := erp.Records("faktura-prijata"); len(after) != 1 || fmt.Sprint(after[0].Fields["sumOsv"]) != "1100.0" {
		t.Errorf("the correction: %v", after)
	}
}

// TestCaseUpdateBeforeCreate: Flexi ends with the newest version, and the same file again says so.
func TestCaseUpdateBeforeCreate(t *testing.T) {
	file := caseFile(t, "update-before-create/events.ndjson")
	erp, env := caseDaemon(t)
	pushCase(t, env, file, exitRejected, map[string]int{"rejected": 1, "confirmed": 1})
	eventually(t, "the newest version is in Flexi", func() bool {
		found := erp.Find("faktura-vydana", "code:OOO-1")
		return len(found) == 1 && fmt.Sprint(found[0].Fields["sumOsv"]) == "200.0"
	})
	eventually(t, "its row is confirmed", func() bool {
		_, out, _ := call(env, "docs", "list", "--state", "confirmed", "-o", "ndjson")
		return strings.Contains(out, `"OOO-1"`)
	})
	if code, rep, talk := pushing(t, t.Context(), env, file); code != 0 || rep.Counts["superseded"] != 1 {
		t.Errorf("the same again: exit %d %+v\n%s", code, rep.Counts, talk)
	}
	if found := erp.Find("faktura-vydana", "code:OOO-1"); len(found) != 1 || fmt.Sprint(found[0].Fields["sumOsv"]) != "200.0" {
		t.Errorf("after the same again: %+v", found)
	}
}

// TestCaseEvidenceNotImportable: rows that Flexi does not import are rejected without a send, and stop nobody.
func TestCaseEvidenceNotImportable(t *testing.T) {
	file := caseFile(t, "evidence-not-importable/rows.ndjson")
	erp, env := caseDaemon(t)
	begun := time.Now()
	rep := pushCase(t, env, file, exitRejected, map[string]int{"confirmed": 20, "rejected": 20})
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, d := range rep.Documents {
		if d.Outcome == "rejected" && (d.Cause != "not_importable" || len(d.Errors) == 0) {
			t.Errorf("line %d: %+v", d.Line, d)
		}
	}
	for _, r := range erp.Requests() {
		if r.Kind == flexitest.Write && strings.Contains(r.Path, "polozka") {
			t.Errorf("a row was sent: %s %s", r.Method, r.Path)
		}
	}
	for _, kv := range env {
		addr, ok := strings.CutPrefix(kv, "FLEXID_HTTP_ADDR=")
		if !ok {
			continue
		}
		if text := body(t, "http://"+addr+"/metrics"); !strings.Contains(text, "flexid_documents{") || strings.Contains(text, "flexid_writes_stopped{") {
			t.Errorf("writes are stopped, or the metrics do not tell:\n%s", text)
		}
	}
	if code, _, _ := call(env, "status"); code != 0 {
		t.Errorf("status ends with %d", code)
	}
}

// TestCaseFloatNoise: what binary floats add is no difference, 0.01 is one.
func TestCaseFloatNoise(t *testing.T) {
	file := caseFile(t, "float-noise/invoices.ndjson")
	erp, env := caseDaemon(t)
	pushCase(t, env, file, 0, map[string]int{"confirmed": 4})
	writes := erp.Count("write")
	pushCase(t, env, file, 0, map[string]int{"repeated": 4})
	if n := erp.Count("write") - writes; n != 0 {
		t.Errorf("%d writes for the same file", n)
	}
	// A person sets the last one 0.01 lower: what the sender changes next is not put over that.
	found := erp.Find("faktura-vydana", "code:FLOAT-4")
	if len(found) != 1 || !erp.Edit("faktura-vydana", found[0].ID, map[string]any{"sumOsv": "300.30"}) {
		t.Fatalf("FLOAT-4 is %+v", found)
	}
	next := write(t, t.TempDir(), "next.ndjson", `{"evidence":"faktura-vydana","document":{"kod":"FLOAT-4","sumOsv":300.32}}`)
	pushCase(t, env, next, exitRejected, map[string]int{"conflict": 1})
}

// TestCaseDoorBOM: a byte order mark before a delivery is passed over, and the same body without it is the same content.
func TestCaseDoorBOM(t *testing.T) {
	marked, err := os.ReadFile(caseFile(t, "door-bom/body.json"))
	if err != nil {
		t.Fatal(err)
	}
	plain, ok := bytes.CutPrefix(marked, []byte("\xef\xbb\xbf"))
	if !ok {
		t.Fatal("the case has no mark")
	}
	erp, intake, secret := startERP(t, flexitest.Options{}), freeAddr(t), "0123456789abcdef01234567"
	env := erpEnv(erp, filepath.Join(t.TempDir(), "state"), "FLEXID_HTTP_ADDR="+freeAddr(t), "FLEXID_WEBHOOK_ADDR="+intake,
		"FLEXID_WEBHOOK_SOURCES=eshop", "FLEXID_WEBHOOK_ESHOP_KIND=token", "FLEXID_WEBHOOK_ESHOP_SECRET="+secret)
	serving(t, env)
	ready(t, env)
	post := func(content []byte) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+intake+"/in/eshop/faktura-vydana?wait=20s", bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	for name, content := range map[string][]byte{"marked": marked, "plain": plain} {
		if code, text := post(content); code != http.StatusOK || !strings.Contains(text, `"state":"confirmed"`) {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	if n := erp.Count("write"); n != 1 {
		t.Errorf("%d writes for one content", n)
	}
	if code, text := post(append([]byte("\xef\xbb\xbf"), marked...)); code != http.StatusUnprocessableEntity {
		t.Errorf("two marks: %d %s", code, text)
	}
}

// body reads an address.
func body(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
