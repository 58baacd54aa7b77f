package verify

// badInARow is how many bad outcomes in a row stop writes.
const badInARow = 3

// streak counts bad outcomes in a row: of each evidence since its own last good one, and of all since the last good one
// of any. It decides how much an error stops: the evidence that it was met in; all only when different evidences fail
// and none does well in between, since one sick evidence must not stop the others. "" as an evidence is Flexi as a whole.
type streak struct {
	of  map[string]int
	all map[string]int
}

func newStreak() streak { return streak{of: map[string]int{}, all: map[string]int{}} }

// good ends the streak of an evidence, and that of all.
func (s streak) good(evidence string) {
	delete(s.of, evidence)
	clear(s.all)
}

// bad counts one more; enough of one evidence stop that one. stop says whether writes have to stop now, and of which
// evidence ("" = all).
func (s streak) bad(evidence string, enough int) (scope string, stop bool) {
	s.of[evidence]++
	s.all[evidence]++
	sum := 0
	for _, n := range s.all {
		sum += n
	}
	switch {
	case sum >= badInARow && len(s.all) > 1:
		return "", true
	case s.of[evidence] >= enough:
		return evidence, true
	}
	return "", false
}

// stopped begins the count of what was stopped anew. What stopped one evidence still counts towards all.
func (s streak) stopped(scope string) {
	if scope == "" {
		clear(s.of)
		clear(s.all)
		return
	}
	delete(s.of, scope)
}

// clone lets a caller ask what would be.
func (s streak) clone() streak {
	c := newStreak()
	for e, n := range s.of {
		c.of[e] = n
	}
	for e, n := range s.all {
		c.all[e] = n
	}
	return c
}
