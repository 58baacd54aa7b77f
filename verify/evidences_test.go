package verify

import "testing"

func TestEvidences(t *testing.T) {
	row := func(evidence string, revision uint64) func(*evidences) {
		return func(x *evidences) { x.meet(evidence); x.shown(revision) }
	}
	ready, reset := (*evidences).ready, (*evidences).reset
	own := func(evidence string) func(*evidences) { return func(x *evidences) { x.meet(evidence) } }
	type steps []func(*evidences)
	for _, c := range []struct {
		name  string
		steps steps
		none  bool
	}{
		{"before the scan is over", steps{row("banka", 20)}, false},
		{"told of the row and of what came before", steps{row("banka", 3), ready, row("banka", 10)}, true},
		{"not yet told of the row", steps{row("banka", 3), ready, row("banka", 9)}, false},
		{"an empty ledger", steps{ready}, false},
		{"one of the evidence", steps{row("adresar", 3), ready, row("banka", 10)}, false},
		{"one of the evidence, later", steps{ready, row("banka", 10), row("adresar", 11)}, false},
		{"one of our own of the evidence", steps{ready, row("banka", 10), own("adresar")}, false},
		{"one of our own of another", steps{ready, row("banka", 10), own("banka")}, true},
		{"one that cannot be read", steps{row("", 9), ready, row("banka", 10)}, false},
		{"one that was deleted", steps{ready, func(x *evidences) { x.shown(9) }, row("banka", 10)}, true},
		{"the watch broke, or begins anew", steps{ready, row("banka", 10), reset, row("banka", 10)}, false},
		{"it has begun anew", steps{ready, row("banka", 30), reset, row("banka", 10), ready}, true},
		{"it has begun anew on less", steps{ready, row("banka", 30), reset, row("banka", 5), ready}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newEvidences()
			for _, step := range c.steps {
				step(x)
			}
			if got := x.none("adresar", 10); got != c.none {
				t.Errorf("no document of adresar before 10: %v, want %v", got, c.none)
			}
		})
	}
}
