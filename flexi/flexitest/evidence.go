package flexitest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// field is one property of an evidence, as properties.json shows it.
type field struct {
	name, title, kind          string
	maxLength, digits, decimal int // 0 = not said
	to                         string
	mandatory, readOnly        bool
	upper, lower, summary      bool
	values                     []string
}

// evidence is one agenda. table is what numeric ids are drawn for: agendas that share a table share the sequence.
type evidence struct {
	path, table, status, kind, title string
	extIDs                           bool
	fields                           []*field
	byName                           map[string]*field
	doc                              *docRules // nil for code lists
	rowOf                            *evidence // the documents whose rows these are
}

// docRules is what makes an evidence a document.
type docRules struct {
	rows     string   // key of the rows when read
	row      string   // evidence of the rows
	rowTable string   // what ids of rows are drawn for
	parent   string   // field of a row that names its document
	needs    []string // what a client must send in practice
	series   string   // evidence of the series
	prefix   string   // of numbers when the type names no series
	varSym   bool     // a variable symbol is demanded
	paid     bool     // has something to pay
	vat      bool     // has sums by rate
}

func (e *evidence) field(name string) *field { return e.byName[name] }

// catalog is all evidences of one server. It is made per server, so nothing is shared between parallel tests.
type catalog struct {
	list   []*evidence
	byPath map[string]*evidence
	row    *evidence // the fields of every kind of row
}

func newCatalog() *catalog {
	c := &catalog{byPath: map[string]*evidence{}}
	for line := range strings.Lines(documents) {
		c.addDocument(strings.Split(strings.TrimSpace(line), "|"))
	}
	for line := range strings.Lines(codeLists) {
		c.addCodeList(strings.Split(strings.TrimSpace(line), "|"))
	}
	c.row = newEvidence("polozka", fieldsRow)
	slices.SortFunc(c.list, func(a, b *evidence) int { return strings.Compare(a.path, b.path) })
	return c
}

// documents: path|table|importStatus|type|title|rows|type of document|series|prefix|needs|flags (v varSym, p paid, d VAT)
const documents = `faktura-vydana|dDoklFak|SUPPORTED|FAKTURA_OUT|Vydané faktury|polozkyFaktury|rada-faktury-vydane|VF|typDokl|vpd
faktura-prijata|dDoklFak|SUPPORTED|FAKTURA_IN|Přijaté faktury|polozkyFaktury|rada-faktury-prijate|PF|typDokl|pd
zavazek|dDoklFak|NOT_DOCUMENTED|ZAVAZEK|Ostatní závazky|polozkyFaktury|rada-zavazku|OZ|typDokl|pd
pohledavka|dDoklFak|NOT_DOCUMENTED|POHLEDAVKA|Ostatní pohledávky|polozkyFaktury|rada-pohledavky|OP|typDokl|pd
banka|dDoklInt|SUPPORTED|BANKA|Banka|polozkyIntDokladu|rada-banka|B|typDokl banka typPohybuK|d
pokladni-pohyb|dDoklInt|SUPPORTED|POKLADNI_POHYB|Pokladna|polozkyIntDokladu|rada-pokladni-pohyb|PO|typDokl pokladna typPohybuK|d
interni-doklad|dDoklInt|NOT_DOCUMENTED|INTERNI_DOKLAD|Interní doklady|polozkyIntDokladu|rada-interniho-dokladu|ID|typDokl|d
objednavka-prijata|dDoklObch|SUPPORTED|OBJEDNAVKA_IN|Přijaté objednávky|polozkyObchDokladu|rada-objednavky-prijate|OBP|typDokl|d
skladovy-pohyb|dDoklSklad|NOT_DOCUMENTED|SKLADOVY_POHYB|Příjemky/výdejky|skladovePolozky|rada-skladovy-pohyb|S|typDokl sklad typPohybuK|`

