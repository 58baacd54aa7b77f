package daemon

import (
	"testing"

	"flexid/flexi/flexitest"

	"github.com/nats-io/nats.go"
)

// TestOneEventIDForTwoDocuments: whatever the server does with ids of its own, two documents under one Flexid-Event-Id both
// come in, however soon one after the other, and the second is shown to a person.
func TestOneEventIDForTwoDocuments(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir()))
	nc, js := r.nats()
	defer nc.Close()
	for _, key := range []string{"FV-1", "FV-2"} {
		m := nats.NewMsg("flexi.push.faktura-vydana")
		m.Header.Set("Flexid-Event-Id", "order-1")
		m.Data = []byte(order(key))
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	r.becomes("FV-1", "confirmed")
	if s := r.becomes("FV-2", "parked"); s.Reason != "id_reused" {
		t.Errorf("the second is parked(%s)", s.Reason)
	}
	if n := erp.Count("write"); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}
