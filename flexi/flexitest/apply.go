package flexitest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// effect is what one record of a write did.
type effect string

const (
	created effect = "created"
	updated effect = "updated"
	deleted effect = "deleted"
	skipped effect = "skipped"
)

// result is the part of an answer about one record.
type result struct {
	effect    effect
	ev        *evidence
	id        int64
	requestID string
	code      string
	warnings  []*fieldError
}

// refusal is a record that the server did not take.
type refusal struct {
	path   string // evidence[identifier]
	number string // the document number as far as it was known, shown at the end of every message
	errors []*fieldError
}

// draft is one record on its way through a transaction.
type draft struct {
	t        *tx
	ev       *evidence
	in       object
	ids      []string
	old, rec *record
	newRows  []*row
	errors   []*fieldError
	warnings []*fieldError
}

// apply does what one record of a write asks for. urlID is the record that the address named, if it did.
func (t *tx) apply(ev *evidence, in object, urlID string) (result, *refusal) {
	d := &draft{t: t, ev: ev, in: in, ids: identifiers(in["id"])}
	if urlID != "" {
		d.ids = append([]string{urlID}, d.ids...)
	}
	if err := d.resolve(); err != nil {
		return result{}, d.refuse(err)
	}
	if action := d.attr("@action"); action != "" {
		return d.act(action)
	}
	if d.old == nil {
		return d.create(urlID)
	}
	return d.update()
}

func (d *draft) attr(name string) string {
	s, _ := scalar(d.in[name])
	return s
}

// resolve finds the record that the identifiers name. All that exist must be the same one.
func (d *draft) resolve() *fieldError {
	for _, ident := range d.ids {
		numeric := isNumber(ident)
		if !numeric && !strings.Contains(ident, ":") {
			return &fieldError{field: "id", code: "PROP", value: ident,
				message: fmt.Sprintf("Je očekáváno číselné ID, ale '%s' není číslo", ident)}
		}
		if d.has(UUIDPrefixOnly) && strings.HasPrefix(ident, "key:") {
			return invalid("id", "PROP", "Neznámý typ identifikátoru '%s'.", ident)
		}
		found := d.t.st.find(d.ev, ident)
		if len(found) == 0 && d.has(CodeMustExist) && strings.HasPrefix(ident, "code:") {
			return invalid("id", "INVALID", "Záznam s identifikátorem '%s' neexistuje.", ident)
		}
		if numeric && len(found) == 0 {
			return &fieldError{field: "id", code: "INVALID", value: ident,
				message: fmt.Sprintf("Záznam s identifikátorem '%s' neexistuje.", ident)}
		}
		if len(found) > 1 {
			return &fieldError{field: "id", code: "INVALID", value: ident,
				message: fmt.Sprintf("Identifikátor '%s' označuje více záznamů.", ident)}
		}
		if len(found) == 1 {
			if d.old != nil && d.old.id != found[0].id {
				return &fieldError{field: "id", code: "INVALID", value: ident,
					message: fmt.Sprintf("Identifikátor '%s' již používá jiný záznam.", ident)}
			}
			d.old = found[0]
		}
	}
	return nil
}

func (d *draft) create(urlID string) (result, *refusal) {
	switch {
	case urlID != "":
		return result{}, d.refuse(invalid("id", "INVALID", "Záznam '%s' neexistuje.", urlID))
	case d.attr("@create") == "ignore":
		return result{effect: skipped, ev: d.ev}, nil
	case d.attr("@create") == "fail":
		e := invalid("", "importXmlCreateNeniPovolen", "Záznam neexistuje a jeho vytvoření není povoleno.")
		return result{}, d.refuse(e)
	}
	d.rec = &record{ev: d.ev, fields: map[string]any{}, created: d.t.at, updated: d.t.at}
	d.copySource()
	for _, ident := range d.ids {
		if kod, ok := strings.CutPrefix(ident, "code:"); ok && d.in["kod"] == nil {
			d.in["kod"] = kod
		}
	}
	d.fill()
	if len(d.errors) > 0 {
		return result{}, d.refuse(d.errors...)
	}
	d.rec.id = d.t.st.draw(d.ev.table)
	d.drawRowIDs()
	d.t.put(nil, d.rec)
	d.t.created = append(d.t.created, d.rec.withIdentity(d.ids))
	d.t.logRecord(d.rec, "create", d.newRows)
	return d.result(created), nil
}