// codeLists: path|table|external ids|type|title
const codeLists = `adresar|aAdresar|true|ADRESAR|Adresy firem
cenik|CenikView|true|CENIK|Ceník
typ-faktury-vydane|dTypDokl|true|FAKTURA_OUT_TYP|Typy vydaných faktur
typ-faktury-prijate|dTypDokl|true|FAKTURA_IN_TYP|Typy přijatých faktur
typ-zavazku|dTypDokl|true|ZAVAZEK_TYP|Typy ostatních závazků
typ-pohledavky|dTypDokl|true|POHLEDAVKA_TYP|Typy ostatních pohledávek
typ-banka|dTypDokl|true|BANKA_TYP|Typy bankovních dokladů
typ-pokladni-pohyb|dTypDokl|true|POKLADNI_POHYB_TYP|Typy pokladních dokladů
typ-interniho-dokladu|dTypDokl|true|INTERNI_DOKLAD_TYP|Typy interních dokladů
typ-objednavky-prijate|dTypDokl|true|OBJEDNAVKA_IN_TYP|Typy přijatých objednávek
typ-skladovy-pohyb|dTypDokl|true|SKLADOVY_POHYB_TYP|Typy skladových dokladů
rada-faktury-vydane|dRady|false|FAKTURA_OUT_RADA|Dokladové řady - vydané faktury
rada-faktury-prijate|dRady|false|FAKTURA_IN_RADA|Dokladové řady - přijaté faktury
rada-zavazku|dRady|false|ZAVAZEK_RADA|Dokladové řady - ostatní závazky
rada-pohledavky|dRady|false|POHLEDAVKA_RADA|Dokladové řady - ostatní pohledávky
rada-banka|dRady|false|BANKA_RADA|Dokladové řady - banka
rada-pokladni-pohyb|dRady|false|POKLADNI_POHYB_RADA|Dokladové řady - pokladna
rada-interniho-dokladu|dRady|false|INTERNI_DOKLAD_RADA|Dokladové řady - interní doklady
rada-objednavky-prijate|dRady|false|OBJEDNAVKA_IN_RADA|Dokladové řady - přijaté objednávky
rada-skladovy-pohyb|dRady|false|SKLADOVY_POHYB_RADA|Dokladové řady - skladové pohyby
mena|uMeny|false|MENA|Měny
stat|aStaty|false|STAT|Státy
merna-jednotka|cMerJed|true|MERNA_JEDNOTKA|Měrné jednotky
stitek|wVybKlice|true|STITEK|Štítky
skupina-stitku|wSkupVybKlic|true|SKUPINA_STITKU|Skupiny štítků
forma-uhrady|dFormaUhradyCis|false|FORMA_UHRADY|Formy úhrady
sazba-dph|uSazbyDph|true|SAZBA_DPH|Sazby DPH
stredisko|uStrediska|true|STREDISKO|Střediska
cinnost|uCinnost|true|CINNOST|Činnost
zakazka|uZakazky|true|ZAKAZKA|Zakázky
bankovni-ucet|dBsp|true|BANKOVNI_UCET|Seznam bankovních účtů
pokladna|dBsp|true|POKLADNA|Seznam pokladen
sklad|dBsp|true|SKLAD|Seznam skladů
uzivatel|wUzivatele|false|UZIVATELE|Osoby a uživatelé
nastaveni|nNastav|false|NASTAVENI|Nastavení`

