package sidebyside

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi/flexitest"
)

const documents = 1000

// trouble is one way of a server to do the work and not say so.
type trouble struct {
	name string
	set  func(s *flexitest.Server)
}

// troubles strike the first send of the same 5 % of the documents, whoever sends them.
func troubles() []trouble {
	return []trouble{
		{"commit, then 500", func(s *flexitest.Server) {
			s.OnWrite(1, struck(0, 1), flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500})
		}},
		{"lost answer", func(s *flexitest.Server) {
			s.OnWrite(1, struck(0, 1), flexitest.Fault{Kind: flexitest.ResetAfterCommit})
		}},
		{"504, commit 3 to 30 s later", func(s *flexitest.Server) {
			const spans = 10
			for i := range uint32(spans) {
				s.OnWrite(1, struck(i, spans), flexitest.Fault{
					Kind: flexitest.LateCommit, Status: 504, Delay: time.Duration(i+1) * 3 * time.Second,
				})
			}
		}},
	}
}

func number(i int) string { return fmt.Sprintf("SBS-%04d", i) }

// struck picks every twentieth document, and of those the part that falls to one of several spans.
func struck(span, spans uint32) func(flexitest.Request) bool {
	return func(r flexitest.Request) bool {
		return slices.ContainsFunc(r.Docs, func(d flexitest.Doc) bool {
			return slices.ContainsFunc(d.Keys, func(key string) bool {
				kod, is := strings.CutPrefix(key, "code:SBS-")
				if !is {
					return false
				}
				n, err := strconv.ParseUint(kod, 10, 32)
				return err == nil && n%20 == 7 && uint32(n/20)%spans == span
			})
		})
	}
}

// erp is a fake that lets a document number be used twice, so that a doubled write shows as a second record.
func erp(set func(*flexitest.Server)) *flexitest.Server {
	s := flexitest.New(flexitest.Options{AllowUsedNumbers: true, Seed: 7})
	if set != nil {
		set(s)
	}
	return s
}

func fields(i int) map[string]any {
	return map[string]any{"kod": number(i), "typDokl": "code:FAKTURA", "varSym": fmt.Sprint(i + 1), "datVyst": "2026-11-30", "popis": "Služby"}
}

// books is what a run left behind.
type books struct {
	struck     int // documents that the trouble hit
	duplicates int // records beyond the first of a document
	missing    int // documents without a record
	wronged    int // documents that are there and were reported as failed
}

func audit(s *flexitest.Server, n int, failed func(i int) bool) books {
	var out books
	found := make(map[string]int)
	for _, r := range s.Records("faktura-vydana") {
		found[fmt.Sprint(r.Fields["kod"])]++
	}
	for _, r := range s.Requests() {
		if r.Fault != "" {
			out.struck++
		}
	}
	for i := range n {
		switch f := found[number(i)]; {
		case f == 0:
			out.missing++
		case failed(i):
			out.wronged++
			fallthrough
		default:
			out.duplicates += f - 1
		}
	}
	return out
}

// sent lets a peer send all documents into a trouble.
func sent(t *testing.T, p peer, tr trouble) (out books) {
	synctest.Test(t, func(t *testing.T) {
		s := erp(tr.set)
		defer s.Close()
		do, end := p.caller()(s.Dial)
		defer end()
		failed := make([]bool, documents)
		var wg sync.WaitGroup
		for i := range documents {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				failed[i] = do(ctx, s.URL()+"/c/firma/faktura-vydana.json", p.body(t, i)) != nil
			})
			after(every)
		}
		wg.Wait()
		for s.Pending() > 0 {
			after(time.Second)
		}
		out = audit(s, documents, func(i int) bool { return failed[i] })
	})
	return out
}

func (p peer) body(t *testing.T, i int) []byte {
	doc := fields(i)
	if p.fenced {
		doc["id"], doc["@update"] = []string{"ext:FLEXID:" + number(i)}, "fail"
	}
	body, err := json.Marshal(map[string]any{"winstrom": map[string]any{"@version": "1.0", "faktura-vydana": []any{doc}}})
	if err != nil {
		t.Error(err)
	}
	return body
}
