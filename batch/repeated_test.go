package batch

import "testing"

// TestRepeatedNames: a name that an object has twice at its top is found, however it is spelled, and no other is taken for one.
func TestRepeatedNames(t *testing.T) {
	for doc, want := range map[string]string{
		`{}`: "", ` { } `: "", `{"a":{}}`: "", `{"a":1,"b":{"a":1,"a":2},"c":[1,{"c":1}]}`: "",
		`{"a":"}{,\"","b":"\\","c":",,"}`: "", `{"":1}`: "",
		`{"a":1,"a":2}`: "a", `{"a":{"b":[1,2]},"b":",","\u0061":2}`: "a", `{"":1,"":2}`: "", `{"x":"\\\"","x":[]}`: "x",
	} {
		if got := repeated([]byte(doc)); got != want {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
}
