package flexitest

import (
	"net/http"
	"strings"
	"testing"
)

func TestCreateAnswers(t *testing.T) {
	c := pipe(t, Options{})
	r := c.post("faktura-vydana", invoice("ext:S:1", ""))
	id := c.must(r)
	equal(t, "created", r.stat("created"), "1")
	equal(t, "request-id", r.result(0)["request-id"], any("ext:S:1"))
	equal(t, "code", r.result(0)["code"], any("VF1-0001/2026"))
	equal(t, "ref", r.result(0)["ref"], any("/c/firma/faktura-vydana/"+id+".json"))
	equal(t, "Location", r.header.Get("Location"), c.s.URL()+"/c/firma/faktura-vydana/"+id+".json")

	recs := c.s.Records("faktura-vydana")
	equal(t, "records", len(recs), 1)
	equal(t, "sum", recs[0].Fields["sumCelkem"], any("242.0"))
	equal(t, "partner's name was copied", recs[0].Fields["nazFirmy"], any("Novák a syn s.r.o."))
	equal(t, "external id", strings.Join(recs[0].ExternalIDs, " "), "ext:S:1")
	equal(t, "commits", c.s.Commits("ext:S:1"), 1)
	equal(t, "commits by number", c.s.Commits("faktura-vydana/code:VF1-0001/2026"), 1)

	// PUT is the same as POST, a single object the same as an array, and an array around the content is taken too.
	put := c.do(http.MethodPut, "/c/firma/faktura-vydana.json", `{"winstrom":[{"faktura-vydana":{`+invoice("", "")+`}}]}`)
	c.must(put)
	if _, has := put.result(0)["code"]; has {
		t.Error("code came without code-in-response")
	}
	equal(t, "records", len(c.s.Records("faktura-vydana")), 2)
}

// TestWhichRecord is the table of identifiers against @update and @create. One record exists: ext:S:1, FV-1, id 1.
func TestWhichRecord(t *testing.T) {
	tests := []struct {
		name, record   string
		status         int
		created, upd   string
		code, contains string // of the refusal
	}{
		{"no id creates, always", `"popis":"x"`, 201, "1", "0", "", ""},
		{"own number without id, used", `"kod":"fv-1","varSym":"1"`, 400, "", "", "INVALID", "již používá jiný záznam"},
		{"ext known updates", `"id":"ext:S:1","popis":"x"`, 201, "0", "1", "", ""},
		{"ext unknown creates", `"id":"ext:S:2","popis":"x"`, 201, "1", "0", "", ""},
		{"code known updates", `"id":"code:fv-1","popis":"x"`, 201, "0", "1", "", ""},
		{"code unknown creates with that number", `"id":"code:FV-2","varSym":"2"`, 201, "1", "0", "", ""},
		{"numeric known updates", `"id":1,"popis":"x"`, 201, "0", "1", "", ""},
		{"numeric unknown never creates", `"id":"77","popis":"x"`, 400, "", "", "INVALID", "neexistuje"},
		{"words are not ids", `"id":"FV-1"`, 400, "", "", "PROP", "Je očekáváno číselné ID"},
		{"several of one record", `"id":["1","code:FV-1","ext:S:1"],"popis":"x"`, 201, "0", "1", "", ""},
		{"several in one string", `"id":"[1][code:FV-1][ext:S:1]","popis":"x"`, 201, "0", "1", "", ""},
		{"several of two records", `"id":["ext:S:1","ext:S:9"]`, 400, "", "", "INVALID", "již používá jiný záznam"},
		{"update fail: the fence", `"@update":"fail","id":"ext:S:1"`, 400, "", "", "importXmlUpdateNeniPovolen", ""},
		{"update fail, absent", `"@update":"fail","id":"ext:S:3"`, 201, "1", "0", "", ""},
		{"create fail, absent", `"@create":"fail","id":"ext:S:4"`, 400, "", "", "importXmlCreateNeniPovolen", ""},
		{"create fail, there", `"@create":"fail","id":"1","popis":"y"`, 201, "0", "1", "", ""},
		{"create fail, numeric absent", `"@create":"fail","id":"88"`, 400, "", "", "INVALID", "neexistuje"},
		{"update ignore says nothing", `"@update":"ignore","id":"ext:S:1"`, 200, "0", "0", "", ""},
		{"create ignore says nothing", `"@create":"ignore","id":"ext:S:5"`, 200, "0", "0", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := pipe(t, Options{})
			c.must(c.post("faktura-vydana", invoice("ext:S:1", "FV-1")))
			c.must(c.post("faktura-vydana", invoice("ext:S:9", "FV-9")))
			before := len(c.s.Records("faktura-vydana"))
			r := c.post("faktura-vydana", `"typDokl":"code:FAKTURA",`+tt.record)
			equal(t, "status", r.status, tt.status)
			if tt.status == 400 {
				equal(t, "code", r.firstError()["code"], any(tt.code))
				if m, _ := r.firstError()["message"].(string); !strings.Contains(m, tt.contains) {
					t.Errorf("message %q does not say %q", m, tt.contains)
				}
				equal(t, "records", len(c.s.Records("faktura-vydana")), before)
				return
			}
			equal(t, "created", r.stat("created"), tt.created)
			equal(t, "updated", r.stat("updated"), tt.upd)
			if tt.status == 200 {
				equal(t, "skipped", r.stat("skipped"), "1")
				equal(t, "id of what was left alone", r.result(0)["id"], nil)
			}
		})
	}
}

