package flexitest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestFilters(t *testing.T) {
	c := pipe(t, Options{})
	for i, rec := range []string{
		`"id":"ext:S:1","kod":"A/1","varSym":"1","popis":"Oprava střechy","sumOsv":"9","datVyst":"2026-01-31","firma":"code:NOVAK","stitky":"VIP"`,
		`"id":"ext:S:2","kod":"B 'X'","varSym":"22","popis":"He said \"ano\"","sumOsv":"100","datVyst":"2026-02-15","firma":"code:SVOBODA"`,
		`"id":"ext:S:3","kod":"C","varSym":"3","sumOsv":"20.5","datVyst":"2026-03-09","mena":"code:EUR"`,
		`"id":"ext:S:4","kod":"D\\E","varSym":"4","popis":"back\\slash","sumOsv":"0","datVyst":"2025-12-24"`,
	} {
		c.must(c.post("faktura-vydana", `"typDokl":"code:FAKTURA",`+rec))
		_ = i
	}
	c.must(c.post("faktura-vydana", `"@action":"storno","id":"ext:S:4"`))
	for filter, want := range map[string]string{
		"":                                      "1 2 3 4",
		"id=1":                                  "1",
		"id = '2'":                              "2",
		"id='ext:S:3'":                          "3",
		"id=ext:S:3":                            "3",
		"id='code:a/1'":                         "1",
		"id in ('ext:S:1', 3, 'ext:S:9')":       "1 3",
		"kod='a/1'":                             "1",
		"kod == \"A/1\"":                        "1",
		"kod eq 'A/1'":                          "1",
		`kod='B \'X\''`:                         "2",
		`kod="B 'X'"`:                           "2",
		`popis="He said \"ano\""`:               "2",
		`kod='D\\E'`:                            "4",
		"kod<>'A/1'":                            "2 3 4",
		"kod != 'A/1' and kod ne 'C'":           "2 4",
		"kod in ('A/1','C')":                    "1 3",
		"(kod='A/1' or kod='C') and not (id=1)": "3",
		"kod='A/1' or kod='C' and id=9":         "1",
		"not not id=1":                          "1",
		"sumCelkem>9":                           "2 3",
		"sumCelkem>=9 and sumCelkem<100":        "1 3",
		"sumCelkem lte 9":                       "1 4",
		"sumCelkem between 9 20.5":              "1 3",
		"sumCelkem between 9 and 20.5":          "1 3",
		"sumCelkem = 20.50":                     "3",
		"datVyst>='2026-02-15'":                 "2 3",
		"datVyst = 2026-02-15":                  "2",
		"datVyst lt '2026-01-01T00:00:00'":      "4",
		"datVyst = now()":                       "3",
		"lastUpdate >= '2026-03-09T00:00:00'":   "1 2 3 4",
		"lastUpdate < '2026-03-09'":             "",
		"popis like 'střechy'":                  "1",
		"popis like similar 'STRECHY'":          "1",
		"popis begins 'oprava'":                 "1",
		"popis ends 'slash'":                    "4",
		"popis is null":                         "3",
		"popis is empty":                        "3",
		"popis is not null":                     "1 2 4",
		"popis is not empty and id=1":           "1",
		"popis = ''":                            "",
		"storno is true":                        "4",
		"storno is not true":                    "1 2 3",
		"storno eq false":                       "1 2 3",
		"firma='code:NOVAK'":                    "1",
		"firma = 'in:25596641'":                 "2",
		"firma is null":                         "3 4",
		"firma.mesto='Brno'":                    "2",
		"mena='code:EUR'":                       "3",
		"typDokl='code:FAKTURA'":                "1 2 3 4",
		"stitky='code:VIP'":                     "1",
		"createdBy = me()":                      "1 2 3 4",
		"kod='x' or 1=1":                        "ERROR",
		"kod='A/1":                              "ERROR",
		"kod=":                                  "ERROR",
		"kod":                                   "ERROR",
		"kod='A') or (id>2":                     "3 4",
		"neni='x'":                              "ERROR",
		"firma.neni='x'":                        "ERROR",
		"kod ~ 'x'":                             "ERROR",
		"kod in 'A'":                            "ERROR",
		"and":                                   "ERROR",
		"kod='A' kod='B'":                       "ERROR",
		strings.Repeat("(", 500) + "id=1" + strings.Repeat(")", 500): "ERROR",
	} {
		r := c.do(http.MethodGet, "/c/firma/faktura-vydana/"+url.PathEscape("("+filter+")")+".json?limit=0&order=id@A&detail=id", "")
		if want == "ERROR" {
			equal(t, "status of "+filter, r.status, 400)
			continue
		}
		var got []string
		for _, rec := range r.records("faktura-vydana") {
			got = append(got, fmt.Sprint(rec["id"]))
		}
		if strings.Join(got, " ") != want || r.status != 200 {
			t.Errorf("%s: got %v (status %d), want %s", filter, got, r.status, want)
		}
	}
}

