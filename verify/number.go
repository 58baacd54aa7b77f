package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// A payable is known by its partner, the supplier's number, and the year in which it was issued: suppliers begin to count anew
// each January. Flexi is asked for the pair in all years, and what comes back is judged here.

// number is the supplier's number that the event asks for, or else the one that the document has.
func (t *task) number() string {
	if t.ev.Number == "" && t.row.Last != nil {
		return t.row.Last.Number
	}
	return t.ev.Number
}

// yearOf is the year of the document: as the event says, as our events left it, or as the record of ours shows it; "" when
// nobody tells.
func (e *Engine) yearOf(t *task, mine []flexi.Record) string {
	if year := flexi.Year(flexi.Issued(t.ev.Body, e.o.Settings.Zone)); year != "" {
		return year
	}
	if t.row.Last != nil && t.row.Last.Year != "" {
		return t.row.Last.Year
	}
	if len(mine) == 1 {
		return flexi.Year(mine[0].Issued(e.o.Settings.Zone))
	}
	return ""
}

// numberName is the name under which the ledger keeps the event's number, "" when it has none or none that is complete.
func (e *Engine) numberName(ctx context.Context, t *task) (string, error) {
	if t.ev.Number == "" || pairless(t.row.Evidence) {
		return t.ev.Number, nil
	}
	n, ok, err := flexi.NumberOf(t.row.Evidence, t.ev.Body)
	if err != nil || !ok {
		return "", nil // preparing the request says what is wrong with it
	}
	if t.row.Work.Partner == "" {
		// The partner enters by its Flexi id, because one partner has many references.
		id, err := e.metadata.resolve(ctx, "adresar", n.Partner)
		if err != nil {
			return "", err
		}
		t.row.Work.Partner = id
	}
	partner := t.row.Work.Partner
	if partner == "" {
		partner = strings.ToUpper(n.Partner)
	}
	return pairName(partner, e.yearOf(t, nil), n.Value), nil
}

// pairName is one name for all spellings: who finds it taken compares the letters.
func pairName(partner, year, number string) string {
	if partner == "" || year == "" || number == "" {
		return ""
	}
	return partner + "|" + year + "|" + strings.ToUpper(number)
}

// effectiveName is the name of the number that the document has by the events that took effect, "" where that is not known.
func effectiveName(r *ledger.Row) string {
	switch {
	case r.Last == nil:
		return ""
	case pairless(r.Evidence):
		return r.Last.Number
	}
	return pairName(r.Last.Partner, r.Last.Year, r.Last.Number)
}

// mostNumbers bounds the numbers that a row lists. The list only saves asking: whose a number is, its key says.
const mostNumbers = 20

// addNumber lists a number that the row owns. A sender that calls all its documents by one key has as many as documents.
func addNumber(r *ledger.Row, name string) {
	if slices.Contains(r.Numbers, name) {
		return
	}
	all := append(slices.Clone(r.Numbers), name)
	r.Numbers = all[max(0, len(all)-mostNumbers):]
}

// shedNumbers forgets numbers that events without effect asked for. Their keys are freed by the first one who wants them.
func shedNumbers(r *ledger.Row) {
	r.Numbers = slices.DeleteFunc(r.Numbers, func(name string) bool { return !usesNumber(r, name) })
}

// usesNumber says that an event of the document that is not over may want the number, an attempt of it may still show, or the
// document has it by the events that took effect.
func usesNumber(r *ledger.Row, name string) bool {
	if r.More() || r.Work == nil || !r.Work.Final || len(r.Late) > 0 {
		return true
	}
	has := effectiveName(r)
	return r.Last != nil && (has == "" || has == name)
}

// numberOf is the number that a document has, or asks for where none of its events took effect yet.
func numberOf(r *ledger.Row) string {
	if r.Last != nil && r.Last.Number != "" {
		return r.Last.Number
	}
	return r.Number
}

func letterCase(number, has, other string) ledger.Problem {
	return ledger.Problem{Link: other, Differ: []ledger.Difference{{Field: "cisDosle", Sent: number, Found: has}}, Text: fmt.Sprintf(
		"the number %s of this partner and year is written %s in %s: correct it and send the document again, or `flexid maybe resend` if they are two", number, has, other)}
}

