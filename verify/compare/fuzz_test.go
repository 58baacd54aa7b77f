package compare_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify/compare"
)

// Whatever two documents come together, there is an answer, in time, and a document that is shown as it was sent is
// never a conflict.
func FuzzCompare(f *testing.F) {
	for _, seed := range [][2]string{
		{before, before},
		{`{"sumCelkem":"1e2147483647","x":1e-2147483648}`, `{"sumCelkem":1,"x":1}`},
		{`{"polozkyFaktury":{"x-polozka":[null,1,{"a":1}]}}`, `{"polozkyFaktury":[[]]}`},
		{`{"a":[{"a":[{"a":[{"a":[{}]}]}]}]}`, `{"a":{"a":{"a":{"a":{}}}}}`},
		{`{"stitky":["A",{},null]}`, `{"stitky":",code:,"}`},
		{`{"firma":"","firma@if-not-found":"null"}`, `{"firma":[],"firma@ref":"//?."}`},
		{`{"datUcto":"2025-12-03T","datVyst":"2025-12-0"}`, `{"datUcto":" ","datVyst":"2025-12-03T"}`},
		{`{"kod":"\ud800","popis":"\u0000"}`, `{"kod":"","popis":" "}`},
		{`{"polozkyA@removeAll":"true","":{}}`, `{"polozkyB":[{}],"":[{}]}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	c := withItems()
	c.Resolve = &same{evidence: "adresar", records: []string{"5 ext:S:1"}}
	f.Fuzz(func(t *testing.T, sent, found []byte) {
		var shown flexi.Record
		if json.Unmarshal(found, &shown) != nil {
			return
		}
		begun := time.Now()
		r, err := c.Compare(t.Context(), sent, shown)
		if err == nil && len(r.Differ)+len(r.Noted)+len(r.Skipped) == 0 && r.More > 0 {
			t.Errorf("entries left out of empty lists: %+v", r)
		}
		fields, err := compare.Fields(sent)
		if err == nil {
			image := c.Image(fields, shown)
			if again := c.Image(fields, shown); !maps.Equal(image, again) {
				t.Errorf("two images of one record: %v and %v", image, again)
			}
		}
		if merged, err := compare.Merge(sent, found); err == nil && !json.Valid(merged) {
			t.Errorf("merged to %s", merged)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		if r, err := c.Compare(t.Context(), found, shown); err == nil && len(shown) > 0 && !r.Equal(false) {
			t.Errorf("a record differs from itself: %+v", r)
		}
	})
}
