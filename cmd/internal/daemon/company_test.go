package daemon

import (
	"strings"
	"testing"

	"flexid/flexi/flexitest"
)

// Another company under the same address gets no write after an outage, until a person says what it is; a renamed one gets
// them all.
func TestCompanyAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*flexitest.Server)
		says   string // "" = it is the same
	}{
		"made anew":  {func(s *flexitest.Server) { s.SetIdentity("", "2026-11-01T08:00:00.000+01:00") }, "made at another time"},
		"another id": {func(s *flexitest.Server) { s.SetIdentity("2", "") }, "another id"},
		"another IČO": {func(s *flexitest.Server) {
			s.Edit("nastaveni", s.Records("nastaveni")[0].ID, map[string]any{"ic": "87654321"})
		}, "another registration number"},
		"renamed":                  {func(s *flexitest.Server) { s.SetCompany("Přejmenovaná a.s.") }, ""},
		"no right to the settings": {func(s *flexitest.Server) { s.SetRight("nastaveni", false) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			erp := startERP(t, flexitest.Options{})
			r := begin(t, settings(t, erp, t.TempDir(), "FLEXID_FLEXI_PAUSE=100ms"))
			r.push("FV-1")
			r.becomes("FV-1", "confirmed")
			before := erp.Count("write")
			erp.SetDown(true)
			r.push("FV-2")
			eventually(t, "the outage is noticed", func() bool { return r.log.line("writes stopped", "outage") != "" })
			tc.change(erp)
			erp.SetDown(false)
			if tc.says == "" {
				r.becomes("FV-2", "confirmed")
				return
			}
			eventually(t, "writes stop", func() bool { return r.heldFor("company", tc.says) })
			if line := r.logged("writes stopped", "company", tc.says); !strings.Contains(line, "flexid company accept --new") {
				t.Errorf("log line %q", line)
			}
			if n := erp.Count("write") - before; n != 0 {
				t.Errorf("%d writes to another company", n)
			}
			r.becomes("FV-2", "queued")
			if code, text := r.do("POST", "/api/v1/company/accept", `{"by":"eva","why":"new books","how":"new"}`); code != 200 {
				t.Fatalf("%d %s", code, text)
			}
			r.becomes("FV-2", "confirmed")
			r.end()
			if err := begin(t, settings(t, erp, r.info.StateDir)).end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// heldFor says whether a person has to open the writes, for a reason in these words and with a way out.
func (r *running) heldFor(reason, words string) bool {
	r.t.Helper()
	for _, g := range r.status().Engine.Stops {
		if g.NeedsYou && g.Reason == reason && strings.Contains(g.Text, words) && g.Remedy != "" {
			return true
		}
	}
	return false
}
