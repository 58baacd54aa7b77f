package flexitest

import (
	"github.com/shopspring/decimal"
)

// bucket is one VAT rate: the fields of the document that add up its rows.
type bucket struct {
	kind, base, vat, total string
	rate                   int64
}

func buckets() []bucket {
	return []bucket{
		{"typSzbDph.dphOsv", "sumOsv", "", "", 0},
		{"typSzbDph.dphSniz", "sumZklSniz", "sumDphSniz", "sumCelkSniz", 12},
		{"typSzbDph.dphSniz2", "sumZklSniz2", "sumDphSniz2", "sumCelkSniz2", 12},
		{"typSzbDph.dphZakl", "sumZklZakl", "sumDphZakl", "sumCelkZakl", 21},
	}
}

func rateOf(kind string) int64 {
	for _, b := range buckets() {
		if b.kind == kind {
			return b.rate
		}
	}
	return 21
}

// forgetRows takes the sums of rows that are there no more out of the document, but for those that the client sent.
func (d *draft) forgetRows() {
	if d.old == nil || len(d.old.rows) == 0 {
		return
	}
	for _, b := range buckets() {
		for _, name := range []string{b.base, b.vat, b.total} {
			if _, sent := d.in[name]; !sent && name != "" {
				delete(d.rec.fields, name)
			}
		}
	}
}

// computeSums adds the document up and refuses a total that the sender counted otherwise.
func (d *draft) computeSums() {
	f := d.rec.fields
	if !d.ev.doc.vat {
		d.sumStock()
		return
	}
	rate := d.exchangeRate()
	if rate.IsZero() {
		return
	}
	if len(d.rec.rows) > 0 {
		for _, b := range buckets() {
			delete(f, b.base)
			delete(f, b.vat)
		}
		for _, r := range d.rec.rows {
			d.addRow(r, rate)
		}
	} else {
		d.forgetRows()
		d.sumWithoutRows()
	}
	base, vat := decimal.Zero, decimal.Zero
	for _, b := range buckets() {
		x, y := number(f[b.base]), number(f[b.vat])
		base, vat = base.Add(x), vat.Add(y)
		f[b.base] = x.String()
		if b.vat != "" {
			f[b.vat], f[b.total] = y.String(), x.Add(y).String()
		}
	}
	d.setTotals(base, vat, rate)
}

func (d *draft) setTotals(base, vat, rate decimal.Decimal) {
	f := d.rec.fields
	total := base.Add(vat)
	if sent, ok := d.in["sumCelkem"]; ok && !d.in.isEmpty("sumCelkem") {
		if s, _ := scalar(sent); !number(s).Round(2).Equal(total.Round(2)) {
			e := invalid("sumCelkem", "INVALID", "Zadaná hodnota [%s] vlastnosti [sumCelkem] se liší od vypočtené hodnoty [%s]", s, total)
			e.value = s
			d.fail(e)
			return
		}
	}
	f["sumZklCelkem"], f["sumDphCelkem"], f["sumCelkem"] = base.String(), vat.String(), total.String()
	if rate.Equal(decimal.NewFromInt(1)) {
		f["sumCelkemMen"], f["sumZklCelkemMen"], f["sumDphCelkemMen"] = "0", "0", "0"
		return
	}
	f["sumCelkemMen"] = total.DivRound(rate, 2).String()
	f["sumZklCelkemMen"] = base.DivRound(rate, 2).String()
	f["sumDphCelkemMen"] = vat.DivRound(rate, 2).String()
}

func (o object) isEmpty(name string) bool {
	s, ok := scalar(o[name])
	return ok && s == ""
}

// sumWithoutRows: the sums were sent by rate, or as one total, which is then exempt of VAT.
func (d *draft) sumWithoutRows() {
	f, parts := d.rec.fields, false
	for _, b := range buckets() {
		if d.in[b.base] == nil {
			continue
		}
		parts = true
		if b.vat != "" && d.in[b.vat] == nil {
			f[b.vat] = number(f[b.base]).Mul(decimal.New(b.rate, -2)).Round(2).String()
		}
	}
	if d.in["sumCelkem"] != nil && !parts && d.old == nil {
		f["sumOsv"] = f["sumCelkem"]
	}
	if d.old != nil && d.in["sumCelkem"] != nil && !parts {
		for _, b := range buckets() {
			delete(f, b.base)
			delete(f, b.vat)
		}
		f["sumOsv"] = f["sumCelkem"]
	}
}

