package verify

import (
	"slices"

	"flexid/verify/ledger"
)

// knownRow is the newest that is known of a row.
type knownRow struct {
	standing *standing // shared by all documents that stand alike
	number   uint64    // of the shown number, see numberKey; 0 = none
	revision uint64
}

// standing is where documents stand. There are few different ones, however many documents there are.
type standing struct {
	Standing
	documents int
	open      map[ledger.ID]bool // the documents, where they are not over; nil where they are, since these are nearly all
}

// stand moves a document to where its row says it stands.
func (sc *scheduler) count(row *ledger.Row) {
	sc.uncount(row.ID)
	delete(sc.unread, row.ID)
	delete(sc.heard, row.ID)
	s := Standing{State: row.State, Reason: row.Reason}
	if row.State == ledger.Parked {
		s.Cause = row.Cause
	}
	at := sc.standings[s]
	if at == nil {
		at = &standing{Standing: s}
		if !atRest(s.State) {
			at.open = map[ledger.ID]bool{}
		}
		sc.standings[s] = at
	}
	at.documents++
	if at.open != nil {
		at.open[row.ID] = true
	}
	sc.rows[row.ID] = knownRow{at, sc.addNumberOf(row), row.Revision}
}

// leave takes a document out of the count.
func (sc *scheduler) uncount(id ledger.ID) {
	if k, ok := sc.rows[id]; ok {
		sc.dropNumberOf(id, k.number)
		delete(k.standing.open, id)
		if k.standing.documents--; k.standing.documents == 0 {
			delete(sc.standings, k.standing.Standing)
		}
	}
}

// counts of documents by where they stand, and by state alone.
func (sc *scheduler) counts() ([]Standing, map[string]int) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	all, n := make([]Standing, 0, len(sc.standings)), map[string]int{}
	for _, at := range sc.standings {
		s := at.Standing
		s.Documents = at.documents
		all = append(all, s)
		n[string(s.State)] += s.Documents
	}
	slices.SortFunc(all, Standing.compare)
	return all, n
}
