package flexitest

import (
	"net/http"
	"strings"
	"testing"
)

func TestImportRefused(t *testing.T) {
	c := pipe(t, Options{})
	c.s.RefuseImport("banka", true)
	r := c.post("banka", `"kod":"B-1","typDokl":"code:STANDARD"`)
	equal(t, "status", r.status, 400)
	equal(t, "code", r.text("message@messageCode"), "importNotAllowed")
	c.s.RefuseImport("banka", false)
	c.s.SetImportStatus("adresar", "DISALLOWED")
	equal(t, "disallowed", c.post("adresar", `"kod":"A","nazev":"A"`).text("message@messageCode"), "importNotAllowed")
	list := c.do(http.MethodGet, "/c/firma/evidence-list.json", "")
	if !strings.Contains(string(list.body), `"DISALLOWED"`) {
		t.Error("the list does not say DISALLOWED")
	}
	c.s.SetImportStatus("adresar", "SUPPORTED")
	c.must(c.post("adresar", `"kod":"A","nazev":"A"`))
}

func TestBareRefusals(t *testing.T) {
	c := pipe(t, Options{})
	c.s.BareRefusals(true)
	r := c.post("faktura-vydana", `"kod":"A","varSym":"1","typDokl":"code:FAKTURA","firma":"code:NENI"`)
	equal(t, "status", r.status, 400)
	if r.text("message") == "" || strings.Contains(string(r.body), "results") || strings.Contains(string(r.body), "stats") {
		t.Errorf("more than a message: %s", r.body)
	}
	equal(t, "records", len(c.s.Records("faktura-vydana")), 0)
}

// TestOnePartIsSick: the rest of the server, and the rest of the evidence, is well.
func TestOnePartIsSick(t *testing.T) {
	paths := map[Part][2]string{
		Metadata: {http.MethodGet, "/c/firma/adresar/properties.json"},
		Records:  {http.MethodGet, "/c/firma/adresar.json"},
		Writes:   {http.MethodPost, "/c/firma/adresar.json"},
	}
	for sick := range paths {
		c := pipe(t, Options{})
		c.s.Sick("adresar", sick, Fault{Kind: ServerError})
		for part, p := range paths {
			status := c.do(p[0], p[1], envelopeOf("adresar", `"kod":"A","nazev":"A"`)).status
			if (status == 500) != (part == sick) {
				t.Errorf("part %d sick: part %d answers %d", sick, part, status)
			}
		}
		equal(t, "other evidence", c.do(http.MethodGet, "/c/firma/banka/properties.json", "").status, 200)
		c.s.Sick("adresar", sick, Fault{})
		equal(t, "healed", c.do(paths[sick][0], paths[sick][1], envelopeOf("adresar", `"kod":"B","nazev":"B"`)).status/100, 2)
	}
	c := pipe(t, Options{})
	c.s.Sick("", Metadata, Fault{Kind: ServerError, Status: 503})
	equal(t, "list of evidences", c.do(http.MethodGet, "/c/firma/evidence-list.json", "").status, 503)
}

func TestHiddenEvidence(t *testing.T) {
	c := pipe(t, Options{})
	listed := func() bool {
		return strings.Contains(string(c.do(http.MethodGet, "/c/firma/evidence-list.json", "").body), `"evidencePath":"banka"`)
	}
	c.s.HideEvidence("banka", true)
	equal(t, "hidden", listed(), false)
	equal(t, "its fields", c.do(http.MethodGet, "/c/firma/banka/properties.json", "").status, 404)
	c.s.HideEvidence("banka", false)
	c.s.HideFromStale("banka", true)
	equal(t, "back", listed(), true)
	c.s.MakeStale("flexid")
	equal(t, "hidden from the stale user", listed(), false)
	c.do(http.MethodPost, "/status/user/flexid/logout.json", "")
	equal(t, "after the logout", listed(), true)
}

func TestOddAnswers(t *testing.T) {
	c := pipe(t, Options{})
	body := `"kod":"K1","nazev":"A","id":"ext:S:1"`
	c.s.UpdatedBeside(true)
	r := c.post("adresar", body)
	equal(t, "created", r.stat("created"), "1")
	equal(t, "updated", r.stat("updated"), "1")
	c.s.UpdatedBeside(false)
	c.s.SpellRequestIDs(strings.ToLower)
	r = c.post("adresar", strings.ReplaceAll(body, "1", "2"))
	if !strings.Contains(string(r.body), `"request-id":"ext:s:2"`) {
		t.Errorf("request-id as it was sent: %s", r.body)
	}
	c.s.SpellRequestIDs(nil)
	c.s.OmitStats(true)
	r = c.post("adresar", strings.ReplaceAll(body, "1", "3"))
	equal(t, "status", r.status, 201)
	if strings.Contains(string(r.body), "stats") {
		t.Errorf("counters: %s", r.body)
	}
	equal(t, "records", len(c.s.Records("adresar")), 3+len(pipe(t, Options{}).s.Records("adresar")))
}

func TestStaleSays(t *testing.T) {
	c := pipe(t, Options{})
	c.s.StaleSays("Import není povolen.", codeNoImport)
	c.s.MakeStale("flexid")
	r := c.post("adresar", `"kod":"A","nazev":"A"`)
	equal(t, "status", r.status, 400)
	equal(t, "code", r.text("message@messageCode"), codeNoImport)
	c.do(http.MethodPost, "/status/user/flexid/logout.json", "")
	c.must(c.post("adresar", `"kod":"A","nazev":"A"`))
}
