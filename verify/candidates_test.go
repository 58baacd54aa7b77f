package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexid/verify/ledger"
)

// TestCandidates: whatever rows say, one after the other, no document that a list wants is missing among its candidates.
func TestCandidates(t *testing.T) {
	standings := []Standing{
		{State: ledger.Queued}, {State: ledger.Queued, Reason: ledger.Blocked}, {State: ledger.Maybe}, {State: ledger.Confirmed},
		{State: ledger.Parked, Reason: ledger.Conflict}, {State: ledger.Parked, Reason: ledger.Rejected, Cause: "lock"}, {State: ledger.Dropped},
	}
	numbers := []string{"", "fv-1", " FV-1", "FV-2", "FV-3", "Č-1", "C\u030c-1"}
	rnd := rand.New(rand.NewPCG(1, 2))
	sc := newScheduler(nil)
	rows := map[ledger.ID]*ledger.Row{}
	check := func(what, number string, states func(Standing) bool) {
		t.Helper()
		got, ok := sc.candidatesFor(FoldNumber(number), states)
		slices.Sort(got)
		var want []ledger.ID
		for id, r := range rows {
			if (number == "" || FoldNumber(r.Number) == FoldNumber(number)) && (number != "" || states(Standing{State: r.State, Reason: r.Reason})) {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		if !ok && number != "" || ok && !slices.Equal(got, want) {
			t.Fatalf("%s: %v (known: %v), want %v", what, got, ok, want)
		}
	}
	for n := range 5000 {
		id := ledger.ID(fmt.Sprint("r", rnd.IntN(60)))
		if rnd.IntN(20) == 0 {
			delete(rows, id)
			sc.forget(id)
		} else {
			s := standings[rnd.IntN(len(standings))]
			row := &ledger.Row{ID: id, Evidence: "banka", Revision: uint64(n + 1), State: s.State, Reason: s.Reason, Cause: s.Cause, Number: numbers[rnd.IntN(len(numbers))]}
			rows[id] = row
			sc.put(row, time.Time{}, time.Time{}, true)
		}
		check("by number", numbers[1+rnd.IntN(len(numbers)-1)], nil)
		check("what waits", "", func(s Standing) bool { return !atRest(s.State) })
		check("one state", "", func(s Standing) bool { return s.State == ledger.Maybe })
	}
	if _, ok := sc.candidatesFor("", func(s Standing) bool { return true }); ok {
		t.Error("all documents are candidates: reading them one by one would be slower")
	}
	for n := range 1000 {
		sc.put(&ledger.Row{ID: ledger.ID(fmt.Sprint("q", n)), Revision: uint64(n + 9000), State: ledger.Queued}, time.Time{}, time.Time{}, true)
	}
	if _, ok := sc.candidatesFor("", func(s Standing) bool { return s.State == ledger.Queued }); ok {
		t.Error("nearly all documents are candidates: reading them one by one would be slower")
	}
}
