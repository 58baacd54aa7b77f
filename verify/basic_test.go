package verify_test

import (
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

func TestCreateOnce(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.push(flexi.Create, "FV-1", invoice("FV-1"))
		r := b.becomes("FV-1", 5*time.Second, ledger.Confirmed, "")
		b.wantRecords("FV-1", 1)
		b.wantWrites(1)
		if r.FlexiID == "" || r.Sends != 1 || r.Number != "FV-1" {
			t.Fatalf("row tells flexi id %q, sends %d, number %q", r.FlexiID, r.Sends, r.Number)
		}
		b.until(5*time.Second, "told", func() bool { return len(b.notices.done()) == 1 })
		if m := b.notices.done()[0]; m.State != ledger.Confirmed || m.FlexiID != r.FlexiID || m.Op != flexi.Create {
			t.Fatalf("flexi.done says %+v", m)
		}
	})
}