func TestAttachExternalID(t *testing.T) {
	c := pipe(t, Options{})
	id := c.s.Type("faktura-vydana", map[string]any{"kod": "FV-1", "varSym": "1", "typDokl": "code:FAKTURA"})
	equal(t, "first id", id, int64(1))
	r := c.post("faktura-vydana", `"id":["1","ext:S:1"]`)
	c.must(r)
	equal(t, "updated", r.stat("updated"), "1")
	equal(t, "found by it", len(c.s.Find("faktura-vydana", "ext:S:1")), 1)
	c.must(c.post("faktura-vydana", `"id":"1","@removeExternalIds":"S:"`))
	equal(t, "found after removal", len(c.s.Find("faktura-vydana", "ext:S:1")), 0)
}

// TestRejections: every refusal in the words and with the marks that clients look at. Nothing of it may stay.
func TestRejections(t *testing.T) {
	long := strings.Repeat("x", 41)
	tests := []struct {
		name, evidence, record string
		field, code, contains  string
	}{
		{"unknown field", "faktura-vydana", invoice("", "") + `,"cislo":"1"`, "cislo", "PROP", "neexistuje"},
		{"too long", "faktura-vydana", invoice("", "F1") + `,"cisDosle":"` + long + `"`, "cisDosle", "INVALID", "Pole 'Číslo došlé' nesmí být delší než 40 znaků. [F1]"},
		{"too long in characters, not bytes", "faktura-vydana", invoice("", "") + `,"kod":"` + strings.Repeat("Ř", 21) + `"`, "kod", "INVALID", "20 znaků"},
		{"relation by a word", "faktura-vydana", `"typDokl":"FAKTURA"`, "typDokl", "PROP", "Je očekáváno číselné ID, ale 'FAKTURA' není číslo"},
		{"relation to nothing", "faktura-vydana", `"typDokl":"code:NENI"`, "typDokl", "PROP", "Zadaný text 'code:NENI' musí identifikovat objekt"},
		{"no type", "faktura-vydana", `"popis":"x"`, "typDokl", "INVALID", "Pole 'Typ faktury' musí být vyplněno."},
		{"own number, no varSym", "faktura-vydana", `"typDokl":"code:FAKTURA","kod":"FV-1"`, "varSym", "INVALID", "Pole 'Variabilní symbol' musí být vyplněno. [FV-1]"},
		{"sums differ", "faktura-vydana", invoice("", "") + `,"sumCelkem":"242.01"`, "sumCelkem", "INVALID", "se liší od vypočtené hodnoty [242]"},
		{"not a number", "faktura-vydana", invoice("", "") + `,"slevaDokl":"mnoho"`, "slevaDokl", "PROP", "není číslo"},
		{"a number to choke on", "faktura-vydana", invoice("", "") + `,"slevaDokl":"1e999999999"`, "slevaDokl", "PROP", "není číslo"},
		{"not a date", "faktura-vydana", invoice("", "") + `,"datSplat":"1. 3. 2026"`, "datSplat", "PROP", "není datum"},
		{"no such day", "faktura-vydana", invoice("", "") + `,"datSplat":"2026-02-30"`, "datSplat", "PROP", "není datum"},
		{"not a choice", "banka", `"typDokl":"code:STANDARD","banka":"1","typPohybuK":"typPohybu.jinam"`, "typPohybuK", "PROP", "není povolena"},
		{"label that does not exist", "faktura-vydana", invoice("", "") + `,"stitky":"VIP,NENI"`, "stitky", "PROP", "code:NENI"},
		{"card that does not exist", "faktura-vydana", `"typDokl":"code:FAKTURA","polozkyFaktury":[{"cenik":"code:NENI"}]`, "polozkyFaktury[0].cenik", "PROP", "musí identifikovat objekt"},
		{"no rate", "faktura-vydana", invoice("", "") + `,"mena":"code:USD"`, "kurz", "INVALID", "není zadán kurz"},
		{"action on nothing", "faktura-vydana", `"@action":"storno","id":"ext:S:404"`, "", "", "Objekt bude teprve vytvořen"},
		{"partner without a name", "adresar", `"kod":"X"`, "nazev", "INVALID", "musí být vyplněno"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := pipe(t, Options{})
			partners, version := len(c.s.Records("adresar")), c.s.GlobalVersion()
			r := c.post(tt.evidence, tt.record)
			equal(t, "status", r.status, 400)
			equal(t, "success", r.text("success"), "false")
			e := r.firstError()
			if tt.field != "" {
				equal(t, "for", e["for"], any(tt.field))
				if p, _ := e["path"].(string); !strings.HasPrefix(p, tt.evidence+"[") || !strings.HasSuffix(p, "]."+tt.field) {
					t.Errorf("path %q", p)
				}
			}
			if code, _ := e["code"].(string); code != tt.code {
				t.Errorf("code %q, want %q", code, tt.code)
			}
			if m, _ := e["message"].(string); !strings.Contains(m, tt.contains) {
				t.Errorf("message %q does not say %q", m, tt.contains)
			}
			equal(t, "documents", len(c.s.Records("faktura-vydana"))+len(c.s.Records("banka")), 0)
			equal(t, "partners", len(c.s.Records("adresar")), partners)
			equal(t, "version", c.s.GlobalVersion(), version)
			equal(t, "committed", c.s.Requests()[0].Committed, false)
		})
	}
}