// byPairAlone says that nothing but partner and supplier's number connects the record with the document.
func (e *Engine) byPairAlone(t *task, r flexi.Record) bool {
	if pairless(t.row.Evidence) || t.number() == "" {
		return false
	}
	for _, x := range foreignIDs(t.ev.Body) {
		if r.HasExternalID(x) {
			return false
		}
	}
	return strings.EqualFold(cisDosle(r), t.number())
}

func cisDosle(r flexi.Record) string {
	return flexi.NormaliseNumber("faktura-prijata", r.Text("cisDosle"))
}

// sameNumber says that number and year are those of the record. Where one of the years is not known, it may be the same document.
func sameNumber(year, number, day, has string) bool {
	return (year == "" || day == "" || flexi.Year(day) == year) && has == number
}

// likeness holds a payable back whose number stands in Flexi in a way that a person has to judge: in the year before or after
// with the same amount, variable symbol or about the same day (a date corrected over New Year), in other letters, or where
// nobody says of which year this document is. It asks only before the first send, or where Flexi has said "exists": what was
// sent once and is not there is for the looks to settle.
func (e *Engine) likeness(t *task, records, mine, others []flexi.Record) (finding, bool) {
	w := t.row.Work
	if pairless(t.row.Evidence) || len(mine) > 0 || t.row.Last != nil || w.Pass || w.Opens > 0 && !w.Exists {
		return finding{}, false
	}
	zone := e.o.Settings.Zone
	ours := factsOf(eventRecord(t.ev.Body), zone)
	if ours.day != "" && len(others) > 0 {
		return finding{}, false // the document itself is there
	}
	for _, r := range records {
		if !e.byPairAlone(t, r) {
			continue
		}
		theirs := factsOf(r, zone)
		k := kinOf(ours, theirs)
		switch {
		case k == kinFar && !w.Exists:
			continue
		case k == kinNear && !t.ev.Derived && e.otherOfOurs(t, r) != "":
			continue // the sender has named both
		}
		return finding{verdict: verdictConflict, target: r.ID(), record: r, problem: likenessProblem(k, ours, theirs, r)}, true
	}
	return finding{}, false
}

func likenessProblem(k kin, ours, theirs facts, r flexi.Record) ledger.Problem {
	what, do := "record "+r.ID()+" in Flexi has the same partner and number", ""
	switch {
	case k == kinCase:
		what += ", written in other letters"
		do = "correct the number and send the document again, or `flexid maybe resend` if they are two"
	case ours.day == "":
		do = "say in datVyst of which year this document is, and send it again"
	default:
		what += " in another year"
		do = "if this is another document, send it with a key of its own or `flexid maybe resend`; if its date was corrected, change that record and drop this event"
	}
	p := ledger.Problem{Text: what + ": " + do}
	for _, d := range []ledger.Difference{
		{Field: "cisDosle", Sent: ours.number, Found: theirs.number}, {Field: "datVyst", Sent: ours.day, Found: theirs.day},
		{Field: "varSym", Sent: ours.varSym, Found: theirs.varSym}, {Field: "sum", Sent: ours.amount(), Found: theirs.amount()},
	} {
		if d.Sent != "" || d.Found != "" {
			p.Differ = append(p.Differ, d)
		}
	}
	return p
}

// notAnothers makes sure that a document whose key was made from its number does not change a record that is evidently another
// one's: of payables one of another year, of others one of another year and another partner.
func (e *Engine) notAnothers(ctx context.Context, t *task, f finding) (finding, error) {
	if !t.ev.Derived || t.row.Work.Pass {
		return f, nil
	}
	zone, sent := e.o.Settings.Zone, eventRecord(t.ev.Body)
	day, has := sent.Issued(zone), f.record.Issued(zone)
	if day == "" || has == "" || flexi.Year(day) == flexi.Year(has) {
		return f, nil
	}
	if pairless(t.row.Evidence) {
		if other, err := e.otherPartner(ctx, sent, f.record); err != nil || !other {
			return f, err
		}
	}
	f.verdict = verdictConflict
	ours, theirs := factsOf(sent, zone), factsOf(f.record, zone)
	f.problem = ledger.Problem{
		Text: "record " + f.target + " has this number, but is of another year and so another document: send this one with a number or a key of its own, or `flexid maybe resend` to change that record",
		Differ: []ledger.Difference{{Field: "datVyst", Sent: ours.day, Found: theirs.day}, {Field: "firma", Sent: partnerText(sent), Found: partnerText(f.record)},
			{Field: "sum", Sent: ours.amount(), Found: theirs.amount()}},
	}
	return f, nil
}

