package verify

import (
	"errors"
	"testing"

	"flexid/verify/ledger"
)

func TestEvidences(t *testing.T) {
	row := func(evidence string, revision uint64) ledger.Change {
		return ledger.Change{Row: ledger.Row{ID: "r", Evidence: evidence, Revision: revision}}
	}
	ready := ledger.Change{Ready: true}
	damaged := ledger.Change{Row: ledger.Row{ID: "r", Revision: 9}, Err: ledger.ErrDamaged}
	deleted := ledger.Change{Row: ledger.Row{ID: "r", Revision: 9}, Deleted: true}
	for _, c := range []struct {
		name string
		told []ledger.Change
		own  string // evidence of a row of our own
		none bool
	}{
		{"before the scan is over", []ledger.Change{row("banka", 20)}, "", false},
		{"told of the row and of what came before", []ledger.Change{row("banka", 3), ready, row("banka", 10)}, "", true},
		{"not yet told of the row", []ledger.Change{row("banka", 3), ready, row("banka", 9)}, "", false},
		{"an empty ledger", []ledger.Change{ready}, "", false},
		{"one of the evidence", []ledger.Change{row("adresar", 3), ready, row("banka", 10)}, "", false},
		{"one of the evidence, later", []ledger.Change{ready, row("banka", 10), row("adresar", 11)}, "", false},
		{"one of our own of the evidence", []ledger.Change{ready, row("banka", 10)}, "adresar", false},
		{"one of our own of another", []ledger.Change{ready, row("banka", 10)}, "banka", true},
		{"one that cannot be read", []ledger.Change{damaged, ready, row("banka", 10)}, "", false},
		{"one that was deleted", []ledger.Change{ready, deleted, row("banka", 10)}, "", true},
		{"the watch broke", []ledger.Change{ready, row("banka", 10), {Err: errors.New("no answer")}}, "", false},
		{"it begins anew", []ledger.Change{ready, row("banka", 10), {Resync: true}, row("banka", 10)}, "", false},
		{"it has begun anew", []ledger.Change{ready, row("banka", 30), {Resync: true}, row("banka", 10), ready}, "", true},
		{"it has begun anew on less", []ledger.Change{ready, row("banka", 30), {Resync: true}, row("banka", 5), ready}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newEvidences()
			for i := range c.told {
				x.told(&c.told[i])
			}
			if c.own != "" {
				x.meet(c.own)
			}
			if got := x.none("adresar", 10); got != c.none {
				t.Errorf("no document of adresar before 10: %v, want %v", got, c.none)
			}
		})
	}
}
