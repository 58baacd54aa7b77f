package flexitest

import (
	"net/http"
	"slices"
	"strings"
)

// questions are the ways in which this server answers questions otherwise than its documentation lets expect. A real ERP may
// have any of these, and a client learns about it only from the answers.
type questions struct {
	deafBody   []string // parameters of a query.json body that have no effect
	deaf       []string // parameters that have none, wherever they stand
	unknownExt bool
	noFilterBy string
	emptyExt   bool
	hideExt    bool
	largest    int
	tooLarge   int
	pad        int
}

// IgnoreInBody makes parameters without effect where they stand in the body of query.json: limit, start, add-row-count,
// add-global-version. In the address they work. No names end it.
func (s *Server) IgnoreInBody(names ...string) {
	s.setMode(func(m *modes) { m.deafBody = slices.Clone(names) })
}

// IgnoreParams makes parameters of reads without effect wherever they stand. No names end it.
func (s *Server) IgnoreParams(names ...string) {
	s.setMode(func(m *modes) { m.deaf = slices.Clone(names) })
}

// RefuseUnknownExt answers 400 to a list whose filter combines by "or" and names an external id that no record carries.
func (s *Server) RefuseUnknownExt(on bool) { s.setMode(func(m *modes) { m.unknownExt = on }) }

// RefuseFilterBy answers 400 to a list whose filter has this text in it, such as a value that it cannot read. "" ends it.
func (s *Server) RefuseFilterBy(text string) { s.setMode(func(m *modes) { m.noFilterBy = text }) }

// ShowEmptyExternalIDs makes records without external ids show "external-ids": [] instead of nothing.
func (s *Server) ShowEmptyExternalIDs(on bool) { s.setMode(func(m *modes) { m.emptyExt = on }) }

// HideExternalIDs makes every record show "external-ids": [], whatever it carries. Filters and the fence still know them.
func (s *Server) HideExternalIDs(on bool) { s.setMode(func(m *modes) { m.hideExt = on }) }

// LimitAnswers answers lists of more bytes with status instead, as a box in front of an ERP does. 0 bytes end it.
func (s *Server) LimitAnswers(bytes, status int) {
	s.setMode(func(m *modes) { m.largest, m.tooLarge = bytes, status })
}

// PadRecords adds a field of so many bytes to every record of a list, so that a few make a large answer. 0 ends it.
func (s *Server) PadRecords(bytes int) { s.setMode(func(m *modes) { m.pad = bytes }) }

// refusesFilter says in words why a filter is not taken, "" if it is. It needs Server.mu.
func (x *exchange) refusesFilter(ev *evidence, filter string, n *node) string {
	m := &x.s.modes
	if m.noFilterBy != "" && strings.Contains(filter, m.noFilterBy) {
		return "hodnotu '" + m.noFilterBy + "' nelze použít"
	}
	if m.unknownExt && hasOr(n) {
		if id := x.s.unknownExt(ev, n); id != "" {
			return "záznam '" + id + "' neexistuje"
		}
	}
	return ""
}

func hasOr(n *node) bool {
	return n != nil && (n.op == "or" || hasOr(n.left) || hasOr(n.right))
}

// unknownExt is the first external id in a filter that no record carries, "" if there is none.
func (s *Server) unknownExt(ev *evidence, n *node) string {
	if n == nil {
		return ""
	}
	if n.field == "id" {
		for _, a := range n.args {
			if strings.HasPrefix(a.text, "ext:") && len(s.store.find(ev, a.text)) == 0 {
				return a.text
			}
		}
	}
	if id := s.unknownExt(ev, n.left); id != "" {
		return id
	}
	return s.unknownExt(ev, n.right)
}

// asShown is a record of a list as the modes in force show it.
func (m *questions) asShown(out map[string]any) map[string]any {
	if _, has := out["external-ids"]; m.hideExt || m.emptyExt && !has {
		out["external-ids"] = []string{}
	}
	if m.pad > 0 {
		out["vycpavka"] = strings.Repeat("x", m.pad)
	}
	return out
}

// fitting is a list, or what comes in its place where it is too large.
func (m *questions) fitting(a answer) answer {
	if m.largest == 0 || len(a.body) <= m.largest {
		return a
	}
	return answer{status: m.tooLarge, kind: "text/html", body: []byte("<html><body><h1>" + http.StatusText(m.tooLarge) + "</h1></body></html>")}
}
