package flexitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func writeTests() map[string]manner {
	const one = `"typDokl":"code:FAKTURA","kod":"FV-1","varSym":"1","polozkyFaktury":[{"nazev":"a","cenaMj":1},{"nazev":"b","cenaMj":2}]`
	rows := func(c *client) string {
		var names []string
		for _, r := range c.s.Records("faktura-vydana")[0].Fields["polozkyFaktury"].([]map[string]any) {
			names = append(names, fmt.Sprint(r["nazev"]))
		}
		return strings.Join(names, " ")
	}
	return map[string]manner{
		"unknown-fields-dropped": func(t *testing.T, c *client) {
			c.must(c.post("faktura-vydana", one+`,"neni":"x"`))
			equal(t, "shown", c.s.Records("faktura-vydana")[0].Fields["neni"], nil)
		},
		"any-case-tags": func(t *testing.T, c *client) {
			c.must(c.do(http.MethodPost, "/c/firma/faktura-vydana.json", envelopeOf("Faktura-Vydana", `"TYPDOKL":"code:FAKTURA","Popis":"x","polozkyfaktury":[{"nazev":"a"}]`)))
			equal(t, "shown", c.s.Records("faktura-vydana")[0].Fields["popis"], any("x"))
			equal(t, "rows", rows(c), "a")
		},
		"removeall-needs-rows": func(t *testing.T, c *client) {
			c.must(c.post("faktura-vydana", one+`,"stitky":"VIP"`))
			c.must(c.post("faktura-vydana", `"id":1,"polozkyFaktury@removeAll":"true","stitky@removeAll":"true"`))
			equal(t, "rows", rows(c), "a b")
			equal(t, "labels", c.s.Records("faktura-vydana")[0].Fields["stitky"], any("VIP"))
			c.must(c.post("faktura-vydana", `"id":1,"polozkyFaktury@removeAll":"true","polozkyFaktury":[{"nazev":"c"}]`))
			equal(t, "rows in their place", rows(c), "c")
		},
		"rows-by-position": func(t *testing.T, c *client) {
			c.must(c.post("faktura-vydana", one))
			c.must(c.post("faktura-vydana", `"id":1,"polozkyFaktury":[{"nazev":"c"}]`))
			equal(t, "rows", rows(c), "c b")
			c.must(c.post("faktura-vydana", `"id":1,"polozkyFaktury@removeAll":"true","polozkyFaktury":[{"nazev":"d"},{"nazev":"e"}]`))
			equal(t, "replaced", rows(c), "d e")
		},
		"rows-own-name-only": func(t *testing.T, c *client) {
			equal(t, "common name", c.post("faktura-vydana", strings.Replace(one, "polozkyFaktury", "polozkyDokladu", 1)).status, 400)
			c.must(c.post("faktura-vydana", one))
		},
		"rows-common-name-only": func(t *testing.T, c *client) {
			equal(t, "own name", c.post("faktura-vydana", one).status, 400)
			c.must(c.post("faktura-vydana", strings.Replace(one, "polozkyFaktury", "polozkyDokladu", 1)))
		},
		"code-must-exist": func(t *testing.T, c *client) {
			equal(t, "absent", c.post("faktura-vydana", `"typDokl":"code:FAKTURA","id":"code:FV-2"`).status, 400)
			c.must(c.post("faktura-vydana", one))
			c.must(c.post("faktura-vydana", `"id":"code:FV-1","popis":"x"`))
		},
		"numbers-per-table": func(t *testing.T, c *client) {
			c.must(c.post("faktura-vydana", one))
			equal(t, "same table", c.post("faktura-prijata", `"typDokl":"code:FAKTURA","kod":"FV-1","varSym":"1"`).status, 400)
			c.must(c.post("objednavka-prijata", `"typDokl":"code:OBP","kod":"FV-1"`))
		},
		"numbers-per-year": func(t *testing.T, c *client) {
			c.must(c.post("faktura-vydana", one+`,"datVyst":"2026-01-01"`))
			equal(t, "same year", c.post("faktura-vydana", one+`,"datVyst":"2026-12-31"`).status, 400)
			c.must(c.post("faktura-vydana", one+`,"datVyst":"2027-01-01"`))
		},
		"burn-numbers": func(t *testing.T, c *client) {
			equal(t, "refused", c.post("faktura-vydana", `"typDokl":"code:FAKTURA","polozkyFaktury":[{"cenaMj":"x"}]`).status, 400)
			equal(t, "refused after the draw", c.post("faktura-vydana", invoice("", ""), `"typDokl":"code:NENI"`).status, 400)
			equal(t, "number", c.post("faktura-vydana", invoice("", "")).result(0)["code"], any("VF1-0002/2026"))
		},
		"lower-code-refused": func(t *testing.T, c *client) {
			equal(t, "lower", c.post("faktura-vydana", strings.Replace(one, "FV-1", "fv-1", 1)).firstError()["for"], any("kod"))
			c.must(c.post("faktura-vydana", one))
		},
		"lower-code-kept": func(t *testing.T, c *client) {
			c.must(c.post("faktura-vydana", strings.Replace(one, "FV-1", "fv-1", 1)))
			equal(t, "kept", c.s.Records("faktura-vydana")[0].Number, "fv-1")
		},
		"one-external-id": func(t *testing.T, c *client) {
			equal(t, "two", c.post("faktura-vydana", one+`,"id":["ext:A:1","ext:B:1"]`).status, 400)
			c.must(c.post("faktura-vydana", one+`,"id":["ext:A:1","code:FV-1"]`))
			equal(t, "a second one later", c.post("faktura-vydana", `"id":["1","ext:B:1"]`).status, 400)
		},
		"uuid-prefix-only": func(t *testing.T, c *client) {
			c.must(c.post("faktura-vydana", one))
			uuid := fmt.Sprint(c.s.Records("faktura-vydana")[0].Fields["uuid"])
			equal(t, "key", c.post("faktura-vydana", `"id":"key:`+uuid+`","popis":"x"`).status, 400)
			c.must(c.post("faktura-vydana", `"id":"uuid:`+uuid+`","popis":"x"`))
		},
	}
}

