package batch

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestRepeatedNames: a name that an object has twice at its top is found, however it is spelled, and no other is taken for one.
func TestRepeatedNames(t *testing.T) {
	for doc, want := range map[string]string{
		`{}`: "", ` { } `: "", `{"a":{}}`: "", `{"a":1,"b":{"a":1,"a":2},"c":[1,{"c":1}]}`: "",
		`{"a":"}{,\"","b":"\\","c":",,"}`: "", `{"":1}`: "",
		`{"a":1,"a":2}`: "a", `{"a":{"b":[1,2]},"b":",","\u0061":2}`: "a", `{"":1,"":2}`: "", `{"x":"\\\"","x":[]}`: "x",
	} {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(doc), &fields); err != nil {
			t.Fatal(err)
		}
		if got := repeated([]byte(doc), fields); got != want {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
}

// FuzzMembers: the commas of an object count what a decoder finds in it.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, `{"a":{"b":",}"},"c":["\"",{}]}`, "{\n}", `{"a":1,"a":2}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		var fields map[string]json.RawMessage
		if json.Unmarshal([]byte(doc), &fields) != nil || fields == nil {
			return
		}
		want := 0
		d := json.NewDecoder(strings.NewReader(doc))
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		for ; d.More(); want++ {
			var value json.RawMessage
			if _, err := d.Token(); err != nil {
				t.Fatal(err)
			}
			if err := d.Decode(&value); err != nil {
				t.Fatal(err)
			}
		}
		if got := members([]byte(doc)); got != want {
			t.Errorf("%q has %d members, not %d", doc, want, got)
		}
	})
}
