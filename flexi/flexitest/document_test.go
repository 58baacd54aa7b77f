package flexitest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestSums(t *testing.T) {
	tests := []struct {
		name, fields string
		want         map[string]string
	}{
		{"rows by rate", `"polozkyFaktury":[{"nazev":"a","mnozMj":3,"cenaMj":33.33},{"nazev":"b","mnozMj":1,"cenaMj":10,"typSzbDphK":"typSzbDph.dphSniz"},{"nazev":"c","cenaMj":5,"szbDph":"0"}]`,
			map[string]string{"sumZklZakl": "99.99", "sumDphZakl": "21.0", "sumZklSniz": "10.0", "sumDphSniz": "1.2", "sumOsv": "5.0", "sumCelkem": "137.19"}},
		{"price with VAT", `"polozkyDokladu":[{"nazev":"a","mnozMj":"1","cenaMj":"121","typCenyDphK":"typCeny.sDph"}]`,
			map[string]string{"sumZklZakl": "100.0", "sumDphZakl": "21.0", "sumCelkem": "121.0", "bezPolozek": "false"}},
		{"discount", `"polozkyFaktury":[{"nazev":"a","mnozMj":"1","cenaMj":"200","slevaPol":"25"}]`,
			map[string]string{"sumZklZakl": "150.0"}},
		{"price of the card", `"polozkyFaktury":{"faktura-vydana-polozka":[{"cenik":"code:kabel5","mnozMj":"2"}]}`,
			map[string]string{"sumZklZakl": "199.0"}},
		{"without rows, by rate", `"bezPolozek":"true","sumZklZakl":"1000","sumOsv":"50"`,
			map[string]string{"sumDphZakl": "210.0", "sumCelkem": "1260.0", "bezPolozek": "true"}},
		{"without rows, total only", `"sumCelkem":"77.5"`, map[string]string{"sumOsv": "77.5", "sumCelkem": "77.5"}},
		{"total that agrees", `"sumCelkem":"242.00","polozkyFaktury":[{"nazev":"a","mnozMj":"2","cenaMj":"100"}]`,
			map[string]string{"sumCelkem": "242.0", "zbyvaUhradit": "242.0"}},
		{"currency", `"mena":"code:EUR","kurz":"25","polozkyFaktury":[{"nazev":"a","mnozMj":"1","cenaMj":"100"}]`,
			map[string]string{"sumCelkem": "3025.0", "sumCelkemMen": "121.0", "mena": "code:EUR"}},
		{"large sums have an exponent", `"sumOsv":"122900345.29"`, map[string]string{"sumCelkem": "1.2290034529E8"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := pipe(t, Options{})
			c.must(c.post("faktura-vydana", `"typDokl":"code:FAKTURA",`+tt.fields))
			rec := c.s.Records("faktura-vydana")[0]
			for name, want := range tt.want {
				equal(t, name, rec.Fields[name], any(want))
			}
		})
	}
}

func TestRowsOnUpdate(t *testing.T) {
	c := pipe(t, Options{})
	id := c.must(c.post("faktura-vydana", invoice("ext:S:1", "")))
	row := `"polozkyFaktury":[{"nazev":"Další","mnozMj":"1","cenaMj":"1"}]`
	count := func() int {
		rows, _ := c.s.Records("faktura-vydana")[0].Fields["polozkyFaktury"].([]map[string]any)
		return len(rows)
	}
	c.must(c.post("faktura-vydana", `"id":"`+id+`",`+row))
	equal(t, "appended", count(), 2)
	c.must(c.post("faktura-vydana", `"id":"`+id+`","polozkyFaktury@removeAll":"true",`+row))
	equal(t, "replaced", count(), 1)
	equal(t, "sum of the new row", c.s.Records("faktura-vydana")[0].Fields["sumCelkem"], any("1.21"))
	c.must(c.post("faktura-vydana", `"id":"`+id+`","polozkyDokladu":[{"id":"ext:S:R1","nazev":"S id","cenaMj":"2"}]`))
	c.must(c.post("faktura-vydana", `"id":"`+id+`","polozkyDokladu":[{"id":"ext:S:R1","cenaMj":"3"}]`))
	equal(t, "changed by its own id", count(), 2)
	c.must(c.post("faktura-vydana", `"id":"`+id+`","polozkyFaktury":[{"id":"ext:S:R1","@action":"delete"}]`))
	equal(t, "deleted", count(), 1)
	r := c.post("faktura-vydana", `"id":"`+id+`","polozkyFaktury":[{"id":"9999","nazev":"x"}]`)
	equal(t, "row that is not there", r.status, 400)
}