func readTests() map[string]manner {
	moved := func(status int) manner {
		return func(t *testing.T, c *client) {
			c.twice()
			r := c.do(http.MethodGet, "/c/firma/faktura-vydana/code:FV-1.json", "")
			equal(t, "status", r.status, status)
			equal(t, "to", r.header.Get("Location"), c.s.URL()+"/c/firma/faktura-vydana/1.json")
		}
	}
	quotes := func(right, wrong string) manner {
		return func(t *testing.T, c *client) {
			c.must(c.post("faktura-vydana", invoice("", `O'B\1`)))
			is := func(expr string) int {
				text, _ := json.Marshal(expr)
				r := c.do(http.MethodPost, query, `{"winstrom":{"filter":`+string(text)+`}}`)
				return len(r.records("faktura-vydana")) // none of a refused filter
			}
			equal(t, right, is("kod="+right), 1)
			equal(t, wrong, is("kod="+wrong), 0)
		}
	}
	return map[string]manner{
		"rows-need-relations": func(t *testing.T, c *client) {
			c.twice()
			equal(t, "named", c.ask(`"detail":"custom:polozkyFaktury(nazev)"`)[0]["polozkyFaktury"], nil)
			with := c.ask(`"detail":"custom:polozkyFaktury(nazev)","relations":"polozky"`)[0]
			equal(t, "asked for", fmt.Sprint(with["polozkyFaktury"]), "[map[id:1 nazev:Práce]]")
		},
		"native-values": func(t *testing.T, c *client) {
			c.twice()
			r := c.ask(`"detail":"custom:sumCelkem,storno,kod,polozkyFaktury(cenaMj)"`)[0]
			equal(t, "sum", r["sumCelkem"], any(242.0))
			equal(t, "storno", r["storno"], any(false))
			equal(t, "id", r["id"], any(1.0))
			equal(t, "kod", r["kod"], any("FV-1"))
			equal(t, "rows", fmt.Sprint(r["polozkyFaktury"]), "[map[cenaMj:100 id:1]]")
		},
		"order-reversed": func(t *testing.T, c *client) {
			c.twice()
			c.must(c.post("faktura-vydana", invoice("ext:S:2", "FV-2")))
			equal(t, "A", c.ask(`"order":["id@A"]`)[0]["id"], any("2"))
			equal(t, "D", c.ask(`"order":["id@D"]`)[0]["id"], any("1"))
			equal(t, "no letter", c.ask(`"order":["id"]`)[0]["id"], any("1"))
		},
		"detail-moved-301": moved(301), "detail-moved-302": moved(302),
		"quotes-doubled": quotes(`'O''B\1'`, `'O\'B\\1'`),
		"quotes-plain":   quotes(`"O'B\1"`, `"O'B\\1"`),
		"bare-deletes": func(t *testing.T, c *client) {
			c.twice()
			c.must(c.post("faktura-vydana", `"@action":"delete","id":"1"`))
			r := c.do(http.MethodGet, "/c/firma/changes.json?start=0&limit=1000", "")
			list, _ := r.root["changes"].([]any)
			last, _ := list[len(list)-1].(map[string]any)
			equal(t, "operation", last["@operation"], any("delete"))
			equal(t, "identifiers", fmt.Sprint(last["external-ids"]), "[]")
		},
	}
}

