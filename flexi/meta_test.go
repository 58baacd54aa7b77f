package flexi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// at answers each path with its body and everything else with a 404.
func at(bodies map[string]string) func(*rawConn) {
	return func(c *rawConn) {
		r, err := c.request()
		if err != nil {
			return
		}
		path, _, _ := strings.Cut(strings.Fields(r.head)[1], "?")
		if body, ok := bodies[path]; ok {
			c.answerWith(200, "Date: Mon, 30 Nov 2026 12:00:00 GMT\r\n", body)
			return
		}
		c.answer(404, "")
	}
}

func TestServiceReads(t *testing.T) {
	s := startRaw(t, at(map[string]string{
		"/c/demo/banka/properties.json": `{"properties":{"@version":"1.0","property":[
			{"propertyName":"kod","type":"string","mandatory":"true","maxLength":"20","isWritable":"true","isUpperCase":"true","inSummary":"true"},
			{"propertyName":"suma","type":"numeric","digits":15,"decimal":"2","isWritable":true},
			{"propertyName":"mena","type":"relation","fkEvidencePath":"mena"},
			{"propertyName":"typ","type":"select","values":{"value":[{"@key":"a","$":"A"},{"@key":"b"}]}}]}}`,
		"/c/demo/evidence-list.json": `{"evidences":{"evidence":[{"evidencePath":"banka","evidenceName":"Banka","importStatus":"SUPPORTED","extIdSupported":"true"},
			{"evidencePath":"doklad","importStatus":"DISALLOWED","extIdSupported":false}]}}`,
		"/c/demo.json": `{"companies":{"company":{"createDt":"2012-01-01","dbNazev":"demo","id":"1","nazev":"Demo s.r.o.","stavEnum":"ESTABLISHED","watchingChanges":"true"}}}`,
		"/status.json": `{"status":{"version":"2026.5.2","licenseName":"Premium","loggedUser":"flexid"}}`,
		"/c/demo/changes.json": `{"winstrom":{"@globalVersion":"9","changes":[{"@evidence":"banka","@in-version":"7","@operation":"create",
			"@timestamp":"2021-03-12 23:59:55.5","id":"5","external-ids":["ext:FLEXID:k1"]}],"next":"8"}}`,
	}))
	c := testClient(t, s.url())

	p, err := c.Properties(t.Context(), "banka")
	if err != nil {
		t.Fatal(err)
	}
	if kod := p.ByName["kod"]; kod.MaxLength != 20 || !kod.Mandatory || !kod.Writable || !kod.UpperCase || !kod.InSummary {
		t.Errorf("kod: %+v", kod)
	}
	if suma := p.ByName["suma"]; suma.Digits != 15 || suma.Decimals != 2 || !suma.Writable || suma.Mandatory {
		t.Errorf("suma: %+v", suma)
	}
	if p.ByName["mena"].RefEvidence != "mena" || strings.Join(p.ByName["typ"].Values, " ") != "a b" || len(p.ByName) != 4 {
		t.Errorf("%+v", p.ByName)
	}
	ev, err := c.Evidences(t.Context())
	if err != nil || len(ev) != 2 || ev[0] != (EvidenceInfo{"banka", "Banka", "SUPPORTED", true}) || ev[1].ExtIDs {
		t.Errorf("%+v, %v", ev, err)
	}
	co, err := c.Company(t.Context())
	if want := (Company{"1", "demo", "Demo s.r.o.", "2012-01-01", "ESTABLISHED", true}); err != nil || co != want {
		t.Errorf("%+v, %v", co, err)
	}
	info, err := c.Server(t.Context())
	if err != nil || info.Version != "2026.5.2" || info.User != "flexid" || !info.Date.Equal(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", info, err)
	}
	ch, err := c.Changes(t.Context(), 7, 100)
	if err != nil || ch.GlobalVersion != 9 || ch.Next != 8 || len(ch.Changes) != 1 || ch.Changes[0].Version != 7 ||
		ch.Changes[0].ID != "5" || ch.Changes[0].ExternalIDs[0] != "ext:FLEXID:k1" {
		t.Errorf("%+v, %v", ch, err)
	}
	_, _, reqs := s.seen()
	if last := reqs[len(reqs)-1].head; !strings.HasPrefix(last, "GET /c/demo/changes.json?auth=http&start=7&limit=100 ") {
		t.Errorf("head: %q", last)
	}
	if _, err := c.Properties(t.Context(), "../c"); OutcomeOf(err) != Rejected {
		t.Errorf("a path as evidence: %v", err)
	}
	if _, err := c.Properties(t.Context(), "adresar"); OutcomeOf(err) != Blocked {
		t.Errorf("an evidence that is not there: %v", err)
	}
}

func TestServiceShapes(t *testing.T) {
	for name, body := range map[string]string{
		"one of a list":     `{"company":[{"dbNazev":"other","id":"1"},{"dbNazev":"demo","id":"2"}]}`,
		"a list of its own": `[{"dbNazev":"other","id":"1"},{"dbNazev":"demo","id":"2"}]`,
		"one, renamed":      `{"company":{"dbNazev":"demo_2","id":"2"}}`,
	} {
		if co, err := pickCompany([]byte(body), "demo"); err != nil || co.ID != "2" {
			t.Errorf("%s: %+v, %v", name, co, err)
		}
	}
	if _, err := pickCompany([]byte(`{"company":[{"dbNazev":"a"},{"dbNazev":"b"}]}`), "demo"); err == nil {
		t.Error("a company that is not ours")
	}
	for name, body := range map[string]string{"bare": `{"version":"1"}`, "in status": `{"status":{"version":"1"}}`, "in winstrom": `{"winstrom":{"version":"1","x":{}}}`} {
		if v := text(statusObject([]byte(body))["version"]); v != "1" {
			t.Errorf("%s: version %q", name, v)
		}
	}
}

