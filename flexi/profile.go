package flexi

import "strings"

// This file is the profile of the ERP: the codes and words by which its answers are told apart. A real server may
// differ; nothing else in the package knows any of them.

// Codes of the ERP that say which condition of the envelope was not met.
const (
	codeExists = "importXmlUpdateNeniPovolen" // "@update":"fail" and the record exists
	codeAbsent = "importXmlCreateNeniPovolen" // "@create":"fail" and the record does not exist
)

// codeNoImport is the code of an evidence that is not written by itself, such as the rows of invoices.
const codeNoImport = "importNotAllowed"

// saysNoImport reports whether the evidence as such was refused.
func saysNoImport(ms []Message) bool { return hasCode(ms, codeNoImport) }

// Importable reports whether an evidence with this importStatus may be written. A status that nobody knows is left to the
// server.
func (e EvidenceInfo) Importable() bool {
	return e.ImportStatus != "DISALLOWED" && e.ImportStatus != "NOT_DIRECT"
}

// Standard reports whether an evidence is one that every Flexi has: where its list lacks it, a right or a module was
// switched off, and the name is no slip of the pen.
func Standard(evidence string) bool {
	switch evidence {
	case "faktura-vydana", "faktura-prijata", "zavazek", "pohledavka", "banka", "pokladni-pohyb", "interni-doklad",
		"objednavka-prijata", "objednavka-vydana", "nabidka-vydana", "nabidka-prijata", "poptavka-vydana", "poptavka-prijata",
		"skladovy-pohyb", "adresar", "kontakt", "cenik", "zakazka", "stredisko":
		return true
	}
	return false
}

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
	NotImportable  Cause = "not_importable"
	Gone           Cause = "gone" // of a conflict: the record is not in Flexi any more
	OtherCause     Cause = "other"
)

// Causes are those that flexid tells apart.
func Causes() []Cause {
	return []Cause{PeriodLocked, NumberTaken, PartnerMissing, ItemMissing, SumDiffers, VarSymMissing, TypeMissing, Paired, RateMissing,
		TooLong, RightMissing, NotImportable, OtherCause, Gone}
}

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
	case NotImportable:
		return "Do této evidence Flexi nezapisuje samostatně: řádky patří do svého dokladu (polozkyFaktury, polozkyIntDokladu, …); pošlete celý doklad.",
			"Flexi takes nothing into this evidence by itself: rows go inside their document (polozkyFaktury, polozkyIntDokladu, …); send the whole document."
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
		{cause: NotImportable, code: codeNoImport},
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

// NewestFirst is the order of the page of one that serves as a look's control. A server that reads the letter the other way
// shows its oldest record: a control all the same, and a highest id that is too low raises no alarm.
const NewestFirst = "id@D"

// successStatus: creates are 201 and updates 200 or 201, whatever the pages say; the envelope decides.
func successStatus(status int) bool { return status >= 200 && status < 300 }

// loginBody is how a login is written: as the vendor's pages have it. Public clients post a form; a server that reads
// nothing else refuses, which is said as a refused login. A second try in another form would count as a wrong password.
func loginBody(user, password string) ([]byte, error) {
	return plainJSON(map[string]any{"username": user, "password": password})
}

