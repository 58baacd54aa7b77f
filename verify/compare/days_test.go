package compare_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"
	_ "time/tzdata"

	"flexid/flexi"
	"flexid/verify/compare"
)

func TestDays(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Prague")
	if err != nil {
		t.Fatal(err)
	}
	props := func(ps ...flexi.Property) *flexi.Properties {
		by := map[string]flexi.Property{}
		for _, p := range ps {
			by[p.Name] = p
		}
		return &flexi.Properties{ByName: by}
	}
	c := compare.Comparer{
		Props: props(flexi.Property{Name: "datVyst", Type: "date"}, flexi.Property{Name: "cas", Type: "datetime"}, flexi.Property{Name: "popis", Type: "string"}),
		Items: map[string]*flexi.Properties{"polozkyFaktury": props(flexi.Property{Name: "expirace", Type: "date"})},
		Zone:  zone,
	}
	const evening, day = `"2026-02-28T23:30:00Z"`, `"2026-03-01"`
	for _, tc := range []struct {
		name, sent, want string
		turned           map[string]string
	}{
		{"nothing to turn", `{"popis":"a & <b>","datVyst":"2026-02-28"}`, "", nil},
		{"Flexi's own writing stays", `{"datVyst":"2026-02-28+01:00"}`, "", nil},
		{"a field that is no date", `{"popis":` + evening + `,"cas":` + evening + `}`, "", nil},
		{"a field nobody knows", `{"neznam":` + evening + `}`, "", nil},
		{"a date field", `{"popis":"a & <b>","datVyst":` + evening + `}`, `{"datVyst":` + day + `,"popis":"a & <b>"}`, map[string]string{"datVyst": "2026-03-01"}},
		{"a time without a zone", `{"datVyst":"2026-02-28T23:30:00"}`, `{"datVyst":"2026-02-28"}`, map[string]string{"datVyst": "2026-02-28"}},
		{"in a row of a list", `{"polozkyFaktury":[{"nazev":"a"},{"expirace":` + evening + `}]}`, `{"polozkyFaktury":[{"nazev":"a"},{"expirace":` + day + `}]}`,
			map[string]string{"polozkyFaktury[1].expirace": "2026-03-01"}},
		{"in a single row", `{"polozkyFaktury":{"expirace":` + evening + `}}`, `{"polozkyFaktury":{"expirace":` + day + `}}`,
			map[string]string{"polozkyFaktury[0].expirace": "2026-03-01"}},
		{"in wrapped rows", `{"polozkyFaktury":{"faktura-vydana-polozka":[{"expirace":` + evening + `}]}}`,
			`{"polozkyFaktury":{"faktura-vydana-polozka":[{"expirace":` + day + `}]}}`, map[string]string{"polozkyFaktury[0].expirace": "2026-03-01"}},
		{"numbers stay as they were written", `{"sumOsv":0.30000000000000004,"datVyst":` + evening + `}`, `{"datVyst":` + day + `,"sumOsv":0.30000000000000004}`,
			map[string]string{"datVyst": "2026-03-01"}},
		{"no day at all is left to Flexi", `{"datVyst":"2026-02-30T23:30:00Z"}`, "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, turned, err := c.Days(json.RawMessage(tc.sent))
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				tc.want = tc.sent
			}
			if string(got) != tc.want || !maps.Equal(turned, tc.turned) {
				t.Errorf("%s, %v; want %s, %v", got, turned, tc.want, tc.turned)
			}
			if again := compare.WithDays(json.RawMessage(tc.sent), turned); string(again) != tc.want {
				t.Errorf("shown later as %s", again)
			}
		})
	}
	if _, _, err := c.Days(json.RawMessage(`[1]`)); err == nil {
		t.Error("a list is taken for a document")
	}
}

// TestRounding: what was sent is equal to what Flexi keeps of it.
func TestRounding(t *testing.T) {
	two, six, plain := flexi.Property{Type: "numeric", Decimals: 2}, flexi.Property{Type: "numeric", Decimals: 6}, flexi.Property{Type: "numeric"}
	for _, tc := range []struct {
		name        string
		prop        flexi.Property
		sent, found string
		equal       bool
	}{
		{"binary noise", two, "300.29999999999995", "300.3", true},
		{"six decimals", six, "33.333333333333336", "33.333333", true},
		{"six decimals, another sixth", six, "33.333333333333336", "33.333334", false},
		{"a hundredth", two, "300.31", "300.30", false},
		{"a hundredth beside noise", two, "300.30999999999995", "300.30", false},
		{"a middle rounded up", two, "0.125", "0.13", true},
		{"a middle rounded to even", two, "0.125", "0.12", true},
		{"no middle", two, "0.126", "0.12", false},
		{"a negative middle", two, "-0.125", "-0.13", true},
		{"Flexi shows more than it keeps", two, "0.12", "0.1249999", true},
		{"no decimals told, a float", plain, "300.29999999999995", "300.3", true},
		{"no decimals told, a thousandth", plain, "300.304", "300.3", false},
		{"no metadata, a float", flexi.Property{}, "300.29999999999995", "300.3", true},
		{"no metadata, a float of six", flexi.Property{}, "33.333333333333336", "33.333333", true},
		{"no metadata, a hundredth", flexi.Property{}, "300.31", "300.3", false},
		{"no metadata, a float and a hundredth", flexi.Property{}, "300.30999999999995", "300.3", false},
		{"an endless number of decimals", flexi.Property{Type: "numeric", Decimals: 1 << 40}, "1", "1.0", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := compare.Comparer{Props: &flexi.Properties{ByName: map[string]flexi.Property{}}}
			if tc.prop.Type != "" {
				c.Props.ByName["sumOsv"] = tc.prop
			}
			res, err := c.Compare(t.Context(), json.RawMessage(`{"sumOsv":`+tc.sent+`}`), flexi.Record{"sumOsv": json.RawMessage(`"` + tc.found + `"`)})
			if err != nil || res.Equal(false) != tc.equal {
				t.Errorf("equal %v, %v; want %v", res.Equal(false), err, tc.equal)
			}
		})
	}
}
