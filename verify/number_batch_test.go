package verify_test

import (
	"fmt"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// TestOneNumberInOneBatch: of documents that are taken in together and carry the same number only the first owns it.
func TestOneNumberInOneBatch(t *testing.T) {
	for _, careful := range []bool{false, true} {
		t.Run(fmt.Sprintf("careful %v", careful), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				var ins []verify.Event
				for _, key := range []string{"eshop", "sklad", "pokladna"} {
					ins = append(ins, b.event(flexi.Create, key, invoice("FV-1")))
				}
				ins = append(ins, b.event(flexi.Create, "eshop-2", invoice("FV-2")))
				got, err := b.eng.AcceptAll(b.t.Context(), ins, nil, careful)
				must(b.t, err)
				if len(got) != len(ins) {
					b.t.Fatalf("%d of %d were taken", len(got), len(ins))
				}
				b.pass(5 * time.Minute)
				for key, want := range map[string]ledger.Reason{"eshop": "", "sklad": ledger.Duplicate, "pokladna": ledger.Duplicate, "eshop-2": ""} {
					if r := b.row(key); r.Reason != want || (want == "") != (r.State == ledger.Confirmed) {
						b.t.Errorf("%s is %s(%s), want %q", key, r.State, r.Reason, want)
					}
				}
				b.wantRecords("FV-1", 1)
				b.wantRecords("FV-2", 1)
			})
		})
	}
}
