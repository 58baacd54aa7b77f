package flexitest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func fill(c *client, n int) {
	c.t.Helper()
	for i := 1; i <= n; i++ {
		c.must(c.post("faktura-vydana", fmt.Sprintf(`"id":"ext:S:%d","kod":"F%03d","varSym":"%d","typDokl":"code:FAKTURA","datVyst":"2026-01-%02d","sumOsv":"%d"`, i, i, i, i%28+1, i)))
	}
}

func TestListPages(t *testing.T) {
	c := pipe(t, Options{})
	fill(c, 25)
	get := func(query string) reply {
		return c.do(http.MethodGet, "/c/firma/faktura-vydana.json?"+query, "")
	}
	count := func(query string) int { return len(get(query).records("faktura-vydana")) }
	equal(t, "default", count(""), 20)
	equal(t, "all", count("limit=0"), 25)
	equal(t, "limit", count("limit=3"), 3)
	equal(t, "start", count("limit=0&start=23"), 2)
	equal(t, "start past the end", count("start=99"), 0)
	equal(t, "row count", get("limit=1&add-row-count=true").root["@rowCount"], any("25"))
	equal(t, "no row count", get("limit=1").root["@rowCount"], nil)
	equal(t, "version", get("limit=1&add-global-version=true").text("@globalVersion"), fmt.Sprint(c.s.GlobalVersion()))
	// The trap: a filter in the query is no filter.
	equal(t, "filter as a parameter", count("filter="+url.QueryEscape("kod='F001'")), 20)

	first := func(query string) any { return get(query + "&detail=custom:kod").records("faktura-vydana")[0]["kod"] }
	equal(t, "ascending", first("order=kod@A"), any("F001"))
	equal(t, "descending", first("order=kod@D"), any("F025"))
	equal(t, "by number", first("order=sumOsv@D"), any("F025"))
	equal(t, "two keys", first("order=typDokl@A&order=id@D"), any("F025"))
	equal(t, "sort and dir", first("sort=kod&dir=DESC"), any("F025"))
	equal(t, "default: youngest date first", first("x=1"), any("F025"))
	equal(t, "unknown order", get("order=nic").status, 400)
	equal(t, "bad limit", get("limit=mnoho").status, 400)
}

func TestDetailLevels(t *testing.T) {
	c := pipe(t, Options{})
	c.must(c.post("faktura-vydana", invoice("ext:S:1", "FV-1")))
	one := func(query string) map[string]any {
		list := c.list("faktura-vydana", "kod='FV-1'", query)
		if len(list) != 1 {
			t.Fatalf("%s: %d records", query, len(list))
		}
		return list[0]
	}
	id := one("detail=id")
	equal(t, "fields of id", len(id), 2)
	equal(t, "external ids come with id", fmt.Sprint(id["external-ids"]), "[ext:S:1]")
	equal(t, "unless unwanted", len(one("detail=id&no-ext-ids=true")), 1)

	summary := one("")
	for _, name := range []string{"varSym", "cisDosle", "uuid", "storno", "zamekK", "polozkyFaktury"} {
		if _, has := summary[name]; has {
			t.Errorf("summary shows %s", name)
		}
	}
	equal(t, "number", summary["sumCelkem"], any("242.0"))
	equal(t, "date", summary["datVyst"], any("2026-03-01+01:00"))
	equal(t, "time", summary["lastUpdate"], any("2026-03-09T11:28:13.166+01:00"))
	equal(t, "relation", summary["mena"], any("code:CZK"))
	equal(t, "its address", summary["mena@ref"], any("/c/firma/mena/1.json"))
	equal(t, "its words", summary["mena@showAs"], any("CZK: Česká koruna"))

	custom := one("detail=" + url.QueryEscape("custom:kod,neexistuje,storno,polozkyFaktury(nazev,sumZkl)"))
	equal(t, "unknown names are dropped", len(custom), 5)
	rows, _ := custom["polozkyFaktury"].([]any)
	equal(t, "row", fmt.Sprint(rows), "[map[id:1 nazev:Práce sumZkl:200.0]]")
	equal(t, "logic is text", custom["storno"], any("false"))
	if rows, _ := one("detail=full&relations=polozky")["polozkyFaktury"].([]any); len(rows) != 1 {
		t.Error("relations=polozky shows no rows")
	}
	r := c.do(http.MethodGet, "/c/firma/faktura-vydana.json?detail=vse", "")
	equal(t, "unknown level", r.status, 400)
	equal(t, "rows as records", len(c.list("faktura-vydana-polozka", "doklFak=1", "")), 1)
}

func TestDetailAddress(t *testing.T) {
	c := pipe(t, Options{})
	id := c.must(c.post("faktura-vydana", invoice("ext:S:1", "VF/1")))
	get := func(path string) reply { return c.do(http.MethodGet, "/c/firma/faktura-vydana/"+path, "") }
	equal(t, "by id", len(get(id+".json").records("faktura-vydana")), 1)
	for _, name := range []string{"ext:S:1", "code:VF%2F1", "code:vf%2F1"} {
		r := get(name + ".json?detail=id")
		equal(t, name, r.status, 303)
		equal(t, name+" leads to", r.header.Get("Location"), c.s.URL()+"/c/firma/faktura-vydana/"+id+".json?detail=id")
	}
	r := get("999.json")
	equal(t, "absent", r.status, 404)
	equal(t, "mark", r.text("message@messageCode"), "formZaznamNenalezen")
	equal(t, "success", r.text("success"), "false")
	r = get("123A.json")
	equal(t, "not a number", r.text("message"), "Can't find record identified by 123A")
	equal(t, "errors as 200", get("999.json?no-http-errors=true").status, 200)
	equal(t, "unknown evidence", c.do(http.MethodGet, "/c/firma/neni.json", "").status, 404)
	equal(t, "unknown company", c.do(http.MethodGet, "/c/jina/adresar.json", "").status, 404)
}

