package verify

import (
	"strings"
	"testing"
)

// TestStreak: one evidence that fails stops itself, different ones stop all, and what does well ends the count.
func TestStreak(t *testing.T) {
	for _, c := range []struct{ name, steps, stops string }{
		{"two are no streak", "a a", ". ."},
		{"three of one", "a a a", ". . a"},
		{"a good one between", "a a +a a a", ". . . . ."},
		{"a good one of another keeps one's own count", "a a +b a", ". . . a"},
		{"different ones stop all", "a b a", ". . *"},
		{"different ones with a good one between", "a b +c a", ". . . ."},
		{"one is stopped, then another fails", "a a a b", ". . a *"},
		{"one is stopped, others do well in between", "a a a +b b b +b b", ". . a . . . . ."},
		{"a stopped one is counted anew", "a a a a a a", ". . a . . a"},
		{"all are counted anew", "a b a a b", ". . * . ."},
		{"Flexi as a whole", "- - -", ". . *"},
		{"one is enough for some", "!a", "a"},
		{"one of each of two is not all", "!a !b", "a b"},
		{"one of each of three is all", "!a !b !c", "a b *"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, got := newStreak(), []string{}
			for _, step := range strings.Fields(c.steps) {
				if good, ok := strings.CutPrefix(step, "+"); ok {
					s.good(good)
					got = append(got, ".")
					continue
				}
				evidence, enough := strings.TrimLeft(step, "!-"), badInARow
				if strings.HasPrefix(step, "!") {
					enough = 1
				}
				before := s.clone()
				scope, stop := s.bad(evidence, enough)
				if again, same := before.bad(evidence, enough); again != scope || same != stop {
					t.Errorf("a copy says %q %v, the original %q %v", again, same, scope, stop)
				}
				switch {
				case !stop:
					got = append(got, ".")
					continue
				case scope == "":
					got = append(got, "*")
				default:
					got = append(got, scope)
				}
				s.stopped(scope)
			}
			if g := strings.Join(got, " "); g != c.stops {
				t.Errorf("stops %s, want %s", g, c.stops)
			}
		})
	}
}