// TestAttributesBesideAnEvidence: an action or a filter may stand beside the evidence instead of inside the record.
func TestAttributesBesideAnEvidence(t *testing.T) {
	c := pipe(t, Options{})
	for _, kod := range []string{"FV-1", "FV-2", "FV-3"} {
		c.must(c.post("faktura-vydana", invoice("", kod)))
	}
	write := func(members string) reply {
		return c.do(http.MethodPost, "/c/firma/faktura-vydana.json", `{"winstrom":{`+members+`}}`)
	}
	cancelled := func() (out string) {
		for _, r := range c.s.Records("faktura-vydana") {
			if r.Fields["storno"] == "true" {
				out += r.Number + " "
			}
		}
		return out
	}
	c.must(write(`"faktura-vydana":{"id":"code:FV-1"},"faktura-vydana@action":"storno"`))
	equal(t, "beside", cancelled(), "FV-1 ")
	r := write(`"faktura-vydana":{"id":"code:FV-3","@filter":"kod='FV-2'","@action":"storno"}`)
	c.must(r)
	equal(t, "a filter ignores ids", cancelled(), "FV-1 FV-2 ")
	r = write(`"faktura-vydana@filter":"kod begins 'FV'","faktura-vydana@action":"lock"`)
	equal(t, "all three", r.stat("updated"), "3")
	none := write(`"faktura-vydana":{"@filter":"kod='X'","@action":"lock"}`)
	equal(t, "nothing selected", none.status, 400)
	equal(t, "no such field", write(`"faktura-vydana":{"@filter":"neni='X'","@action":"lock"}`).status, 400)
	edit := write(`"adresar":{"@filter":"kod='NOVAK'","mesto":"Kolín"}`)
	equal(t, "an update of what a filter selects", edit.stat("updated"), "1")
	equal(t, "town", c.s.Find("adresar", "code:NOVAK")[0].Fields["mesto"], any("Kolín"))
}

// TestCopy: "@sourceId" makes a copy with what is sent in place of what the source has.
func TestCopy(t *testing.T) {
	c := pipe(t, Options{})
	c.must(c.post("faktura-vydana", invoice("ext:S:1", "FV-1")+`,"popis":"vzor"`))
	c.must(c.post("faktura-vydana", `"@sourceId":"1","datVyst":"2026-04-01"`))
	equal(t, "records", c.count(), 2)
	r := c.s.Records("faktura-vydana")[1]
	equal(t, "number", r.Number, "VF1-0001/2026")
	equal(t, "external ids", len(r.ExternalIDs), 0)
	equal(t, "text", r.Fields["popis"], any("vzor"))
	equal(t, "day", r.Fields["datVyst"], any("2026-04-01+02:00"))
	equal(t, "sum", r.Fields["sumCelkem"], any("242.0"))
	equal(t, "source's rows", len(c.s.Records("faktura-vydana")[0].Fields["polozkyFaktury"].([]map[string]any)), 1)
	c.must(c.post("faktura-vydana", `"@sourceId":"1"`))
	equal(t, "again makes another", c.count(), 3)
	equal(t, "no source", c.post("faktura-vydana", `"@sourceId":"99"`).status, 400)
	c.must(c.post("faktura-vydana", `"@sourceId":"1","id":"ext:S:7","@update":"fail"`))
	equal(t, "an own id guards it", c.post("faktura-vydana", `"@sourceId":"1","id":"ext:S:7","@update":"fail"`).status, 400)
}

// TestRemoveAllAlone: what stands alone removes what is there.
func TestRemoveAllAlone(t *testing.T) {
	c := pipe(t, Options{})
	c.must(c.post("faktura-vydana", invoice("", "FV-1")+`,"stitky":"VIP"`))
	c.must(c.post("faktura-vydana", `"id":"1","polozkyFaktury@removeAll":"true","stitky@removeAll":"true"`))
	r := c.s.Records("faktura-vydana")[0]
	equal(t, "rows", len(r.Fields["polozkyFaktury"].([]map[string]any)), 0)
	equal(t, "labels", r.Fields["stitky"], nil)
	equal(t, "sum", r.Fields["sumCelkem"], any("0.0"))
}
