package compare_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"flexid/flexi"
	"flexid/verify/compare"
)

// props of a small invoice, as the server's metadata say.
func props() *flexi.Properties {
	return properties("faktura-vydana",
		flexi.Property{Name: "kod", Type: "string", UpperCase: true, MaxLength: 20},
		flexi.Property{Name: "varSym", Type: "string", MaxLength: 30},
		flexi.Property{Name: "iban", Type: "string"},
		flexi.Property{Name: "popis", Type: "string", MaxLength: 255},
		flexi.Property{Name: "poznam", Type: "string"},
		flexi.Property{Name: "stitky", Type: "string"},
		flexi.Property{Name: "sumCelkem", Type: "numeric", Digits: 15, Decimals: 2},
		flexi.Property{Name: "cisRad", Type: "integer"},
		flexi.Property{Name: "datVyst", Type: "date"},
		flexi.Property{Name: "datUcto", Type: "datetime"},
		flexi.Property{Name: "bezPolozek", Type: "logic"},
		flexi.Property{Name: "stavUhrK", Type: "select", Values: []string{"stavUhr.uhrazeno"}},
		flexi.Property{Name: "firma", Type: "relation", RefEvidence: "adresar", UpperCase: true},
		flexi.Property{Name: "mena", Type: "relation", RefEvidence: "mena"},
	)
}

func properties(evidence string, list ...flexi.Property) *flexi.Properties {
	p := &flexi.Properties{Evidence: evidence, ByName: map[string]flexi.Property{}}
	for _, prop := range list {
		p.ByName[prop.Name] = prop
	}
	return p
}

func record(t testing.TB, text string) flexi.Record {
	t.Helper()
	var r flexi.Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("test record %s: %v", text, err)
	}
	return r
}

func mustCompare(t testing.TB, c compare.Comparer, sent, found string) compare.Result {
	t.Helper()
	r, err := c.Compare(t.Context(), json.RawMessage(sent), record(t, found))
	if err != nil {
		t.Fatalf("Compare(%s, %s): %v", sent, found, err)
	}
	return r
}

func fieldsOf(list []compare.Difference) []string {
	var names []string
	for _, d := range list {
		names = append(names, d.Field)
	}
	return names
}

// verdict says in a word where the only field went: equal, differ, noted or skipped.
func verdict(r compare.Result) string {
	switch {
	case len(r.Differ) > 0:
		return "differ"
	case len(r.Noted) > 0:
		return "noted"
	case len(r.Skipped) > 0:
		return "skipped"
	}
	return "equal"
}

