package daemon

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"flexid/flexi/flexitest"
)

// TestCompanyTypo: a company that Flexi never confirmed does not bind the ledger. What came in meanwhile is found, sent once
// and changed under the right one; from then on another name is refused.
func TestCompanyTypo(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := t.TempDir()
	r := begin(t, settings(t, erp, dir, "FLEXID_FLEXI_COMPANY=frima"))
	r.push("FV-1")
	r.becomes("FV-1", "queued")
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r = begin(t, settings(t, erp, dir))
	r.becomes("FV-1", "confirmed")
	r.push("FV-1")
	eventually(t, "the second event is over", func() bool {
		s, ok := r.story("faktura-vydana/FV-1")
		return ok && s.State == "confirmed" && len(s.Events) == 2
	})
	if n := len(erp.Find("faktura-vydana", "code:FV-1")); n != 1 {
		t.Errorf("%d records", n)
	}
	if n := erp.Count("write"); n != 1 {
		t.Errorf("%d writes", n)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r, _ = launch(t, settings(t, erp, dir, "FLEXID_FLEXI_COMPANY=frima"))
	var pin *PinError
	if err := r.wait(); !errors.As(err, &pin) || pin.Variable != "FLEXID_FLEXI_COMPANY" {
		t.Errorf("another company after Flexi confirmed one: %v", err)
	}
}

// TestRestoredWhileStopped: the ERP was set back while nobody ran, and the bucket of what may be lost is lost. Writes stop at
// the start without any document, and no stranger's record is touched.
func TestRestoredWhileStopped(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := t.TempDir()
	r := begin(t, settings(t, erp, dir))
	r.push("FV-1")
	r.becomes("FV-1", "confirmed")
	before := erp.Snapshot()
	r.push("FV-2")
	id := r.becomes("FV-2", "confirmed").FlexiID
	r.push("FV-3")
	r.becomes("FV-3", "confirmed")
	nc, js := r.nats()
	if err := js.DeleteStream(t.Context(), "KV_flexid_state"); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	r.end()
	erp.Restore(before)
	erp.Type("faktura-vydana", map[string]any{"kod": "CIZI", "typDokl": "code:FAKTURA", "varSym": "1"})
	theirs := erp.Find("faktura-vydana", id)
	if len(theirs) != 1 || theirs[0].Number != "CIZI" {
		t.Fatalf("id %s is %+v", id, theirs)
	}
	r = begin(t, settings(t, erp, dir))
	eventually(t, "writes are stopped", func() bool { return r.heldFor("restored", "restored from a backup") })
	if line := r.logged("writes stopped", "restored"); !strings.Contains(line, "flexid company accept --restored") {
		t.Errorf("log line %q", line)
	}
	if code, text := r.do("POST", "/api/v1/company/accept", `{"by":"eva","why":"backup of last night","how":"restored"}`); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	for _, key := range []string{"FV-2", "FV-3"} {
		if s := r.becomes(key, "parked"); s.Reason != "conflict" || s.Cause != "gone" {
			t.Errorf("%s: %s, cause %q", key, s.Reason, s.Cause)
		}
	}
	r.becomes("FV-1", "confirmed")
	if now := erp.Find("faktura-vydana", id); !reflect.DeepEqual(now, theirs) {
		t.Errorf("a stranger's record was touched: %+v", now)
	}
	if code, text := r.do("GET", "/api/v1/documents?cause=gone", ""); code != 200 || strings.Count(text, `"cause":"gone"`) != 2 {
		t.Errorf("the cause does not filter: %d %s", code, text)
	}
}
