package daemon

import (
	"strings"
	"testing"

	"flexid/flexi/flexitest"
)

// TestIdleDaemonTellsWhatIsWrong: that Flexi refuses the login is told before the first document waits for it, and is over
// when it is mended.
func TestIdleDaemonTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	erp := startERP(t, flexitest.Options{})
	erp.SetPassword("other")
	r := begin(t, settings(t, erp, t.TempDir()))
	eventually(t, "the refused login shows", func() bool { _, _, ok := r.stopFor("login"); return ok })
	if _, remedy, _ := r.stopFor("login"); !strings.Contains(remedy, "FLEXID_FLEXI_PASSWORD") {
		t.Errorf("the remedy is %q", remedy)
	}
	erp.SetPassword("secret")
	r.pushMany(1)
	waitFor(t, 3*companySoon, "it is over", func() bool { return r.status().Engine.Documents["confirmed"] == 1 })
}

// TestSlipOfThePen: an evidence that is not there is not stopped, and a document is found under its number as it was sent.
func TestSlipOfThePen(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir()))
	if code, text := r.do("POST", "/api/v1/writes/stop", `{"evidence":"faktura-vidana","by":"eva","why":"uzávěrka"}`); code/100 != 4 || !strings.Contains(text, "faktura-vidana") {
		t.Errorf("a stop of no evidence: %d %s", code, text)
	} else if strings.Contains(text, "docs show") {
		t.Errorf("no document is meant: %s", text)
	}
	if code, text := r.do("POST", "/api/v1/writes/stop", `{"evidence":"faktura-vydana","by":"eva","why":"uzávěrka"}`); code != 200 {
		t.Errorf("a stop: %d %s", code, text)
	}
	if code, text := r.do("POST", "/api/v1/writes/resume", `{"evidence":"faktura-vidana","by":"eva","why":"hotovo"}`); code/100 != 4 || !strings.Contains(text, "faktura-vidana") {
		t.Errorf("the end of a stop that is not there: %d %s", code, text)
	}
	r.pushMany(1)
	eventually(t, "it waits", func() bool { return r.status().Engine.Documents["queued"] == 1 })
	for _, key := range []string{"FV-0", "fv-0"} {
		if code, text := r.do("GET", "/api/v1/documents/faktura-vydana/"+key, ""); code != 200 || !strings.Contains(text, `"FV-0"`) {
			t.Errorf("%s: %d %s", key, code, text)
		}
	}
	if code, text := r.do("GET", "/api/v1/documents/faktura-vydana/fv-1", ""); code != 404 || !strings.Contains(text, "fv-1") {
		t.Errorf("none: %d %s", code, text)
	}
}