func fieldsOf(path string) string {
	switch path {
	case "faktura-vydana":
		return fieldsDocument + fieldsSums + fieldsInvoice + fieldsFakturaVydana
	case "faktura-prijata":
		return fieldsDocument + fieldsSums + fieldsInvoice + fieldsFakturaPrijata
	case "zavazek":
		return fieldsDocument + fieldsSums + fieldsInvoice + fieldsZavazek
	case "pohledavka":
		return fieldsDocument + fieldsSums + fieldsInvoice + fieldsPohledavka
	case "banka":
		return fieldsDocument + fieldsSums + fieldsInternal + fieldsBanka
	case "pokladni-pohyb":
		return fieldsDocument + fieldsSums + fieldsInternal + fieldsPokladniPohyb
	case "interni-doklad":
		return fieldsDocument + fieldsSums + fieldsInternal + fieldsInterniDoklad
	case "objednavka-prijata":
		return fieldsDocument + fieldsSums + fieldsObjednavkaPrijata
	case "skladovy-pohyb":
		return fieldsDocument + fieldsSkladovyPohyb
	case "adresar":
		return fieldsAdresar
	case "cenik":
		return fieldsCenik
	case "uzivatel":
		return fieldsUser
	case "nastaveni":
		return fieldsSettings
	}
	switch {
	case strings.HasPrefix(path, "typ-"):
		return fieldsDocType
	case strings.HasPrefix(path, "rada-"):
		return fieldsSeries
	}
	return fieldsCodeList
}

func (c *catalog) addDocument(p []string) {
	e := newEvidence(p[0], fieldsOf(p[0]))
	e.table, e.status, e.kind, e.title, e.extIDs = p[1], p[2], p[3], p[4], true
	e.doc = &docRules{
		rows: p[5], row: p[0] + "-polozka", series: p[6], prefix: p[7], needs: strings.Fields(p[8]),
		varSym: strings.Contains(p[9], "v"), paid: strings.Contains(p[9], "p"), vat: strings.Contains(p[9], "d"),
	}
	c.add(e)
	e.doc.parent = "dokl" + strings.TrimPrefix(e.table, "dDokl")
	row := newEvidence(e.doc.row, fieldsRow+e.doc.parent+"|relation@"+e.path+"|R|Doklad\n")
	row.rowOf = e
	e.doc.rowTable = "dPol" + strings.TrimPrefix(e.table, "dDokl")
	row.table, row.kind, row.title, row.extIDs = e.doc.rowTable, e.kind+"_POLOZKA", "Položky: "+e.title, true
	row.status = "NOT_DOCUMENTED"
	switch e.path {
	case "faktura-vydana", "faktura-prijata", "banka", "pokladni-pohyb", "objednavka-prijata":
		row.status = "NOT_DIRECT"
	}
	c.add(row)
}

func (c *catalog) addCodeList(p []string) {
	e := newEvidence(p[0], fieldsOf(p[0]))
	e.table, e.extIDs, e.kind, e.title = p[1], p[2] == "true", p[3], p[4]
	e.status = "NOT_DOCUMENTED"
	switch e.path {
	case "adresar", "cenik", "stredisko", "zakazka":
		e.status = "SUPPORTED"
	}
	c.add(e)
}

func (c *catalog) add(e *evidence) {
	c.list = append(c.list, e)
	c.byPath[e.path] = e
}

func newEvidence(path, table string) *evidence {
	e := &evidence{path: path, byName: map[string]*field{}}
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		f := parseField(line)
		if e.byName[f.name] != nil {
			panic(fmt.Sprintf("flexitest: field %s of %s is written down twice", f.name, path))
		}
		e.fields = append(e.fields, f)
		e.byName[f.name] = f
	}
	return e
}

func parseField(line string) *field {
	p := strings.Split(line, "|")
	f := &field{name: p[0], title: p[3]}
	kind, to, _ := strings.Cut(p[1], "@")
	kind, size, _ := strings.Cut(kind, ":")
	f.kind, f.to = kind, to
	if whole, decimals, ok := strings.Cut(size, "."); ok {
		f.digits, _ = strconv.Atoi(whole)
		f.decimal, _ = strconv.Atoi(decimals)
	} else {
		f.maxLength, _ = strconv.Atoi(size)
	}
	for _, flag := range p[2] {
		switch flag {
		case 'M':
			f.mandatory = true
		case 'R':
			f.readOnly = true
		case 'U':
			f.upper = true
		case 'L':
			f.lower = true
		case 'S':
			f.summary = true
		}
	}
	if len(p) > 4 {
		f.values = strings.Fields(p[4])
	}
	return f
}
