package verify_test

import (
	"fmt"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// TestStatusCounts: documents are counted by state, also after a restart and after writes were stopped.
func TestStatusCounts(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		for i := range 3 {
			b.created(fmt.Sprint("A", i), invoice(fmt.Sprint("A", i)))
		}
		b.push(flexi.Create, "R", invoice("R", "firma", "code:NENI"))
		b.becomes("R", time.Minute, ledger.Parked, ledger.Rejected)
		want := func(when string) {
			b.t.Helper()
			if d := b.eng.Status().Documents; d["confirmed"] != 3 || d["parked"] != 1 {
				b.t.Fatalf("%s: %v", when, d)
			}
		}
		want("running")
		must(b.t, b.eng.StopWrites(b.t.Context(), "", "jana", "uzávěrka"))
		want("stopped")
		b.halt()
		b.start()
		<-b.eng.Ready()
		want("after a restart")
		b.push(flexi.Create, "B", invoice("B"))
		b.pass(10 * time.Minute)
		b.wantRecords("B", 0)
		want("stopped over the restart")
		must(b.t, b.eng.ResumeWrites(b.t.Context(), "", "jana", "hotovo"))
		b.becomes("B", time.Minute, ledger.Confirmed, "")
	})
}
