package compare_test

import (
	"slices"
	"testing"

	"flexid/flexi"
	"flexid/verify/compare"
)

func itemProps() *flexi.Properties {
	return properties("faktura-vydana-polozka",
		flexi.Property{Name: "kod", Type: "string", UpperCase: true},
		flexi.Property{Name: "nazev", Type: "string"},
		flexi.Property{Name: "cenaMj", Type: "numeric"},
		flexi.Property{Name: "mnozMj", Type: "numeric"},
		flexi.Property{Name: "cenik", Type: "relation", RefEvidence: "cenik"},
	)
}

func withItems() compare.Comparer {
	return compare.Comparer{Props: props(), Items: map[string]*flexi.Properties{"polozkyFaktury": itemProps()}}
}

func TestCompareRows(t *testing.T) {
	const two = `"polozkyFaktury":[{"nazev":"A","cenaMj":1},{"nazev":"B","cenaMj":2.50}]`
	for _, tt := range []struct {
		name, sent, found      string
		differ, noted, skipped []string
	}{
		{name: "equal", sent: two,
			found: `"polozkyFaktury":[{"id":"1","nazev":"A","cenaMj":"1.0"},{"id":"2","nazev":"B","cenaMj":"2.5"}]`},
		{name: "shown in another order", sent: two,
			found: `"polozkyFaktury":[{"id":"1","cisRad":"2","nazev":"B","cenaMj":"2.5"},{"id":"2","cisRad":"1","nazev":"A","cenaMj":"1.0"}]`},
		{name: "ids in order of numbers, not of text", sent: two,
			found: `"polozkyFaktury":[{"id":"10","nazev":"B","cenaMj":"2.5"},{"id":"9","nazev":"A","cenaMj":"1.0"}]`},
		{name: "some rows without a place keep the order shown", sent: two,
			found: `"polozkyFaktury":[{"cisRad":"9","nazev":"A","cenaMj":"1.0"},{"nazev":"B","cenaMj":"2.5"}]`},
		{name: "sent with places in another order",
			sent:   `"polozkyFaktury":[{"cisRad":2,"cenaMj":2},{"cisRad":1,"cenaMj":1}]`,
			found:  `"polozkyFaktury":[{"cisRad":"1","cenaMj":"1.0"},{"cisRad":"2","cenaMj":"3.0"}]`,
			differ: []string{"polozkyFaktury[0].cenaMj"}},
		{name: "price and name", sent: two,
			found:  `"polozkyFaktury":[{"nazev":"A","cenaMj":"1.0"},{"nazev":"Bé","cenaMj":"2.0"}]`,
			differ: []string{"polozkyFaktury[1].cenaMj"}, noted: []string{"polozkyFaktury[1].nazev"}},
		{name: "swapped", sent: two,
			found:  `"polozkyFaktury":[{"nazev":"B","cenaMj":"2.5"},{"nazev":"A","cenaMj":"1.0"}]`,
			differ: []string{"polozkyFaktury[0].cenaMj", "polozkyFaktury[1].cenaMj"},
			noted:  []string{"polozkyFaktury[0].nazev", "polozkyFaktury[1].nazev"}},
		{name: "appended twice", sent: `"polozkyFaktury":[{"nazev":"A"}]`,
			found: `"polozkyFaktury":[{"nazev":"A"},{"nazev":"A"}]`, differ: []string{"polozkyFaktury"}},
		{name: "rows lost", sent: two, found: `"polozkyFaktury":[]`, differ: []string{"polozkyFaktury"}},
		{name: "wrapped", sent: `"polozkyFaktury":{"faktura-vydana-polozka":[{"cenaMj":1}]}`,
			found: `"polozkyFaktury":[{"cenaMj":"1.0"}]`},
		{name: "wrapped single", sent: `"polozkyFaktury":{"faktura-vydana-polozka":{"cenaMj":1}}`,
			found: `"polozkyFaktury":{"cenaMj":"2.0"}`, differ: []string{"polozkyFaktury[0].cenaMj"}},
		{name: "wrapped empty", sent: `"polozkyFaktury":{"faktura-vydana-polozka":[]}`, found: `"polozkyFaktury":[]`},
		{name: "none and none", sent: `"polozkyFaktury":[]`, found: `"kod":"A"`},
		{name: "none and some", sent: `"polozkyFaktury":[]`, found: `"polozkyFaktury":[{"cenaMj":"1"}]`,
			differ: []string{"polozkyFaktury"}},
		{name: "removed all", sent: `"polozkyFaktury@removeAll":"true"`, found: `"polozkyFaktury":[{"cenaMj":"1"}]`,
			differ: []string{"polozkyFaktury"}},
		{name: "shown under another name", sent: `"polozkyDokladu":[{"kod":"a","cenaMj":1}]`,
			found: `"polozkyFaktury":[{"kod":"A","cenaMj":"1.0"}]`},
		{name: "metadata of the other name", sent: `"polozkyDokladu":[{"cenaMj":""}]`,
			found: `"polozkyFaktury":[{"cenaMj":"0.0"}]`},
		{name: "an attribute is no collection", sent: `"polozkyDokladu":[{"cenaMj":1}]`,
			found: `"polozkyA@visible":"true","polozkyFaktury":[{"cenaMj":"1.0"}]`},
		{name: "the sent name first", sent: `"polozkyDokladu":[{"cenaMj":1}]`,
			found:  `"polozkyA":[{"cenaMj":"1.0"}],"polozkyDokladu":[{"cenaMj":"2.0"}]`,
			differ: []string{"polozkyDokladu[0].cenaMj"}},
		{name: "another sent collection is no alias",
			sent:    `"polozkyDokladu":[{"cenaMj":1}],"polozkyFaktury":[{"cenaMj":2}]`,
			found:   `"polozkyFaktury":[{"cenaMj":"2.0"}]`,
			skipped: []string{"polozkyDokladu: not shown by Flexi"}},
		{name: "attachments are not shown", sent: `"prilohy":[{"nazSoub":"a.pdf"}]`, found: `"kod":"A"`,
			skipped: []string{"prilohy: not shown by Flexi"}},
		{name: "row without a field", sent: `"polozkyFaktury":[{"cenaMj":1,"mnozMj":2}]`,
			found:   `"polozkyFaktury":[{"cenaMj":"1.0"}]`,
			skipped: []string{"polozkyFaktury[0].mnozMj: not shown by Flexi"}},
		{name: "relation in a row", sent: `"polozkyFaktury":[{"cenik":"code:zb1"}]`,
			found: `"polozkyFaktury":[{"cenik":"code:ZB1","cenik@ref":"/c/x/cenik/1.json"}]`},
		{name: "rows and a text", sent: `"polozkyFaktury":[{"cenaMj":1}]`, found: `"polozkyFaktury":"3 items"`,
			skipped: []string{"polozkyFaktury: a list or a nested record cannot be compared"}},
		{name: "nested too deep", sent: `"a":[{"a":[{"a":[{"a":[{"a":[{"x":1}]}]}]}]}]`,
			found:   `"a":[{"a":[{"a":[{"a":[{"a":[{"x":2}]}]}]}]}]`,
			skipped: []string{"a[0].a[0].a[0].a: a list or a nested record cannot be compared"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := mustCompare(t, withItems(), "{"+tt.sent+"}", "{"+tt.found+"}")
			if !slices.Equal(fieldsOf(r.Differ), tt.differ) || !slices.Equal(fieldsOf(r.Noted), tt.noted) ||
				!slices.Equal(r.Skipped, tt.skipped) {
				t.Errorf("got %+v, want differ %q noted %q skipped %q", r, tt.differ, tt.noted, tt.skipped)
			}
		})
	}
}

func TestCompareRowCountsAreNamed(t *testing.T) {
	r := mustCompare(t, withItems(), `{"polozkyFaktury":[{"nazev":"A"}]}`, `{"polozkyFaktury":[{},{},{}]}`)
	want := []compare.Difference{{Field: "polozkyFaktury", Sent: "rows: 1", Found: "rows: 3"}}
	if !slices.Equal(r.Differ, want) {
		t.Errorf("got %+v, want %+v", r.Differ, want)
	}
}

// Rows often come without metadata: numbers are then still numbers and a code still a code.
func TestCompareRowsWithoutMetadata(t *testing.T) {
	r := mustCompare(t, compare.Comparer{},
		`{"polozkyFaktury":[{"kod":"a1","cenaMj":100,"cenik":"code:a1","nazev":"Šroub","kopirovat":true}]}`,
		`{"polozkyFaktury":[{"kod":"A1","cenaMj":"100.0","cenik":"code:A1","nazev":"Šroub","kopirovat":"true"}]}`)
	if !r.Shown() {
		t.Errorf("got %+v, want all shown", r)
	}
}