// quote writes a filter's string. Only what stands without an escape is sure to be understood: see Unknowns, 12.
func quote(v string) string {
	switch single, double := strings.Contains(v, "'"), strings.Contains(v, `"`); {
	case strings.Contains(v, `\`), single && double:
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'"
	case single:
		return `"` + v + `"`
	}
	return "'" + v + "'"
}

// Unknown is one thing about the ERP that no public source tells: what flexid takes for true, and what becomes of it before
// a server that is otherwise. Whoever meets a real server that differs finds here where the code has to know.
type Unknown struct {
	No        int
	Name      string
	Default   string   // the safe reading
	Otherwise string   // what flexid does where it is wrong
	Rests     []string // the functions, constants and settings that hold the default
	Shown     []string // modes of the fake, and tests, that show it
}

// Unknowns is all of them, by the numbers of research/flexi-api.md.
func Unknowns() []Unknown { return append(unknownsOfTheServer(), unknownsOfTheBooks()...) }

func unknownsOfTheServer() []Unknown {
	return []Unknown{
		{1, "daily limit of requests", "there may be one; its number is the operator's to set, and what comes after it is a refusal",
			"a 429 throttles all requests, a 402 or 403 trips the breaker, with the ERP's words; documents wait and go on the next day by themselves",
			[]string{"FLEXID_FLEXI_DAILY_REQUESTS", "blocked"}, []string{"daily-limit-429", "daily-limit-402", "daily-limit-403"}},
		{2, "limit of parallel requests, and the wait after it", "unknown: after a 429 all callers come again one by one, in slots that grow until the server takes them, Retry-After or not",
			"where even one request at once is too many everything stays throttled and the status says so",
			[]string{"ParseRetryAfter", "slotWidth", "mostWidth"}, []string{"one-at-a-time", "one-at-a-time-seconds", "one-at-a-time-date"}},
		{3, "limit of sessions", "a 403 about users looks like any other: it is about us, never about the document",
			"the breaker of the evidence trips with the words of the ERP and is tried again; nothing is parked",
			[]string{"remedyRights"}, []string{"too-many-users"}},
		{4, "words of a stale role", "a 400 with a bare message may be one: the user's context is ended once, then it is asked again",
			"a 403 trips the breaker of the evidence; an error of a record parks it as rejected, with the ERP's words",
			[]string{"messageRefusals", "RefreshUser"}, []string{"stale-role", "stale-is-error", "stale-is-403", "stale-no-import", "evidence-hidden-from-stale"}},
		{8, "status of an answer to an update", "any 2xx; the envelope decides",
			"nothing differs", []string{"successStatus", "counters"}, []string{"update-is-200"}},
		{9, "redirect to the numeric address", "no record is read by its code, and no redirect is followed",
			"nothing differs", []string{"readStatus"}, []string{"detail-moved-301", "detail-moved-302"}},
		{16, "409, and what a 503 means", "a 409 with an error of a record is a rejection like a 400; a 503 is looked up, in the ERP's envelope after the longer settle time",
			"a 503 in front of the ERP that had saved after all is found by the look", []string{"clientError", "FLEXID_VERIFY_SETTLE_PROXY"},
			[]string{"exists-is-409", "maintenance", "answer-503-done"}},
		{17, "whether a write was done after a 500, a 502 or a broken connection", "it may have been: never sent again before it was looked up",
			"both ways end alike: found is confirmed, absent after the settle time is sent again", []string{"decide", "FLEXID_VERIFY_SETTLE_NO_ANSWER"},
			[]string{"answer-500-done", "answer-500-undone", "answer-502-done", "answer-lost"}},
		{18, "limits and encodings on the way", "questions go in a body, requests stay small, no compression is asked for, answers end at a size; a 413 or 504 of a box is a maybe",
			"an answer that was compressed unasked cannot be read: writes stop, and the status says so", []string{"maxWriteAnswer", "maxReadAnswer"},
			[]string{"chunked", "gzip", "gzip-unasked", "bodies-limited", "addresses-limited", "answers-limited", "proxy-impatient"}},
		{20, "web hooks after an outage, and deletes in them", "a hook only wakes: what changed is read from the changes, by evidence and id",
			"a delete without identifiers is matched by its Flexi id", []string{"Changes"}, []string{"bare-deletes"}},
		{22, "the newer version of the interface", "it is not used; numbers and booleans are read in both spellings",
			"nothing differs", []string{"truth", "number"}, []string{"native-values"}},
		{23, "how a login is written", "as JSON, in its own request; without FLEXID_FLEXI_AUTH=session there is none",
			"the login counts as refused: writes stop, and the status says so", []string{"loginBody", "FLEXID_FLEXI_AUTH"},
			[]string{"login-form-only", "login-json-only"}},
	}
}

func unknownsOfTheBooks() []Unknown {
	return []Unknown{
		{5, "where a number is unique, and how a second one is refused", "nowhere for sure: flexid looks for the number first and owns it in its ledger; a refusal about id, kod or no field is looked up before it counts",
			"a number that is free at the ERP is not free in the ledger; a refusal in other words leads to the same look",
			[]string{"aboutIdentity", "saysExists"}, []string{"bare-errors", "numbers-per-table", "numbers-per-year", "used-numbers-refused"}},
		{6, "lower case letters in a number", "they become upper case, and numbers are compared so",
			"a number that keeps its letters is compared all the same; one that is refused is parked with the ERP's words",
			[]string{"NormaliseNumber"}, []string{"lower-code-refused", "lower-code-kept"}},
		{7, "a write by a code that does not exist", "it would make a record: only a create may, by our external id, never by code",
			"nothing differs", []string{"NewExternalID"}, []string{"code-must-exist"}},
		{10, "the letters of an order", "D is downwards; nothing but the control of a look is ordered",
			"the control is the oldest record instead of the youngest", []string{"NewestFirst"}, []string{"order-reversed"}},
		{11, "letter case of names", "it counts: fields are sent as the metadata spell them", "nothing differs",
			[]string{"Properties"}, []string{"any-case-tags", "unknown-fields-dropped"}},
		{12, "a quote inside a filter's string", "a value with one kind of quote stands in the other; only one with both, or with a back-slash, is escaped",
			"such a value finds nothing or is refused; the external id beside it finds the record, and rows are judged by what they carry",
			[]string{"quote"}, []string{"quotes-doubled", "quotes-plain", "value-refused"}},
		{13, "rows of an update", "they are replaced as a whole, under the name that the sender used, with removeAll beside them",
			"what is there afterwards is compared row by row; a name that is not taken is a rejection with the ERP's words",
			[]string{"itemFields"}, []string{"removeall-needs-rows", "rows-by-position", "rows-own-name-only", "rows-common-name-only"}},
		{14, "order of results, and a request that failed in part", "no order: a result is known by its request-id or by a look; requests are one transaction",
			"nothing differs", []string{"docResults"}, []string{"results-reversed"}},
		{15, "shape of an answer", "every spelling that was ever seen is read; success, counters, ids and errors must not contradict each other",
			"an answer that tells nothing is looked up", []string{"decodeEnvelope", "mismatch"},
			[]string{"failed-is-zero", "native-answers", "error-strings", "wrapped-lists", "stats-in-list", "empty-success", "nothing-saved"}},
		{19, "numbers of refused writes", "they may be lost or given again: a number drawn by the ERP counts when an accepted answer or a look tells it",
			"the series has gaps", []string{"inBrackets"}, []string{"burn-numbers"}},
		{21, "prefixes and number of identifiers", "one external id of ours, beside those of others that the sender names; no key: or uuid:",
			"a second one that is refused is a rejection with the ERP's words", []string{"ExternalID"},
			[]string{"one-external-id", "uuid-prefix-only"}},
		{24, "when a record shows after a 504", "not before the settle time is over: an empty look before it proves nothing, and three are needed",
			"a write that is later still meets the fence of its external id; an update of what is not shown yet is left to a person", []string{"FLEXID_VERIFY_SETTLE_NO_ANSWER"},
			[]string{"commits-late", "shows-late"}},
	}
}
