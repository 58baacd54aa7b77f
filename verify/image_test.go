package verify

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestImageStaysSmall: a before-image of every column an evidence can have leaves room in the row, and still tells change
// from no change.
func TestImageStaysSmall(t *testing.T) {
	wide := func(last string) map[string]string {
		m := map[string]string{"short": "1"}
		for i := range 300 {
			m[fmt.Sprintf("columnOfAnInvoice%03d", i)] = strings.Repeat("x", 110)
		}
		m["columnOfAnInvoice299"] = last
		return m
	}
	size := 0
	for k, v := range compact(wide("a")) {
		size += len(k) + len(v) + 6
	}
	if size > 16<<10 {
		t.Fatalf("%d bytes", size)
	}
	if !maps.Equal(compact(wide("a")), compact(wide("a"))) {
		t.Error("the same image differs from itself")
	}
	for _, last := range []string{"b", "", strings.Repeat("x", 110), strings.Repeat("y", 110)} {
		if maps.Equal(compact(wide("a")), compact(wide(last))) {
			t.Errorf("a change to %q is not seen", last)
		}
	}
	small := map[string]string{"popis": strings.Repeat("x", 110)}
	if got := compact(small)["popis"]; got != strings.Repeat("x", 110) {
		t.Errorf("a small image is changed: %q", got)
	}
}