func partnerText(r flexi.Record) string {
	if s := r.Text("firma"); s != "" {
		return clip(s, 120)
	}
	return clip(r.Text("nazFirmy"), 120)
}

// otherPartner says that the event names a partner, and the record has another one. An event that names none says nothing about it.
func (e *Engine) otherPartner(ctx context.Context, sent, rec flexi.Record) (bool, error) {
	if ref := sent.Text("firma"); ref != "" {
		id, err := e.metadata.resolve(ctx, "adresar", ref)
		if err != nil {
			return false, err
		}
		_, has := rec.Ref("firma")
		return id == "" || id != has, nil
	}
	for _, field := range []string{"ic", "nazFirmy"} {
		if s := sent.Text(field); s != "" {
			return !strings.EqualFold(strings.TrimSpace(s), strings.TrimSpace(rec.Text(field))), nil
		}
	}
	return false, nil
}

// identityFields are what must be read of a record to tell whose it is.
func identityFields(t *task) []string {
	fields := []string{"firma", "datVyst"}
	if field, pair := flexi.NumberField(t.row.Evidence); pair {
		fields = append(fields, field, "varSym")
		fields = append(fields, sums()...)
	} else {
		fields = append(fields, "ic", "nazFirmy")
	}
	if t.props == nil {
		return fields
	}
	return slices.DeleteFunc(fields, func(f string) bool { _, has := t.props.ByName[f]; return !has })
}

// kin is how a record that carries an event's partner and number relates to it.
type kin int

const (
	kinSame kin = iota // same year, or one of the years is not known
	kinCase            // same year, other letters
	kinNear            // the year before or after, and alike
	kinFar             // another document
)

// facts are what two payables with the same number are told apart by.
type facts struct {
	number, day, varSym string
	sums                map[string]string
}

func sums() []string {
	return []string{"sumCelkem", "sumCelkemMen", "sumOsv", "sumZklZakl", "sumZklSniz"}
}

func factsOf(r flexi.Record, zone *time.Location) facts {
	f := facts{number: cisDosle(r), day: r.Issued(zone), varSym: strings.TrimSpace(r.Text("varSym")), sums: map[string]string{}}
	for _, field := range sums() {
		if v := decimal(r.Text(field)); v != "" {
			f.sums[field] = v
		}
	}
	return f
}

func (f facts) amount() string {
	for _, field := range sums() {
		if v := f.sums[field]; v != "" {
			return v
		}
	}
	return ""
}

// sameAmount says that the sums that both carry are equal, and there is one.
func (f facts) sameAmount(g facts) bool {
	both := 0
	for field, v := range f.sums {
		w, ok := g.sums[field]
		switch {
		case !ok:
		case v != w:
			return false
		default:
			both++
		}
	}
	return both > 0
}

// kinOf judges a record with the same partner and, letter case aside, the same number.
func kinOf(a, b facts) kin {
	year, other := flexi.Year(a.day), flexi.Year(b.day)
	switch {
	case year == "" || other == "" || year == other:
		if a.number != "" && a.number != b.number {
			return kinCase
		}
		return kinSame
	case !neighbours(a.day, b.day):
		return kinFar
	case a.varSym != "" && a.varSym == b.varSym, a.sameAmount(b), daysApart(a.day, b.day) <= nearDays:
		return kinNear
	}
	return kinFar
}

// nearDays is how far apart two days over New Year may be to be one day that was corrected.
const nearDays = 60

func neighbours(a, b string) bool {
	x, err1 := time.Parse(time.DateOnly, a)
	y, err2 := time.Parse(time.DateOnly, b)
	d := x.Year() - y.Year()
	return err1 == nil && err2 == nil && d >= -1 && d <= 1
}

func daysApart(a, b string) int {
	x, err1 := time.Parse(time.DateOnly, a)
	y, err2 := time.Parse(time.DateOnly, b)
	if err1 != nil || err2 != nil {
		return 0
	}
	return int(max(x.Sub(y), y.Sub(x)) / (24 * time.Hour))
}

// decimal is a sum in one spelling, "" for none and for nothing.
func decimal(s string) string {
	if len(s) > 40 || strings.Trim(s, "-.0123456789") != "" {
		return ""
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || r.Sign() == 0 {
		return ""
	}
	return r.FloatString(2)
}

func eventRecord(body json.RawMessage) flexi.Record {
	if doc := flexi.ParseRecord(body); doc != nil {
		return doc
	}
	return flexi.Record{}
}
