package flexitest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// view is how much of a record an answer shows.
type view struct {
	s       *Server
	full    bool
	summary bool
	names   []string            // of a custom detail
	inner   map[string][]string // names inside rows
	noExt   bool
	rows    bool // relations=polozky
	bare    bool // rows are shown with relations= only
	native  bool
	include string // relations to be shown whole, as /evidence/field
}

// newView reads detail: id, summary, full or custom:a,b(c,d). Names that do not exist show nothing, without an error.
func newView(x *exchange, detail string) (*view, error) {
	if d := x.param("detail"); d != "" {
		detail = d
	}
	v := &view{s: x.s, noExt: x.flag("no-ext-ids"), inner: map[string][]string{}, include: x.param("includes"),
		bare: x.s.modes.habits.has(RowsNeedRelations), native: x.s.modes.habits.has(NativeValues)}
	for _, rel := range strings.FieldsFunc(x.param("relations"), func(r rune) bool { return r == ',' || r == '\n' }) {
		v.rows = v.rows || rel == "polozky" || rel == "all" || strings.HasPrefix(rel, "polozky")
	}
	switch kind, list, _ := strings.Cut(detail, ":"); kind {
	case "id":
	case "summary":
		v.summary = true
	case "full":
		v.full = true
	case "custom":
		v.custom(list)
	default:
		return nil, fmt.Errorf("neplatná hodnota parametru 'detail': %s", detail)
	}
	return v, nil
}

func (v *view) custom(list string) {
	depth, start := 0, 0
	add := func(part string) {
		name, inner, _ := strings.Cut(strings.TrimSpace(part), "(")
		if name == "" {
			return
		}
		v.names = append(v.names, name)
		if inner = strings.TrimSuffix(inner, ")"); inner != "" {
			v.inner[name] = strings.Split(inner, ",")
		}
	}
	for i, r := range list {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			add(list[start:i])
			start = i + 1
		}
	}
	add(list[start:])
}

func (v *view) record(r *record) map[string]any {
	out := map[string]any{"id": strconv.FormatInt(r.id, 10)}
	if !v.noExt && len(r.ext) > 0 {
		out["external-ids"] = r.ext
	}
	for _, f := range r.ev.fields {
		if f.name == "id" || f.name == "external-ids" {
			continue
		}
		if v.full || v.summary && f.summary || slices.Contains(v.names, f.name) {
			v.s.renderField(out, f, v.s.fieldValue(r, f))
			v.includeTarget(out, r, f)
		}
	}
	v.nativeTypes(out, r.ev.fields)
	if r.ev.doc == nil {
		return out
	}
	if v.rows {
		out[r.ev.doc.rows] = v.rowList(r, nil)
	}
	for _, name := range v.names {
		if r.ev.doc.isRows(name) && (v.rows || !v.bare) {
			out[name] = v.rowList(r, v.inner[name])
		}
	}
	return out
}

// includeTarget puts the record that a relation names in the place of its code, as a list of one.
func (v *view) includeTarget(out map[string]any, r *record, f *field) {
	to, ok := r.fields[f.name].(ref)
	if !ok || !strings.Contains(v.include+"/", "/"+f.name+"/") {
		return
	}
	target := v.s.store.get(to.to, to.id)
	if target == nil {
		return
	}
	inner := &view{s: v.s, noExt: v.noExt, names: v.inner[f.name], full: len(v.inner[f.name]) == 0}
	out[f.name] = []any{inner.record(target)}
}

func (v *view) rowList(r *record, names []string) []map[string]any {
	out := []map[string]any{}
	for _, item := range r.rows {
		m := map[string]any{"id": strconv.FormatInt(item.id, 10)}
		if !v.noExt && len(item.ext) > 0 {
			m["external-ids"] = item.ext
		}
		for _, f := range v.s.catalog.row.fields {
			if f.name == "id" || f.name == "external-ids" || len(names) > 0 && !slices.Contains(names, f.name) {
				continue
			}
			v.s.renderField(m, f, item.fields[f.name])
		}
		v.nativeTypes(m, v.s.catalog.row.fields)
		out = append(out, m)
	}
	return out
}

// nativeTypes turns the strings of version 1 into numbers and booleans, as the newer version of the interface shows them.
func (v *view) nativeTypes(out map[string]any, fields []*field) {
	if !v.native {
		return
	}
	for _, f := range fields {
		text, ok := out[f.name].(string)
		switch {
		case !ok || text == "":
		case f.kind == "numeric" || f.kind == "integer":
			out[f.name] = json.Number(text)
		case f.kind == "logic":
			out[f.name] = text == "true"
		}
	}
	if id, ok := out["id"].(string); ok {
		out["id"] = json.Number(id)
	}
}

func (s *Server) fieldValue(r *record, f *field) any {
	switch f.name {
	case "lastUpdate":
		return stamp(r.updated, s.zone)
	case "createdDate":
		return stamp(r.created, s.zone)
	}
	return r.fields[f.name]
}

// renderField writes a value as version 1 does: all strings, numbers with a decimal point, dates with a zone, relations
// as a code with two companions.
func (s *Server) renderField(out map[string]any, f *field, v any) {
	text, _ := v.(string)
	switch {
	case f.kind == "relation":
		s.renderRelation(out, f, v)
	case f.kind == "numeric":
		out[f.name] = renderNumber(text)
	case f.kind == "date" && text != "":
		out[f.name] = s.renderDay(text)
	case f.name == "stitky":
		out[f.name] = strings.ReplaceAll(text, ",", ", ")
	case f.kind == "logic" && text == "":
		out[f.name] = "false"
	default:
		out[f.name] = text
	}
}

func (s *Server) renderRelation(out map[string]any, f *field, v any) {
	to, ok := v.(ref)
	if !ok {
		out[f.name] = ""
		return
	}
	target := s.store.get(to.to, to.id)
	if target == nil {
		out[f.name] = to.text
		return
	}
	id := strconv.FormatInt(target.id, 10)
	out[f.name] = id
	if kod := target.text("kod"); kod != "" {
		out[f.name] = "code:" + kod
		out[f.name+"@showAs"] = kod + ": " + target.text("nazev")
	}
	out[f.name+"@ref"] = "/c/" + s.opt.Company + "/" + to.to + "/" + id + ".json"
}

// renderNumber writes 350.0, and large numbers with an exponent, as Java does.
func renderNumber(text string) string {
	d, err := decimal.NewFromString(text)
	if err != nil {
		return "0.0"
	}
	if d.Abs().GreaterThanOrEqual(decimal.New(1, 7)) {
		digits := strings.TrimRight(d.Abs().Coefficient().String(), "0")
		exp := len(d.Abs().Truncate(0).String()) - 1
		sign := ""
		if d.IsNegative() {
			sign = "-"
		}
		rest := digits[1:]
		if rest == "" {
			rest = "0"
		}
		return sign + digits[:1] + "." + rest + "E" + strconv.Itoa(exp)
	}
	out := d.String()
	if !strings.Contains(out, ".") {
		out += ".0"
	}
	return out
}

func (s *Server) renderDay(day string) string {
	t, err := time.ParseInLocation(time.DateOnly, day, s.zone)
	if err != nil {
		return day
	}
	return t.Format(time.DateOnly + "-07:00")
}
