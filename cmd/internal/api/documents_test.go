package api

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

func keys(rows []Row) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, r.Key)
	}
	return out
}

func listRig(t *testing.T) *rig {
	r := newRig(t)
	for i, row := range []ledger.Row{
		{Evidence: "faktura-vydana", Key: "FV-1", Number: "FV-1", State: ledger.Confirmed, Date: "2026-01-10", FlexiID: "41", Sends: 1},
		{Evidence: "faktura-vydana", Key: "FV-2", Number: "FV-2", State: ledger.Maybe, Date: "2026-01-20"},
		{Evidence: "faktura-prijata", Key: "FP-1", Number: "ŽLUŤ 7", State: ledger.Parked, Reason: ledger.Rejected, Cause: "too_long"},
		{Evidence: "faktura-vydana", Source: "eshop", Key: "FV-3", State: ledger.Parked, Reason: ledger.Conflict, Date: "2026-02-01"},
		{Evidence: "banka", Key: "B-1", State: ledger.Queued, Reason: ledger.Behind},
		{Evidence: "banka", Key: "B-2", State: ledger.Dropped},
	} {
		row.Updated = testNow.Add(time.Duration(i) * time.Minute).In(time.FixedZone("CET", 3600))
		r.ledger.add(row)
	}
	return r
}

func TestListFilters(t *testing.T) {
	r := listRig(t)
	for name, tc := range map[string]struct {
		query string
		want  []string
		few   bool // they are read one by one, where somebody knows which they are
	}{
		"all, latest change first": {"", []string{"B-2", "B-1", "FV-3", "FP-1", "FV-2", "FV-1"}, false},
		"all, unsorted":            {"limit=0", []string{"FV-1", "FV-2", "FP-1", "FV-3", "B-1", "B-2"}, false},
		"limit":                    {"limit=2", []string{"B-2", "B-1"}, false},
		"one state":                {"state=maybe", []string{"FV-2"}, true},
		"two states in one":        {"state=maybe,dropped", []string{"B-2", "FV-2"}, false},
		"two states apart":         {"state=maybe&state=dropped", []string{"B-2", "FV-2"}, false},
		"open leaves final out":    {"state=open", []string{"B-1", "FV-3", "FV-2"}, true},
		"evidence":                 {"evidence=banka", []string{"B-2", "B-1"}, false},
		"number, decomposed":       {"number=%20z%CC%8Clut%CC%8C%207", []string{"FP-1"}, true},
		"number, small letters":    {"number=%C5%BElu%C5%A5+7", []string{"FP-1"}, true},
		"from":                     {"from=2026-01-20", []string{"FV-3", "FV-2"}, false},
		"from and to, included":    {"from=2026-01-10&to=2026-01-20", []string{"FV-2", "FV-1"}, false},
		"source":                   {"source=eshop", []string{"FV-3"}, false},
		"no source":                {"source=&evidence=faktura-vydana", []string{"FV-2", "FV-1"}, false},
		"cause":                    {"cause=too_long", []string{"FP-1"}, false},
		"nothing":                  {"evidence=cenik", []string{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var rows, found []Row
			r.server.Use(r.backend(nil))
			r.json("GET", "/api/v1/documents?"+tc.query, "", &rows)
			if got := keys(rows); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			r.server.Use(r.backend(r.ledger))
			r.ledger.lists = 0
			r.json("GET", "/api/v1/documents?"+tc.query, "", &found)
			if got := keys(found); !slices.Equal(got, tc.want) || (r.ledger.lists == 0) != tc.few {
				t.Errorf("got %v, want %v; the whole ledger was read %d times", got, tc.want, r.ledger.lists)
			}
		})
	}
}

