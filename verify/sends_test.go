package verify_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// TestUnluckyDocumentIsSentEightTimes: with absence and fence proved nothing is unknown, so a document whose sends fail
// without being done goes on, each time after a longer wait; only when eight sends could not do it a person is asked.
func TestUnluckyDocumentIsSentEightTimes(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  flexitest.Fault
		settle time.Duration
		fails  int
		state  ledger.State
		reason ledger.Reason
	}{
		{"seven lost answers", flexitest.Fault{Kind: flexitest.ResetAnswer}, time.Minute, 7, ledger.Confirmed, ""},
		{"eight lost answers", flexitest.Fault{Kind: flexitest.ResetAnswer}, time.Minute, 8, ledger.Parked, ledger.Unknown},
		{"seven times 500", flexitest.Fault{Kind: flexitest.ServerError, Status: 500}, 30 * time.Second, 7, ledger.Confirmed, ""},
		{"eight times 500", flexitest.Fault{Kind: flexitest.ServerError, Status: 500}, 30 * time.Second, 8, ledger.Parked, ledger.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.SettleNoAnswer = time.Minute
				b.start()
				b.created("X", invoice("X"))
				for n := 1; n <= c.fails; n++ {
					b.nth(n, "ext:FLEXID:A", c.fault)
				}
				b.push(flexi.Create, "A", invoice("A"))
				b.becomes("A", 150*c.settle+time.Hour, c.state, c.reason)
				w := b.fake.Writes("ext:FLEXID:A")
				if len(w) != 8 {
					t.Fatalf("%d sends", len(w))
				}
				for n := 1; n < len(w); n++ {
					least := c.settle << (n - 1)
					if apart := w[n].Time.Sub(w[n-1].Time); apart < least || apart > least+least/4+2*time.Minute {
						t.Errorf("send %d came %s after the one before, want %s", n+1, apart, least)
					}
				}
				b.wantRecords("A", 8-c.fails)
			})
		})
	}
}

// TestFailuresParkNothing: three writes in a hundred fail without being done. That is bad luck for some documents several
// times in a row, and no reason to ask a person.
func TestFailuresParkNothing(t *testing.T) {
	docs, chance := 200, 0.25
	if os.Getenv("FLEXID_SLOW") != "" {
		docs, chance = 10_000, 0.03
	}
	virtual(t, func(b *bench) {
		b.set.Pack, b.set.Concurrency = 1, 16
		b.fake.Probability(chance, flexitest.Fault{Kind: flexitest.ServerError, Status: 500})
		b.start()
		for i := range docs {
			b.push(flexi.Create, fmt.Sprint("D", i), invoice(fmt.Sprint("D", i)))
		}
		b.until(12*time.Hour, "every document confirmed", func() bool {
			n := b.eng.Status().Documents
			if n[string(ledger.Parked)] > 0 {
				t.Fatalf("%v", n)
			}
			return n[string(ledger.Confirmed)] == docs
		})
		if n := len(b.fake.Records("faktura-vydana")); n != docs {
			t.Errorf("%d records", n)
		}
		t.Logf("%d documents, %d writes", docs, b.writes())
	})
}
