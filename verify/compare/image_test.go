package compare_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"flexid/verify/compare"
)

const before = `{"id":"7","kod":"VF1","varSym":"1","sumCelkem":"350.0","datVyst":"2025-12-01+01:00",
	"datUcto":"2025-12-03T10:28:13.166+01:00","bezPolozek":"false","poznam":"a\nb","stitky":"A,B",
	"firma":"code:NOVAK","firma@ref":"/c/demo/adresar/5.json","mena":"code:CZK",
	"polozkyFaktury":[{"id":"1","cisRad":"1","nazev":"A","cenaMj":"1.0","cenik":"code:Z","cenik@ref":"/c/demo/cenik/3.json"},
	                  {"id":"2","cisRad":"2","nazev":"B","cenaMj":"2.5"}]}`

func imageFields() []string {
	return []string{"varSym", "sumCelkem", "datVyst", "datUcto", "bezPolozek", "poznam", "stitky", "firma", "mena", "popis",
		"polozkyFaktury(cenaMj,cenik,cisRad,id,nazev)"}
}

func TestImageOfEqualRecords(t *testing.T) {
	want := withItems().Image(imageFields(), record(t, before))
	if len(want) != len(imageFields()) {
		t.Errorf("image has %q, want one entry for each of %q", keys(want), imageFields())
	}
	for _, tt := range []struct{ name, old, new string }{
		{"the same", "", ""},
		{"trailing zeros", `"350.0"`, `"350.00"`},
		{"native number", `"350.0"`, `350`},
		{"zone of a date", `2025-12-01+01:00`, `2025-12-01`},
		{"zone of a moment", `10:28:13.166+01:00`, `09:28:13.166Z`},
		{"native truth", `"false"`, `false`},
		{"line ends", `a\nb`, `a\r\nb  `},
		{"order of labels", `A,B`, `B, A`},
		{"partner renamed", `code:NOVAK`, `code:NOVAK2`},
		{"code in another case", `code:CZK`, `code:czk`},
		{"a field not asked for", `"VF1"`, `"VF2"`},
		{"attributes of a relation", `"kod":"VF1"`, `"firma@showAs":"x"`},
		{"order of keys", `"nazev":"A","cenaMj":"1.0"`, `"cenaMj":"1.0","nazev":"A"`},
		{"number in a row", `"cenaMj":"1.0"`, `"cenaMj":1`},
		{"row field not asked for", `"nazev":"B"`, `"nazev":"B","sumZkl":"3"`},
		{"absent is as empty", `"varSym"`, `"popis":"","varSym"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := replaced(t, before, tt.old, tt.new)
			if got := withItems().Image(imageFields(), record(t, text)); !maps.Equal(got, want) {
				t.Errorf("image changed:\n got %v\nwant %v", got, want)
			}
		})
	}
}

func TestImageOfChangedRecords(t *testing.T) {
	was := withItems().Image(imageFields(), record(t, before))
	for _, tt := range []struct{ name, field, old, new string }{
		{"text", "varSym", `"varSym":"1"`, `"varSym":"01"`},
		{"text emptied", "varSym", `"varSym":"1"`, `"varSym":""`},
		{"text gone", "varSym", `"varSym":"1",`, ``},
		{"money", "sumCelkem", `350.0`, `350.01`},
		{"date", "datVyst", `2025-12-01`, `2025-12-02`},
		{"moment", "datUcto", `13.166+01:00`, `13.167+01:00`},
		{"truth", "bezPolozek", `"false"`, `"true"`},
		{"note", "poznam", `a\nb`, `a b`},
		{"label", "stitky", `A,B`, `A`},
		{"partner", "firma", `adresar/5`, `adresar/6`},
		{"partner gone", "firma", `"firma":"code:NOVAK","firma@ref":"/c/demo/adresar/5.json"`, `"firma":""`},
		{"currency", "mena", `code:CZK`, `code:EUR`},
		{"filled", "popis", `"varSym"`, `"popis":"x","varSym"`},
		{"price in a row", "polozkyFaktury", `"2.5"`, `"2.4"`},
		{"relation in a row", "polozkyFaktury", `cenik/3`, `cenik/4`},
		{"row replaced by its like", "polozkyFaktury", `"id":"2"`, `"id":"3"`},
		{"row moved", "polozkyFaktury", `"cisRad":"2"`, `"cisRad":"0"`},
		{"value moved to another field", "polozkyFaktury", `"nazev":"B","cenaMj":"2.5"`, `"nazev":"2.5","cenaMj":"B"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := withItems().Image(imageFields(), record(t, replaced(t, before, tt.old, tt.new)))
			for _, field := range keys(was) {
				if (got[field] != was[field]) != (field == tt.field) {
					t.Errorf("%s: %q became %q", field, was[field], got[field])
				}
			}
		})
	}
}

func TestImageHashesWhatIsLong(t *testing.T) {
	c := compare.Comparer{Props: props()}
	image := func(poznam string) string {
		return c.Image([]string{"poznam"}, record(t, `{"poznam":"`+poznam+`"}`))["poznam"]
	}
	long := strings.Repeat("x", 5000)
	if got := image(long); len(got) != len("sha256:")+64 || !strings.HasPrefix(got, "sha256:") {
		t.Errorf("long note is kept as %q", got)
	}
	if image(long) == image(long+"y") {
		t.Error("two long notes have one image")
	}
	if pretender := image(long); image(pretender) == pretender {
		t.Error("a note with the hash of another one has its image")
	}
	rows := withItems().Image([]string{"polozkyFaktury"}, record(t, before))["polozkyFaktury"]
	if !strings.HasPrefix(rows, "sha256:") {
		t.Errorf("rows are kept as %q", rows)
	}
}

func TestImageOfNoRows(t *testing.T) {
	for _, rows := range []string{`[]`, `""`, `null`, `{"faktura-vydana-polozka":[]}`} {
		got := withItems().Image([]string{"polozkyFaktury"}, record(t, `{"polozkyFaktury":`+rows+`}`))
		if got["polozkyFaktury"] != "" {
			t.Errorf("image of %s is %q, want none", rows, got["polozkyFaktury"])
		}
	}
}

// Rows may be asked for under a name that the answer does not use.
func TestImageFindsRowsUnderAnotherName(t *testing.T) {
	c := withItems()
	a := c.Image([]string{"polozkyDokladu"}, record(t, before))
	b := c.Image([]string{"polozkyDokladu"}, record(t, replaced(t, before, `"2.5"`, `"2.4"`)))
	if a["polozkyDokladu"] == "" || a["polozkyDokladu"] == b["polozkyDokladu"] {
		t.Errorf("images %q and %q, want two different ones", a, b)
	}
}

// replaced makes sure that a case changes what it says it changes.
func replaced(t testing.TB, text, old, new string) string {
	t.Helper()
	if old == new {
		return text
	}
	if !strings.Contains(text, old) {
		t.Fatalf("%q is not in the record", old)
	}
	return strings.Replace(text, old, new, 1)
}

func TestImageIgnoresOrderOfFields(t *testing.T) {
	fields := imageFields()
	want := withItems().Image(fields, record(t, before))
	slices.Reverse(fields)
	if got := withItems().Image(fields, record(t, before)); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
