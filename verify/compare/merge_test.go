package compare_test

import (
	"encoding/json"
	"testing"

	"flexid/verify/compare"
)

func TestMerge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bodies []string
		want   string
	}{
		{"none", nil, `{}`},
		{"one, keys sorted, numbers as sent", []string{`{"b":1.50,"a":"<&>"}`}, `{"a":"<&>","b":1.50}`},
		{"later wins", []string{`{"a":1,"b":2}`, `{"a":3}`, `{"c":4}`}, `{"a":3,"b":2,"c":4}`},
		{"cleared", []string{`{"a":1}`, `{"a":""}`}, `{"a":""}`},
		{"bodies of storno and delete", []string{`{"a":1}`, ``, `null`}, `{"a":1}`},
		{"attributes go with their field", []string{`{"firma":"code:A","firma@if-not-found":"null"}`, `{"firma":"code:B"}`},
			`{"firma":"code:B"}`},
		{"rows are replaced", []string{`{"polozkyFaktury":[{"a":1},{"a":2}]}`, `{"polozkyFaktury":[{"a":3}]}`},
			`{"polozkyFaktury":[{"a":3}]}`},
		{"rows under another name", []string{`{"polozkyFaktury":[{"a":1}],"polozkyFaktury@removeAll":"true"}`, `{"polozkyDokladu":[{"a":3}]}`},
			`{"polozkyDokladu":[{"a":3}]}`},
		{"rows removed", []string{`{"polozkyFaktury":[{"a":1}]}`, `{"polozkyFaktury@removeAll":"true"}`},
			`{"polozkyFaktury":[],"polozkyFaktury@removeAll":"true"}`},
		{"labels are added", []string{`{"stitky":"A"}`, `{"stitky":"b,A"}`}, `{"stitky":"A,B"}`},
		{"labels are replaced", []string{`{"stitky":"A"}`, `{"stitky":"B","stitky@removeAll":"true"}`},
			`{"stitky":"B","stitky@removeAll":"true"}`},
		{"labels added to replaced ones", []string{`{"stitky":"A","stitky@removeAll":"true"}`, `{"stitky":"B"}`},
			`{"stitky":"A,B","stitky@removeAll":"true"}`},
		{"labels left alone", []string{`{"stitky":"A"}`, `{"kod":"B"}`}, `{"kod":"B","stitky":"A"}`},
		{"identifiers are collected", []string{`{"id":"ext:S:1"}`, `{"id":["ext:T:2","ext:S:1"]}`}, `{"id":["ext:S:1","ext:T:2"]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var bodies []json.RawMessage
			for _, b := range tt.bodies {
				bodies = append(bodies, json.RawMessage(b))
			}
			got, err := compare.Merge(bodies...)
			if err != nil || string(got) != tt.want {
				t.Errorf("Merge = %s, %v; want %s", got, err, tt.want)
			}
			for i, b := range tt.bodies {
				if string(bodies[i]) != b {
					t.Errorf("body %d was changed to %s", i, bodies[i])
				}
			}
		})
	}
	if got, err := compare.Merge(json.RawMessage(`{}`), json.RawMessage(`[1]`)); err == nil {
		t.Errorf("Merge with a list = %s, want an error", got)
	}
}

// What a create and an update leave is what a read-back is compared with.
func TestMergeThenCompare(t *testing.T) {
	want, err := compare.Merge(
		json.RawMessage(`{"kod":"A","popis":"old","polozkyFaktury":[{"cenaMj":1}],"stitky":"X"}`),
		json.RawMessage(`{"popis":"new","polozkyFaktury":[{"cenaMj":2},{"cenaMj":3}],"stitky":"Y"}`))
	if err != nil {
		t.Fatal(err)
	}
	r := mustCompare(t, withItems(), string(want),
		`{"kod":"A","popis":"new","stitky":"X,Y,Z","polozkyFaktury":[{"cenaMj":"2.0"},{"cenaMj":"3.0"}]}`)
	if !r.Shown() {
		t.Errorf("got %+v, want all shown", r)
	}
}
