package flexitest

import (
	"fmt"
	"slices"
	"strings"
)

// assignRows takes the sent rows over: rows without an id are appended, so a blind repetition of an update doubles
// them; removeAll replaces.
func (d *draft) assignRows() {
	for _, key := range sortedKeys(d.in) {
		name, attr, _ := strings.Cut(key, "@")
		if attr == "removeAll" && d.rowsName(name) && isTrue(d.in[key]) && (hasRows(d.in[name]) || !d.has(RemoveAllNeedsRows)) {
			d.rec.rows = nil
		}
	}
	for _, key := range sortedKeys(d.in) {
		if !d.rowsName(key) {
			continue
		}
		list, ok := rowList(d.in[key])
		if !ok {
			d.fail(invalid(key, "PROP", "Položky '%s' nejsou platné.", key))
			return
		}
		for i, in := range list {
			d.assignRow(key, i, in)
		}
	}
}

func hasRows(v any) bool {
	list, ok := rowList(v)
	return ok && len(list) > 0
}

// rowList reads rows as a bare array, as one object, or wrapped in the name of the row evidence.
func rowList(v any) ([]object, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return nil, v == ""
	case []any:
		var out []object
		for _, e := range v {
			m, ok := e.(map[string]any)
			if !ok {
				return nil, false
			}
			out = append(out, m)
		}
		return out, true
	case map[string]any:
		for key, inner := range v {
			if len(v) == 1 && strings.HasSuffix(key, "-polozka") {
				return rowList(inner)
			}
		}
		return []object{v}, true
	}
	return nil, false
}

func (d *draft) assignRow(key string, i int, in object) {
	ids := identifiers(in["id"])
	at := d.findRow(ids)
	if len(ids) == 0 && i < len(d.rec.rows) && d.has(RowsByPosition) {
		at = i
	}
	if action, _ := scalar(in["@action"]); action == "delete" {
		if at < 0 {
			d.fail(invalid(key, "INVALID", "Položka %v neexistuje.", ids))
			return
		}
		d.rec.rows = slices.Delete(d.rec.rows, at, at+1)
		return
	}
	target := &row{fields: map[string]any{}, ext: extOnly(ids)}
	if at >= 0 {
		target = d.rec.rows[at]
	} else if len(ids) > len(target.ext) {
		d.fail(invalid(key, "INVALID", "Položka %v neexistuje.", ids))
		return
	}
	for _, name := range sortedKeys(in) {
		if strings.Contains(name, "@") || name == "id" || name == "external-ids" {
			continue
		}
		if err := d.assignRowField(target, name, in); err != nil {
			err.field = fmt.Sprintf("%s[%d].%s", key, i, name)
			d.fail(err)
			return
		}
	}
	fillFromCard(d, target)
	if at < 0 {
		d.rec.rows = append(d.rec.rows, target)
		d.newRows = append(d.newRows, target)
	}
}

func (d *draft) assignRowField(target *row, name string, in object) *fieldError {
	f := d.t.s.catalog.row.field(name)
	if f == nil && d.has(DropUnknownFields) {
		return nil
	}
	if f == nil {
		return invalid(name, "PROP", "Vlastnost '%s' položky neexistuje.", name)
	}
	if f.readOnly || d.t.s.modes.dropsColumn(d.ev.doc.row, name) {
		return nil
	}
	v, err := d.value(f, in, target.fields[name])
	if err != nil {
		return err
	}
	target.fields[name] = v
	return nil
}

func (d *draft) findRow(ids []string) int {
	return slices.IndexFunc(d.rec.rows, func(r *row) bool {
		for _, id := range ids {
			if id == fmt.Sprint(r.id) || slices.Contains(r.ext, id) {
				return true
			}
		}
		return false
	})
}

// fillFromCard copies name and price of the price list where the row says nothing.
func fillFromCard(d *draft, r *row) {
	card, ok := r.fields["cenik"].(ref)
	if !ok {
		return
	}
	rec := d.t.st.get("cenik", card.id)
	if rec == nil {
		return
	}
	for to, from := range map[string]string{"kod": "kod", "nazev": "nazev", "cenaMj": "cenaZakl", "typSzbDphK": "typSzbDphK"} {
		if r.fields[to] == nil && rec.text(from) != "" {
			r.fields[to] = rec.fields[from]
		}
	}
	if r.fields["mj"] == nil && rec.fields["mj1"] != nil {
		r.fields["mj"] = rec.fields["mj1"]
	}
}

// drawRowIDs gives new rows their ids only when the record is sure to be stored.
func (d *draft) drawRowIDs() {
	for i, r := range d.rec.rows {
		if r.id == 0 {
			r.id = d.t.st.draw(d.ev.doc.rowTable)
		}
		r.fields["cisRad"] = fmt.Sprint(i + 1)
	}
}
