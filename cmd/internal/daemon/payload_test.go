package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"flexid/batch/stream"
	"flexid/cmd/internal/api"
	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// external starts a NATS server that the daemon does not own.
func external(t *testing.T, dir string, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true}
	change(o)
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("nats-server does not start")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// TestOneSenderStopsNobody: with a NATS server that takes 256 KiB at most, each thing that one sender can do to its own
// documents leaves those of the others alone, and is shown to a person.
func TestOneSenderStopsNobody(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	ns := external(t, t.TempDir(), func(o *server.Options) { o.MaxPayload = 256 << 10 })
	r := begin(t, settings(t, erp, t.TempDir(), append(webhookSettings(), "FLEXID_NATS_URL="+ns.ClientURL(),
		"FLEXID_WEBHOOK_SHOP_MAX_BYTES=1000KiB")...))
	nc, js := r.nats()
	defer nc.Close()
	publish := func(subject, body string, header ...string) {
		t.Helper()
		m := nats.NewMsg(subject)
		m.Data = []byte(body)
		for i := 0; i < len(header); i += 2 {
			m.Header.Set(header[i], header[i+1])
		}
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	goesOn := func(after string) {
		t.Helper()
		n++
		key := fmt.Sprint("OK-", n)
		begun := time.Now()
		publish("flexi.push.faktura-vydana", order(key))
		r.becomes(key, "confirmed")
		took := time.Since(begun)
		t.Logf("after %s another document took %s", after, took)
		if took > 5*time.Second { // a second on an idle machine
			t.Errorf("after %s another document took %s", after, took)
		}
	}
	// parked gives the story that people find under the sender's key.
	parked := func(key, words string) api.Story {
		t.Helper()
		s := r.becomes(key, "parked")
		if s.Reason != "unreadable" || s.Problem == nil || !strings.Contains(s.Problem.Text, words) {
			t.Errorf("%s is parked(%s): %+v", key, s.Reason, s.Problem)
		}
		return s
	}
	goesOn("nothing")

	publish("flexi.push.faktura-vydana", `{"kod":"BIG","popis":"`+strings.Repeat("x", 250<<10)+`"}`)
	goesOn("an event as large as a message may be")
	if s := parked("BIG", "SHA-256"); s.SenderKey != "BIG" || len(s.Key) == 3 {
		t.Errorf("it stands under %q for %q", s.Key, s.SenderKey)
	}

	publish("flexi.push.faktura-vydana.RAW", strings.Repeat("x", 220<<10))
	goesOn("unreadable bytes that do not fit in base64")
	parked("RAW", "not JSON")

	r.push("GONE")
	r.becomes("GONE", "confirmed")
	kv, err := js.KeyValue(t.Context(), "flexid_ledger")
	if err != nil {
		t.Fatal(err)
	}
	id := ledger.RowID("firma", "faktura-vydana", flexi.NewExternalID("FLEXID", "", "GONE"))
	if err := kv.Delete(t.Context(), "d."+string(id)); err != nil {
		t.Fatal(err)
	}
	publish("flexi.push.faktura-vydana", order("GONE"), "Flexid-Op", "upsert")
	goesOn("an event for a row that was deleted by hand")
	parked("GONE", "deleted by hand")

	many := map[string]string{"kod": "MANY"}
	for i := range 5000 {
		many[fmt.Sprint("pole", i)] = "x"
	}
	body, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	publish("flexi.push.faktura-vydana", string(body))
	goesOn("an event of 5,000 fields")
	r.becomes("MANY", "parked")

	events := 300
	if os.Getenv("FLEXID_SLOW") != "" {
		events = 20_000
	}
	for i := range events {
		publish("flexi.push.faktura-vydana.VSE", order(fmt.Sprint("V-", i)), "Flexid-Op", "upsert", "Flexid-Event-Id", fmt.Sprint("v", i))
	}
	taken := func() bool {
		left, err := stream.Waiting(t.Context(), js, stream.Options{})
		return err == nil && left == 0
	}
	waitFor(t, 10*time.Minute, "all of them are taken", taken)
	goesOn(fmt.Sprint(events, " numbers under one key"))

	// 513 KiB do not even get to the stream: who sends them is told so, and not to come again.
	to := stream.NewPublisher(js, stream.Options{})
	if _, err := to.Push(t.Context(), "faktura-vydana", "HUGE", nil, make([]byte, 513<<10)); err == nil || !strings.Contains(err.Error(), "max_payload") {
		t.Errorf("an event of 513 KiB: %v", err)
	}
	if code, text := r.deliver("/in/shop/faktura-vydana", `{"kod":"HUGE","popis":"`+strings.Repeat("x", 400<<10)+`"}`, token("huge")); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a delivery larger than a message: %d %s", code, text)
	}
	code, text := r.deliver("/in/shop/faktura-vydana?wait=20s", `{"kod":"BIG","popis":"`+strings.Repeat("x", 250<<10)+`"}`, token("big"))
	if code != http.StatusOK || !strings.Contains(text, `"reason":"unreadable"`) || !strings.Contains(text, `"sender_key":"BIG"`) {
		t.Errorf("waiting for what is set aside: %d %s", code, text)
	}
	goesOn("a delivery that is too large")
	eventually(t, "nothing is left in the stream", taken)
	if lines := r.log.line("max_payload", "small messages"); lines == "" {
		t.Error("nothing said that the server takes small messages only")
	}
}
