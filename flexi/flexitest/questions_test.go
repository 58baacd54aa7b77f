package flexitest

import (
	"fmt"
	"net/http"
	"testing"
)

// query asks as flexid does: the question in the body, some of it in the address.
func (c *client) query(filter, more, address string) reply {
	c.t.Helper()
	body := fmt.Sprintf(`{"winstrom":{"@version":"1.0","detail":"custom:kod","filter":%q%s}}`, filter, more)
	return c.do(http.MethodPost, "/c/firma/faktura-vydana/query.json?"+address, body)
}

func TestDeafToParameters(t *testing.T) {
	const all = `,"limit":"0","add-row-count":"true"`
	for name, tc := range map[string]struct {
		prepare  func(*Server)
		address  string
		rows     int
		rowCount any
		status   int
	}{
		"healthy":                        {func(*Server) {}, "", 25, "25", 200},
		"limit in a body":                {func(s *Server) { s.IgnoreInBody("limit") }, "", 20, "25", 200},
		"limit in a body, address too":   {func(s *Server) { s.IgnoreInBody("limit") }, "limit=0", 25, "25", 200},
		"count in a body":                {func(s *Server) { s.IgnoreInBody("add-row-count") }, "", 25, nil, 200},
		"count in a body, address too":   {func(s *Server) { s.IgnoreInBody("add-row-count") }, "add-row-count=true", 25, "25", 200},
		"limit anywhere":                 {func(s *Server) { s.IgnoreParams("limit") }, "limit=0", 20, "25", 200},
		"count anywhere":                 {func(s *Server) { s.IgnoreParams("add-row-count") }, "add-row-count=true", 25, nil, 200},
		"too large":                      {func(s *Server) { s.LimitAnswers(1000, 413) }, "", 0, nil, 413},
		"too large by what it is padded": {func(s *Server) { s.LimitAnswers(100_000, 500); s.PadRecords(5000) }, "", 0, nil, 500},
	} {
		t.Run(name, func(t *testing.T) {
			c := pipe(t, Options{})
			fill(c, 25)
			tc.prepare(c.s)
			r := c.query("(varSym > '0')", all, tc.address)
			equal(t, "status", r.status, tc.status)
			equal(t, "rows", len(r.records("faktura-vydana")), tc.rows)
			equal(t, "row count", r.root["@rowCount"], tc.rowCount)
			c.must(c.post("faktura-vydana", invoice("ext:S:99", "FV-99"))) // writes are as ever
		})
	}
}

func TestRefusedFilters(t *testing.T) {
	c := pipe(t, Options{})
	fill(c, 2)
	c.s.RefuseUnknownExt(true)
	for filter, status := range map[string]int{
		"(id='ext:S:1' or kod='F002')":                 200,
		"(id='ext:S:77' or kod='F002')":                400,
		"(kod='F002' or id='ext:S:77')":                400,
		"(kod='F002' or (id=1 or id in ('ext:S:77')))": 400,
		"(id='ext:S:77')":                              200,
	} {
		equal(t, filter, c.query(filter, "", "").status, status)
	}
	c.s.RefuseUnknownExt(false)
	c.s.RefuseFilterBy("F002")
	equal(t, "refused", c.query("(kod='F002')", "", "").status, 400)
	equal(t, "another", c.query("(kod='F001')", "", "").status, 200)
}

func TestShownExternalIDs(t *testing.T) {
	c := pipe(t, Options{})
	c.must(c.post("faktura-vydana", invoice("ext:S:1", "FV-1")))
	c.s.Type("faktura-vydana", map[string]any{"typDokl": "code:FAKTURA", "kod": "FV-2", "varSym": "2", "datVyst": "2026-01-01"})
	shown := func(kod string) string {
		r := c.query("(kod='"+kod+"')", "", "").records("faktura-vydana")
		if len(r) != 1 {
			t.Fatalf("%d records", len(r))
		}
		return fmt.Sprint(r[0]["external-ids"])
	}
	equal(t, "nothing", shown("FV-2"), "<nil>")
	c.s.ShowEmptyExternalIDs(true)
	equal(t, "an empty list", shown("FV-2"), "[]")
	equal(t, "its own", shown("FV-1"), "[ext:S:1]")
	c.s.HideExternalIDs(true)
	equal(t, "hidden", shown("FV-1"), "[]")
	equal(t, "still known", len(c.query("(id='ext:S:1')", "", "").records("faktura-vydana")), 1)
}
