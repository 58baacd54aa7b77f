package verify_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"flexid/verify"
	"flexid/verify/ledger"
)

// TestCandidatesThatCannotBeRead: a row of a newer flexid is among the candidates of every list, once, so that the list can say that it
// is left out; whether it was there at the start, came later, or was known before. Written by this flexid again, or deleted, it is not.
func TestCandidatesThatCannotBeRead(t *testing.T) {
	virtual(t, func(b *bench) {
		newer := func(key string) ledger.ID {
			row := b.row(key)
			if row.ID == "" {
				row = b.written(key)
			}
			_, err := b.kv().Put(b.t.Context(), "d."+string(row.ID), fmt.Appendf(nil, `{"format":99,"id":%q,"evidence":"faktura-vydana","key":%q,"state":"maybe"}`, row.ID, key))
			must(b.t, err)
			return row.ID
		}
		ids := []ledger.ID{newer("there")}
		b.start()
		<-b.eng.Ready()
		b.created("known", invoice("known"))
		b.pass(10 * time.Minute)
		ids = append(ids, newer("known"), newer("later"))
		b.pass(time.Second)
		slices.Sort(ids)
		for what, list := range map[string]func() ([]ledger.ID, bool){
			"by state": func() ([]ledger.ID, bool) {
				return b.eng.Candidates("", func(s verify.Standing) bool { return s.State == ledger.Parked })
			},
			"by a number":   func() ([]ledger.ID, bool) { return b.eng.Candidates("FV-1", nil) },
			"by its number": func() ([]ledger.ID, bool) { return b.eng.Candidates("known", nil) },
			"of all but final": func() ([]ledger.ID, bool) {
				return b.eng.Candidates("", func(s verify.Standing) bool { return s.State != ledger.Confirmed })
			},
		} {
			got, ok := list()
			if slices.Sort(got); !ok || !slices.Equal(got, ids) {
				b.t.Errorf("%s: %v (%v), want %v", what, got, ok, ids)
			}
		}
		must(b.t, b.kv().Delete(b.t.Context(), "d."+string(ids[0])))
		b.pass(time.Second)
		if got, ok := b.eng.Candidates("FV-1", nil); !ok || !slices.Equal(got, ids[1:]) {
			b.t.Errorf("after one was deleted: %v (%v), want %v", got, ok, ids[1:])
		}
	})
}