// values: one field by its type.
func TestCompareValues(t *testing.T) {
	for _, tt := range []struct {
		name, field, sent, found, want string
	}{
		{"number as text", "sumCelkem", `"350"`, `"350.0"`, "equal"},
		{"number native", "sumCelkem", `350`, `"350.00"`, "equal"},
		{"number in v2", "sumCelkem", `"350.0"`, `350`, "equal"},
		{"exponent", "sumCelkem", `122900345.29`, `"1.2290034529E8"`, "equal"},
		{"more digits than a float holds", "sumCelkem", `"9007199254740993"`, `"9007199254740992"`, "differ"},
		{"a cent", "sumCelkem", `"350.01"`, `"350.0"`, "differ"},
		{"sign", "sumCelkem", `"-350"`, `"350.0"`, "differ"},
		{"minus nothing", "sumCelkem", `"-0.00"`, `"0.0"`, "equal"},
		{"monstrous exponent", "sumCelkem", `"1e999999999"`, `"1"`, "differ"},
		{"monstrous exponent twice", "sumCelkem", `"1e999999999"`, `"1e999999999"`, "equal"},
		{"not a number", "sumCelkem", `"1 350,00"`, `"1350.0"`, "differ"},
		{"zero is not nothing", "sumCelkem", `0`, `""`, "differ"},
		{"integer with decimals", "cisRad", `1`, `"1.0"`, "equal"},

		{"date with zone", "datVyst", `"2025-12-01"`, `"2025-12-01+01:00"`, "equal"},
		{"zone is cut, not converted", "datVyst", `"2025-12-01"`, `"2025-12-01+14:00"`, "equal"},
		{"date in UTC", "datVyst", `"2025-12-01Z"`, `"2025-12-01+01:00"`, "equal"},
		{"moment sent to a date", "datVyst", `"2025-12-01T23:30:00Z"`, `"2025-12-01+01:00"`, "equal"},
		{"other day", "datVyst", `"2025-12-02"`, `"2025-12-01+01:00"`, "differ"},
		{"no date", "datVyst", `"2025-13-01"`, `"2025-12-01+01:00"`, "differ"},
		{"digits behind the date", "datVyst", `"2025-12-011"`, `"2025-12-01+01:00"`, "differ"},

		{"fraction zeros", "datUcto", `"2025-12-03T10:28:13"`, `"2025-12-03T10:28:13.000"`, "equal"},
		{"same instant", "datUcto", `"2025-12-03T09:28:13.166Z"`, `"2025-12-03T10:28:13.166+01:00"`, "equal"},
		{"other instant, same wall", "datUcto", `"2025-12-03T10:28:13Z"`, `"2025-12-03T10:28:13+01:00"`, "differ"},
		{"wall without zone", "datUcto", `"2025-12-03 10:28:13.1660"`, `"2025-12-03T10:28:13.166+01:00"`, "equal"},
		{"other wall", "datUcto", `"2025-12-03T09:28:13"`, `"2025-12-03T10:28:13+01:00"`, "differ"},
		{"day sent to a moment", "datUcto", `"2025-12-03"`, `"2025-12-03T00:00:00+01:00"`, "equal"},

		{"true", "bezPolozek", `true`, `"true"`, "equal"},
		{"one", "bezPolozek", `1`, `"true"`, "equal"},
		{"false", "bezPolozek", `"0"`, `false`, "equal"},
		{"not true", "bezPolozek", `true`, `"false"`, "differ"},

		{"select", "stavUhrK", `" stavUhr.uhrazeno"`, `"stavUhr.uhrazeno"`, "equal"},
		{"select minds case", "stavUhrK", `"stavuhr.uhrazeno"`, `"stavUhr.uhrazeno"`, "differ"},

		{"upper-cased by the server", "kod", `"vf1-0001/2025 "`, `"VF1-0001/2025"`, "equal"},
		{"decomposed accents", "kod", `"Pr\u030ci\u0301jem"`, `"PŘÍJEM"`, "equal"},
		{"other number", "kod", `"VF1-0001"`, `"VF1-0002"`, "differ"},
		{"number as JSON number", "varSym", `20250001`, `"20250001"`, "equal"},
		{"leading zeros count", "varSym", `"007"`, `"7"`, "differ"},
		{"account decides", "iban", `"CZ65 08"`, `"CZ66 08"`, "differ"},
		{"case of a text counts", "iban", `"cz65"`, `"CZ65"`, "differ"},

		{"line ends", "poznam", `"a\r\nb\rc"`, `"a\nb\nc"`, "equal"},
		{"trailing blanks", "poznam", `"a  \r\n b \n\n"`, `"a\n b"`, "equal"},
		{"note reworded", "poznam", `"for March"`, `"for March 2025"`, "noted"},
		{"note lost", "popis", `"for March"`, `""`, "noted"},

		{"cleared and empty", "popis", `""`, `""`, "equal"},
		{"cleared and null", "popis", `""`, `null`, "equal"},
		{"cleared and list", "firma", `""`, `[]`, "equal"},
		{"null clears", "firma", `null`, `""`, "equal"},
		{"not cleared", "varSym", `""`, `"1"`, "differ"},
		{"cleared money", "sumCelkem", `""`, `"0.0"`, "equal"},
		{"money not cleared", "sumCelkem", `""`, `"0.01"`, "differ"},
		{"cleared box", "bezPolozek", `""`, `"false"`, "equal"},
		{"box not cleared", "bezPolozek", `""`, `"true"`, "differ"},

		{"unknown decimals", "novePole", `"1.50"`, `1.5`, "equal"},
		{"unknown truth", "novePole", `1`, `"true"`, "equal"},
		{"unknown date", "novePole", `"2025-12-01"`, `"2025-12-01+01:00"`, "equal"},
		{"unknown text", "novePole", `"x "`, `"x"`, "equal"},
		{"unknown text differs", "novePole", `"x"`, `"X"`, "differ"},
		{"unknown identity is no decimal", "cisDosle", `"007"`, `"7"`, "differ"},
		{"a list", "novePole", `["a","b"]`, `"a,b"`, "skipped"},
		{"a nested record", "mena", `{"kod":"CZK"}`, `"code:CZK"`, "skipped"},
		{"a nested record that vanished", "mena", `{"kod":"CZK"}`, `""`, "differ"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent := `{"` + tt.field + `":` + tt.sent + `}`
			found := `{"` + tt.field + `":` + tt.found + `}`
			r := mustCompare(t, compare.Comparer{Props: props()}, sent, found)
			if got := verdict(r); got != tt.want {
				t.Errorf("%s against %s: %s, want %s (%+v)", sent, found, got, tt.want, r)
			}
			for _, d := range slices.Concat(r.Differ, r.Noted) {
				if d.Field != tt.field {
					t.Errorf("difference names %q, want %q", d.Field, tt.field)
				}
			}
		})
	}
}

