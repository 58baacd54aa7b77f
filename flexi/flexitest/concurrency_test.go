package flexitest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// TestManyClientsAtOnce: numbers are drawn without gaps and repeats, the fence holds, readers see whole transactions.
func TestManyClientsAtOnce(t *testing.T) {
	c := connect(t, "tcp")
	const clients, each = 8, 15
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for n := range each {
				record := invoice(fmt.Sprintf("ext:S:%d-%d", i, n), "")
				r := c.post("faktura-vydana", record, record[:len(record)-len(fmt.Sprintf(`%d-%d"`, i, n))]+fmt.Sprintf(`b%d-%d"`, i, n))
				if r.status != 201 {
					t.Errorf("status %d: %s", r.status, r.body)
				}
				if again := c.post("faktura-vydana", record); again.status != 400 {
					t.Errorf("again: status %d", again.status)
				}
			}
		})
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			r := c.do(http.MethodGet, "/c/firma/faktura-vydana.json?limit=0&add-row-count=true&detail=custom:kod", "")
			if n := len(r.records("faktura-vydana")); n%2 != 0 || fmt.Sprint(n) != r.root["@rowCount"] {
				t.Errorf("a reader saw %d records, row count %v", n, r.root["@rowCount"])
			}
			c.s.Records("faktura-vydana")
			c.s.Requests()
			c.s.Type("adresar", map[string]any{"nazev": "Souběh"})
		}
	})
	wg.Wait()
	close(stop)
	readers.Wait()

	const total = clients * each * 2
	seen := map[string]bool{}
	for _, r := range c.s.Records("faktura-vydana") {
		seen[r.Number] = true
		equal(t, "commits of "+r.ExternalIDs[0], c.s.Commits(r.ExternalIDs[0]), 1)
	}
	equal(t, "numbers", len(seen), total)
	for n := 1; n <= total; n++ {
		if !seen[fmt.Sprintf("VF1-%04d/2026", n)] {
			t.Errorf("number %d is missing", n)
		}
	}
	equal(t, "writes", c.s.Count(Write), clients*each*2)
}