// TestFilterPaths: a filter reaches the server whole, however its slashes are written.
func TestFilterPaths(t *testing.T) {
	c := pipe(t, Options{})
	c.must(c.post("faktura-vydana", invoice("", "VF/1")))
	for _, path := range []string{"(kod='VF/1').json", "(kod='VF%2F1').json", "%28kod%3D%27VF%2F1%27%29.json", "(kod%20=%20'VF/1')"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.s.URL()+"/c/firma/faktura-vydana/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(c.user, c.pass)
		req.Header.Set("Accept", "application/json")
		equal(t, path, len(c.send(req).records("faktura-vydana")), 1)
	}
}

// quote is how the clients that we know quote a string.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// FuzzQuotedStringStaysInside: whatever is quoted is one value, found again as it was.
func FuzzQuotedStringStaysInside(f *testing.F) {
	for _, s := range []string{"", "FV-1", "a'b", `a\`, `\'`, `' or id>0 or kod='`, "ř\x00\xff", `"`, ")("} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseFilter("(kod = " + quote(s) + ")")
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if n.op != "eq" || n.field != "kod" || len(n.args) != 1 || n.args[0].text != s {
			t.Fatalf("%q became %+v", s, n)
		}
	})
}

func FuzzFilter(f *testing.F) {
	for _, s := range []string{
		"", "kod='A' and (id in (1,'ext:S:1') or not sumCelkem between 1 2)", "datVyst >= now()", "firma.mesto is not null",
		"popis like similar 'x'", "lastUpdate<'2026'", "sumCelkem = 1e999999999", "((((", "id in (", "kod = \\", "stitky='a'",
	} {
		f.Add(s)
	}
	s := New(Options{Now: fixedNow})
	f.Cleanup(s.Close)
	if s.Type("faktura-vydana", map[string]any{"typDokl": "code:FAKTURA", "firma": "code:NOVAK", "sumOsv": 7}) == 0 {
		f.Fatal("no record to judge")
	}
	ev := s.catalog.byPath["faktura-vydana"]
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseFilter(text)
		if err != nil {
			return
		}
		m := &matcher{s: s, user: "flexid"}
		if m.check(ev, n) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range s.visible(ev) {
			if m.match(r, n) == m.match(r, &node{op: "not", left: n}) {
				t.Fatalf("%q and its opposite agree", text)
			}
		}
	})
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(envelopeOf("faktura-vydana", invoice("ext:S:1", "FV-1"))))
	f.Add([]byte(`{"winstrom":[{"@atomic":"false","adresar":{"id":["1","ext:S:1"],"nazev":"x"}}]}`))
	f.Add([]byte(`{"winstrom":{"faktura-vydana":[{"id":"[1][code:X\\]]","polozkyFaktury":{"faktura-vydana-polozka":[{}]}}]}}`))
	f.Add([]byte(`{"winstrom":{"id":[1,"code:2"],"order":["kod"]}}`))
	f.Add([]byte(`{"winstrom":{"faktura-vydana":[{"typDokl":{},"stitky":[],"sumOsv":1e400,"polozkyFaktury":7}]}}`))
	s := New(Options{Now: fixedNow})
	f.Cleanup(s.Close)
	backup := s.Snapshot()
	f.Fuzz(func(t *testing.T, body []byte) {
		env, err := decodeEnvelope(body)
		if err != nil {
			return
		}
		s.Restore(backup)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, j := range env.jobs {
			ev := s.catalog.byPath[j.path]
			if ev == nil || ev.rowOf != nil {
				continue
			}
			before := len(s.store.records[ev.path])
			tx := s.beginTx("flexid")
			if _, bad := tx.apply(ev, cloneObject(j.in), ""); bad != nil && len(bad.errors) == 0 {
				t.Fatal("refused without a reason")
			}
			tx.rollback()
			if len(s.store.records[ev.path]) != before {
				t.Fatal("something stayed after a rollback")
			}
		}
	})
}

func FuzzRoute(f *testing.F) {
	for _, s := range []string{"/", "/c/firma/faktura-vydana/(kod='a/b').json", "/c//x", "/%zz", "/status/user/x/logout", "/c/f/changes/enable.xml"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		rt, ok := parseRoute(path)
		if ok && rt.kind == rFilter && !strings.HasPrefix(rt.arg, "(") {
			t.Fatalf("%q became the filter %q", path, rt.arg)
		}
	})
}
