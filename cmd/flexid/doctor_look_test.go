package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexid/config"
	"flexid/flexi/flexitest"
)

// TestDoctorLooks: doctor asks as the daemon does before a send, and says how this server answers.
func TestDoctorLooks(t *testing.T) {
	const look = "look faktura-vydana, "
	full := func(s *flexitest.Server) {
		for i := range 30 {
			s.Type("faktura-vydana", map[string]any{"kod": fmt.Sprint("F", i), "typDokl": "code:FAKTURA", "varSym": "1", "datVyst": "2026-11-30"})
		}
		s.Type("faktura-vydana", map[string]any{"id": "ext:FLEXID:A", "kod": "A", "typDokl": "code:FAKTURA", "varSym": "1", "datVyst": "2026-11-30"})
	}
	with := func(manner func(*flexitest.Server)) func(*flexitest.Server) {
		return func(s *flexitest.Server) { full(s); manner(s) }
	}
	for name, tc := range map[string]struct {
		prepare             func(*flexitest.Server)
		check, result, text string
	}{
		"empty, count":                 {nil, "count", resultOK, "counts 0"},
		"empty, limit":                 {nil, "limit", resultOK, "as far as 0 records"},
		"empty, unknown document":      {nil, "unknown document", resultOK, "no record yet"},
		"full, count":                  {full, "count", resultOK, "counts 31"},
		"full, limit":                  {full, "limit", resultOK, "none with limit=0"},
		"full, unknown document":       {full, "unknown document", resultOK, "along with it"},
		"full, external ids":           {full, "external ids", resultOK, "ext:FLEXID:A finds"},
		"parameters in the body alone": {with(func(s *flexitest.Server) { s.IgnoreInBody("limit", "add-row-count") }), "limit", resultOK, ""},
		"no count":                     {with(func(s *flexitest.Server) { s.IgnoreParams("add-row-count") }), "count", resultFail, "add-row-count"},
		"no limit":                     {with(func(s *flexitest.Server) { s.IgnoreParams("limit") }), "limit", resultWarn, "20 rows came"},
		"unknown external id refused":  {with(func(s *flexitest.Server) { s.RefuseUnknownExt(true) }), "unknown document", resultFail, "each of them alone is answered"},
		"number refused":               {with(func(s *flexitest.Server) { s.RefuseFilterBy("kod='" + unknownKey) }), "unknown document", resultFail, "alone too: number " + unknownKey},
		"control does not come along":  {with(func(s *flexitest.Server) { s.LookLies(flexitest.LoseControl, 0) }), "unknown document", resultFail, "does not come along"},
		"external ids are not shown":   {with(func(s *flexitest.Server) { s.HideExternalIDs(true) }), "external ids", resultOK, "after the first write"},
		"empty lists of external ids":  {with(func(s *flexitest.Server) { s.ShowEmptyExternalIDs(true) }), "external ids", resultOK, "ext:FLEXID:A finds"},
	} {
		t.Run(name, func(t *testing.T) {
			erp := startERP(t, flexitest.Options{AllowUsedNumbers: true})
			if tc.prepare != nil {
				tc.prepare(erp)
			}
			code, found := examine(t, erpEnv(erp, t.TempDir()), "--evidence", "faktura-vydana")
			if f := found[look+tc.check]; f.Result != tc.result || !strings.Contains(f.Text, tc.text) || tc.result != resultOK && f.Do == "" {
				t.Errorf("%+v", f)
			}
			if (code != 0) != (tc.result == resultFail) {
				t.Errorf("exit %d", code)
			}
			for _, r := range erp.Requests() {
				if r.Committed {
					t.Errorf("%s %s committed something", r.Method, r.Path)
				}
			}
		})
	}
}

func TestDoctorLooksAtTheDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		free     int64
		embedded bool
		want     string
	}{
		"a 200 KB disk":              {200 << 10, true, resultFail},
		"a 200 KB disk, NATS beside": {200 << 10, false, resultFail},
		"20 MB":                      {20 << 20, true, resultFail},
		"20 MB, NATS beside":         {20 << 20, false, resultOK},
		"100 MB":                     {100 << 20, true, resultWarn},
		"10 GB":                      {10 << 30, true, resultOK},
	} {
		t.Run(name, func(t *testing.T) {
			found := map[string]finding{}
			d := doctor{cfg: config.Config{StateDir: t.TempDir()}, free: func(string) (int64, error) { return tc.free, nil },
				report: func(f finding) { found[f.Check] = f }}
			d.cfg.Flexi.Concurrency, d.cfg.Flexi.Pack = 4, 20
			if !tc.embedded {
				d.cfg.NATS.URL = "nats://127.0.0.1:1"
			}
			d.state()
			f := found["disk"]
			if f.Result != tc.want || f.Result != resultOK && !strings.Contains(f.Do, "FLEXID_STATE_DIR") {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestDoctorOfAStateDirectoryThatCannotBeMade(t *testing.T) {
	dangling := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/nowhere/at/all", dangling); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	erp := startERP(t, flexitest.Options{})
	for name, dir := range map[string]string{
		"made by the kernel": "/proc/flexid", "a link to nowhere": dangling + "/state", "below a file": file + "/state", "a file": file,
		"a name too long": t.TempDir() + "/" + strings.Repeat("x", 300),
	} {
		t.Run(name, func(t *testing.T) {
			code, found := examine(t, erpEnv(erp, dir), "--evidence", "faktura-vydana")
			if f := found["state directory"]; code != 1 || f.Result != resultFail || !strings.Contains(f.Do, "FLEXID_STATE_DIR") {
				t.Errorf("exit %d: %+v", code, f)
			}
		})
	}
}

func TestDoctorTellsOfStoppedWrites(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	env := erpEnv(erp, t.TempDir(), "FLEXID_HTTP_ADDR="+freeAddr(t))
	if _, found := examine(t, env); found["writes"].Result != resultSkip {
		t.Errorf("without a daemon: %+v", found["writes"])
	}
	serving(t, env)
	eventually(t, "ready", func() bool { code, _, _ := call(env, "healthcheck", "--ready"); return code == 0 })
	if code, found := examine(t, env); code != 0 || found["writes"].Result != resultOK {
		t.Errorf("exit %d: %+v", code, found["writes"])
	}
	if code, _, talk := call(env, "writes", "stop", "--by", "jana", "--reason", "inventura"); code != 0 {
		t.Fatal(talk)
	}
	code, found := examine(t, env)
	if f := found["writes"]; code != 1 || f.Result != resultFail || !strings.Contains(f.Text, "inventura") || !strings.Contains(f.Do, "writes resume") {
		t.Errorf("exit %d: %+v", code, f)
	}
}
