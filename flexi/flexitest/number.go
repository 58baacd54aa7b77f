package flexitest

import (
	"fmt"
	"strings"
)

// assignNumber draws a document number from the series when the client sent none: type, its series, the year of the
// document date. The counter is part of the transaction, so a refused write gives its number back.
func (d *draft) assignNumber() {
	if d.rec.text("kod") != "" {
		return
	}
	prefix, key := d.ev.doc.prefix, d.ev.doc.series
	if series := d.series(); series != nil {
		key = fmt.Sprintf("%s/%d", key, series.id)
		if p := series.text("prefix"); p != "" {
			prefix = p
		}
	}
	year := "0000"
	if day := d.rec.text("datVyst"); len(day) >= 4 {
		year = day[:4]
	}
	for {
		kod := fmt.Sprintf("%s%04d/%s", prefix, d.t.drawNumber(key+"/"+year), year)
		// Somebody may have typed a number of the series by hand.
		if d.t.s.modes.usedNumbers || len(d.t.st.find(d.ev, "code:"+kod)) == 0 {
			d.rec.fields["kod"] = kod
			break
		}
	}
	d.t.log("rocni-rada", "update", 1, nil)
}

// series is the one that the document names, else the one of its type.
func (d *draft) series() *record {
	if r, ok := d.rec.fields["rada"].(ref); ok && r.id != 0 {
		return d.t.st.get(r.to, r.id)
	}
	kind, ok := d.rec.fields["typDokl"].(ref)
	if !ok {
		return nil
	}
	rec := d.t.st.get(kind.to, kind.id)
	if rec == nil || rec.text("rada") == "" {
		return nil
	}
	found := d.t.st.find(d.t.s.catalog.byPath[d.ev.doc.series], "code:"+rec.text("rada"))
	if len(found) == 0 {
		return nil
	}
	r := found[0]
	d.rec.fields["rada"] = ref{to: r.ev.path, id: r.id, text: "code:" + r.text("kod")}
	return r
}

// finishCodeList: a record of a code list needs a name; its code is made of it when it is missing.
func (d *draft) finishCodeList() {
	if f := d.ev.field("nazev"); f != nil && d.rec.text("nazev") == "" {
		d.fail(invalid("nazev", "INVALID", "Pole '%s' musí být vyplněno.", f.title))
		return
	}
	f := d.ev.field("kod")
	if f == nil {
		return
	}
	if d.rec.text("kod") == "" {
		d.rec.fields["kod"] = d.codeFromName(f.maxLength)
	}
	d.checkUnique()
}

func (d *draft) codeFromName(most int) string {
	base := []rune(strings.ToUpper(strings.ReplaceAll(d.rec.text("nazev"), " ", "")))
	if len(base) == 0 {
		base = []rune("X")
	}
	for n := 0; ; n++ {
		suffix := ""
		if n > 0 {
			suffix = fmt.Sprint(n)
		}
		kod := string(base[:min(len(base), most-len(suffix))]) + suffix
		if len(d.t.st.find(d.ev, "code:"+kod)) == 0 {
			return kod
		}
	}
}
