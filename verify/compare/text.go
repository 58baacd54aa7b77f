package compare

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// plain returns s as Flexi keeps it: NFC, unix line ends, no blanks at the end of a line or around the whole.
func plain(s string) string {
	s = norm.NFC.String(s)
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	if !strings.Contains(s, "\n") {
		return strings.TrimSpace(s)
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\u00a0")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func upper(s string) string { return strings.ToUpper(plain(s)) }

// freeText reports whether a field is prose that people read and correct. This is the only list: a field that is not in
// it decides, so that a number, an account or an address of mail never changes unnoticed. The type is not asked, because
// rows often come without their metadata.
func freeText(field string) bool {
	switch field {
	case "popis", "popisA", "popisB", "popisC", "kratkyPopis", "poznam", "uvodTxt", "zavTxt", "faktTxt",
		"doprava", "osloveni", "klicSlova", "techParam",
		"nazev", "nazev2", "nazevA", "nazevB", "nazevC", "nazev2A", "nazev2B", "nazev2C",
		"baleniNazev1", "baleniNazev2", "baleniNazev3", "baleniNazev4", "baleniNazev5",
		"nazFirmy", "nazevPojistovny", "ulice", "mesto", "psc",
		"faNazev", "faNazev2", "faJmenoFirmy", "faUlice", "faMesto", "faPsc",
		"kontaktJmeno", "kontaktTel", "tel", "mobil", "fax":
		return true
	}
	return false
}

// identityText reports whether a field without metadata must be taken as text although it looks like a number: 007 is
// not 7 in a document number or a bank account.
func identityText(field string) bool {
	switch field {
	case "kod", "varSym", "specSym", "cisDosle", "cisObj", "cisSml", "cisDodak", "cisSouhrnne", "vypisCisDokl",
		"ic", "dic", "vatId", "rodCis", "kodPojistovny", "buc", "iban", "bic", "psc", "faPsc",
		"eanKod", "faEanKod", "kodPlu", "source", "branchId", "uuid":
		return true
	}
	return false
}
