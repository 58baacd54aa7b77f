package testenv

import (
	"slices"
	"testing"
)

func TestSome(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		name, wide, slow string
		want             []int
	}{{"a spread", "", "", []int{0, 3, 6}}, {"wide", "1", "", all}, {"slow is wide too", "", "1", all}, {"not wide", "0", "", []int{0, 3, 6}}} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("FLEXID_WIDE", c.wide)
			t.Setenv("FLEXID_SLOW", c.slow)
			if got := Some(t, 3, all); !slices.Equal(got, c.want) {
				t.Errorf("visited %v, want %v", got, c.want)
			}
		})
	}
}
