package api

import (
	"fmt"
	"net/http"
	"testing"

	"flexid/verify"
	"flexid/verify/ledger"
)

// someOf is a Finder that knows ids, of rows that are there and of others.
type someOf []ledger.ID

func (s someOf) Candidates(string, func(verify.Standing) bool) ([]ledger.ID, bool) { return s, true }

// TestRowsReadOneByOne: what cannot be read is counted, what is gone is left out, and a store that does not answer is no short list.
func TestRowsReadOneByOne(t *testing.T) {
	r := newRig(t)
	ids := someOf{"gone"}
	const n = 3*readAtOnce + 5
	for i := range n {
		key := fmt.Sprint("M-", i)
		r.ledger.add(ledger.Row{Evidence: "banka", Key: key, State: ledger.Maybe})
		ids = append(ids, idOf(verify.Address{Evidence: "banka", Key: key}))
	}
	r.server.Use(r.backend(ids))
	var rows []Row
	r.json("GET", "/api/v1/documents?state=maybe&limit=1000", "", &rows)
	if len(rows) != n || r.ledger.lists != 0 {
		t.Errorf("%d rows of %d, the whole ledger was read %d times", len(rows), n, r.ledger.lists)
	}
	r.ledger.getErr = fmt.Errorf("row x: %w", ledger.ErrNewer)
	if w := r.do("GET", "/api/v1/documents?state=maybe", ""); w.Code != http.StatusOK || w.Header().Get(HeaderUnreadable) != fmt.Sprint(n+1) {
		t.Errorf("rows that cannot be read: %d, %s=%q", w.Code, HeaderUnreadable, w.Header().Get(HeaderUnreadable))
	}
	r.ledger.getErr = errStore
	if w := r.do("GET", "/api/v1/documents?state=maybe", ""); w.Code < 500 {
		t.Errorf("a store that does not answer: %d %s", w.Code, w.Body)
	}
}

// TestQueueOfFew: the queue is the same, whether all of the ledger is read for it or only what waits.
func TestQueueOfFew(t *testing.T) {
	r := listRig(t)
	for _, query := range []string{"", "?state=parked", "?evidence=faktura-vydana", "?number=FV-2", "?state=open"} {
		r.server.Use(r.backend(nil))
		all := r.do("GET", "/api/v1/queue"+query, "").Body.String()
		r.server.Use(r.backend(confirmedToo{r.ledger}))
		r.ledger.lists = 0
		if few := r.do("GET", "/api/v1/queue"+query, "").Body.String(); few != all || len(all) < 10 || r.ledger.lists > 0 {
			t.Errorf("%q: %s, want %s; the whole ledger was read %d times", query, few, all, r.ledger.lists)
		}
	}
}

// confirmedToo is a Finder that knows more than it needs to.
type confirmedToo struct{ *fakeLedger }

func (f confirmedToo) Candidates(number string, _ func(verify.Standing) bool) ([]ledger.ID, bool) {
	ids, ok := f.fakeLedger.Candidates(number, func(s verify.Standing) bool { return s.State != ledger.Confirmed && s.State != ledger.Dropped })
	return ids, ok
}
