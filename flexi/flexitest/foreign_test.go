package flexitest

import (
	"fmt"
	"go/parser"
	gotoken "go/token"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShapesOfForeignClients pins what public clients send, where it differs from what we would write.
func TestShapesOfForeignClients(t *testing.T) {
	c := pipe(t, Options{})
	// A TypeScript client: PUT, content in an array, booleans that are booleans, numbers as text.
	r := c.do(http.MethodPut, "/c/firma/faktura-vydana.json", `{"winstrom":[{"faktura-vydana":{"kod":"TS-1","varSym":"1",`+
		`"datVyst":"2026-03-01","typDokl":"code:FAKTURA","firma":"code:NOVAK","stitky":"VIP,ESHOP","polozkyDokladu@removeAll":true,`+
		`"polozkyDokladu":[{"mnozMj":"2.5","cenaMj":"200","objem":"-2","cenik":"code:PRACE"}]}}]}`)
	c.must(r)
	list := c.do(http.MethodGet, "/c/firma/faktura-vydana/(kod%20=%20%22TS-1%22).json?"+
		"detail=custom:id,kod,stitky,firma(id,kod,nazev),polozkyDokladu(id,nazev,sumZkl)&"+
		"includes=faktura-vydana/firma/adresar,faktura-vydana/polozkyDokladu/faktura-vydana-polozka&relations=firma,polozkyDokladu", "")
	rec := list.records("faktura-vydana")[0]
	equal(t, "labels", rec["stitky"], any("VIP, ESHOP"))
	equal(t, "included partner", fmt.Sprint(rec["firma"]), "[map[id:1 kod:NOVAK nazev:Novák a syn s.r.o.]]")
	equal(t, "rows", fmt.Sprint(rec["polozkyDokladu"]), "[map[id:1 nazev:Práce technika sumZkl:500.0]]")
	// It keeps a list of labels and their groups, and its session alive.
	equal(t, "label groups", c.do(http.MethodGet, "/c/firma/skupina-stitku.json?detail=full&limit=0", "").status, 200)
	keep := c.do(http.MethodGet, "/login-logout/session-keep-alive.json", "")
	equal(t, "keep alive", strings.Contains(string(keep.body), `"success":true`), true)

	// A record that was read and is sent back whole: read-only fields and companions of relations change nothing.
	full := c.do(http.MethodGet, "/c/firma/faktura-vydana/1.json", "")
	body := strings.TrimSuffix(strings.TrimPrefix(string(full.body), `{"winstrom":{"@version":"1.0","faktura-vydana":[{`), "}]}}")
	before := c.s.Records("faktura-vydana")[0].Fields
	c.must(c.post("faktura-vydana", body))
	for name, v := range c.s.Records("faktura-vydana")[0].Fields {
		unset := before[name] == nil && (v == "0.0" || v == "false")
		if !unset && fmt.Sprint(v) != fmt.Sprint(before[name]) {
			t.Errorf("%s: %v became %v", name, before[name], v)
		}
	}
	equal(t, "records", len(c.s.Records("faktura-vydana")), 1)
}

// TestImportsNothingOfOurs: the fake must judge flexid from outside.
func TestImportsNothingOfOurs(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(gotoken.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if strings.HasPrefix(imp.Path.Value, `"flexid/`) {
				t.Errorf("%s imports %s", name, imp.Path.Value)
			}
		}
	}
}
