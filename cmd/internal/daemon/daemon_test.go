package daemon

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexid/config/statedir"
	"flexid/flexi/flexitest"
)

func TestEventBecomesDocument(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "state")
	r := begin(t, settings(t, erp, dir))
	r.push("FV-1")
	s := r.becomes("FV-1", "confirmed")
	if got := erp.Find("faktura-vydana", "code:FV-1"); len(got) != 1 {
		t.Fatalf("%d records in Flexi", len(got))
	}
	if len(s.Events) != 1 || len(s.Attempts) != 1 || len(s.Attempts[0].Requests) == 0 || s.Attempts[0].Outcome != "accepted" || s.FlexiID == "" {
		t.Errorf("story %+v", s)
	}
	if code, text := r.do("GET", "/readyz", ""); code != 200 {
		t.Errorf("readyz %d %s", code, text)
	}
	for _, want := range []string{`flexid_documents{reason="",state="confirmed"} 1`, `flexid_documents_total{state="confirmed"} 1`,
		`flexid_wire_requests_total{kind="write",outcome="accepted"} 1`, `flexid_calls_total{kind="write"} 1`, `flexid_amplification{kind="write"} 1`,
		`flexid_amplification{kind="read"} 1`, `flexid_amplification{kind="lookup"} 1`, `flexid_build_info{`} {
		// A call that is under way has no request yet.
		eventually(t, want, func() bool { _, metrics := r.do("GET", "/metrics", ""); return strings.Contains(metrics, want) })
	}
	st := r.status()
	if !st.Ready || st.Engine == nil || st.Engine.Documents["confirmed"] != 1 || st.Phase != "running" || st.Ledger == "" {
		t.Errorf("status %+v", st)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("state directory %v %v", info.Mode(), err)
	}
	if r.log.line("embedded NATS", "nats -s ", "nats.json") == "" {
		t.Error("how to reach NATS is not said")
	}
	if strings.Contains(r.log.String(), r.info.NATSToken) || strings.Contains(r.log.String(), r.info.Token) || strings.Contains(r.log.String(), "secret") {
		t.Error("a secret is in the log")
	}
	if err := r.end(); err != nil {
		t.Errorf("stop: %v", err)
	}
	again := begin(t, settings(t, erp, dir))
	if s, ok := again.story("faktura-vydana/FV-1"); !ok || s.State != "confirmed" {
		t.Errorf("after a restart: %+v", s)
	}
	if n := erp.Count("write"); n != 1 {
		t.Errorf("%d writes", n)
	}
}

func TestERPDownAtStart(t *testing.T) {
	t.Parallel()
	erp := startERP(t, flexitest.Options{})
	erp.SetDown(true)
	r := begin(t, settings(t, erp, t.TempDir()))
	r.push("FV-1")
	r.becomes("FV-1", "queued")
	if code, text := r.do("GET", "/readyz", ""); code != 200 {
		t.Errorf("the ERP being down is not a reason to be not ready: %d %s", code, text)
	}
	eventually(t, "a word in the log", func() bool { return r.log.line("company in Flexi is not checked yet") != "" })
	if n := erp.Count("write"); n != 0 {
		t.Errorf("%d writes to an ERP that nobody has looked at", n)
	}
}

func TestLoginRefused(t *testing.T) {
	t.Parallel()
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir(), "FLEXID_FLEXI_PASSWORD=wrong"))
	r.push("FV-1")
	eventually(t, "writes stop", func() bool {
		for _, g := range r.status().Engine.Stops {
			if g.Reason == "login" {
				return strings.Contains(g.Remedy, "FLEXID_FLEXI_PASSWORD")
			}
		}
		return false
	})
	for _, words := range []string{"writes stopped", "documents wait"} {
		waitFor(t, 2*companySoon, words+" in the log", func() bool { return r.log.line(words, "login") != "" })
		if line := r.log.line(words, "login"); !strings.Contains(line, "FLEXID_FLEXI_USER") {
			t.Errorf("log line %q", line)
		}
	}
	if line := r.log.line("documents wait", "login"); !strings.Contains(line, `"documents_waiting":1`) {
		t.Errorf("log line %q", line)
	}
	if n := erp.Count("write"); n != 0 {
		t.Errorf("%d writes", n)
	}
	r.becomes("FV-1", "queued")
}

func TestStateDirectoryInOtherHands(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := t.TempDir()
	begin(t, settings(t, erp, dir))
	second, _ := launch(t, settings(t, erp, dir))
	var held *statedir.HeldError
	if err := second.wait(); !errors.As(err, &held) || held.Holder.PID != os.Getpid() {
		t.Errorf("a second daemon: %v", err)
	}
}

func TestAnotherCompanyOrSystem(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := t.TempDir()
	r := begin(t, settings(t, erp, dir))
	r.push("FV-1")
	r.becomes("FV-1", "confirmed") // only a company that Flexi has confirmed binds the ledger
	r.end()
	for name, tc := range map[string]struct{ setting, theirs, ours string }{
		"company": {"FLEXID_FLEXI_COMPANY=jina", "firma", "jina"},
		"system":  {"FLEXID_FLEXI_SYSTEM=OTHER", "FLEXID", "OTHER"},
		"zone":    {"FLEXID_TZ=America/New_York", "Europe/Prague", "America/New_York"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := launch(t, settings(t, erp, dir, tc.setting))
			err := r.wait()
			var pin *PinError
			if !errors.As(err, &pin) || pin.Ledger != tc.theirs || pin.Settings != tc.ours {
				t.Fatalf("%v", err)
			}
			variable, _, _ := strings.Cut(tc.setting, "=")
			for _, want := range []string{`"` + tc.theirs + `"`, `"` + tc.ours + `"`, variable + "=" + tc.theirs, "FLEXID_NATS_PREFIX"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %s", err, want)
				}
			}
		})
	}
}

func TestWaitsForNATS(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	http, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	http.Close()
	r, _ := launch(t, settings(t, erp, t.TempDir(), "FLEXID_NATS_URL=nats://"+nobody.Addr().String(),
		"FLEXID_HTTP_ADDR="+http.Addr().String(), "FLEXID_API_TOKEN=0123456789abcdef0123456789abcdef"))
	r.info.HTTP = "http://" + http.Addr().String()
	eventually(t, "not ready, and why", func() bool {
		code, text := r.do("GET", "/readyz", "")
		return code == 503 && strings.Contains(text, nobody.Addr().String()) && strings.Contains(text, "FLEXID_NATS_URL")
	})
	if code, _ := r.do("GET", "/healthz", ""); code != 200 {
		t.Errorf("healthz %d", code)
	}
	if err := r.end(); err != nil {
		t.Errorf("a stop while waiting: %v", err)
	}
}

func TestTakenHTTPAddress(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	r, _ := launch(t, settings(t, erp, dir, "FLEXID_HTTP_ADDR="+l.Addr().String()))
	if err := r.wait(); err == nil || !strings.Contains(err.Error(), "FLEXID_HTTP_ADDR") {
		t.Errorf("%v", err)
	}
	lock, err := statedir.Acquire(dir)
	if err != nil {
		t.Fatalf("a failed start holds on to the state directory: %v", err)
	}
	lock.Release()
}

func TestUnusableSettings(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	for name, more := range map[string]string{"authority without a certificate": "FLEXID_FLEXI_CA_FILE=/dev/null"} {
		t.Run(name, func(t *testing.T) {
			r, _ := launch(t, settings(t, erp, t.TempDir(), more))
			var setting *SettingError
			if err := r.wait(); !errors.As(err, &setting) {
				t.Errorf("%v", err)
			}
		})
	}
}