func TestCompareAbsent(t *testing.T) {
	c := compare.Comparer{Props: props()}
	r := mustCompare(t, c, `{"varSym":"1","popis":"","stitky":"A","polozkyFaktury":[{"nazev":"x"}]}`, `{"id":"5"}`)
	want := []string{"polozkyFaktury: not shown by Flexi", "stitky: not shown by Flexi", "varSym: not shown by Flexi"}
	if !slices.Equal(r.Skipped, want) || len(r.Differ)+len(r.Noted) > 0 {
		t.Errorf("got %+v, want skipped %q and no difference", r, want)
	}
	if !r.Equal(false) || r.Shown() {
		t.Errorf("Equal %v, Shown %v: what is not shown is no conflict and no proof", r.Equal(false), r.Shown())
	}
}

// Identifiers and attributes are not content: they decide nothing and are not listed.
func TestCompareIgnoresIdentifiersAndAttributes(t *testing.T) {
	r := mustCompare(t, compare.Comparer{Props: props()},
		`{"id":["ext:S:1"],"external-ids":["ext:S:1"],"@update":"fail","firma@if-not-found":"create","kod":"A"}`,
		`{"id":"7","kod":"A"}`)
	if !r.Shown() {
		t.Errorf("got %+v, want all shown", r)
	}
}

// What was sent encoded is shown decoded, or not at all: neither side can be taken for the other.
func TestCompareEncodedField(t *testing.T) {
	r := mustCompare(t, compare.Comparer{}, `{"obsah":"YQ==","obsah@encoding":"base64"}`, `{"obsah":"a"}`)
	if want := []string{"obsah: sent in base64"}; !slices.Equal(r.Skipped, want) || len(r.Differ) > 0 {
		t.Errorf("got %+v, want skipped %q", r, want)
	}
}

// The name under which metadata lie is the field's name, whatever they say themselves.
func TestCompareNamesFieldsByTheirKey(t *testing.T) {
	p := &flexi.Properties{ByName: map[string]flexi.Property{"castka": {Type: "numeric"}}}
	r := mustCompare(t, compare.Comparer{Props: p}, `{"castka":1}`, `{"castka":"2.0"}`)
	if want := []compare.Difference{{Field: "castka", Sent: "1", Found: "2.0"}}; !slices.Equal(r.Differ, want) {
		t.Errorf("got %+v, want %+v", r.Differ, want)
	}
}

