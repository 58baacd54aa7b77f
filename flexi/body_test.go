package flexi

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckBody(t *testing.T) {
	cases := []struct {
		name, body, path string // path "-" = it may be sent
	}{
		{"plain", `{"kod":"FV-1","polozkyFaktury":[{"nazev":"x","mnozMj":"1"}]}`, "-"},
		{"empty", `{}`, "-"},
		{"same key in two rows", `{"polozkyFaktury":[{"nazev":"x"},{"nazev":"y"}]}`, "-"},
		{"keys that differ in case", `{"kod":"a","Kod":"b"}`, "-"},
		{"allowed attributes", `{"polozkyFaktury@removeAll":"true","firma@if-not-found":"null","content@encoding":"base64"}`, "-"},
		{"identifier of another system", `{"id":"ext:SHOP:17"}`, "-"},
		{"several of them", `{"id":["ext:SHOP:17","ext:CRM:x"]}`, "-"},
		{"one in a row", `{"polozkyFaktury":[{"id":"ext:SHOP:r1"}]}`, "-"},
		{"a system that begins like ours", `{"id":"ext:FLEXIDX:1"}`, "-"},
		{"the hyphenated one", `{"firma-previousValue":"x"}`, "-"},

		{"list", `[{"kod":"a"}]`, ""},
		{"string", `"kod"`, ""},
		{"null", `null`, ""},
		{"nothing", ``, ""},
		{"broken", `{"kod":`, "kod"},
		{"two documents", `{"kod":"a"}{"kod":"b"}`, ""},
		{"not UTF-8", "{\"kod\":\"\xff\"}", ""},
		{"too deep", strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200), strings.TrimSuffix(strings.Repeat("a.", 100), ".")},
		{"lists too deep", `{"a":` + strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200) + `}`, "a" + strings.Repeat("[0]", 99)},
		{"envelope", `{"winstrom":{"banka":[]}}`, "winstrom"},
		{"key twice", `{"kod":"a","kod":"b"}`, "kod"},
		{"key twice, spelled with an escape", `{"kod":"a","k\u006fd":"b"}`, "kod"},
		{"key twice in a row", `{"polozkyFaktury":[{"nazev":"x"},{"nazev":"y","nazev":"z"}]}`, "polozkyFaktury[1].nazev"},
		{"Flexi id", `{"id":"123"}`, "id"},
		{"Flexi id as a number", `{"id":123}`, "id"},
		{"no id", `{"id":null}`, "id"},
		{"code as id", `{"id":"code:X"}`, "id"},
		{"our own id", `{"id":"ext:FLEXID:x"}`, "id"},
		{"our own id in other letters", `{"id":"ext:flexid:x"}`, "id"},
		{"our own id with a source", `{"id":["ext:SHOP:1","ext:FLEXID.shop:x"]}`, "id[1]"},
		{"several ids in one string", `{"id":"ext:SHOP:1][ext:FLEXID:1"}`, "id"},
		{"an object as id", `{"id":{"x":"ext:SHOP:1"}}`, "id"},
		{"id in a row", `{"polozkyFaktury":[{"id":"5"}]}`, "polozkyFaktury[0].id"},
		{"external-ids", `{"external-ids":["ext:SHOP:1"]}`, "external-ids"},
		{"external-ids in a row", `{"polozkyFaktury":{"x":{"external-ids":[]}}}`, "polozkyFaktury.x.external-ids"},
		{"record attribute", `{"@update":"ok"}`, "@update"},
		{"record attribute in a row", `{"polozkyFaktury":[{"@action":"delete"}]}`, "polozkyFaktury[0].@action"},
		{"attribute of an answer", `{"mena@showAs":"CZK"}`, "mena@showAs"},
		{"two attributes", `{"a@removeAll@x":"CZK"}`, "a@removeAll@x"},
		{"pairing", `{"sparovani":{}}`, "sparovani"},
		{"cash payment", `{"hotovostni-uhrada":{}}`, "hotovostni-uhrada"},
		{"cash payment in camel case", `{"hotovostniUhrada":{}}`, "hotovostniUhrada"},
		{"order turned into an invoice", `{"realizaceObj":{}}`, "realizaceObj"},
		{"the same, hyphenated", `{"realizace-obj":{}}`, "realizace-obj"},
		{"deduction of advances", `{"odpocty-zaloh":{}}`, "odpocty-zaloh"},
		{"the same in camel case", `{"odpoctyZaloh":{}}`, "odpoctyZaloh"},
		{"tax document link", `{"vytvor-vazbu-zdd":{}}`, "vytvor-vazbu-zdd"},
		{"the same in camel case", `{"vytvorVazbuZdd":{}}`, "vytvorVazbuZdd"},
		{"mail", `{"odeslani-dokladu":{}}`, "odeslani-dokladu"},
		{"mail of everything", `{"automaticky-odeslat-neodeslane":{}}`, "automaticky-odeslat-neodeslane"},
		{"pairing inside a row", `{"polozkyFaktury":[{"sparovani":1}]}`, "polozkyFaktury[0].sparovani"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := CheckBody("faktura-vydana", "FLEXID", json.RawMessage(tc.body))
			if tc.path == "-" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var be *BodyError
			if !errors.As(err, &be) {
				t.Fatalf("error is %v", err)
			}
			if be.Path != tc.path || be.Why == "" {
				t.Errorf("%q: %s; want %q", be.Path, be.Why, tc.path)
			}
		})
	}
}

// No field that the ERP really has may look like an operation.
func TestRefusedFieldsAreNoFields(t *testing.T) {
	for name, p := range sharedProperties(t) {
		for field := range p {
			if refused(field) {
				t.Errorf("%s has a field %s that would be refused", name, field)
			}
		}
	}
}

func sharedProperties(t *testing.T) map[string]map[string]Property {
	t.Helper()
	files, _ := filepath.Glob("../../shared/data/flexi-properties/[a-z]*.json")
	if len(files) == 0 {
		t.Skip("../shared/data/flexi-properties is not here")
	}
	out := make(map[string]map[string]Property)
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := decodeProperties(body)
		if err != nil {
			t.Fatalf("%s: %v", filepath.Base(f), err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".json")] = p
	}
	return out
}

func FuzzCheckBody(f *testing.F) {
	for _, s := range []string{`{"kod":"a"}`, `{"id":["ext:A:1"]}`, `{"a":[[{"b@removeAll":1}]]}`, `[`, `{"a":1,"a":2}`, "{\"\xff\":1}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		body := json.RawMessage(s)
		if CheckBody("banka", "FLEXID", body) != nil {
			return
		}
		m := object(body)
		if m == nil {
			t.Fatalf("%q was let through and is no object", s)
		}
		if _, ok := m["external-ids"]; ok {
			t.Errorf("external-ids in %q", s)
		}
		if _, err := Canonical(body); err != nil {
			t.Errorf("%q has no canonical form: %v", s, err)
		}
		w := Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: testExt, Body: body}}}
		p, err := Prepare(w)
		if err != nil {
			return
		}
		var env struct{ Winstrom map[string]json.RawMessage }
		if err := json.Unmarshal(p.Body(), &env); err != nil {
			t.Fatalf("%q became %s: %v", s, p.Body(), err)
		}
		rec := objects(env.Winstrom["banka"])
		if len(rec) != 1 || text(rec[0]["@update"]) != "fail" || text(elements(rec[0]["id"])[0]) != string(testExt) {
			t.Errorf("%q became %s", s, p.Body())
		}
	})
}
