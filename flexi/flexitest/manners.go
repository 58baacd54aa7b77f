package flexitest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// codeNoImport is the code of an evidence that is not written by itself.
const codeNoImport = "importNotAllowed"

// Part is what of one evidence can be sick while the rest of the server is well.
type Part uint8

// The parts of an evidence.
const (
	Metadata Part = iota // its fields; of the evidence "" the list of evidences
	Records              // reads of its records
	Writes               // writes to it
)

// manners are standing ways of answering that a real server may have and that change nothing in its books.
type manners struct {
	sick          map[sickPart]Fault
	status        map[string]string // importStatus by evidence
	noImport      map[string]bool
	hidden        map[string]bool
	hiddenIfStale map[string]bool
	bare          bool
	updatedBeside bool
	noStats       bool
	spellID       func(string) string
	staleText     string
	staleCode     string
}

type sickPart struct {
	evidence string
	part     Part
}

func newManners() manners {
	return manners{
		sick: map[sickPart]Fault{}, status: map[string]string{}, noImport: map[string]bool{},
		hidden: map[string]bool{}, hiddenIfStale: map[string]bool{},
		staleText: "Nemáte oprávnění k provedení této operace.",
	}
}

// Sick lets f happen to every request about one part of one evidence, unless a script or a rule says otherwise; a zero
// Fault heals it.
func (s *Server) Sick(evidence string, part Part, f Fault) {
	s.setMode(func(m *modes) {
		if m.sick[sickPart{evidence, part}] = f.plain(); f.Kind == Healthy {
			delete(m.sick, sickPart{evidence, part})
		}
	})
}

// SetImportStatus changes what the list of evidences says of an evidence; DISALLOWED and NOT_DIRECT refuse its import.
func (s *Server) SetImportStatus(evidence, status string) {
	s.setMode(func(m *modes) { m.status[evidence] = status })
}

// RefuseImport makes writes to an evidence end in importNotAllowed, whatever the list of evidences says of it.
func (s *Server) RefuseImport(evidence string, on bool) {
	s.setMode(func(m *modes) { m.noImport[evidence] = on })
}

// HideEvidence takes an evidence away from our users, as a right or a module does that was switched off: the list lacks it,
// its addresses are 404.
func (s *Server) HideEvidence(evidence string, hidden bool) {
	s.setMode(func(m *modes) { m.hidden[evidence] = hidden })
}

// HideFromStale is HideEvidence for users whose context is stale; see MakeStale.
func (s *Server) HideFromStale(evidence string, on bool) {
	s.setMode(func(m *modes) { m.hiddenIfStale[evidence] = on })
}

// BareRefusals makes refusals of a record say nothing but a message for the whole request, as older servers do.
func (s *Server) BareRefusals(on bool) { s.setMode(func(m *modes) { m.bare = on }) }

// StaleSays changes with what words, and with what code if any, writes of a stale user are refused.
func (s *Server) StaleSays(text, code string) {
	s.setMode(func(m *modes) { m.staleText, m.staleCode = text, code })
}

// UpdatedBeside makes the answer to a create count the partner that was touched as updated.
func (s *Server) UpdatedBeside(on bool) { s.setMode(func(m *modes) { m.updatedBeside = on }) }

// OmitStats makes answers to writes leave the counters out.
func (s *Server) OmitStats(on bool) { s.setMode(func(m *modes) { m.noStats = on }) }

// SpellRequestIDs changes how answers write the request-id; nil ends it.
func (s *Server) SpellRequestIDs(spell func(string) string) {
	s.setMode(func(m *modes) { m.spellID = spell })
}

// sickness is the fault that the part a request is about suffers from. It needs no lock of the caller.
func (x *exchange) sickness() Fault {
	part := sickPart{evidence: x.rt.evidence}
	switch {
	case x.rt.kind == rProperties, x.rt.kind == rEvidences:
		part.part = Metadata
	case x.kind == Write:
		part.part = Writes
	case x.kind == Read:
		part.part = Records
	default:
		return Fault{}
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	return x.s.modes.sick[part]
}

// hides needs mu.
func (s *Server) hides(user, evidence string) bool {
	return s.modes.hidden[evidence] || s.stale[user] && s.modes.hiddenIfStale[evidence]
}

// importStatus needs mu.
func (s *Server) importStatus(e *evidence) string {
	if st, ok := s.modes.status[e.path]; ok {
		return st
	}
	return e.status
}

// importable needs mu.
func (s *Server) importable(e *evidence) bool {
	switch s.importStatus(e) {
	case "DISALLOWED", "NOT_DIRECT":
		return false
	}
	return e.rowOf == nil && !s.modes.noImport[e.path]
}

// refusedWhole is the answer to a request with a refused record; mu is held.
func (x *exchange) refusedWhole(bad *refusal) answer {
	if x.s.modes.bare {
		var words []string
		for _, e := range renderErrors(bad.errors, bad.path, bad.number) {
			words = append(words, e["message"])
		}
		return message(http.StatusBadRequest, strings.Join(slices.Compact(words), " "), "")
	}
	return winstrom(http.StatusBadRequest, map[string]any{
		"success": "false", "stats": stats{}.render(1), "results": []any{renderRefusal(bad)},
	})
}

// mannered gives the content of an accepted write the manners of the server; mu is held.
func (x *exchange) mannered(content map[string]any, st stats) map[string]any {
	m := &x.s.modes
	if counters, ok := content["stats"].(map[string]string); ok && m.updatedBeside && st[created] > 0 {
		counters["updated"] = strconv.Itoa(st[updated] + 1)
	}
	if m.noStats {
		delete(content, "stats")
	}
	results, _ := content["results"].([]map[string]any)
	for _, r := range results {
		if id, ok := r["request-id"].(string); ok && m.spellID != nil {
			r["request-id"] = m.spellID(id)
		}
	}
	return content
}