func TestBrokenBodies(t *testing.T) {
	c := pipe(t, Options{})
	for name, body := range map[string]string{
		"cut":           `{"winstrom":{"faktura-vydana":[{"typDokl":"code:FAK`,
		"no root":       `{"faktura-vydana":[{}]}`,
		"not an object": `[1,2]`,
		"empty":         ``,
		"two values":    envelopeOf("faktura-vydana", invoice("", "")) + `{}`,
	} {
		r := c.do(http.MethodPost, "/c/firma/faktura-vydana.json", body)
		equal(t, name+": status", r.status, 400)
		if r.text("message") == "" || r.root["results"] != nil {
			t.Errorf("%s: want a bare message, got %s", name, r.body)
		}
	}
	equal(t, "records", len(c.s.Records("faktura-vydana")), 0)
}

func TestOneTransaction(t *testing.T) {
	good, bad := invoice("ext:S:1", ""), `"typDokl":"code:NENI","id":"ext:S:2"`
	t.Run("all or nothing", func(t *testing.T) {
		c := pipe(t, Options{})
		r := c.post("faktura-vydana", good, bad, invoice("ext:S:3", ""))
		equal(t, "status", r.status, 400)
		equal(t, "created", r.stat("created"), "0")
		equal(t, "path", r.firstError()["path"], any("faktura-vydana[ext:S:2].typDokl"))
		equal(t, "records", len(c.s.Records("faktura-vydana")), 0)
		equal(t, "commits", c.s.Commits("ext:S:1"), 0)
		// The number goes back, the database id does not.
		equal(t, "number", c.post("faktura-vydana", good).result(0)["code"], any("VF1-0001/2026"))
		equal(t, "id", c.s.Records("faktura-vydana")[0].ID, int64(2))
	})
	t.Run("each on its own", func(t *testing.T) {
		c := pipe(t, Options{})
		body := `{"winstrom":{"@atomic":"false","faktura-vydana":[{` + good + `},{` + bad + `}]}}`
		r := c.do(http.MethodPost, "/c/firma/faktura-vydana.json", body)
		equal(t, "status", r.status, 400)
		equal(t, "success", r.text("success"), "false")
		equal(t, "created", r.stat("created"), "1")
		equal(t, "failed", r.stat("failed"), "1")
		equal(t, "records", len(c.s.Records("faktura-vydana")), 1)
	})
	t.Run("several evidences, parents first", func(t *testing.T) {
		c := pipe(t, Options{})
		body := `{"winstrom":{"adresar":{"id":"ext:S:P","kod":"NOVY","nazev":"Nový"},` +
			`"faktura-vydana":{"typDokl":"code:FAKTURA","firma":"ext:S:P"}}}`
		r := c.do(http.MethodPost, "/c/firma/faktura-vydana.json", body)
		c.must(r)
		equal(t, "created", r.stat("created"), "2")
		equal(t, "partner", c.s.Records("faktura-vydana")[0].Fields["firma"], any("code:NOVY"))
	})
	t.Run("dry run", func(t *testing.T) {
		c := pipe(t, Options{})
		r := c.do(http.MethodPost, "/c/firma/faktura-vydana.json?dry-run=true", envelopeOf("faktura-vydana", good))
		equal(t, "status", r.status, 200)
		equal(t, "created", r.stat("created"), "1")
		equal(t, "records", len(c.s.Records("faktura-vydana")), 0)
	})
	t.Run("rows cannot be written alone", func(t *testing.T) {
		c := pipe(t, Options{})
		r := c.post("faktura-vydana-polozka", `"nazev":"x"`)
		equal(t, "status", r.status, 400)
		equal(t, "code", r.text("message@messageCode"), "importNotAllowed")
	})
}
