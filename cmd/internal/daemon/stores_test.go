package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexid/batch/stream"
	"flexid/flexi/flexitest"

	"github.com/nats-io/nats.go/jetstream"
)

// limit sets how much a stream may hold, as an operator does.
func (r *running) limit(js jetstream.JetStream, name string, bytes func(have uint64) int64) {
	r.t.Helper()
	s, err := js.Stream(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.MaxBytes = bytes(s.CachedInfo().State.Bytes)
	if _, err := js.UpdateStream(r.t.Context(), cfg); err != nil {
		r.t.Fatal(err)
	}
}

// TestInboxFullOfFinishedDeliveries: what is done makes room for what comes, and an id that went is still known.
func TestInboxFullOfFinishedDeliveries(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir(), webhookSettings()...))
	nc, js := r.nats()
	defer nc.Close()
	const most = 64 << 10
	r.limit(js, "FLEXID_INBOX", func(uint64) int64 { return most })
	body := func(n int, text string) string {
		return fmt.Sprintf(`{"kod":"FV-%d","typDokl":"code:FAKTURA","popis":%q}`, n, text+strings.Repeat("x", 6<<10))
	}
	for n := range 25 { // more than twice what the inbox holds
		if code, text := r.deliver("/in/shop/faktura-vydana?wait=20s", body(n, ""), token(fmt.Sprint("e", n))); code != 200 {
			t.Fatalf("delivery %d: %d %s", n, code, text)
		}
	}
	inbox := stream.NewInbox(js, stream.Options{})
	if has, err := inbox.Has(t.Context(), "shop", "id e0"); has || err != nil {
		t.Fatalf("the first one is there still: %v", err)
	}
	writes := erp.Count("write")
	if code, text := r.deliver("/in/shop/faktura-vydana?wait=20s", body(0, ""), token("e0")); code != 200 || !strings.Contains(text, `"again":true`) {
		t.Errorf("an id that went, again: %d %s", code, text)
	}
	if code, text := r.deliver("/in/shop/faktura-vydana", body(0, "other"), token("e0")); code != 422 {
		t.Errorf("an id that went, with another body: %d %s", code, text)
	}
	if n := erp.Count("write"); n != writes {
		t.Errorf("%d writes for what was done", n-writes)
	}
}

// TestInboxFullOfWaitingDeliveries: what nobody has taken never goes.
func TestInboxFullOfWaitingDeliveries(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir(), webhookSettings()...))
	nc, js := r.nats()
	defer nc.Close()
	// Without room in the ledger nothing is taken.
	r.limit(js, "KV_flexid_ledger", func(have uint64) int64 { return int64(have) + 1<<20 })
	eventually(t, "intake is paused", func() bool {
		code, text := r.do("GET", "/readyz", "")
		return code == 503 && strings.Contains(text, "intake is paused") && strings.Contains(text, "raise the limit")
	})
	r.logged("intake is paused", "kept for what becomes of documents")
	r.limit(js, "FLEXID_INBOX", func(uint64) int64 { return 64 << 10 })
	stored := 0
	for code := 202; code == 202; stored++ {
		code, _ = r.deliver("/in/shop/faktura-vydana", fmt.Sprintf(`{"kod":"FV-%d","typDokl":"code:FAKTURA","popis":%q}`, stored, strings.Repeat("x", 6<<10)), token(fmt.Sprint("e", stored)))
		if stored > 30 {
			t.Fatal("what was not taken has gone")
		}
	}
	stored-- // the last one was refused
	r.push("WAITS")
	if left, err := stream.Waiting(t.Context(), js, stream.Options{}); left != 1 || err != nil {
		t.Errorf("%d events wait in the stream, %v", left, err)
	}
	r.limit(js, "KV_flexid_ledger", func(uint64) int64 { return -1 })
	waitFor(t, time.Minute, "all of them are taken", func() bool { d := r.status().Engine.Documents; return d["confirmed"]+d["parked"] == stored+1 })
	if code, text := r.do("GET", "/readyz", ""); code != 200 {
		t.Errorf("%d %s", code, text)
	}
}

func TestTooNarrow(t *testing.T) {
	for name, c := range map[string]struct {
		free, keep int64
		was, is    bool
	}{
		"no limit":                        {-1, 100, true, false},
		"room":                            {100, 100, false, false},
		"too little":                      {99, 100, false, true},
		"a little more than it paused at": {110, 100, true, true},
		"a good deal more":                {125, 100, true, false},
		"none":                            {0, 100, false, true},
	} {
		if got := tooNarrow(c.free, c.keep, c.was); got != c.is {
			t.Errorf("%s: %v", name, got)
		}
	}
	if keep := keepFree(4, 20); keep < 4*20*32<<10 {
		t.Errorf("%d bytes are not enough for the rows in flight", keep)
	}
}
