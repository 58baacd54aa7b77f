package compare

import (
	"context"
	"path"
	"strings"

	"flexid/flexi"
)

const codePrefix = "code:"

// isRelation tells a reference from a text, without metadata by its looks.
func isRelation(prop flexi.Property, sent string, found flexi.Record) bool {
	if prop.Type != "" {
		return prop.Type == typeRelation
	}
	_, ref := found[prop.Name+"@ref"]
	return ref || strings.HasPrefix(plain(sent), codePrefix)
}

// reference is a relation as Flexi shows it.
type reference struct {
	value    string // "code:X", seldom a bare Flexi id; "" = none
	id       string // Flexi id, "" = not told
	evidence string // of field@ref, "" = not told
}

func referenceOf(found flexi.Record, field string) reference {
	value, id := found.Ref(field)
	r := reference{value: plain(value)}
	if digits(id) {
		r.id = trimZeros(id)
	}
	if ref := found.Text(field + "@ref"); strings.Count(ref, "/") > 1 {
		r.evidence = path.Base(path.Dir(ref))
	}
	return r
}

// best is the identifier that cannot be renamed, where it is known.
func (r reference) best() string {
	if r.id != "" {
		return r.id
	}
	return r.value
}

func (w *walk) relation(ctx context.Context, at scope, prop flexi.Property, p pair) {
	name := prop.Name
	text, _ := scalar(p.sent[name])
	sent, found := plain(text), referenceOf(p.found, name)
	if found.best() == "" {
		// The sender allowed Flexi to leave it out; that is no conflict.
		if truth(p.sent[name+"@if-not-found"], "null") {
			w.result.skip(at.path+name, sent+" was not found and may be left out")
			return
		}
		w.disagree(at, Difference{Field: name, Sent: sent})
		return
	}
	same, known := sameReference(sent, found)
	if !known && w.Resolve != nil {
		evidence := prop.RefEvidence
		if evidence == "" {
			evidence = found.evidence
		}
		same, known = w.Resolve.Same(ctx, evidence, sent, found.best())
	}
	switch {
	case !known:
		w.result.skip(at.path+name, sent+" could not be resolved")
	case !same:
		shown := found.value
		if shown == "" {
			shown = found.id
		}
		w.disagree(at, Difference{Field: name, Sent: sent, Found: shown})
	}
}

// sameReference decides what can be decided without asking. Two codes that differ prove nothing: the record may have
// been renamed since.
func sameReference(sent string, found reference) (same, known bool) {
	if digits(sent) && found.id != "" {
		return trimZeros(sent) == found.id, true
	}
	code, ok := strings.CutPrefix(sent, codePrefix)
	shown, okShown := strings.CutPrefix(found.value, codePrefix)
	if ok && okShown && upper(code) == upper(shown) {
		return true, true
	}
	return false, false
}

func digits(s string) bool {
	if s == "" {
		return false
	}
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}

func trimZeros(id string) string {
	if t := strings.TrimLeft(id, "0"); t != "" {
		return t
	}
	return "0"
}