func TestFieldsOnUpdate(t *testing.T) {
	c := pipe(t, Options{})
	id := c.must(c.post("faktura-vydana", invoice("", "")+`,"popis":"a","poznam":"b","stitky":"VIP"`))
	c.must(c.post("faktura-vydana", `"id":"`+id+`","popis":"","stitky":"eshop","storno":"true","uuid":"mine"`))
	f := c.s.Records("faktura-vydana")[0].Fields
	equal(t, "empty clears", f["popis"], nil)
	equal(t, "omitted stays", f["poznam"], any("b"))
	equal(t, "labels add up", f["stitky"], any("VIP, ESHOP"))
	equal(t, "read-only is dropped", f["storno"], any("false"))
	c.must(c.post("faktura-vydana", `"id":"`+id+`","stitky":"KONTROLA","stitky@removeAll":"true"`))
	equal(t, "labels replaced", c.s.Records("faktura-vydana")[0].Fields["stitky"], any("KONTROLA"))

	c.s.ReadOnlyColumns("faktura-vydana", "poznam")
	c.must(c.post("faktura-vydana", `"id":"`+id+`","poznam":"neprojde","popis":"projde"`))
	f = c.s.Records("faktura-vydana")[0].Fields
	equal(t, "column without a right", f["poznam"], any("b"))
	equal(t, "the others", f["popis"], any("projde"))
}

func TestNumbers(t *testing.T) {
	c := pipe(t, Options{})
	number := func(evidence, record string) string {
		r := c.post(evidence, record)
		c.must(r)
		code, _ := r.result(0)["code"].(string)
		return code
	}
	equal(t, "first", number("faktura-vydana", invoice("", "")), "VF1-0001/2026")
	equal(t, "series of the type", number("faktura-vydana", `"typDokl":"code:DOBROPIS"`), "VD1-0001/2026")
	equal(t, "series that was named", number("faktura-vydana", `"typDokl":"code:FAKTURA","rada":"code:DOBROPISY"`), "VD1-0002/2026")
	equal(t, "year of the document", number("faktura-vydana", `"typDokl":"code:FAKTURA","datVyst":"2025-12-31"`), "VF1-0001/2025")
	equal(t, "other evidence", number("faktura-prijata", `"typDokl":"code:FAKTURA"`), "PF1-0001/2026")
	equal(t, "own number, upper case", number("faktura-vydana", `"typDokl":"code:FAKTURA","kod":"vf1-0002/2026","varSym":"1"`), "VF1-0002/2026")
	equal(t, "steps over it", number("faktura-vydana", invoice("", "")), "VF1-0003/2026")
	equal(t, "digits only make a symbol", number("faktura-vydana", `"typDokl":"code:FAKTURA","kod":"2026001"`), "2026001")
	equal(t, "symbol", c.s.Find("faktura-vydana", "code:2026001")[0].Fields["varSym"], any("2026001"))
	equal(t, "same number elsewhere", number("zavazek", `"typDokl":"code:ZÁVAZEK","kod":"2026001"`), "2026001")

	// Agendas of one table share the ids.
	ids := map[int64]bool{}
	for _, ev := range []string{"faktura-vydana", "faktura-prijata", "zavazek"} {
		for _, r := range c.s.Records(ev) {
			if ids[r.ID] {
				t.Errorf("id %d was given twice", r.ID)
			}
			ids[r.ID] = true
		}
	}
	c.s.AllowUsedNumbers(true)
	equal(t, "used number", number("faktura-vydana", `"typDokl":"code:FAKTURA","kod":"2026001"`), "2026001")
	equal(t, "both are there", len(c.s.Find("faktura-vydana", "code:2026001")), 2)
	equal(t, "commits", c.s.Commits("faktura-vydana/code:2026001"), 2)
}

