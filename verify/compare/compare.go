package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"flexid/flexi"
)

// Resolver knows which record of an evidence a reference names: "code:X", "123" (a Flexi id), "ext:S:1", "in:…".
type Resolver interface {
	// Same reports whether a and b name one record. known is false if that cannot be told, also after an error.
	Same(ctx context.Context, evidence, a, b string) (same, known bool)
}

// Comparer compares documents of one evidence. The zero value works without metadata: values are then taken for what
// they look like, and references of different kinds are not compared.
type Comparer struct {
	Props   *flexi.Properties
	Items   map[string]*flexi.Properties // of the rows, by the name of their collection
	Resolve Resolver                     // may be nil
	Zone    *time.Location               // in which a moment becomes a day where Flexi keeps days; nil leaves it as written
}

var errNoRecord = errors.New("no record to compare with")

// Compare compares every field that was sent with the record. The error is of bad input or a context that ended while
// references were being resolved; the result is then worth nothing.
func (c Comparer) Compare(ctx context.Context, sent json.RawMessage, found flexi.Record) (Result, error) {
	doc, err := decode(sent)
	if err != nil {
		return Result{}, fmt.Errorf("compare what was sent: %w", err)
	}
	if len(found) == 0 {
		return Result{}, fmt.Errorf("compare what was sent: %w", errNoRecord)
	}
	w := walk{Comparer: c}
	w.record(ctx, scope{props: c.Props}, doc, found)
	// A resolver that was cut short says "not known", which would read as "nothing differs".
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("compare what was sent: %w", err)
	}
	return w.result, nil
}

// maxDepth of rows inside rows; the ERP knows one level.
const maxDepth = 3

// scope is where in the document a walk is.
type scope struct {
	path  string // "polozkyFaktury[2]."
	props *flexi.Properties
	depth int
}

// prop returns the metadata of a field; without them only the name is set.
func (s scope) prop(field string) flexi.Property {
	if s.props != nil {
		if p, ok := s.props.ByName[field]; ok {
			p.Name = field
			return p
		}
	}
	return flexi.Property{Name: field}
}

// walk is one comparison on its way through a document.
type walk struct {
	Comparer
	result Result
}

func (w *walk) record(ctx context.Context, at scope, sent, found flexi.Record) {
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if isField(name) {
			w.field(ctx, at, name, pair{sent, found})
		}
	}
}

// pair is the record as sent and as found; attributes stand beside their field.
type pair struct{ sent, found flexi.Record }

func (w *walk) field(ctx context.Context, at scope, name string, p pair) {
	raw, prop := p.sent[name], at.prop(name)
	shown, isShown := p.found[name]
	switch {
	case name == labelsField:
		w.labels(at, p)
	case isRows(name, raw):
		w.rows(ctx, at, name, p)
	case empty(raw):
		w.cleared(at, prop, raw, shown)
	case !isShown:
		w.result.skip(at.path+name, "not shown by Flexi")
	default:
		w.value(ctx, at, prop, p)
	}
}

// cleared compares a field that was sent empty; collections do not come here.
func (w *walk) cleared(at scope, prop flexi.Property, sent, shown json.RawMessage) {
	found := show(shown)
	if empty(shown) || clearedAs(prop, found) {
		return
	}
	w.disagree(at, Difference{Field: prop.Name, Sent: show(sent), Found: found})
}

func (w *walk) value(ctx context.Context, at scope, prop flexi.Property, p pair) {
	name := prop.Name
	sent, ok := scalar(p.sent[name])
	found, okFound := scalar(p.found[name])
	switch {
	case !ok || !okFound:
		w.result.skip(at.path+name, "a list or a nested record cannot be compared")
	case isRelation(prop, sent, p.found):
		w.relation(ctx, at, prop, p)
	case truth(p.sent[name+"@encoding"], "base64"):
		w.result.skip(at.path+name, "sent in base64")
	case !w.sameValue(prop, sent, found):
		w.disagree(at, Difference{Field: name, Sent: sent, Found: found})
	}
}

// disagree files a difference where it belongs; d.Field is the plain name.
func (w *walk) disagree(at scope, d Difference) {
	free := freeText(d.Field)
	d.Field = at.path + d.Field
	if free {
		w.result.note(d)
		return
	}
	w.result.differ(d)
}

// isField reports whether a key of a document is content: no attribute, no identifier.
func isField(name string) bool {
	return name != "id" && name != "external-ids" && !strings.Contains(name, "@")
}

// truth reports whether an attribute has the given value, as a string or bare.
func truth(raw json.RawMessage, want string) bool {
	text, ok := scalar(raw)
	return ok && strings.EqualFold(strings.TrimSpace(text), want)
}

// show is a value for people: text as it is, anything else as JSON.
func show(raw json.RawMessage) string {
	if text, ok := scalar(raw); ok {
		return text
	}
	return string(raw)
}

// decode reads a document. Numbers stay text.
func decode(body json.RawMessage) (flexi.Record, error) {
	r := flexi.ParseRecord(body)
	if r == nil {
		if err := json.Unmarshal(body, &r); err != nil { // which has the words for it
			return nil, fmt.Errorf("decode document: %w", err)
		}
		return nil, errors.New("decode document: null is no document")
	}
	for attr, value := range r {
		name, ok := strings.CutSuffix(attr, "@removeAll")
		// "Remove all" alone empties the list: that is content too, and the only trace of it.
		if _, given := r[name]; ok && !given && truth(value, "true") && (name == labelsField || isCollection(name)) {
			r[name] = json.RawMessage("[]")
		}
	}
	return r, nil
}
