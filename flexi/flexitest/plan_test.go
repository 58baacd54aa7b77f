package flexitest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestOnWriteCountsEachDocument(t *testing.T) {
	c := pipe(t, Options{})
	c.s.OnWrite(1, func(r Request) bool { return r.Docs[0].Has("A-1") || r.Docs[0].Has("A-2") }, Fault{Kind: CommitThenStatus})
	c.s.OnWrite(2, nil, Fault{Kind: TooMany})
	send := func(key, kod string) int {
		return c.post("faktura-vydana", fmt.Sprintf(`"id":"ext:S:%s","kod":%q,"varSym":"1","typDokl":"code:FAKTURA"`, key, kod)).status
	}
	equal(t, "A-1, first", send("1", "A-1"), 500)
	equal(t, "A-1, second", send("1", "A-1"), 429)
	equal(t, "A-1, third", send("1", "A-1"), 201)
	equal(t, "B, first", send("3", "B"), 201)
	equal(t, "B, second", send("3", "B"), 429)
	equal(t, "A-2 in a pack, first", c.post("faktura-vydana",
		`"id":"ext:S:3","popis":"x"`, `"id":"ext:S:2","kod":"a-2","varSym":"1","typDokl":"code:FAKTURA"`).status, 500)
	equal(t, "commits of A-2", c.s.Commits("ext:S:2"), 1)

	// An update by Flexi id counts as a write of the same document.
	id := c.s.Find("faktura-vydana", "ext:S:2")[0].ID
	equal(t, "A-2 by id, second", c.post("faktura-vydana", fmt.Sprintf(`"id":"%d","popis":"x"`, id)).status, 429)
	equal(t, "writes of A-2 by ext", len(c.s.Writes("ext:S:2")), 2)
	equal(t, "writes of A-2 by number", len(c.s.Writes("A-2")), 2)
	equal(t, "writes of A-1 by number and prefix", len(c.s.Writes("code:a-1")), 3)
	c.s.NoFaults()
	equal(t, "no faults", send("5", "C"), 201)
	c.s.OnWrite(0, nil, Fault{Kind: TooMany})
	equal(t, "every write", send("6", "D")+send("6", "D"), 858)
}

func TestTwoSendersWithOneNumber(t *testing.T) {
	c := pipe(t, Options{AllowUsedNumbers: true})
	c.must(c.post("faktura-vydana", invoice("ext:S:A", "FV-1")))
	c.must(c.post("faktura-vydana", invoice("ext:S:B", "FV-1")))
	equal(t, "writes of A", len(c.s.Writes("ext:S:A")), 1)
	equal(t, "writes of the number", len(c.s.Writes("FV-1")), 2)
	equal(t, "commits of the number", c.s.Commits("code:FV-1"), 2)
}

// TestProbabilityHangsOnTheDocument: the same seed strikes the same documents in whatever order they come.
func TestProbabilityHangsOnTheDocument(t *testing.T) {
	const n = 400
	struck := func(seed uint64, reverse bool) (string, int) {
		c := pipe(t, Options{Seed: seed})
		c.s.Probability(0.05, Fault{Kind: TooMany})
		c.s.Probability(0.1, Fault{Kind: ServerError})
		marks := make([]byte, n)
		hits := 0
		for i := range n {
			if reverse {
				i = n - 1 - i
			}
			r := c.post("adresar", fmt.Sprintf(`"id":"ext:S:%d","nazev":"P %d"`, i, i))
			marks[i] = map[int]byte{201: '.', 429: 't', 500: 'e'}[r.status]
			if r.status != 201 {
				hits++
			}
		}
		return string(marks), hits
	}
	one, hits := struck(1, false)
	again, _ := struck(1, true)
	other, _ := struck(2, false)
	equal(t, "same seed", again, one)
	if one == other {
		t.Error("another seed strikes the same documents")
	}
	if hits < 30 || hits > 95 || !strings.Contains(one, "t") || !strings.Contains(one, "e") {
		t.Errorf("%d of %d struck: %s", hits, n, one)
	}
}

func TestRequestLog(t *testing.T) {
	c := pipe(t, Options{KeepBody: 40})
	c.must(c.post("faktura-vydana", invoice("ext:S:1", "FV-1")))
	c.list("faktura-vydana", "kod='FV-1'", "limit=0")
	c.do(http.MethodGet, "/c.json", "")
	equal(t, "writes", c.s.Count(Write), 1)
	equal(t, "reads", c.s.Count(Read), 1)
	equal(t, "other", c.s.Count(Other), 1)
	equal(t, "all", c.s.Count(""), 3)
	reqs := c.s.Requests()
	equal(t, "number", reqs[2].N, 3)
	equal(t, "method", reqs[0].Method, http.MethodPost)
	equal(t, "path", reqs[0].Path, "/c/firma/faktura-vydana.json")
	equal(t, "query", reqs[1].Query, "limit=0")
	equal(t, "filter", reqs[1].Path, "/c/firma/faktura-vydana/%28kod=%27FV-1%27%29.json")
	equal(t, "body is bounded", len(reqs[0].Body), 40)
	if reqs[0].Bytes <= 40 {
		t.Errorf("length %d of the whole body", reqs[0].Bytes)
	}
	equal(t, "password is not kept", reqs[0].Header.Get("Authorization"), "…")
	equal(t, "document", fmt.Sprint(reqs[0].Docs), "[{faktura-vydana [ext:S:1 code:FV-1] write}]")
	c.s.ResetLog()
	equal(t, "after reset", c.s.Count(""), 0)
	equal(t, "commits stay", c.s.Commits("ext:S:1"), 1)
}

func TestFaultNames(t *testing.T) {
	for want, f := range map[string]Fault{
		"500 done":          {Kind: CommitThenStatus},
		"504":               {Kind: ServerError, Status: 504},
		"reset answer done": {Kind: ResetAfterCommit},
		"silence":           {Kind: Silence},
		"307":               {Kind: Redirect},
		"html 200 done":     {Kind: HTML200, Done: true},
	} {
		equal(t, "name", f.String(), want)
	}
}