func TestEveryDocumentCanBeMade(t *testing.T) {
	c := pipe(t, Options{})
	for evidence, record := range map[string]string{
		"faktura-vydana":     invoice("ext:S:1", ""),
		"faktura-prijata":    `"typDokl":"code:FAKTURA","cisDosle":"2026/77","firma":"code:SVOBODA","sumZklZakl":"100"`,
		"zavazek":            `"typDokl":"code:ZÁVAZEK","sumOsv":"10"`,
		"pohledavka":         `"typDokl":"code:POHLEDÁVKA","polozkyFaktury":[{"nazev":"x","cenaMj":"1"}]`,
		"banka":              `"typDokl":"code:STANDARD","banka":"code:BANKOVNÍ ÚČET","typPohybuK":"typPohybu.prijem","sumOsv":"5"`,
		"pokladni-pohyb":     `"typDokl":"code:STANDARD","pokladna":"code:POKLADNA KČ","typPohybuK":"typPohybu.vydej","polozkyIntDokladu":[{"nazev":"x","cenaMj":"1"}]`,
		"interni-doklad":     `"typDokl":"code:STANDARD","polozkyIntDokladu":[{"nazev":"x","cenaMj":"1"}]`,
		"objednavka-prijata": `"typDokl":"code:OBP","polozkyObchDokladu":[{"cenik":"code:PRACE","mnozMj":"2"}]`,
		"skladovy-pohyb":     `"typDokl":"code:STANDARD","sklad":"code:SKLAD","typPohybuK":"typPohybu.prijem","skladovePolozky":[{"cenik":"code:KABEL5","mnozMj":"2"}]`,
		"adresar":            `"nazev":"Nový partner","stat":"code:cz"`,
		"cenik":              `"kod":"novy","nazev":"Nové zboží","mj1":"code:KS"`,
	} {
		c.must(c.post(evidence, record))
	}
	equal(t, "stock sum", c.s.Records("skladovy-pohyb")[0].Fields["sumCelkem"], any("199.0"))
	equal(t, "code from the name", len(c.s.Find("adresar", "code:NOVÝPARTNER")), 1)
}

func TestSupplierNumberOnlyWarns(t *testing.T) {
	c := pipe(t, Options{})
	record := `"typDokl":"code:FAKTURA","cisDosle":"77","firma":"code:NOVAK"`
	c.must(c.post("faktura-prijata", record))
	r := c.post("faktura-prijata", record)
	c.must(r)
	if r.result(0)["warnings"] == nil {
		t.Errorf("no warning in %s", r.body)
	}
	equal(t, "records", len(c.s.Records("faktura-prijata")), 2)
	r = c.do(http.MethodPost, "/c/firma/faktura-prijata.json?fail-on-warning=true", envelopeOf("faktura-prijata", record))
	equal(t, "fail-on-warning", r.status, 400)
	equal(t, "records", len(c.s.Records("faktura-prijata")), 2)
	r = c.post("faktura-prijata", strings.Replace(record, "NOVAK", "SVOBODA", 1))
	c.must(r)
	equal(t, "other partner", r.result(0)["warnings"], nil)
}

func TestActions(t *testing.T) {
	c := pipe(t, Options{})
	id := c.must(c.post("faktura-vydana", invoice("ext:S:1", "FV-1")))
	field := func(name string) any { return c.s.Records("faktura-vydana")[0].Fields[name] }
	act := func(action, more string) reply {
		return c.post("faktura-vydana", fmt.Sprintf(`"@action":%q,"@create":"fail","id":%q%s`, action, id, more))
	}
	r := act("lock", "")
	equal(t, "updated", r.stat("updated"), "1")
	equal(t, "lock", field("zamekK"), any("zamek.zamceno"))
	for _, write := range []reply{c.post("faktura-vydana", `"id":"`+id+`","popis":"x"`), act("storno", ""), act("delete", "")} {
		equal(t, "locked", write.status, 400)
		equal(t, "words", write.firstError()["message"], any("Záznam je zamčený. [FV-1]"))
	}
	c.must(act("unlock", `,"popis":"neprojde"`))
	equal(t, "unlock drops fields", field("popis"), nil)
	c.must(act("storno", ""))
	equal(t, "storno", field("storno"), any("true"))
	r = act("delete", "")
	equal(t, "deleted", r.stat("deleted"), "1")
	equal(t, "records", len(c.s.Records("faktura-vydana")), 0)
	equal(t, "delete again", act("delete", "").status, 400)

	other := c.must(c.post("faktura-vydana", invoice("ext:S:1", "FV-1")))
	if other == id {
		t.Error("an id was given twice")
	}
	path := "/c/firma/faktura-vydana/" + other + ".json"
	equal(t, "DELETE", c.do(http.MethodDelete, path, "").status, 200)
	equal(t, "DELETE again", c.do(http.MethodDelete, path, "").status, 404)
	equal(t, "DELETE of a list", c.do(http.MethodDelete, "/c/firma/faktura-vydana.json", "").status, 405)
}