func TestQueryAndGet(t *testing.T) {
	c := pipe(t, Options{})
	fill(c, 25)
	r := c.do(http.MethodPost, "/c/firma/faktura-vydana/query.json",
		`{"winstrom":{"@version":"1.0","detail":"custom:kod","filter":"(kod begins 'F0')","order":["kod@D"],"limit":2,"start":"1","no-ext-ids":true,"add-row-count":"true"}}`)
	equal(t, "status", r.status, 200)
	list := r.records("faktura-vydana")
	equal(t, "records", fmt.Sprint(list[0]["kod"], list[1]["kod"], len(list)), "F024F0232")
	equal(t, "fields", len(list[0]), 2)
	equal(t, "row count", r.root["@rowCount"], any("25"))

	r = c.do(http.MethodPost, "/c/firma/faktura-vydana/get.json?detail=custom:kod",
		`{"winstrom":{"id":[1,"code:F002","ext:S:3","ext:S:404","999","code:f001"]}}`)
	var got []string
	for _, rec := range r.records("faktura-vydana") {
		got = append(got, rec["kod"].(string))
	}
	equal(t, "unknown left out, aliases twice", strings.Join(got, " "), "F001 F002 F003 F001")
	equal(t, "kind", c.s.Requests()[c.s.Count("")-1].Kind, Read)
	equal(t, "no body", c.do(http.MethodPost, "/c/firma/faktura-vydana/query.json", "").status, 400)
}

func TestFormats(t *testing.T) {
	c := pipe(t, Options{})
	get := func(path, accept string) reply {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.s.URL()+path, nil)
		req.SetBasicAuth(c.user, c.pass)
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		return c.send(req)
	}
	tests := []struct {
		path, accept string
		status       int
		kind         string
	}{
		{"/c/firma/adresar.json", "text/html", 200, "application/json"},
		{"/c/firma/adresar", "application/json", 200, "application/json"},
		{"/c/firma/adresar", "*/*", 200, "text/html; charset=utf-8"},
		{"/c/firma/adresar", "", 200, "text/html; charset=utf-8"},
		{"/c/firma/adresar.xml", "", 406, "application/json"},
		{"/c/firma/changes/status.xml", "", 200, "application/xml"},
	}
	for _, tt := range tests {
		r := get(tt.path, tt.accept)
		equal(t, tt.path+" "+tt.accept, r.status, tt.status)
		equal(t, tt.path+" "+tt.accept, r.header.Get("Content-Type"), tt.kind)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, c.s.URL()+"/c/firma/faktura-vydana", strings.NewReader(envelopeOf("faktura-vydana", invoice("", ""))))
	req.SetBasicAuth(c.user, c.pass)
	req.Header.Set("Content-Type", "application/json")
	equal(t, "written in JSON, answered in JSON", c.send(req).status, 201)
}

func TestChanges(t *testing.T) {
	c := pipe(t, Options{})
	start := c.s.GlobalVersion()
	c.must(c.post("faktura-vydana", invoice("ext:S:1", "")))
	c.must(c.post("faktura-vydana", `"@action":"storno","id":"ext:S:1"`))
	c.must(c.post("faktura-vydana", `"@action":"delete","id":"ext:S:1"`))
	get := func(query string) reply { return c.do(http.MethodGet, "/c/firma/changes.json?"+query, "") }
	var got []string
	r := get(fmt.Sprintf("start=%d", start+1))
	for _, ch := range r.records("changes") {
		got = append(got, fmt.Sprint(ch["@evidence"], " ", ch["@operation"]))
		equal(t, "time", ch["@timestamp"], any("2026-03-09 11:28:13.166"))
	}
	want := "rocni-rada update; faktura-vydana create; faktura-vydana-polozka create; faktura-vydana update; faktura-vydana update; faktura-vydana delete"
	equal(t, "changes", strings.Join(got, "; "), want)
	equal(t, "next", r.text("next"), "none")
	ids := r.records("changes")[1]["external-ids"]
	equal(t, "external ids", fmt.Sprint(ids), "[ext:S:1 code:VF1-0001/2026]")
	equal(t, "next page", get(fmt.Sprintf("start=%d&limit=2", start+1)).text("next"), fmt.Sprint(start+3))
	equal(t, "one evidence", len(get("evidence=faktura-vydana-polozka").records("changes")), 1)
	c.do(http.MethodPost, "/c/firma/changes/disable.json", "")
	equal(t, "switched off", get("").status, 400)
	equal(t, "status", c.do(http.MethodGet, "/c/firma/changes/status.json", "").text("success"), "false")
	c.do(http.MethodPut, "/c/firma/changes/enable.xml", "")
	equal(t, "switched on", get("").status, 200)
}
