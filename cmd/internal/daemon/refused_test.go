package daemon

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/batch/stream"
	"flexid/flexi/flexitest"
)

// manyDocuments is how many wait when the ERP begins to refuse.
func manyDocuments() int {
	if os.Getenv("FLEXID_SLOW") != "" {
		return 500
	}
	return 60
}

func (r *running) pushMany(n int) {
	r.t.Helper()
	nc, js := r.nats()
	defer nc.Close()
	p := stream.NewPublisher(js, stream.Options{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < n; i += 4 {
				key := fmt.Sprintf("FV-%d", i)
				body := fmt.Appendf(nil, `{"kod":%q,"typDokl":"code:FAKTURA","varSym":"%d","polozkyFaktury":[{"nazev":"práce","mnozMj":"1","cenaMj":"100"}]}`, key, i)
				if _, err := p.Push(r.t.Context(), "faktura-vydana", key, nil, body); err != nil {
					r.t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// stopFor is what stops writes for a reason.
func (r *running) stopFor(reason string) (text, remedy string, ok bool) {
	r.t.Helper()
	for _, g := range r.status().Engine.Stops {
		if !g.Open && g.Reason == reason {
			return g.Text, g.Remedy, true
		}
	}
	return "", "", false
}

// A licence that ends, a right that is lost and a password that is changed, each in the middle of many waiting documents:
// none of them is parked, almost nothing is sent against the refusal, reason and remedy are shown, and after the remedy all
// go through, each once.
func TestRefusedInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, remedy string
		refuse, mend   func(*flexitest.Server)
		settings       []string
		restart        string // with this setting, instead of mending the ERP
	}{
		"licence": {"licence", "licence", func(s *flexitest.Server) { s.SetLicence(false) }, func(s *flexitest.Server) { s.SetLicence(true) }, nil, ""},
		"right": {"right", "right", func(s *flexitest.Server) { s.SetRight("faktura-vydana", false) },
			func(s *flexitest.Server) { s.SetRight("faktura-vydana", true) }, nil, ""},
		"password": {"login", "FLEXID_FLEXI_PASSWORD", func(s *flexitest.Server) { s.SetPassword("other") }, nil, nil, "FLEXID_FLEXI_PASSWORD=other"},
		"password, and back": {"login", "FLEXID_FLEXI_PASSWORD", func(s *flexitest.Server) { s.SetPassword("other") },
			func(s *flexitest.Server) { s.SetPassword("secret") }, nil, ""},
		"password in a session": {"login", "FLEXID_FLEXI_PASSWORD", func(s *flexitest.Server) { s.SetPassword("other") }, nil,
			[]string{"FLEXID_FLEXI_AUTH=session"}, "FLEXID_FLEXI_PASSWORD=other"},
	} {
		t.Run(name, func(t *testing.T) {
			n := manyDocuments()
			erp := startERP(t, flexitest.Options{})
			dir := t.TempDir()
			more := append([]string{"FLEXID_FLEXI_PAUSE=200ms"}, tc.settings...)
			r := begin(t, settings(t, erp, dir, more...))
			r.pushMany(n)
			eventually(t, "some are confirmed", func() bool { return r.status().Engine.Documents["confirmed"] >= n/10 })
			tc.refuse(erp)
			saved := len(erp.Records("faktura-vydana"))
			before := erp.Count("write")
			eventually(t, "writes stop", func() bool { _, _, ok := r.stopFor(tc.reason); return ok })
			text, remedy, _ := r.stopFor(tc.reason)
			if text == "" || !strings.Contains(remedy, tc.remedy) {
				t.Errorf("the status says %q, %q", text, remedy)
			}
			r.logged("writes stopped", tc.reason)
			closed := erp.Count("")
			resume := func(why string) {
				t.Helper()
				if code, text := r.do("POST", "/api/v1/writes/resume", `{"by":"eva","why":"`+why+`"}`); code != 200 {
					t.Fatalf("%d %s", code, text)
				}
			}
			resume("too early")
			if tc.settings == nil { // a login that was refused a moment ago is not repeated
				eventually(t, "the ERP is tried again", func() bool { return erp.Count("") > closed })
			}
			eventually(t, "and still refuses", func() bool { _, _, ok := r.stopFor(tc.reason); return ok })
			st := r.status().Engine
			if st.Documents["parked"] != 0 || len(erp.Records("faktura-vydana")) > saved+4 {
				t.Errorf("documents %v, %d records after %d", st.Documents, len(erp.Records("faktura-vydana")), saved)
			}
			// What was in flight, and a second send each; then one at a time.
			if w := erp.Count("write") - before; w > 20 {
				t.Errorf("%d writes against the refusal", w)
			}
			code, list := r.do("GET", "/api/v1/documents?limit=0&state=open", "")
			if code != 200 || strings.Count(list, `"queued"`) == 0 || strings.Contains(list, `"parked"`) {
				t.Errorf("the list of documents: %d, %d queued", code, strings.Count(list, `"queued"`))
			}

			if tc.restart != "" {
				r.end()
				r = begin(t, settings(t, erp, dir, append(more, tc.restart)...))
			} else {
				tc.mend(erp)
				resume("mended")
			}
			waitFor(t, 20*time.Second+time.Duration(n)*time.Second/4, "all are confirmed", func() bool { return r.status().Engine.Documents["confirmed"] == n })
			if records := len(erp.Records("faktura-vydana")); records != n || r.status().Engine.Documents["parked"] != 0 {
				t.Errorf("%d records of %d documents, %v", records, n, r.status().Engine.Documents)
			}
		})
	}
}

// What Flexi asks for with a 429 stands in the status, and the documents wait for it.
func TestStatusTellsOfARefusal(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir()))
	if s := r.status(); s.Refused != nil {
		t.Errorf("the status says %+v in peace", s.Refused)
	}
	erp.Script(flexitest.Fault{Kind: flexitest.TooMany, RetryAfter: "3000"})
	r.pushMany(3)
	eventually(t, "the refusal is shown", func() bool {
		s := r.status().Refused
		return s != nil && time.Until(s.Until) > 40*time.Minute && strings.Contains(s.Reason, "429")
	})
	if n := erp.Count("write"); n > 2 {
		t.Errorf("%d writes against the refusal", n)
	}
	if n := r.status().Engine.Documents["queued"]; n == 0 {
		t.Error("no document waits")
	}
}
