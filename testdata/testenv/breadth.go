package testenv

import (
	"os"
	"testing"
)

// Wide says that tests visit all of their cases: FLEXID_WIDE=1, as .ci/run sets it, or FLEXID_SLOW, with which some visit still more.
// Without it those that have hundreds visit a spread of them, so that `go test ./...` takes a few minutes on two processors.
func Wide() bool { return os.Getenv("FLEXID_WIDE") == "1" || os.Getenv("FLEXID_SLOW") != "" }

// Spread picks the cases of a test that are visited: all of them, or one of so many.
type Spread struct {
	every, met, taken int
}

// OneOf visits one case of every so many, the first one included, unless the tests are Wide. The test says how many it visited.
func OneOf(t testing.TB, every int) *Spread {
	t.Helper()
	s := &Spread{every: every}
	if Wide() {
		s.every = 1
	}
	t.Cleanup(func() {
		if s.taken < s.met {
			t.Logf("%d of %d cases were visited; FLEXID_WIDE=1 visits all", s.taken, s.met)
		}
	})
	return s
}

// Take says whether the next case is visited.
func (s *Spread) Take() bool {
	take := s.met%s.every == 0
	s.met++
	if take {
		s.taken++
	}
	return take
}

// Some are the cases of a list that are visited, in its order.
func Some[T any](t testing.TB, every int, all []T) []T {
	t.Helper()
	s := OneOf(t, every)
	var some []T
	for _, c := range all {
		if s.Take() {
			some = append(some, c)
		}
	}
	return some
}
