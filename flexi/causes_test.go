package flexi_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"flexid/flexi"
)

// TestCausesAreAll: a cause that is missing in the list is not offered where people choose by it.
func TestCausesAreAll(t *testing.T) {
	source, err := os.ReadFile("profile.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\s+\w+\s+Cause = "(\w+)"`).FindAllSubmatch(source, -1)
	if len(declared) < 12 {
		t.Fatalf("only %d causes are found in profile.go", len(declared))
	}
	for _, m := range declared {
		if !slices.Contains(flexi.Causes(), flexi.Cause(m[1])) {
			t.Errorf("%s is not among Causes", m[1])
		}
	}
	for _, c := range flexi.Causes() {
		if c.Hint("en") == "" || c.Hint("cs") == "" {
			t.Errorf("%s has no hint", c)
		}
	}
}
