package flexitest

import (
	"maps"
	"slices"
)

// asked is the records that reads see and that the filter may match, by id. A filter that only names records by identifier
// or number is answered from the index: with many records a search through all of them would be what a test measures.
func (s *Server) asked(ev *evidence, n *node) []*record {
	ids := map[int64]bool{}
	// A stale read sees identifiers that the index does not hold any more.
	if ev.rowOf != nil || s.modes.lie == Stale || !s.named(ev, n, ids) {
		return s.visible(ev)
	}
	var out []*record
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		out = append(out, s.store.get(ev.path, id))
	}
	return s.shown(out)
}

// named collects the records that the filter names; ok is false when it asks for anything but names.
func (s *Server) named(ev *evidence, n *node, into map[int64]bool) (ok bool) {
	if n.op == "or" {
		return s.named(ev, n.left, into) && s.named(ev, n.right, into)
	}
	if n.op != "eq" && n.op != "in" || n.field != "id" && n.field != "kod" {
		return false
	}
	for _, arg := range n.args {
		ident := arg.text
		if n.field == "kod" {
			ident = "code:" + arg.text
		}
		for _, r := range s.store.find(ev, ident) {
			into[r.id] = true
		}
	}
	return true
}