func TestListNamesAreAContract(t *testing.T) {
	r := listRig(t)
	var rows []map[string]any
	r.json("GET", "/api/v1/documents?state=confirmed", "", &rows)
	want := map[string]any{
		"evidence": "faktura-vydana", "source": "", "key": "FV-1", "number": "FV-1", "state": "confirmed", "reason": "", "cause": "",
		"sends": 1.0, "flexi_id": "41", "updated": "2026-03-01T12:00:00Z",
	}
	if len(rows) != 1 || !maps.Equal(rows[0], want) {
		t.Errorf("got %v, want %v", rows, want)
	}
}

func TestListRefusesWhatItDoesNotKnow(t *testing.T) {
	r := listRig(t)
	for name, query := range map[string]string{
		"parameter": "stat=open", "state": "state=done", "date": "from=1.2.2026", "limit": "limit=-1", "limit text": "limit=many",
		"cause": "cause=type_mising",
	} {
		t.Run(name, func(t *testing.T) {
			w := r.do("GET", "/api/v1/documents?"+query, "")
			if p := r.problem(w); p.Status != http.StatusBadRequest {
				t.Errorf("status %d: %s", p.Status, p.Detail)
			}
		})
	}
	for _, cause := range flexi.Causes() {
		if _, err := ParseFilter(url.Values{"cause": {string(cause)}}); err != nil {
			t.Error(err)
		}
	}
}

func TestListTellsHowManyMatch(t *testing.T) {
	r := newRig(t)
	for i := range 1000 {
		r.ledger.add(ledger.Row{Evidence: "banka", Key: fmt.Sprintf("B-%04d", i), State: ledger.Queued, Updated: testNow.Add(time.Duration(i*7919%1000) * time.Second)})
	}
	w := r.do("GET", "/api/v1/documents?limit=3", "")
	if got := w.Header().Get(HeaderMatched); got != "1000" {
		t.Errorf("matched %q", got)
	}
	var rows []Row
	if err := json.Unmarshal(w.Body.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if want := testNow.Add(time.Duration(999-i) * time.Second); !r.Updated.Equal(want) {
			t.Errorf("row %d changed at %v, want %v", i, r.Updated, want)
		}
	}
}

func TestRowThatChangesMeanwhileIsListedOnce(t *testing.T) {
	r := newRig(t)
	for i, state := range []ledger.State{ledger.Queued, ledger.Maybe} {
		r.ledger.add(ledger.Row{Evidence: "banka", Key: "1", State: state, Updated: testNow.Add(time.Duration(i) * time.Second)})
	}
	var rows []Row
	r.json("GET", "/api/v1/documents", "", &rows)
	if len(rows) != 1 || rows[0].State != "maybe" {
		t.Errorf("%+v", rows)
	}
	var items []Item
	r.json("GET", "/api/v1/queue", "", &items)
	if len(items) != 1 {
		t.Errorf("%+v", items)
	}
}

func TestRowsThatCannotBeReadAreCounted(t *testing.T) {
	r := listRig(t)
	r.ledger.damaged = []ledger.ID{"x", "y"}
	w := r.do("GET", "/api/v1/documents?state=confirmed", "")
	var rows []Row
	if err := json.Unmarshal(w.Body.Bytes(), &rows); err != nil || len(rows) != 1 || w.Header().Get(HeaderUnreadable) != "2" {
		t.Errorf("%v %v, header %q", err, rows, w.Header().Get(HeaderUnreadable))
	}
	for _, path := range []string{"/api/v1/documents?limit=0", "/api/v1/queue"} {
		if w := r.do("GET", path, ""); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestListAsLines(t *testing.T) {
	r := listRig(t)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"by format": r.do("GET", "/api/v1/documents?format=ndjson&limit=0", ""),
		"by accept": r.do("GET", "/api/v1/documents", "", func(q *http.Request) { q.Header.Set("Accept", "application/x-ndjson") }),
	} {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(strings.TrimSuffix(w.Body.String(), "\n"), "\n")
			if len(lines) != 6 {
				t.Fatalf("%d lines: %q", len(lines), lines)
			}
			for _, l := range lines {
				var row Row
				if err := json.Unmarshal([]byte(l), &row); err != nil || row.Key == "" {
					t.Errorf("%q: %v", l, err)
				}
			}
		})
	}
	if w := r.do("GET", "/api/v1/documents?format=ndjson&evidence=cenik&limit=0", ""); strings.TrimSpace(w.Body.String()) != "" {
		t.Errorf("no rows gave %q", w.Body)
	}
}

