package flexi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

func sameRaw(a, b json.RawMessage) bool { return string(a) == string(b) }

// asLibrary holds what a scanner makes of a text against what encoding/json makes of it.
func asLibrary(t *testing.T, text string) {
	t.Helper()
	raw := json.RawMessage(text)
	valid := json.Valid(raw)
	s := scanner{text: raw}
	value, ok := s.value()
	if ok = ok && s.over(); ok != valid {
		t.Errorf("%q is JSON: %v, want %v", text, ok, valid)
	}
	if want := strings.Trim(text, " \n\r\t"); ok && string(value) != want {
		t.Errorf("%q is the value %q", text, value)
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		m = nil
	}
	r := ParseRecord(raw)
	if (m == nil) != (r == nil) || !maps.EqualFunc(m, r, sameRaw) {
		t.Errorf("%q is the record %s, want %s", text, r, m)
	}
	var l []json.RawMessage
	isList := json.Unmarshal(raw, &l) == nil && l != nil
	list, ok := ParseList(raw)
	if ok != isList || ok && !slices.EqualFunc(l, list, sameRaw) {
		t.Errorf("%q is the list %s, %v; want %s, %v", text, list, ok, l, isList)
	}
	var p *string
	isString := json.Unmarshal(raw, &p) == nil && p != nil
	str, ok := ParseString(raw)
	if ok != isString || ok && str != *p {
		t.Errorf("%q is the string %q, %v", text, str, ok)
	}
}

// asLibraryWrites holds what is written of a text against what encoding/json writes of it.
func asLibraryWrites(t *testing.T, text string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() || !json.Valid([]byte(text)) {
		if got, err := Canonical([]byte(text)); err == nil {
			t.Errorf("%q is written as %s", text, got)
		}
		return
	}
	if got, err := Canonical([]byte(text)); err != nil || string(got) != string(encoded(t, v)) {
		t.Errorf("%q is written as %s, %v; want %s", text, got, err, encoded(t, v))
	}
	rec := ParseRecord([]byte(text))
	if rec == nil {
		return
	}
	if got := appendRecord(nil, rec); string(got) != string(encoded(t, rec)) {
		t.Errorf("the record %q is written as %s, want %s", text, got, encoded(t, rec))
	}
}

var jsonTexts = []string{
	`{"kod":"a","suma":10.50,"polozky":[{"nazev":"x"},{"nazev":"y"}]}`, " {\t\"a\" :\r\n1 , \"b\": [ ] } ", `{"a":1,"a":2}`, `{"\u0061":1,"a":2}`, `{"\ud83d\ude00":"\ud800"}`,
	`[]`, `[1,2`, `[1,]`, `{,}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `[1 2]`, `null`, `nul`, `true`, `tru`, `false`, `nullx`, `"a"`, `"a`, `"\x"`, `"\u12g4"`, `"\u123`, "\"\x00\"", "\"\xff\"",
	`-`, `-0`, `01`, `-01`, `1.`, `.5`, `1.5`, `1e`, `1e5`, `1E+05`, `1e-`, `+1`, `0x1`, `1 1`, ``, ` `, `{} {}`, "{}\x00", "\u00a0{}", `"\"\\\/\b\f\n\r\t"`, `{"a":{"b":[{"c":null}]}}`, `{"á":"č\u010d"}`,
	`{"b":1,"a":{"d":1,"c":2,"d":3},"b":2}`, "{\"\u2028\":\"<&>\u2029\x7f\"}", `{"\u003c":"\u2028\u00e1\u0000"}`, "{\"\xff\":1,\"\xfe\":\"\xff\"}", `[-0,1E+05,1.50,[ ],{ }]`,
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	`[` + strings.Repeat(`{"a":`, 9_999) + `1` + strings.Repeat("}", 9_999) + `]`, strings.Repeat(`[[],{"a":[]},`, 5_000),
}

func TestScan(t *testing.T) {
	for _, text := range jsonTexts {
		asLibrary(t, text)
		asLibraryWrites(t, text)
	}
	for _, raw := range sharedObjects(t) {
		asLibrary(t, string(raw))
		asLibraryWrites(t, string(raw))
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range jsonTexts {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	f.Fuzz(asLibrary)
}

func FuzzWrite(f *testing.F) {
	for _, text := range jsonTexts {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	f.Fuzz(asLibraryWrites)
}