// addRow computes one row and adds it to the sums of its rate. Rows are in the document's currency.
func (d *draft) addRow(r *row, rate decimal.Decimal) {
	base, vat := rowSums(r)
	home := func(x decimal.Decimal) decimal.Decimal { return x.Mul(rate).Round(2) }
	r.fields["sumZkl"], r.fields["sumDph"] = home(base).String(), home(vat).String()
	r.fields["sumCelkem"] = home(base).Add(home(vat)).String()
	if !rate.Equal(decimal.NewFromInt(1)) {
		r.fields["sumZklMen"], r.fields["sumDphMen"] = base.String(), vat.String()
		r.fields["sumCelkemMen"] = base.Add(vat).String()
	}
	for _, b := range buckets() {
		if b.kind != r.fields["typSzbDphK"] {
			continue
		}
		f := d.rec.fields
		f[b.base] = number(f[b.base]).Add(home(base)).String()
		if b.vat != "" {
			f[b.vat] = number(f[b.vat]).Add(home(vat)).String()
		}
	}
}

func rowSums(r *row) (base, vat decimal.Decimal) {
	f := r.fields
	if f["typSzbDphK"] == nil || f["typSzbDphK"] == "" {
		f["typSzbDphK"] = kindOfRate(f["szbDph"])
	}
	rate := decimal.New(rateOf(f["typSzbDphK"].(string)), 0)
	f["szbDph"] = rate.String()
	if f["mnozMj"] == nil {
		f["mnozMj"] = "1"
	}
	if f["cenaMj"] == nil {
		base = number(f["sumZkl"])
		return base, base.Mul(rate).Shift(-2).Round(2)
	}
	full := number(f["mnozMj"]).Mul(number(f["cenaMj"]))
	full = full.Mul(decimal.NewFromInt(100).Sub(number(f["slevaPol"]))).Shift(-2).Round(2)
	if f["typCenyDphK"] == "typCeny.sDph" {
		base = full.DivRound(decimal.NewFromInt(1).Add(rate.Shift(-2)), 2)
		return base, full.Sub(base)
	}
	return full, full.Mul(rate).Shift(-2).Round(2)
}

func kindOfRate(rate any) string {
	if s, _ := rate.(string); s != "" {
		n := number(rate)
		for _, b := range buckets() {
			if n.Equal(decimal.NewFromInt(b.rate)) {
				return b.kind
			}
		}
	}
	return "typSzbDph.dphZakl"
}

func (d *draft) sumStock() {
	total := decimal.Zero
	for _, r := range d.rec.rows {
		base, _ := rowSums(r)
		r.fields["sumZkl"], r.fields["sumCelkem"] = base.String(), base.String()
		total = total.Add(base)
	}
	d.rec.fields["sumCelkem"], d.rec.fields["sumOsv"] = total.String(), total.String()
}

// exchangeRate is 1 for the home currency. A foreign one needs a rate: sent, or known to the server.
func (d *draft) exchangeRate() decimal.Decimal {
	one := decimal.NewFromInt(1)
	cur, _ := d.rec.fields["mena"].(ref)
	mena := d.t.st.get("mena", cur.id)
	if mena == nil || mena.text("kod") == "CZK" {
		return one
	}
	if rate := number(d.rec.fields["kurz"]); !rate.IsZero() {
		if per := number(d.rec.fields["kurzMnozstvi"]); !per.IsZero() {
			return rate.DivRound(per, 6)
		}
		return rate
	}
	if mena.text("kod") == "EUR" {
		d.rec.fields["kurz"], d.rec.fields["kurzMnozstvi"] = "24.35", "1"
		return decimal.RequireFromString("24.35")
	}
	d.fail(invalid("kurz", "INVALID", "Pro měnu '%s' není zadán kurz.", mena.text("kod")))
	return decimal.Zero
}
