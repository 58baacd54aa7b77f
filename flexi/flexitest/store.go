package flexitest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ref is the value of a relation. id 0 is a target in an evidence that the fake does not keep: its text is taken as it is.
type ref struct {
	to   string
	id   int64
	text string
}

// record is never changed after it was stored: a change stores a new one. That makes rollback, snapshots and reading an
// earlier state cheap and safe.
type record struct {
	ev      *evidence
	id      int64
	ext     []string
	fields  map[string]any // string (canonical text) or ref
	rows    []*row
	created time.Time
	updated time.Time
	prev    *record // the state before the last change, for reads that lag behind
}

type row struct {
	id     int64
	ext    []string
	fields map[string]any
}

func (r *record) text(name string) string {
	s, _ := r.fields[name].(string)
	return s
}

func (r *record) clone() *record {
	c := *r
	c.ext = slices.Clone(r.ext)
	c.fields = maps.Clone(r.fields)
	c.rows = make([]*row, len(r.rows))
	for i, old := range r.rows {
		c.rows[i] = &row{id: old.id, ext: slices.Clone(old.ext), fields: maps.Clone(old.fields)}
	}
	return &c
}

// change is one line of the changes log.
type change struct {
	evidence, op string
	version      int64
	at           time.Time
	stamp        string // in place of at: as another server wrote it
	id           int64
	ext          []string
}

// store is the books. Everything in it goes back when an earlier state is restored; what the tests count does not.
type store struct {
	records  map[string]map[int64]*record // by evidence
	index    map[string][]int64           // by evidence and identifier
	seq      map[string]int64             // last id drawn, by table
	series   map[string]int               // last number drawn, by series and year
	version  int64
	changes  []change
	watching bool
}

func newStore() *store {
	return &store{
		records: map[string]map[int64]*record{}, index: map[string][]int64{}, seq: map[string]int64{},
		series: map[string]int{}, version: 1000, watching: true,
	}
}

func (st *store) clone() *store {
	c := *st
	c.records = make(map[string]map[int64]*record, len(st.records))
	for ev, m := range st.records {
		c.records[ev] = maps.Clone(m)
	}
	c.index = make(map[string][]int64, len(st.index))
	for k, ids := range st.index {
		c.index[k] = slices.Clone(ids)
	}
	c.seq, c.series, c.changes = maps.Clone(st.seq), maps.Clone(st.series), slices.Clone(st.changes)
	return &c
}

func (st *store) get(ev string, id int64) *record { return st.records[ev][id] }

// sorted is all records of an evidence by id.
func (st *store) sorted(ev string) []*record {
	m := st.records[ev]
	out := make([]*record, 0, len(m))
	for _, r := range m {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *record) int { return int(a.id - b.id) })
	return out
}

// find resolves one identifier: 123, code:X, ext:S:1, key:, in:, vatid:, ean:.
func (st *store) find(e *evidence, ident string) []*record {
	if id, err := strconv.ParseInt(ident, 10, 64); err == nil {
		if r := st.get(e.path, id); r != nil {
			return []*record{r}
		}
		return nil
	}
	var out []*record
	for _, id := range st.index[indexKey(e, ident)] {
		out = append(out, st.get(e.path, id))
	}
	return out
}

func indexKey(e *evidence, ident string) string {
	kind, value, _ := strings.Cut(ident, ":")
	kind, value = strings.ToLower(strings.TrimSpace(kind)), strings.TrimSpace(value)
	if f := e.field("kod"); kind == "code" && f != nil {
		switch {
		case f.upper:
			value = strings.ToUpper(value)
		case f.lower:
			value = strings.ToLower(value)
		}
	}
	if kind == "uuid" {
		kind = "key"
	}
	return e.path + "\x00" + kind + ":" + value
}

func (r *record) indexKeys() []string {
	var keys []string
	add := func(kind, field string) {
		if v := r.text(field); v != "" {
			keys = append(keys, indexKey(r.ev, kind+":"+v))
		}
	}
	add("code", "kod")
	add("key", "uuid")
	if r.ev.path == "adresar" {
		add("in", "ic")
		add("vatid", "dic")
	}
	if r.ev.path == "cenik" {
		add("ean", "eanKod")
	}
	for _, ext := range r.ext {
		keys = append(keys, indexKey(r.ev, ext))
	}
	return keys
}

// put stores next in place of old; either may be nil.
func (st *store) put(old, next *record) {
	if old != nil {
		for _, k := range old.indexKeys() {
			ids := slices.DeleteFunc(slices.Clone(st.index[k]), func(id int64) bool { return id == old.id })
			if len(ids) == 0 {
				delete(st.index, k)
			} else {
				st.index[k] = ids
			}
		}
		delete(st.records[old.ev.path], old.id)
	}
	if next == nil {
		return
	}
	if st.records[next.ev.path] == nil {
		st.records[next.ev.path] = map[int64]*record{}
	}
	st.records[next.ev.path][next.id] = next
	for _, k := range next.indexKeys() {
		ids := append(slices.Clone(st.index[k]), next.id)
		slices.Sort(ids)
		st.index[k] = ids
	}
}

func (st *store) draw(table string) int64 {
	st.seq[table]++
	return st.seq[table]
}
