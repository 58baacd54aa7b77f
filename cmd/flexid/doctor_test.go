package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"flexid/batch/stream/embedded"
	"flexid/flexi/flexitest"
)

func examine(t *testing.T, env []string, args ...string) (int, map[string]finding) {
	t.Helper()
	code, out, talk := call(env, append([]string{"doctor", "-o", "json"}, args...)...)
	var list []finding
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("exit %d, %v in %q, %q", code, err, out, talk)
	}
	found := map[string]finding{}
	for _, f := range list {
		found[f.Check] = f
		if f.Result == resultFail && f.Do == "" {
			t.Errorf("%s fails and does not say what to do: %s", f.Check, f.Text)
		}
		if strings.Contains(f.Text+f.Do, "secret") {
			t.Errorf("%s tells the password", f.Check)
		}
	}
	return code, found
}

func TestDoctorOfAHealthyERP(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := t.TempDir() + "/never"
	code, found := examine(t, erpEnv(erp, dir))
	for _, check := range []string{"address", "login", "company", "licence", "clock", "rights faktura-vydana", "rights faktura-prijata",
		"rights adresar", "document types, issued", "state directory", "nats"} {
		if found[check].Result != resultOK {
			t.Errorf("%s: %+v", check, found[check])
		}
	}
	if !strings.Contains(found["document types, issued"].Text, "FAKTURA") || !strings.Contains(found["company"].Text, "Ukázková firma") {
		t.Errorf("%+v", found)
	}
	if code != 0 {
		t.Errorf("exit %d: %+v", code, found)
	}
	// Questions are asked by POST too; none of them may commit anything.
	if n := erp.Count("write"); n != 0 {
		t.Errorf("%d writes", n)
	}
	for _, r := range erp.Requests() {
		if r.Committed {
			t.Errorf("%s %s committed something", r.Method, r.Path)
		}
	}
}

func switchChangesOff(t *testing.T, s *flexitest.Server) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/c/firma/changes/disable.xml", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("flexid", "secret")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options flexitest.Options
		prepare func(*flexitest.Server)
		env     []string
		check   string
		result  string
		do      string
	}{
		"nobody there":       {flexitest.Options{}, func(s *flexitest.Server) { s.Close() }, nil, "address", resultFail, "FLEXID_FLEXI_URL"},
		"wrong password":     {flexitest.Options{}, nil, []string{"FLEXID_FLEXI_PASSWORD=no"}, "login", resultFail, "FLEXID_FLEXI_PASSWORD"},
		"no session":         {flexitest.Options{}, nil, []string{"FLEXID_FLEXI_AUTH=session", "FLEXID_FLEXI_PASSWORD=no"}, "login", resultFail, "FLEXID_FLEXI_PASSWORD"},
		"wrong company":      {flexitest.Options{}, nil, []string{"FLEXID_FLEXI_COMPANY=jina"}, "company", resultFail, "FLEXID_FLEXI_COMPANY"},
		"self-signed":        {flexitest.Options{TLS: true}, nil, nil, "certificate", resultFail, "FLEXID_FLEXI_CERT_SHA256="},
		"no right":           {flexitest.Options{}, func(s *flexitest.Server) { s.SetRight("faktura-vydana", false) }, nil, "rights faktura-vydana", resultFail, "right"},
		"no such evidence":   {flexitest.Options{}, nil, nil, "rights neni", resultFail, "name"},
		"Changes off":        {flexitest.Options{}, func(s *flexitest.Server) { switchChangesOff(t, s) }, nil, "changes", resultWarn, "switch it on"},
		"NATS not there":     {flexitest.Options{}, nil, []string{"FLEXID_NATS_URL=nats://127.0.0.1:1"}, "nats", resultFail, "FLEXID_NATS_URL"},
		"no state directory": {flexitest.Options{}, nil, []string{"FLEXID_STATE_DIR=/dev/null/flexid"}, "state directory", resultFail, "FLEXID_STATE_DIR"},
		"nothing encrypted":  {flexitest.Options{}, nil, nil, "certificate", resultWarn, "https"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			erp := startERP(t, tc.options)
			if tc.prepare != nil {
				tc.prepare(erp)
			}
			code, found := examine(t, erpEnv(erp, t.TempDir(), tc.env...), "--evidence", "faktura-vydana,neni")
			if f := found[tc.check]; f.Result != tc.result || !strings.Contains(f.Do, tc.do) {
				t.Errorf("%+v", f)
			}
			if code != 1 {
				t.Errorf("exit %d", code)
			}
		})
	}
}

// TestDoctorPrintsTheLineThatHelps: what it says to set is what makes it content.
func TestDoctorPrintsTheLineThatHelps(t *testing.T) {
	erp := startERP(t, flexitest.Options{TLS: true})
	_, found := examine(t, erpEnv(erp, t.TempDir()))
	var line string
	for word := range strings.FieldsSeq(found["certificate"].Do) {
		if strings.HasPrefix(word, "FLEXID_FLEXI_CERT_SHA256=") {
			line = word
		}
	}
	if n := len(erp.Requests()); n != 0 {
		t.Errorf("%d requests over a connection that was not verified", n)
	}
	code, found := examine(t, erpEnv(erp, t.TempDir(), line))
	if code != 0 || found["certificate"].Result != resultOK {
		t.Errorf("exit %d after setting %q: %+v", code, line, found["certificate"])
	}
}

func TestDoctorInASession(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	if code, found := examine(t, erpEnv(erp, t.TempDir(), "FLEXID_FLEXI_AUTH=session")); code != 0 || found["login"].Result != resultOK {
		t.Errorf("exit %d: %+v", code, found)
	}
	if erp.Logins() != 1 {
		t.Errorf("%d logins", erp.Logins())
	}
}

func TestDoctorTellsTheBudget(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	env := erpEnv(erp, t.TempDir(), "FLEXID_HTTP_ADDR="+freeAddr(t), "FLEXID_FLEXI_DAILY_REQUESTS=5000", "FLEXID_FLEXI_DAILY_RESET=06:00", "FLEXID_TZ=Europe/Prague")
	if _, found := examine(t, env); found["quota"].Result != resultOK || !strings.Contains(found["quota"].Text, "5000 requests a day, which begins at 06:00 (Europe/Prague); what is left") {
		t.Errorf("without a daemon: %+v", found["quota"])
	}
	serving(t, env)
	eventually(t, "a request was counted", func() bool {
		_, found := examine(t, env)
		return found["quota"].Result == resultOK && strings.HasSuffix(found["quota"].Text, " are used")
	})
}

func TestDoctorBesideARunningDaemon(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := t.TempDir()
	env := erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t))
	serving(t, env)
	eventually(t, "ready", func() bool { code, _, _ := call(env, "healthcheck", "--ready"); return code == 0 })
	code, found := examine(t, env)
	if code != 0 || !strings.Contains(found["nats"].Text, "streams are there") || found["nats batches"].Result != resultOK {
		t.Errorf("exit %d %+v %+v", code, found["nats"], found["nats batches"])
	}

	// Somebody switches atomic batches off.
	info, err := embedded.ReadInfo(filepath.Join(dir, "nats.json"))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(info.URL, nats.Token(info.Token))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "KV_flexid_ledger")
	if err != nil {
		t.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.AllowAtomicPublish = false
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if code, found := examine(t, env); code != 0 || found["nats batches"].Result != resultWarn || !strings.Contains(found["nats batches"].Text, "slower") {
		t.Errorf("exit %d %+v", code, found["nats batches"])
	}
}
