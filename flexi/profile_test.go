package flexi

import "testing"

// The words are those of recorded answers; where the source is a title of the vendor's pages, the words are its own.
func TestCauseOf(t *testing.T) {
	cases := []struct {
		name string
		m    Message
		want Cause
	}{
		{"locked period", Message{Text: "Doklad nelze vložit do zamčeného období. [FV-1]"}, PeriodLocked},
		{"locked record", Message{Text: "Záznam je zamčený."}, PeriodLocked},
		{"number taken", Message{Text: "Hodnotu 'FV-1' již používá jiný záznam", For: "kod", Code: "INVALID"}, NumberTaken},
		{"exists", Message{Text: "Import není povolen", Code: "importXmlUpdateNeniPovolen"}, NumberTaken},
		{"partner", Message{Text: "Zadaný text 'code:ACME' musí identifikovat objekt [200600000009]", For: "firma", Code: "PROP"}, PartnerMissing},
		{"item", Message{Text: "Zadaný text 'code:X' musí identifikovat objekt", For: "cenik", Code: "PROP"}, ItemMissing},
		{"sums", Message{Text: "Zadaná hodnota [100.0] vlastnosti [sumCelkem] se liší od vypočtené hodnoty [121.0]"}, SumDiffers},
		{"no variable symbol", Message{Text: "Pole 'Variabilní symbol' musí být vyplněno. [DRY_RUN_TEST]", For: "varSym"}, VarSymMissing},
		{"no variable symbol, by code", Message{Text: "?", For: "varSym", Code: "validace.notNull"}, VarSymMissing},
		{"type", Message{Text: "Je očekáváno číselné ID, ale 'FAKTURA' není číslo", For: "typDokl", Code: "PROP"}, TypeMissing},
		{"stock type", Message{Text: "Pokud má být vygenerován skladový doklad, musí být vyplněn typ skladového dokladu"}, TypeMissing},
		{"paired", Message{Text: "Doklad nelze změnit, protože je spárován"}, Paired},
		{"rate", Message{Text: "Nenalezen kurz měny EUR", For: "mena"}, RateMissing},
		{"too long", Message{Text: "Pole 'Číslo došlé' nesmí být delší než 40 znaků. [VYR51021]", For: "cisDosle"}, TooLong},
		{"right", Message{Text: "Nemáte právo upravovat doklad"}, RightMissing},
		{"variable symbol too long", Message{Text: "Pole 'Variabilní symbol' nesmí být delší než 30 znaků.", For: "varSym"}, TooLong},
		{"something else", Message{Text: "Neznámá chyba", For: "popis"}, OtherCause},
		{"nothing", Message{}, OtherCause},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := causeOf([]Message{tc.m}); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	if got := causeOf([]Message{{Text: "x", For: "firma"}, {Text: "Záznam je zamčený."}}); got != PeriodLocked {
		t.Errorf("of two errors: %s", got)
	}
	if got := causeOf(nil); got != OtherCause {
		t.Errorf("of no error: %s", got)
	}
}

func TestEveryCauseHasAHint(t *testing.T) {
	seen := make(map[string]Cause)
	for _, c := range []Cause{PeriodLocked, NumberTaken, PartnerMissing, ItemMissing, SumDiffers, VarSymMissing, TypeMissing, Paired,
		RateMissing, TooLong, RightMissing, Gone, OtherCause} {
		for _, lang := range []string{"cs", "en"} {
			h := c.Hint(lang)
			if h == "" || h[len(h)-1] != '.' {
				t.Errorf("%s in %s: %q", c, lang, h)
			}
			if other, ok := seen[h]; ok {
				t.Errorf("%s and %s say the same: %q", c, other, h)
			}
			seen[h] = c
		}
	}
	for _, f := range fingerprints() {
		if f.field == "" && f.code == "" && f.words == "" {
			t.Errorf("a fingerprint of %s fits everything", f.cause)
		}
	}
	if Cause("new").Hint("en") != OtherCause.Hint("en") || PeriodLocked.Hint("de") != PeriodLocked.Hint("en") {
		t.Error("unknown causes and languages have no words")
	}
}
