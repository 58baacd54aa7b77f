package flexitest

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// finishDocument fills in what the server knows by itself and checks what a document must be.
func (d *draft) finishDocument() {
	if d.old != nil {
		if err := d.mayUpdate(); err != nil {
			d.fail(err)
			return
		}
	} else {
		d.setDefaults()
	}
	for _, name := range d.ev.doc.needs {
		if !d.isSet(name) {
			d.fail(invalid(name, "INVALID", "Pole '%s' musí být vyplněno.", d.ev.field(name).title))
		}
	}
	if len(d.errors) > 0 {
		return
	}
	own := d.rec.text("kod") != ""
	d.assignNumber()
	d.checkVarSym(own)
	d.copyPartner()
	d.checkPeriod()
	d.computeSums()
	d.setPayment()
	d.checkUnique()
	d.warnSupplierNumber()
}

func (d *draft) isSet(name string) bool {
	v := d.rec.fields[name]
	return v != nil && v != ""
}

// mayUpdate: a paid document is frozen where it matters for the payment.
func (d *draft) mayUpdate() *fieldError {
	if d.t.s.modes.locked(d.old.text("datVyst")) {
		return invalid("datVyst", "INVALID", "Doklad nelze vložit do zamčeného období.")
	}
	if !isPaid(d.old) {
		return nil
	}
	for _, name := range []string{"typDokl", "firma", "mena", "sumCelkem", "sumZklZakl", d.ev.doc.rows, "polozkyDokladu"} {
		if _, sent := d.in[name]; sent {
			return invalid(name, "INVALID", "Doklad nelze změnit, protože je spárován.")
		}
	}
	return nil
}

func (d *draft) setDefaults() {
	today := d.t.at.In(d.t.s.zone).Format(time.DateOnly)
	for name, v := range map[string]string{
		"datVyst": today, "zamekK": "zamek.otevreno", "storno": "false", "zuctovano": "false", "ucetni": "true",
		"vytvaretKorPol": "true", "zaokrouhlitPoOdpoctu": "false", "zdrojProSkl": "false", "dobropisovano": "false",
		"metodaZaokrDoklK": "metodaZaokr.zklDph", "sparovano": "false", "zapocet": "false", "bezPolozek": "false",
		"uuid": d.t.s.newUUID(),
	} {
		if d.ev.field(name) != nil && !d.isSet(name) {
			d.rec.fields[name] = v
		}
	}
	if len(d.rec.rows) == 0 {
		d.rec.fields["bezPolozek"] = "true"
	}
	d.refer("mena", "mena", "code:CZK")
	d.refer("createdBy", "uzivatel", "code:"+d.t.user)
	d.refer("uzivatel", "uzivatel", "code:"+d.t.user)
	if d.ev.field("datSplat") != nil && !d.isSet("datSplat") {
		if day, err := time.Parse(time.DateOnly, d.rec.text("datVyst")); err == nil {
			d.rec.fields["datSplat"] = day.AddDate(0, 0, 14).Format(time.DateOnly)
		}
	}
}

func (d *draft) refer(name, evidence, ident string) {
	if found := d.t.st.find(d.t.s.catalog.byPath[evidence], ident); len(found) == 1 && !d.isSet(name) {
		d.rec.fields[name] = ref{to: evidence, id: found[0].id, text: ident}
	}
}

// checkVarSym: the server makes it of a number that has digits only, or that it drew itself. A number of the client's
// own with other characters needs one.
func (d *draft) checkVarSym(own bool) {
	if d.ev.field("varSym") == nil || d.isSet("varSym") || d.old != nil && d.in["varSym"] == nil {
		return
	}
	digits := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, d.rec.text("kod"))
	if own && digits != d.rec.text("kod") {
		if d.ev.doc.varSym {
			d.fail(invalid("varSym", "INVALID", "Pole '%s' musí být vyplněno.", d.ev.field("varSym").title))
		}
		return
	}
	d.rec.fields["varSym"] = digits
}

// copyPartner: one field of a client cascades into others.
func (d *draft) copyPartner() {
	partner, ok := d.rec.fields["firma"].(ref)
	if !ok || d.in["firma"] == nil {
		return
	}
	rec := d.t.st.get("adresar", partner.id)
	if rec == nil {
		return
	}
	for to, from := range map[string]string{
		"nazFirmy": "nazev", "ulice": "ulice", "mesto": "mesto", "psc": "psc", "ic": "ic", "dic": "dic",
	} {
		if d.in[to] == nil {
			d.rec.fields[to] = rec.text(from)
		}
	}
}

func (d *draft) checkPeriod() {
	if d.t.s.modes.locked(d.rec.text("datVyst")) {
		d.fail(invalid("datVyst", "INVALID", "Doklad nelze vložit do zamčeného období."))
	}
}

func (d *draft) setPayment() {
	if !d.ev.doc.paid {
		return
	}
	f := d.rec.fields
	total, paid := number(f["sumCelkem"]), number(f["juhSum"])
	if f["stavUhrK"] == "stavUhr.uhrazenoRucne" {
		paid = total
	}
	f["juhSum"], f["zbyvaUhradit"] = paid.String(), total.Sub(paid).String()
	f["zbyvaUhraditMen"] = "0"
}

// checkUnique refuses a number that another record of the evidence has, unless used numbers are allowed.
func (d *draft) checkUnique() {
	kod := d.rec.text("kod")
	if kod == "" || d.t.s.modes.usedNumbers {
		return
	}
	for _, other := range d.rivals(kod) {
		if d.old == nil || other.id != d.old.id {
			e := invalid("kod", "INVALID", "Hodnotu '%s' pole '%s' již používá jiný záznam.", kod, d.ev.field("kod").title)
			e.value = kod
			d.fail(e)
			return
		}
	}
}

// rivals is the records that may not have the same number: of the evidence, or as far as this server has it otherwise.
func (d *draft) rivals(kod string) (out []*record) {
	for _, ev := range d.t.s.catalog.list {
		if ev != d.ev && (ev.table != d.ev.table || !d.has(NumbersPerTable)) {
			continue
		}
		for _, r := range d.t.st.find(ev, "code:"+kod) {
			if !d.has(NumbersPerYear) || year(r) == year(d.rec) {
				out = append(out, r)
			}
		}
	}
	return out
}

func year(r *record) string {
	day := r.text("datVyst")
	return day[:min(4, len(day))]
}

// warnSupplierNumber: the server's own duplicate check of received invoices only warns, and only with a partner.
func (d *draft) warnSupplierNumber() {
	partner, ok := d.rec.fields["firma"].(ref)
	number := d.rec.text("cisDosle")
	if d.ev.path != "faktura-prijata" || !ok || number == "" || d.in["cisDosle"] == nil {
		return
	}
	for _, r := range d.t.st.records[d.ev.path] {
		other, _ := r.fields["firma"].(ref)
		if r.text("cisDosle") == number && other.id == partner.id && (d.old == nil || r.id != d.old.id) {
			d.warnings = append(d.warnings, &fieldError{field: "cisDosle",
				message: fmt.Sprintf("Doklad s číslem došlým '%s' od této firmy již existuje.", number)})
			return
		}
	}
}
