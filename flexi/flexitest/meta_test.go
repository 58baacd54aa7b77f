package flexitest

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// published is one property as a real server published it.
type published struct {
	Type, MaxLength, Digits, Decimal                           string
	Mandatory, IsWritable, IsUpperCase, IsLowerCase, InSummary string
	Name, FkEvidencePath                                       string
	Values                                                     json.RawMessage
}

const realData = "../../../shared/data/flexi-properties"

// TestFieldsAreTheRealOnes compares every field that is written down here with what a real server says of it.
func TestFieldsAreTheRealOnes(t *testing.T) {
	if _, err := os.Stat(realData); err != nil {
		t.Skip("real metadata are not here: " + err.Error())
	}
	compared := 0
	for _, e := range newCatalog().list {
		raw, err := os.ReadFile(filepath.Join(realData, e.path+".json"))
		if err != nil {
			continue
		}
		var props map[string]published
		if err := json.Unmarshal(raw, &props); err != nil {
			t.Fatalf("%s: %v", e.path, err)
		}
		t.Run(e.path, func(t *testing.T) {
			for _, f := range e.fields {
				p, ok := props[f.name]
				if !ok {
					t.Errorf("%s does not exist at the real server", f.name)
					continue
				}
				compareField(t, f, p)
				compared++
			}
			for name, p := range props {
				if p.Mandatory == "true" && e.field(name) == nil {
					t.Errorf("mandatory %s is missing here", name)
				}
			}
		})
	}
	if compared < 800 {
		t.Errorf("only %d fields were compared", compared)
	}
}

func compareField(t *testing.T, f *field, p published) {
	t.Helper()
	num := func(s string) int {
		n, _ := strconv.Atoi(s)
		return n
	}
	equal(t, f.name+" type", f.kind, p.Type)
	equal(t, f.name+" maxLength", f.maxLength, num(p.MaxLength))
	equal(t, f.name+" digits", f.digits, num(p.Digits))
	equal(t, f.name+" decimal", f.decimal, num(p.Decimal))
	equal(t, f.name+" mandatory", f.mandatory, p.Mandatory == "true")
	equal(t, f.name+" read-only", f.readOnly, p.IsWritable != "true")
	equal(t, f.name+" upper case", f.upper, p.IsUpperCase == "true")
	equal(t, f.name+" lower case", f.lower, p.IsLowerCase == "true")
	equal(t, f.name+" in summary", f.summary, p.InSummary == "true")
	equal(t, f.name+" relation", f.to, p.FkEvidencePath)
	equal(t, f.name+" name", f.title, strings.TrimSpace(p.Name))
	if len(f.values) > 0 {
		for _, v := range f.values {
			if !strings.Contains(string(p.Values), strconv.Quote(v)) {
				t.Errorf("%s: value %s is not a real one", f.name, v)
			}
		}
		equal(t, f.name+" number of values", strings.Count(string(p.Values), `"@key"`), len(f.values))
	}
}

// TestEvidencesAreTheRealOnes compares the list of evidences.
func TestEvidencesAreTheRealOnes(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(realData, "EvidenceFullList.json"))
	if err != nil {
		t.Skip("real metadata are not here: " + err.Error())
	}
	var list map[string]struct {
		EvidenceType, EvidenceName, ImportStatus, DBName string
		ExtIDSupported                                   any
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	for _, e := range newCatalog().list {
		p, ok := list[e.path]
		if !ok {
			t.Errorf("%s does not exist at the real server", e.path)
			continue
		}
		equal(t, e.path+" importStatus", e.status, p.ImportStatus)
		equal(t, e.path+" type", e.kind, p.EvidenceType)
		if ext, ok := p.ExtIDSupported.(string); ok {
			equal(t, e.path+" external ids", e.extIDs, ext == "true")
		}
		if p.DBName != "" {
			equal(t, e.path+" table", e.table, p.DBName)
		}
	}
}

func TestPropertiesAreServed(t *testing.T) {
	c := pipe(t, Options{})
	r := c.do(http.MethodGet, "/c/firma/faktura-vydana/properties.json", "")
	var doc struct {
		Properties struct {
			EvidenceName, TagName, DBName string
			Property                      []map[string]any
		}
	}
	if err := json.Unmarshal(r.body, &doc); err != nil {
		t.Fatal(err)
	}
	equal(t, "tag", doc.Properties.TagName, "faktura-vydana")
	equal(t, "table", doc.Properties.DBName, "dDoklFak")
	find := func(name string) map[string]any {
		i := slices.IndexFunc(doc.Properties.Property, func(p map[string]any) bool { return p["propertyName"] == name })
		if i < 0 {
			t.Fatalf("no property %s", name)
		}
		return doc.Properties.Property[i]
	}
	equal(t, "length", find("kod")["maxLength"], any("20"))
	equal(t, "upper case", find("kod")["isUpperCase"], any("true"))
	equal(t, "not writable", find("storno")["isWritable"], any("false"))
	equal(t, "relation", find("mena")["fkEvidencePath"], any("mena"))
	equal(t, "decimals", find("sumCelkem")["decimal"], any("2"))
	values, _ := find("stavUhrK")["values"].(map[string]any)["value"].([]any)
	equal(t, "values", len(values), 3)
}

func TestServerLevel(t *testing.T) {
	c := pipe(t, Options{CompanyName: "Zkušební s.r.o."})
	var doc map[string]map[string]any
	for _, path := range []string{"/c.json", "/c/firma.json"} {
		r := c.do(http.MethodGet, path, "")
		doc = nil
		if err := json.Unmarshal(r.body, &doc); err != nil {
			t.Fatal(err)
		}
		company, _ := doc["companies"]["company"].(map[string]any)
		equal(t, "name", company["nazev"], any("Zkušební s.r.o."))
		equal(t, "id", company["dbNazev"], any("firma"))
	}
	c.s.SetCompany("Jiná a.s.")
	r := c.do(http.MethodGet, "/c.json", "")
	equal(t, "renamed", strings.Contains(string(r.body), "Jiná a.s."), true)

	r = c.do(http.MethodGet, "/c/firma/evidence-list.json", "")
	doc = nil
	if err := json.Unmarshal(r.body, &doc); err != nil {
		t.Fatal(err)
	}
	list, _ := doc["evidences"]["evidence"].([]any)
	equal(t, "evidences", len(list), len(c.s.catalog.list))
	r = c.do(http.MethodGet, "/status.json", "")
	equal(t, "user", strings.Contains(string(r.body), `"loggedUser":"flexid"`), true)
	equal(t, "nothing there", c.do(http.MethodGet, "/nic.json", "").status, 404)
	equal(t, "PATCH", c.do(http.MethodPatch, "/c/firma/adresar.json", "{}").status, 405)
}
