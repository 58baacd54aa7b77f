package verify_test

import (
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify/ledger"
)

// first strikes the first write that names a document.
func (b *bench) first(key string, f flexitest.Fault) {
	b.fake.OnWrite(1, func(r flexitest.Request) bool { return r.Has(key) }, f)
}

// TestEveryFaultOnce: whatever happens to the first write of a create, there is one record in the end, it is confirmed, and
// nothing ambiguous is sent again before its settle time.
func TestEveryFaultOnce(t *testing.T) {
	const no, server, proxy = 15 * time.Minute, 30 * time.Second, 5 * time.Second
	cases := []struct {
		name   string
		fault  flexitest.Fault
		writes int           // requests of this document at the server
		settle time.Duration // no second write may leave before
	}{
		{"500 not done", flexitest.Fault{Kind: flexitest.ServerError, Status: 500}, 2, server},
		{"500 done", flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500}, 1, 0},
		{"502 not done", flexitest.Fault{Kind: flexitest.ServerError, Status: 502}, 2, no},
		{"502 done", flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 502}, 1, 0},
		{"503 of a proxy not done", flexitest.Fault{Kind: flexitest.ServerError, Status: 503, Says: flexitest.Page}, 2, proxy},
		{"503 of a proxy done", flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 503, Says: flexitest.Page}, 1, 0},
		{"504 not done", flexitest.Fault{Kind: flexitest.ServerError, Status: 504}, 2, no},
		{"504 done", flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 504}, 1, 0},
		{"reset before the body not done", flexitest.Fault{Kind: flexitest.ResetBefore}, 2, no},
		{"reset in the middle not done", flexitest.Fault{Kind: flexitest.ResetMiddle, Bytes: 20}, 2, no},
		{"reset instead of the answer not done", flexitest.Fault{Kind: flexitest.ResetAnswer}, 2, no},
		{"reset after the commit", flexitest.Fault{Kind: flexitest.ResetAfterCommit}, 1, 0},
		{"silence not done", flexitest.Fault{Kind: flexitest.Silence}, 2, no},
		{"silence after the commit", flexitest.Fault{Kind: flexitest.SilenceAfterCommit}, 1, 0},
		{"half an answer", flexitest.Fault{Kind: flexitest.HalfAnswer, Done: true}, 1, 0},
		{"half an answer not done", flexitest.Fault{Kind: flexitest.HalfAnswer}, 2, no},
		{"a page behind 200 done", flexitest.Fault{Kind: flexitest.HTML200, Done: true}, 1, 0},
		{"a page behind 200 not done", flexitest.Fault{Kind: flexitest.HTML200}, 2, no},
		{"an answer about another document done", flexitest.Fault{Kind: flexitest.OtherDocument, Done: true}, 1, 0},
		{"late commit within the settle time", flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 3 * time.Minute}, 1, 0},
		{"late commit after reset", flexitest.Fault{Kind: flexitest.LateCommit, Delay: 40 * time.Second}, 1, 0},
		{"late commit after the resend", flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 30 * time.Minute}, 2, no},
		{"slow answer", flexitest.Fault{Kind: flexitest.SlowBody, Delay: time.Second, Bytes: 64}, 1, 0},
		{"redirect done", flexitest.Fault{Kind: flexitest.Redirect, Status: 303, Location: "/elsewhere", Done: true}, 1, 0},
		{"redirect not done", flexitest.Fault{Kind: flexitest.Redirect, Status: 307, Location: "/elsewhere"}, 2, no},
		{"429", flexitest.Fault{Kind: flexitest.TooMany, RetryAfter: "7"}, 2, 7 * time.Second},
		{"429 without a hint", flexitest.Fault{Kind: flexitest.TooMany}, 2, 0},
		{"stale role", flexitest.Fault{Kind: flexitest.StaleRole}, 2, 0},
		{"401", flexitest.Fault{Kind: flexitest.Unauthorized}, 2, 0},
	}
	for _, c := range testenv.Some(t, 4, cases) {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.push(flexi.Create, "FV-0", invoice("FV-0")) // proves the fence
				b.becomes("FV-0", 10*time.Second, ledger.Confirmed, "")
				b.first("FV-1", c.fault)
				b.push(flexi.Create, "FV-1", invoice("FV-1", "varSym", "77"))
				b.becomes("FV-1", 40*time.Minute, ledger.Confirmed, "")
				b.pass(time.Hour) // late commits and late looks
				b.wantRecords("FV-1", 1)
				w := b.fake.Writes("FV-1")
				if len(w) != c.writes {
					t.Fatalf("%d writes at the server, want %d", len(w), c.writes)
				}
				if len(w) == 2 {
					if apart := w[1].Time.Sub(w[0].Time); apart < c.settle {
						t.Fatalf("sent again %s after the first one, before the settle time of %s", apart, c.settle)
					}
				}
				if r := b.row("FV-1"); r.State != ledger.Confirmed {
					t.Fatalf("an hour later it is %s(%s)", r.State, r.Reason)
				}
			})
		})
	}
}

// lostLate is a write that is answered with a reset and carried out a minute later.
func lostLate() flexitest.Fault {
	return flexitest.Fault{Kind: flexitest.LateCommit, Delay: time.Minute}
}