func TestEndUserContext(t *testing.T) {
	for status, want := range map[int]Outcome{200: Accepted, 204: Accepted, 401: Blocked, 500: Refused, 302: Rejected} {
		s := startRaw(t, answering(status, "", ""))
		c := testClient(t, s.url(), func(o *Options) { o.User = "joe/x" })
		if err := c.EndUserContext(t.Context()); OutcomeOf(err) != want {
			t.Errorf("%d: %v", status, err)
		}
		_, _, reqs := s.seen()
		if len(reqs) != 1 || !strings.HasPrefix(reqs[0].head, "POST /status/user/joe%2Fx/logout.json?auth=http&company=demo ") {
			t.Errorf("%d: requests %+v", status, reqs)
		}
	}
}

func TestDecodeChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		body  string
		n     int // -1 = an error
		after int64
	}{
		"none":               {`{"winstrom":{"@globalVersion":"5","changes":[],"next":"none"}}`, 0, 0},
		"one, not in a list": {`{"winstrom":{"@globalVersion":5,"changes":{"@evidence":"banka","@in-version":5},"next":6}}`, 1, 6},
		"no list":            {`{"winstrom":{"@globalVersion":"5"}}`, -1, 0},
		"no version":         {`{"winstrom":{"changes":[{"@evidence":"banka"}]}}`, -1, 0},
		"no evidence":        {`{"winstrom":{"changes":[{"@in-version":"5"}]}}`, -1, 0},
		"next is no number":  {`{"winstrom":{"changes":[],"next":"soon"}}`, -1, 0},
		"no change at all":   {`{"winstrom":{"changes":["x"]}}`, -1, 0},
		"page":               {htmlBody, -1, 0},
	} {
		ch, err := DecodeChanges([]byte(tc.body))
		if (err != nil) != (tc.n < 0) || err == nil && (len(ch.Changes) != tc.n || ch.Next != tc.after) {
			t.Errorf("%s: %+v, %v", name, ch, err)
		}
	}
}

func TestRealHookBodies(t *testing.T) {
	files, _ := filepath.Glob("../../shared/data/flexi-hooks/*.json")
	if len(files) == 0 {
		t.Skip("../shared/data/flexi-hooks is not here")
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		ch, err := DecodeChanges(body)
		if err != nil || len(ch.Changes) == 0 || ch.GlobalVersion == 0 {
			t.Errorf("%s: %+v, %v", filepath.Base(f), ch, err)
		}
		last := int64(0)
		for _, c := range ch.Changes {
			if c.Version <= last || !isDigits(c.ID) || c.Operation == "" {
				t.Errorf("%s: %+v", filepath.Base(f), c)
			}
			last = c.Version
		}
	}
}

func TestRealProperties(t *testing.T) {
	for name, props := range sharedProperties(t) {
		kod := props["kod"]
		if kod.Type != "string" || !kod.Mandatory || !kod.Writable || len(props) < 60 {
			t.Errorf("%s: kod %+v of %d fields", name, kod, len(props))
		}
		if name == "faktura-vydana" {
			if lock := props["zamekK"]; len(lock.Values) != 4 || lock.Writable {
				t.Errorf("zamekK: %+v", lock)
			}
			if sum := props["sumOsv"]; sum.Digits != 15 || sum.Decimals != 2 {
				t.Errorf("sumOsv: %+v", sum)
			}
			if props["firma"].RefEvidence != "adresar" {
				t.Errorf("firma: %+v", props["firma"])
			}
		}
	}
	body, err := os.ReadFile("../../shared/data/flexi-properties/EvidenceFullList.json")
	if err != nil {
		t.Skip("the list of evidences is not here")
	}
	list, err := decodeEvidences(body)
	if err != nil || len(list) != 252 {
		t.Fatalf("%d evidences, %v", len(list), err)
	}
	for _, e := range list {
		if e.Path == "faktura-vydana" && (e.ImportStatus != "SUPPORTED" || !e.ExtIDs) {
			t.Errorf("%+v", e)
		}
	}
}

func TestNewReportsAllFaults(t *testing.T) {
	_, err := New(Options{URL: "erp:5434", Company: "a/b", User: "a:b", CertSHA256: "00ff", WriteTimeout: -1,
		Proxy: nil})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"address", "company", "colon", "password", "fingerprint", "negative"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("nothing about %s: %v", part, err)
		}
	}
	for name, u := range map[string]string{"login in it": "https://joe:tajne@erp.test", "broken": "https://erp.test:x:y/%zz tajne", "query": "https://erp.test?x=tajne",
		"no scheme": "erp.test", "another scheme": "ftp://erp.test", "no host": "https://"} {
		_, err := New(testOptions(u))
		if err == nil || strings.Contains(err.Error(), "tajne") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c, err := New(testOptions("https://erp.test/")); err != nil || c.address() != "erp.test:443" {
		t.Errorf("%v", err)
	}
	if c := testClient(t, "http://[::1]"); c.address() != "[::1]:80" {
		t.Errorf("address %s", c.address())
	}
}
