package flexitest

import (
	"fmt"
	"slices"
	"strings"
)

// assign takes the sent plain fields and relations over. Columns that the user may not write are dropped without a
// word, as at the real server: a client that does not read back never learns of it.
func (d *draft) assign() {
	for _, name := range sortedKeys(d.in) {
		if name == "stitky@removeAll" && d.in["stitky"] == nil && isTrue(d.in[name]) && !d.has(RemoveAllNeedsRows) {
			d.rec.fields["stitky"] = ""
		}
		if d.skips(name) {
			continue
		}
		f := d.ev.field(name)
		if f == nil && d.has(DropUnknownFields) {
			continue
		}
		if f == nil {
			d.fail(invalid(name, "PROP", "Vlastnost '%s' evidence '%s' neexistuje.", name, d.ev.path))
			continue
		}
		if f.readOnly || d.t.s.modes.dropsColumn(d.ev.path, name) {
			continue
		}
		if name == "stavUhrK" && d.in[name] != "stavUhr.uhrazenoRucne" && d.in[name] != "" {
			continue // the other states are computed
		}
		v, err := d.value(f, d.in, d.rec.fields[name])
		if err != nil {
			d.fail(err)
			continue
		}
		if name == "kod" {
			v, err = d.lowerCode(f, v)
			if err != nil {
				d.fail(err)
				continue
			}
		}
		d.rec.fields[name] = v
	}
}

func sortedKeys(m object) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// skips names what is not a field: attributes, identifiers, rows.
func (d *draft) skips(name string) bool {
	if strings.Contains(name, "@") || strings.HasSuffix(name, "-previousValue") || name == "id" || name == "external-ids" {
		return true
	}
	return d.ev.doc != nil && d.rowsName(name)
}

// lowerCode is what becomes of a code with lower case letters where the column has upper case only: turned into upper case,
// unless this server keeps it or refuses it.
func (d *draft) lowerCode(f *field, upper any) (any, *fieldError) {
	sent, _ := scalar(d.in["kod"])
	switch {
	case !f.upper || sent == upper:
	case d.has(LowerCodeRefused):
		return nil, invalid("kod", "INVALID", "Pole '%s' smí obsahovat jen velká písmena.", f.title)
	case d.has(LowerCodeKept):
		return sent, nil
	}
	return upper, nil
}

// rowsName says whether a sent key names the rows, by the names that this server takes.
func (d *draft) rowsName(name string) bool {
	switch r := d.ev.doc; {
	case d.has(RowsOwnNameOnly):
		return name == r.rows
	case d.has(RowsCommonNameOnly):
		return name == "polozkyDokladu"
	default:
		return r.isRows(name)
	}
}

// isRows: metadata call the rows polozkyDokladu everywhere, older clients use the name they read.
func (r *docRules) isRows(name string) bool {
	return name == r.rows || name == "polozkyDokladu" || name == "polozkyFaktury" && r.paid
}

func (d *draft) value(f *field, in object, now any) (any, *fieldError) {
	switch {
	case f.kind == "relation":
		return d.relation(f, in)
	case f.name == "stitky":
		return d.labels(f, in, now)
	}
	return f.parse(in[f.name])
}

// relation resolves a relation. Evidences that the fake does not keep are trusted.
func (d *draft) relation(f *field, in object) (any, *fieldError) {
	text, ok := scalar(in[f.name])
	if !ok {
		return nil, invalid(f.name, "PROP", "Hodnota pole '%s' není platná.", f.title)
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return "", nil
	}
	if !isNumber(text) && !strings.Contains(text, ":") {
		return nil, &fieldError{field: f.name, code: "PROP", value: text,
			message: fmt.Sprintf("Je očekáváno číselné ID, ale '%s' není číslo", text)}
	}
	to := d.t.s.catalog.byPath[f.to]
	if to == nil {
		return ref{to: f.to, text: text}, nil
	}
	found := d.t.st.find(to, text)
	if len(found) == 1 {
		return ref{to: to.path, id: found[0].id, text: text}, nil
	}
	if len(found) == 0 {
		switch absent, _ := scalar(in[f.name+"@if-not-found"]); absent {
		case "null":
			return "", nil
		case "create":
			return d.createTarget(f, to, text)
		}
	}
	return nil, &fieldError{field: f.name, code: "PROP", value: text,
		message: fmt.Sprintf("Zadaný text '%s' musí identifikovat objekt", text)}
}

func (d *draft) createTarget(f *field, to *evidence, text string) (any, *fieldError) {
	kod, _ := strings.CutPrefix(text, "code:")
	res, bad := d.t.apply(to, object{"id": text, "kod": kod, "nazev": kod}, "")
	if bad != nil {
		return nil, &fieldError{field: f.name, code: "PROP", value: text, message: bad.errors[0].message}
	}
	return ref{to: to.path, id: res.id, text: text}, nil
}

// labels adds the sent labels to those there; only labels that exist may be used.
func (d *draft) labels(f *field, in object, now any) (any, *fieldError) {
	text, ok := scalar(in[f.name])
	if !ok {
		return nil, invalid(f.name, "PROP", "Hodnota pole '%s' není platná.", f.title)
	}
	var have []string
	if old, _ := now.(string); old != "" && !isTrue(in[f.name+"@removeAll"]) {
		have = strings.Split(old, ",")
	}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.ToUpper(strings.TrimPrefix(strings.TrimSpace(word), "code:"))
		if word == "" {
			continue
		}
		if len(d.t.st.find(d.t.s.catalog.byPath["stitek"], "code:"+word)) == 0 {
			return nil, &fieldError{field: f.name, code: "PROP", value: word,
				message: fmt.Sprintf("Zadaný text 'code:%s' musí identifikovat objekt", word)}
		}
		if !slices.Contains(have, word) {
			have = append(have, word)
		}
	}
	return strings.Join(have, ","), nil
}

func isTrue(v any) bool {
	s, _ := scalar(v)
	return strings.EqualFold(s, "true") || s == "1"
}