func TestResultDecides(t *testing.T) {
	d := []compare.Difference{{Field: "x"}}
	for _, tt := range []struct {
		name                  string
		r                     compare.Result
		ours, strangers, show bool
	}{
		{"nothing", compare.Result{}, true, true, true},
		{"differ", compare.Result{Differ: d}, false, false, false},
		{"noted", compare.Result{Noted: d}, true, false, false},
		{"skipped", compare.Result{Skipped: []string{"x: y"}}, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.r.Equal(true) != tt.ours || tt.r.Equal(false) != tt.strangers || tt.r.Shown() != tt.show {
				t.Errorf("Equal(ours) %v, Equal(not ours) %v, Shown %v; want %v %v %v",
					tt.r.Equal(true), tt.r.Equal(false), tt.r.Shown(), tt.ours, tt.strangers, tt.show)
			}
		})
	}
}

// A result goes into a ledger row of limited size.
func TestResultIsBounded(t *testing.T) {
	sent, found := map[string]string{}, flexi.Record{}
	for i := range 100 {
		name := "pole" + strings.Repeat("x", i)
		sent[name] = strings.Repeat("ž", 5000)
		found[name] = json.RawMessage(`"jiný"`)
	}
	body, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	r, err := compare.Comparer{}.Compare(t.Context(), body, found)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Differ) != 20 || r.More != 80 {
		t.Errorf("%d differences and %d more, want 20 and 80", len(r.Differ), r.More)
	}
	for _, d := range r.Differ {
		if n := utf8.RuneCountInString(d.Sent); n != 200 || !utf8.ValidString(d.Sent) {
			t.Errorf("%s: %d runes of sent, want 200 whole ones", d.Field, n)
		}
	}
}

func TestResultBoundsNotesAndSkips(t *testing.T) {
	row := `{"popis":"a","mnozMj":1,"mena":"code:A"},`
	other := `{"popis":"b","mena":"code:B"},`
	r := mustCompare(t, compare.Comparer{Props: props()},
		`{"polozkyFaktury":[`+strings.TrimSuffix(strings.Repeat(row, 30), ",")+`]}`,
		`{"polozkyFaktury":[`+strings.TrimSuffix(strings.Repeat(other, 30), ",")+`]}`)
	if len(r.Noted) != 20 || len(r.Skipped) != 20 || r.More != 10+40 {
		t.Errorf("%d noted, %d skipped, %d more; want 20, 20, 50", len(r.Noted), len(r.Skipped), r.More)
	}
}

func TestCompareBadInput(t *testing.T) {
	some := flexi.Record{"kod": json.RawMessage(`"A"`)}
	for name, sent := range map[string]string{
		"nothing": ``, "null": `null`, "list": `[{}]`, "text": `"x"`, "half": `{"kod":"A"`, "two": `{} {}`,
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := (compare.Comparer{}).Compare(t.Context(), json.RawMessage(sent), some); err == nil {
				t.Errorf("Compare(%q) = %+v, want an error", sent, r)
			}
		})
	}
	if r, err := (compare.Comparer{}).Compare(t.Context(), json.RawMessage(`{"kod":"A"}`), nil); err == nil {
		t.Errorf("no record: %+v, want an error: nothing shown must not pass for equal", r)
	}
}

// same is a Resolver that knows sets of references to one record each.
type same struct {
	evidence string
	records  []string // "code:A 5 ext:S:1"
	asked    []string
}

func (s *same) Same(_ context.Context, evidence, a, b string) (bool, bool) {
	s.asked = append(s.asked, strings.Join([]string{evidence, a, b}, " "))
	at := func(ref string) int {
		return slices.IndexFunc(s.records, func(r string) bool { return slices.Contains(strings.Fields(r), ref) })
	}
	i, j := at(a), at(b)
	return i == j, evidence == s.evidence && i >= 0 && j >= 0
}

func keys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
