package flexitest

import (
	"slices"
	"time"
)

// tx is one transaction: what it does to the store is undone by rollback, except the ids it drew (a database sequence
// leaves gaps too).
type tx struct {
	s       *Server
	st      *store
	at      time.Time
	user    string
	undo    []func()
	changes []change
	created []*record
}

func (s *Server) beginTx(user string) *tx {
	return &tx{s: s, st: s.store, at: s.now(), user: user}
}

func (t *tx) put(old, next *record) {
	st := t.st
	if next != nil && old != nil {
		past := *old
		past.prev = nil // one step back is enough, and a chain would never be freed
		next.prev = &past
	}
	st.put(old, next)
	t.undo = append(t.undo, func() { st.put(next, old) })
}

// drawNumber takes the next number of a series; unlike ids, numbers go back on rollback, unless this server burns them.
func (t *tx) drawNumber(key string) int {
	st := t.st
	st.series[key]++
	if t.s.modes.habits.has(BurnNumbers) {
		return st.series[key]
	}
	t.undo = append(t.undo, func() { st.series[key]-- })
	return st.series[key]
}

func (t *tx) log(evidence, op string, id int64, ids []string) {
	t.changes = append(t.changes, change{evidence: evidence, op: op, id: id, ext: slices.Clone(ids)})
}

// logRecord writes what a real server writes for one document: the document, then every row followed by the document
// again, all with the time at which the transaction began.
func (t *tx) logRecord(r *record, op string, newRows []*row) {
	ids := slices.Clone(r.ext)
	if kod := r.text("kod"); kod != "" {
		ids = append(ids, "code:"+kod)
	}
	t.log(r.ev.path, op, r.id, ids)
	for _, item := range newRows {
		t.log(r.ev.doc.row, "create", item.id, item.ext)
		t.log(r.ev.path, "update", r.id, ids)
	}
}

func (t *tx) rollback() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
	t.undo, t.changes, t.created = nil, nil, nil
}

func (t *tx) commit() {
	for _, c := range t.changes {
		t.st.version++
		if !t.st.watching {
			continue
		}
		c.version, c.at = t.st.version, t.at
		t.st.changes = append(t.st.changes, c)
	}
	for _, r := range t.created {
		t.s.countCommit(r)
	}
	t.undo, t.changes, t.created = nil, nil, nil
}