// withIdentity keeps the external ids that were sent, also those that the server was told to lose, for counting.
func (r *record) withIdentity(ids []string) *record {
	c := *r
	c.ext = extOnly(ids)
	return &c
}

func (d *draft) update() (result, *refusal) {
	fence := d.attr("@update")
	if fence == "fail" && !d.t.s.modes.ignoreFence {
		e := invalid("", "importXmlUpdateNeniPovolen", "Záznam již existuje a jeho aktualizace není povolena.")
		return result{}, d.refuse(e)
	}
	if fence == "ignore" {
		return result{effect: skipped, ev: d.ev}, nil
	}
	if d.old.text("zamekK") == "zamek.zamceno" {
		return result{}, d.refuse(invalid("", "", "Záznam je zamčený."))
	}
	d.rec = d.old.clone()
	d.rec.updated = d.t.at
	d.fill()
	if len(d.errors) > 0 {
		return result{}, d.refuse(d.errors...)
	}
	d.drawRowIDs()
	d.t.put(d.old, d.rec)
	d.t.logRecord(d.rec, "update", d.newRows)
	return d.result(updated), nil
}

// fill takes the sent fields over, then what the server computes and checks by itself.
func (d *draft) fill() {
	d.identify()
	d.assign()
	if d.ev.doc != nil {
		d.assignRows()
	}
	if len(d.errors) > 0 {
		return
	}
	if d.ev.doc != nil {
		d.finishDocument()
	} else {
		d.finishCodeList()
	}
}

func (d *draft) identify() {
	if prefix, ok := d.in["@removeExternalIds"]; ok {
		p, _ := scalar(prefix)
		d.rec.ext = slices.DeleteFunc(d.rec.ext, func(e string) bool { return strings.HasPrefix(e, "ext:"+p) })
	}
	ext := extOnly(append(slices.Clone(d.ids), identifiers(d.in["external-ids"])...))
	if len(ext) > 0 && !d.ev.extIDs {
		d.fail(invalid("id", "INVALID", "Evidence '%s' nepodporuje externí identifikátory.", d.ev.path))
		return
	}
	if d.t.s.modes.dropExt {
		return
	}
	for _, e := range ext {
		if owners := d.t.st.find(d.ev, e); len(owners) > 0 && (d.old == nil || owners[0].id != d.old.id) {
			d.fail(invalid("id", "INVALID", "Identifikátor '%s' již používá jiný záznam.", e))
			continue
		}
		if !slices.Contains(d.rec.ext, e) {
			d.rec.ext = append(d.rec.ext, e)
		}
	}
	if len(d.rec.ext) > 1 && d.has(OneExternalID) {
		d.fail(invalid("id", "INVALID", "Záznam může mít nejvýše jeden externí identifikátor."))
	}
}

// has says whether the server has a habit.
func (d *draft) has(name Habit) bool { return d.t.s.modes.habits.has(name) }

func (d *draft) fail(e *fieldError) { d.errors = append(d.errors, e) }

func (d *draft) result(e effect) result {
	r := result{effect: e, ev: d.ev, id: d.rec.id, code: d.rec.text("kod"), warnings: d.warnings}
	if len(d.ids) > 0 && !d.t.s.modes.noRequestID {
		r.requestID = d.ids[0]
	}
	return r
}

func (d *draft) refuse(errs ...*fieldError) *refusal {
	r := &refusal{path: d.ev.path + "[temporary-id=null]", errors: errs}
	if d.t.s.modes.nameless {
		return r
	}
	if len(d.ids) > 0 {
		r.path = d.ev.path + "[" + d.ids[0] + "]"
	}
	switch {
	case d.rec != nil:
		r.number = d.rec.text("kod")
	case d.old != nil:
		r.number = d.old.text("kod")
	}
	return r
}

func extOnly(ids []string) []string {
	var out []string
	for _, id := range ids {
		if strings.HasPrefix(id, "ext:") && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func isNumber(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}