func TestDetailAddressWritesWhatIsThere(t *testing.T) {
	c := pipe(t, Options{})
	id := c.must(c.post("faktura-vydana", invoice("ext:S:1", "")))
	r := c.do(http.MethodPut, "/c/firma/faktura-vydana/"+id+".json", envelopeOf("faktura-vydana", `"popis":"x"`))
	equal(t, "updated", r.stat("updated"), "1")
	r = c.do(http.MethodPut, "/c/firma/faktura-vydana/ext%3AS%3A1.json", envelopeOf("faktura-vydana", `"popis":"y"`))
	equal(t, "updated by ext", r.stat("updated"), "1")
	r = c.do(http.MethodPut, "/c/firma/faktura-vydana/ext%3AS%3A404.json", envelopeOf("faktura-vydana", invoice("", "")))
	equal(t, "absent", r.status, 400)
	equal(t, "records", len(c.s.Records("faktura-vydana")), 1)
}

func TestGuardedDocuments(t *testing.T) {
	c := pipe(t, Options{})
	c.s.LockPeriod("2026-02-01", "2026-02-28")
	r := c.post("faktura-vydana", `"typDokl":"code:FAKTURA","datVyst":"2026-02-10"`)
	equal(t, "locked period", r.status, 400)
	if m, _ := r.firstError()["message"].(string); !strings.HasPrefix(m, "Doklad nelze vložit do zamčeného období.") {
		t.Errorf("message %q", m)
	}
	id := c.must(c.post("faktura-vydana", invoice("", "")))
	r = c.post("faktura-vydana", `"id":"`+id+`","datVyst":"2026-02-10"`)
	equal(t, "moved into a locked period", r.status, 400)
	c.s.UnlockPeriods()

	if !c.s.Pay("faktura-vydana", c.s.Records("faktura-vydana")[0].ID) {
		t.Fatal("payment was not paired")
	}
	equal(t, "paid", c.s.Records("faktura-vydana")[0].Fields["stavUhrK"], any("stavUhr.uhrazeno"))
	equal(t, "note of a paid invoice", c.post("faktura-vydana", `"id":"`+id+`","popis":"x"`).status, 201)
	for _, record := range []string{`"firma":"code:SVOBODA"`, `"@action":"storno"`, `"@action":"delete"`, `"polozkyFaktury":[{"nazev":"x"}]`} {
		r := c.post("faktura-vydana", `"id":"`+id+`",`+record)
		equal(t, record, r.status, 400)
		if m, _ := r.firstError()["message"].(string); !strings.Contains(m, "protože je spárován") {
			t.Errorf("%s: message %q", record, m)
		}
	}
}

func TestAbsentTargets(t *testing.T) {
	c := pipe(t, Options{})
	c.must(c.post("faktura-vydana", invoice("", "")+`,"stredisko":"code:NENI","stredisko@if-not-found":"null"`))
	equal(t, "left empty", c.s.Records("faktura-vydana")[0].Fields["stredisko"], nil)
	c.must(c.post("faktura-vydana", invoice("", "")+`,"stredisko":"code:NOVE","stredisko@if-not-found":"create"`))
	equal(t, "made", len(c.s.Find("stredisko", "code:NOVE")), 1)
	// The fake has no list of contacts, so it takes what it is told.
	c.must(c.post("faktura-vydana", invoice("", "")+`,"kontaktOsoba":"code:KDOKOLI"`))
	equal(t, "trusted", c.s.Records("faktura-vydana")[2].Fields["kontaktOsoba"], any("code:KDOKOLI"))
}
