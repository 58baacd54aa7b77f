package flexi

import (
	"strings"
	"testing"
)

func TestNumberOf(t *testing.T) {
	pair := func(v, firma string) Number { return Number{Value: v, Pair: true, Partner: firma, Field: "cisDosle"} }
	cases := []struct {
		name, evidence, body string
		want                 Number
		ok, fails            bool
	}{
		{"kod", "faktura-vydana", `{"kod":"fv-1 "}`, Number{Value: "FV-1", Field: "kod"}, true, false},
		{"kod as a number", "faktura-vydana", `{"kod":20240001}`, Number{Value: "20240001", Field: "kod"}, true, false},
		{"combining characters", "banka", `{"kod":"C\u030c1"}`, Number{Value: "Č1", Field: "kod"}, true, false},
		{"none", "banka", `{"popis":"x"}`, Number{Field: "kod"}, false, false},
		{"null", "banka", `{"kod":null}`, Number{Field: "kod"}, false, false},
		{"blank", "banka", `{"kod":"  "}`, Number{Field: "kod"}, false, false},
		{"composite", "banka", `{"kod":{"x":1}}`, Number{}, false, true},
		{"as long as it may be", "banka", `{"kod":"12345678901234567890"}`, Number{Value: "12345678901234567890", Field: "kod"}, true, false},
		{"too long", "banka", `{"kod":"123456789012345678901"}`, Number{}, false, true},
		{"long, but of the price list", "cenik", `{"kod":"` + strings.Repeat("X", 64) + `"}`, Number{Value: strings.Repeat("X", 64), Field: "kod"}, true, false},
		{"too long for the price list", "cenik", `{"kod":"` + strings.Repeat("x", 65) + `"}`, Number{}, false, true},
		{"characters, not bytes", "banka", `{"kod":"` + strings.Repeat("ř", 20) + `"}`, Number{Value: strings.Repeat("Ř", 20), Field: "kod"}, true, false},
		{"pair", "faktura-prijata", `{"cisDosle":" a/17 ","firma":"code:ACME"}`, pair("a/17", "code:ACME"), true, false},
		{"pair with a partner by id", "zavazek", `{"cisDosle":17,"firma":12}`, pair("17", "12"), true, false},
		{"pair with a partner in free text", "faktura-prijata", `{"cisDosle":"17","firma":"Acme s.r.o."}`, Number{}, false, false},
		{"pair with an empty code", "faktura-prijata", `{"cisDosle":"17","firma":"code: "}`, Number{}, false, false},
		{"pair with a partner by our external id", "zavazek", `{"cisDosle":"17","firma":"ext:SHOP:1"}`, pair("17", "ext:SHOP:1"), true, false},
		{"pair without partner", "faktura-prijata", `{"cisDosle":"17"}`, Number{}, false, false},
		{"pair without number", "faktura-prijata", `{"firma":"code:ACME"}`, pair("", "code:ACME"), false, false},
		{"kod is no number of a payable", "faktura-prijata", `{"kod":"PF1","firma":"code:ACME"}`, pair("", "code:ACME"), false, false},
		{"kod of a payable too long", "faktura-prijata", `{"kod":"123456789012345678901","firma":"code:A"}`, Number{}, false, true},
		{"cisDosle too long", "zavazek", `{"cisDosle":"` + strings.Repeat("1", 41) + `","firma":"code:A"}`, Number{}, false, true},
		{"no object", "banka", `[]`, Number{}, false, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			n, ok, err := NumberOf(tc.evidence, []byte(tc.body))
			if n != tc.want || ok != tc.ok || (err != nil) != tc.fails {
				t.Errorf("%+v, %v, %v", n, ok, err)
			}
		})
	}
}

// The lengths and letter cases that are written down here are those of a real server.
func TestNumbersAgreeWithTheServer(t *testing.T) {
	for evidence, props := range sharedProperties(t) {
		field, pair := NumberField(evidence)
		p, ok := props[field]
		if !ok {
			t.Errorf("%s has no field %s", evidence, field)
			continue
		}
		if p.MaxLength != MaxNumber(evidence) {
			t.Errorf("%s.%s takes %d characters, not %d", evidence, field, p.MaxLength, MaxNumber(evidence))
		}
		if upper := NormaliseNumber(evidence, "a") == "A"; upper != p.UpperCase {
			t.Errorf("%s.%s: upper case %v, not %v", evidence, field, p.UpperCase, upper)
		}
		if pair && props["firma"].Type != "relation" {
			t.Errorf("%s has no partner", evidence)
		}
	}
}

func TestCanonical(t *testing.T) {
	same := []string{
		`{"a":1.50,"b":{"x":[1,"<&>"],"y":"é"}}`,
		"{ \"b\" : {\"y\":\"\\u00e9\",\n\"x\":[1,\"\\u003c&>\"]}, \"a\":1.50 }\n",
	}
	want := `{"a":1.50,"b":{"x":[1,"<&>"],"y":"é"}}`
	for _, s := range same {
		got, err := Canonical([]byte(s))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", s, got, err)
		}
		if Digest([]byte(s)) != Digest([]byte(want)) {
			t.Errorf("%s has a digest of its own", s)
		}
	}
	for _, other := range []string{`{"a":1.5,"b":{"x":[1,"<&>"],"y":"é"}}`, `{"a":"1.50"}`, `{"a":1.50}`, `{`, ``} {
		if Digest([]byte(other)) == Digest([]byte(want)) {
			t.Errorf("%s has the same digest", other)
		}
	}
	for _, bad := range []string{``, `{`, `{} {}`, `{}]`} {
		if _, err := Canonical([]byte(bad)); err == nil {
			t.Errorf("%q has a canonical form", bad)
		}
	}
	if got, _ := Canonical([]byte(`{"n":123456789012345678901234567890.10}`)); string(got) != `{"n":123456789012345678901234567890.10}` {
		t.Errorf("a long number became %s", got)
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add(`{"b":1e400,"a":[null,true,"\ud800"]}`)
	f.Add(`-0.0`)
	f.Fuzz(func(t *testing.T, s string) {
		once, err := Canonical([]byte(s))
		if err != nil {
			return
		}
		twice, err := Canonical(once)
		if err != nil || string(once) != string(twice) {
			t.Errorf("%q: %s, then %s, %v", s, once, twice, err)
		}
	})
}
