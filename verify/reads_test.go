package verify_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// reads counts what is read of the ledger at the server, by the first letter of the key: d for rows, v for events.
type reads struct {
	b   *bench
	sub *nats.Subscription
}

func (b *bench) countReads() *reads {
	b.t.Helper()
	sub, err := b.nc.SubscribeSync("$JS.API.STREAM.MSG.GET.KV_" + b.ledger.Bucket())
	must(b.t, err)
	must(b.t, sub.SetPendingLimits(-1, -1))
	must(b.t, b.nc.Flush())
	return &reads{b, sub}
}

// take gives the reads since the last call.
func (r *reads) take() map[string]int {
	r.b.t.Helper()
	must(r.b.t, r.b.nc.Flush())
	n := map[string]int{}
	for {
		left, _, err := r.sub.Pending()
		must(r.b.t, err)
		if left == 0 {
			return n
		}
		m, err := r.sub.NextMsg(time.Second)
		must(r.b.t, err)
		var q struct {
			Subject string `json:"last_by_subj"`
		}
		must(r.b.t, json.Unmarshal(m.Data, &q))
		n[strings.TrimPrefix(q.Subject, "$KV."+r.b.ledger.Bucket()+".")[:1]]++
	}
}

// TestReadsOfOneLife: of its own row, events and number, and of evidences of which there is no document, nothing is read for a document that
// one process makes, confirms and reads back. A later
// event costs a look at the row when it is taken, and one before the story of the event before it is kept.
func TestReadsOfOneLife(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.pass(10 * time.Minute)
		const n = 50
		life := func(op flexi.Op, body func(key string) doc) map[string]int {
			r := b.countReads()
			for i := range n {
				key := fmt.Sprintf("A%05d", i)
				b.push(op, key, body(key))
			}
			b.pass(10 * time.Minute)
			for i := range n {
				key := fmt.Sprintf("A%05d", i)
				if row := b.row(key); row.State != ledger.Confirmed || !row.ReadBack.IsZero() || row.Last.Op != op {
					t.Fatalf("it is %s", pretty(row))
				}
			}
			got := r.take()
			got["d"] -= n // by the test itself
			return got
		}
		made := life(flexi.Create, func(key string) doc { return invoice(key) })
		t.Logf("reads of %d documents: made %v", n, made)
		if made["d"]+made["v"] > n/10 || made["n"] > n+n/10 { // a visit that is quicker than the watch asks for its one reference
			t.Error("too many")
		}
		changed := life(flexi.Update, func(string) doc { return doc{"popis": "Oprava"} })
		t.Logf("changed %v", changed)
		if changed["d"] > 2*n+n/10 || changed["v"] > n/10 || changed["n"] > 0 {
			t.Error("too many")
		}
	})
}