func TestBrokenListIsNoShortList(t *testing.T) {
	r := listRig(t)
	r.ledger.listErr = errStore
	t.Run("sorted: an error", func(t *testing.T) {
		if p := r.problem(r.do("GET", "/api/v1/documents", "")); p.Status != http.StatusInternalServerError {
			t.Errorf("status %d", p.Status)
		}
	})
	t.Run("streamed: the connection breaks", func(t *testing.T) {
		srv := httptest.NewServer(r.server.Handler())
		defer srv.Close()
		req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/api/v1/documents?limit=0&format=ndjson", nil)
		req.Header.Set("Authorization", "Bearer "+testToken)
		resp, err := srv.Client().Do(req)
		if err != nil {
			return // broken before the headers: an error all the same
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Error("half a list was answered as a whole one")
		}
	})
}

func TestShowFindsEveryReadingOfAnAddress(t *testing.T) {
	r := newRig(t)
	for _, row := range []ledger.Row{
		{Evidence: "banka", Key: "plain"},
		{Evidence: "banka", Source: "eshop", Key: "7"},
		{Evidence: "banka", Key: "urn:7"},
		{Evidence: "banka", Key: "a/b"},
		{Evidence: "banka", Key: "a/../b"},
		{Evidence: "banka", Key: ".."},
		{Evidence: "banka", Key: "100 % ?&#ž"},
	} {
		row.State, row.Number = ledger.Queued, row.Source+"!"+row.Key
		r.ledger.add(row)
	}
	for name, tc := range map[string]struct{ text, number string }{
		"plain":              {"banka/plain", "!plain"},
		"source":             {"banka/eshop:7", "eshop!7"},
		"colon in the key":   {"banka/urn:7", "!urn:7"},
		"no source, said so": {"banka/:urn:7", "!urn:7"},
		"slash":              {"banka/a/b", "!a/b"},
		"dots between":       {"banka/a/../b", "!a/../b"},
		"only dots":          {"banka/..", "!.."},
		"any character":      {"banka/100 % ?&#ž", "!100 % ?&#ž"},
	} {
		t.Run(name, func(t *testing.T) {
			readings, ok := ParseAddress(tc.text)
			if !ok {
				t.Fatal("no address")
			}
			var s Story
			r.json("GET", "/api/v1/documents/"+Path(readings[0]), "", &s)
			if s.Number != tc.number {
				t.Errorf("found %q, want %q", s.Number, tc.number)
			}
		})
	}
	if p := r.problem(r.do("GET", "/api/v1/documents/banka/other", "")); p.Status != http.StatusNotFound || !strings.Contains(p.Detail, "banka/other") {
		t.Errorf("%+v", p)
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for _, text := range []string{"", "banka", "banka/", "/x", "/"} {
		if a, ok := ParseAddress(text); ok {
			t.Errorf("%q read as %v", text, a)
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"banka/1", "banka/a:b", "banka/:a:b", "a/b/../c", "x/..", "x/%2e", "x/.a.", "é/ž:\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		readings, ok := ParseAddress(text)
		if !ok {
			return
		}
		for _, a := range readings {
			if a.Evidence == "" || a.Key == "" {
				t.Fatalf("%q gave %+v", text, a)
			}
		}
		path := "/d/" + Path(readings[0])
		req, err := http.NewRequest("GET", "http://h"+path, nil)
		if err != nil {
			t.Fatalf("%q: %v", path, err)
		}
		if !strings.HasPrefix(req.URL.Path, "/d/"+readings[0].Evidence+"/") {
			t.Fatalf("%q became %q", text, req.URL.Path)
		}
	})
}
