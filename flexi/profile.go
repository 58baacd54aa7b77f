package flexi

import "strings"

// This file is the profile of the ERP: the codes and words by which its answers are told apart. A real server may
// differ; nothing else in the package knows any of them.

// Codes of the ERP that say which condition of the envelope was not met.
const (
	codeExists = "importXmlUpdateNeniPovolen" // "@update":"fail" and the record exists
	codeAbsent = "importXmlCreateNeniPovolen" // "@create":"fail" and the record does not exist
)

// saysExists reports whether the fence spoke: a record with one of our identifiers is there already. It is read from the
// code; the words change with the language of the server.
func saysExists(ms []Message) bool { return hasCode(ms, codeExists) }

// saysAbsent is the counterpart for requests that must not make a record.
func saysAbsent(ms []Message) bool { return hasCode(ms, codeAbsent) }

func hasCode(ms []Message, code string) bool {
	for _, m := range ms {
		if m.Code == code || strings.Contains(m.Text, code) {
			return true
		}
	}
	return false
}

// aboutIdentity reports whether an error is about what identifies a document, or does not say what it is about: such a
// rejection may be the echo of a write that did happen.
func aboutIdentity(m Message) bool {
	switch m.For {
	case "", "id", "kod", "cisDosle", "external-ids":
		return true
	}
	return false
}

// Cause is why a document was rejected, for people and their lists. It never decides anything.
type Cause string

// The causes.
const (
	PeriodLocked   Cause = "period_locked"
	NumberTaken    Cause = "number_taken"
	PartnerMissing Cause = "partner_missing"
	ItemMissing    Cause = "item_missing"
	SumDiffers     Cause = "sum_differs"
	VarSymMissing  Cause = "varsym_missing"
	TypeMissing    Cause = "type_missing"
	Paired         Cause = "paired"
	RateMissing    Cause = "rate_missing"
	TooLong        Cause = "too_long"
	RightMissing   Cause = "right_missing"
	Gone           Cause = "gone" // of a conflict: the record is not in Flexi any more
	OtherCause     Cause = "other"
)

// Hint is one sentence that says what to do next; lang is "cs" or "en".
func (c Cause) Hint(lang string) string {
	cs, en := c.hints()
	if lang == "cs" {
		return cs
	}
	return en
}

func (c Cause) hints() (cs, en string) {
	switch c {
	case PeriodLocked:
		return "Odemkněte období, nebo pošlete doklad s datem v otevřeném období.",
			"Unlock the period in Flexi, or send the document with a date in an open one."
	case NumberTaken:
		return "Číslo už má jiný doklad: porovnejte oba a pošlete doklad pod jiným číslem, nebo jej zahoďte.",
			"Another document has this number: compare the two, then send yours under a new number or drop it."
	case Gone:
		return "Záznam ve Flexi už není: pošlete doklad znovu (flexid maybe resend), nebo událost zahoďte (flexid maybe drop).",
			"The record is not in Flexi any more: have it made again (flexid maybe resend), or drop the event (flexid maybe drop)."
	case PartnerMissing:
		return "Založte firmu v adresáři Flexi pod kódem z dokladu a pošlete doklad znovu.",
			"Create the partner in Flexi's address book under the code in the document, then send it again."
	case ItemMissing:
		return "Založte položku v ceníku Flexi pod kódem z dokladu a pošlete doklad znovu.",
			"Create the item in Flexi's price list under the code in the document, then send it again."
	case SumDiffers:
		return "Opravte součty u odesílatele: Flexi z řádků vypočetla jinou částku.",
			"Correct the totals at the sender: Flexi computed another amount from the rows."
	case VarSymMissing:
		return "Doplňte do dokladu variabilní symbol (varSym); při vlastním čísle jej Flexi nedoplní.",
			"Add the variable symbol (varSym) to the document; with a number of your own Flexi does not fill it in."
	case TypeMissing:
		return "Založte typ dokladu (typDokl) ve Flexi, nebo pošlete kód typu, který tam je, ve tvaru code:KÓD.",
			"Create the document type (typDokl) in Flexi, or send the code of one that is there, written code:CODE."
	case Paired:
		return "Zrušte ve Flexi spárování dokladu s platbou a pošlete změnu znovu.",
			"Undo the pairing of the document with its payment in Flexi, then send the change again."
	case RateMissing:
		return "Zadejte ve Flexi kurz měny k datu dokladu a pošlete doklad znovu.",
			"Enter the currency's rate for the date of the document in Flexi, then send it again."
	case TooLong:
		return "Zkraťte u odesílatele hodnotu, kterou chyba jmenuje.",
			"Shorten the value that the error names at the sender."
	case RightMissing:
		return "Dejte uživateli flexid ve Flexi právo, které chyba jmenuje.",
			"Give flexid's user the right in Flexi that the error names."
	}
	return "Přečtěte si slova Flexi u dokladu, opravte doklad u odesílatele a pošlete jej znovu.",
		"Read Flexi's words on the document, correct it at the sender and send it again."
}

// fingerprint is one way the ERP says a cause: all parts that are set must fit.
type fingerprint struct {
	cause Cause
	field string // the field the error is for
	code  string
	words string // part of the text, lower case
}

// fingerprints are tried in order: words that name the trouble before fields that only hint at it.
func fingerprints() []fingerprint {
	return []fingerprint{
		{cause: PeriodLocked, words: "zamčeného období"},
		{cause: PeriodLocked, words: "zamknutého období"},
		{cause: PeriodLocked, words: "zamknutého obdobia"},
		{cause: PeriodLocked, words: "záznam je zamčený"},
		{cause: PeriodLocked, words: "locked period"},
		{cause: Paired, words: "spárován"},
		{cause: Paired, words: "is paired"},
		{cause: NumberTaken, words: "již používá jiný záznam"},
		{cause: NumberTaken, words: "used by another record"},
		{cause: NumberTaken, code: codeExists},
		{cause: SumDiffers, words: "se liší od vypočtené hodnoty"},
		{cause: SumDiffers, words: "differs from the computed value"},
		{cause: VarSymMissing, words: "'variabilní symbol' musí být vyplněno"},
		{cause: VarSymMissing, field: "varSym", code: "validace.notNull"},
		{cause: TooLong, words: "nesmí být delší než"},
		{cause: TooLong, words: "must not be longer than"},
		{cause: RightMissing, words: "nemáte právo"},
		{cause: RightMissing, words: "nemáte oprávnění"},
		{cause: RightMissing, words: "no permission"},
		{cause: RateMissing, words: "kurz", field: "kurz"},
		{cause: RateMissing, words: "kurz pro měnu"},
		{cause: RateMissing, words: "kurz měny"},
		{cause: PartnerMissing, field: "firma"},
		{cause: ItemMissing, field: "cenik"},
		{cause: TypeMissing, field: "typDokl"},
		{cause: TypeMissing, words: "typ skladového dokladu"},
		{cause: VarSymMissing, field: "varSym", words: "musí být vyplněn"},
	}
}

func (f fingerprint) fits(m Message) bool {
	return (f.field == "" || f.field == m.For) &&
		(f.code == "" || f.code == m.Code) &&
		(f.words == "" || strings.Contains(strings.ToLower(m.Text), f.words))
}

// causeOf is the first cause that any of the errors shows.
func causeOf(ms []Message) Cause {
	for _, f := range fingerprints() {
		for _, m := range ms {
			if f.fits(m) {
				return f.cause
			}
		}
	}
	return OtherCause
}
