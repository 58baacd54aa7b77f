//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"flexid/flexi/flexitest"
)

// bench is one daemon on a healthy fake.
type bench struct {
	t      *testing.T
	erp    *flexitest.Server
	broker *broker
	daemon *daemon
}

// newBench starts NATS and the fake; the daemon is prepared and not started.
func newBench(t *testing.T, o flexitest.Options, more map[string]string) *bench {
	t.Helper()
	o.AllowUsedNumbers = true
	b := &bench{t: t, erp: flexitest.New(o), broker: newBroker(t, "")}
	t.Cleanup(b.erp.Close)
	if err := b.erp.Start(); err != nil {
		t.Fatal(err)
	}
	set := quickPace().settings()
	set["FLEXID_NATS_URL"] = b.broker.url
	for name, value := range more {
		set[name] = value
	}
	b.daemon = newDaemon(t, "flexid", b.erp.URL(), set)
	return b
}

// send publishes an event with headers given in pairs.
func (b *bench) send(subject, body string, headers ...string) {
	b.t.Helper()
	m := nats.NewMsg(subject)
	m.Data = []byte(body)
	for i := 0; i+1 < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	if m.Header.Get(nats.MsgIdHdr) == "" {
		m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%s %d", b.t.Name(), time.Now().UnixNano()))
	}
	if err := b.broker.publish(m); err != nil {
		b.t.Fatalf("publishing to %s: %v", subject, err)
	}
}

func (b *bench) sendFields(key string, f map[string]any) {
	b.t.Helper()
	b.send("flexi.push."+issued+"."+key, string(must(json.Marshal(f))(b.t, "writing a body")))
}

// Each of these is parked with a sentence that says what is wrong, keeps its bytes, is told on flexi.done and holds nothing
// up. None of it reaches Flexi.
func TestBadInput(t *testing.T) {
	t.Parallel()
	b := newBench(t, flexitest.Options{}, nil)
	b.daemon.up()
	good := `"typDokl":"code:FAKTURA","firma":"code:NOVAK","varSym":"1","cisObj":"v1"`
	cases := []struct {
		name, subject, body string
		headers             []string
		says                []string
	}{
		{"no key and no number", "flexi.push.faktura-vydana", `{` + good + `}`, nil, []string{"no key and no number", "Flexid-Key"}},
		{"two keys that differ", "flexi.push.faktura-vydana.K-1", `{"kod":"K-1",` + good + `}`, []string{"Flexid-Key", "K-2"}, []string{"given twice and differs", "K-1", "K-2"}},
		{"number over its length", "flexi.push.faktura-vydana", `{"kod":"FV-2026-0000000000001",` + good + `}`, nil, []string{"FV-2026-0000000000001", "21", "20"}},
		{"broken JSON", "flexi.push.faktura-vydana.K-3", `{"kod":"K-3",` + "\n" + good, nil, []string{"not JSON", "line 2"}},
		{"unknown evidence", "flexi.push.faktura-vydna.K-4", `{"kod":"K-4",` + good + `}`, nil, []string{"no evidence", "faktura-vydna"}},
		{"two kod", "flexi.push.faktura-vydana", `{"kod":"K-5","kod":"K-6",` + good + `}`, []string{"Flexid-Key", "K-5"}, []string{"kod", "given twice"}},
		{"@update in a body", "flexi.push.faktura-vydana.K-7", `{"@update":"ok","kod":"K-7",` + good + `}`, nil, []string{"@update", "written by flexid"}},
		{"id in a body", "flexi.push.faktura-vydana.K-8", `{"id":"1","kod":"K-8",` + good + `}`, nil, []string{"id", "only ext: identifiers of other systems"}},
		{"an event of 540 KiB", "flexi.push.faktura-vydana.K-9", `{"kod":"K-9",` + good + `,"poznam":"` + strings.Repeat("x", 540<<10) + `"}`, nil, []string{"bytes", "524288"}},
	}
	for i, c := range cases {
		b.send(c.subject, c.body, append(c.headers, nats.MsgIdHdr, fmt.Sprintf("bad-%d", i))...)
	}
	b.sendFields("GOOD", fields(1, "GOOD"))
	b.daemon.settles(issued, "GOOD", "confirmed", time.Minute)
	b.hears(func() (bool, string) {
		return len(b.broker.told) == len(cases)+1, fmt.Sprintf("%d events are told", len(b.broker.told))
	})
	kept := b.keptBytes()
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			told := b.broker.told[fmt.Sprintf("bad-%d", i)][0]
			if told.State != "parked" || told.Reason != "unreadable" {
				t.Errorf("it is %s(%s), want parked(unreadable)", told.State, told.Reason)
			}
			for _, want := range c.says {
				if len(told.Errors) == 0 || !strings.Contains(told.Errors[0].Text, want) {
					t.Errorf("%v does not say %q", told.Errors, want)
				}
			}
			if !slices.Contains(kept, c.body) {
				t.Error("the bytes of the event are not kept")
			}
			if s, err := b.daemon.story(told.Evidence, told.Key); err != nil || len(s.Events) == 0 {
				t.Errorf("it cannot be shown: %v", err)
			}
		})
	}
	if n := b.erp.Count(flexitest.Write); n != 1 {
		t.Errorf("%d writes reached Flexi, want the good one only", n)
	}
}

// hears waits for something that is told.
func (b *bench) hears(ok func() (bool, string)) {
	b.t.Helper()
	eventually(b.t, time.Minute, "flexi.done", func() (bool, string) {
		if err := b.broker.hear(); err != nil {
			return false, err.Error()
		}
		return ok()
	})
}

// keptBytes is what the ledger holds of events, readable or not.
func (b *bench) keptBytes() (all []string) {
	b.t.Helper()
	ctx := b.t.Context()
	kv := must(b.broker.js.KeyValue(ctx, "flexid_ledger"))(b.t, "opening the ledger's bucket")
	keys := must(kv.ListKeysFiltered(ctx, "v.*.*"))(b.t, "listing events")
	for key := range keys.Keys() {
		entry := must(kv.Get(ctx, key))(b.t, "reading an event")
		var ev struct {
			Body json.RawMessage `json:"body"`
			Raw  []byte          `json:"raw"`
		}
		if err := json.Unmarshal(entry.Value(), &ev); err != nil {
			b.t.Errorf("event %s: %v", key, err)
		}
		if ev.Raw != nil {
			all = append(all, string(ev.Raw))
		} else {
			all = append(all, string(ev.Body))
		}
	}
	return all
}

func TestTooLargeEventIsRefusedAtThePublisher(t *testing.T) {
	t.Parallel()
	b := newBench(t, flexitest.Options{}, nil)
	b.daemon.up()
	for size, want := range map[int]string{2 << 20: "maximum payload exceeded", 700 << 10: "message size exceeds maximum"} {
		body := `{"kod":"BIG","poznam":"` + strings.Repeat("x", size) + `"}`
		_, err := b.broker.js.Publish(t.Context(), "flexi.push.faktura-vydana", []byte(body))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("an event of %d bytes: error %v, want %q", size, err, want)
		}
	}
	s := must(b.broker.js.Stream(t.Context(), "FLEXID_PUSH"))(t, "looking at the stream")
	if n := s.CachedInfo().State.LastSeq; n != 0 {
		t.Errorf("%d messages were stored", n)
	}
	b.sendFields("SMALL", fields(1, "SMALL"))
	b.daemon.settles(issued, "SMALL", "confirmed", time.Minute)
}

// The server drops a message whose id it saw within its duplicate window, and says so to nobody who does not ask. 200 ms
// later it does not, and the event that says something else under a used id is shown.
func TestEventIDWithAnotherBody(t *testing.T) {
	t.Parallel()
	b := newBench(t, flexitest.Options{}, nil)
	b.daemon.up()
	first := string(must(json.Marshal(fields(1, "IDR")))(t, "writing a body"))
	b.send("flexi.push.faktura-vydana.IDR", first, nats.MsgIdHdr, "order-1")
	moment(t, 200*time.Millisecond)
	b.send("flexi.push.faktura-vydana.IDR", `{"cisObj":"v2"}`, nats.MsgIdHdr, "order-1", "Flexid-Op", "update")
	s := b.daemon.settles(issued, "IDR", "parked(id_reused)", time.Minute)
	if !strings.Contains(s.text(), "order-1") || len(s.Events) != 2 || s.Events[0].State != "confirmed" {
		t.Errorf("the story says %q of %v", s.text(), s.Events)
	}
	if got := b.erp.Find(issued, "code:IDR"); len(got) != 1 || got[0].Fields["cisObj"] != "v1" {
		t.Errorf("in Flexi: %v, want the first body", got)
	}
	if n := b.erp.Count(flexitest.Write); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
	// The same id with the same body costs no write, and the reused one held nothing back.
	moment(t, 200*time.Millisecond)
	b.send("flexi.push.faktura-vydana.IDR", first, nats.MsgIdHdr, "order-1")
	b.send("flexi.push.faktura-vydana.IDR", `{"cisObj":"v3"}`, "Flexid-Op", "update")
	b.daemon.settles(issued, "IDR", "confirmed", time.Minute)
	if got := b.erp.Find(issued, "code:IDR"); len(got) != 1 || got[0].Fields["cisObj"] != "v3" {
		t.Errorf("in Flexi: %v, want v3", got)
	}
	if n := b.erp.Count(flexitest.Write); n != 2 {
		t.Errorf("%d writes, want 2", n)
	}
}

// The ledger's bucket is deleted under a running daemon: nothing is written until a person says what is right.
func TestDeletedLedger(t *testing.T) {
	t.Parallel()
	b := newBench(t, flexitest.Options{}, nil)
	b.daemon.up()
	b.sendFields("BEFORE", fields(1, "BEFORE"))
	b.daemon.settles(issued, "BEFORE", "confirmed", time.Minute)
	if err := b.broker.js.DeleteKeyValue(t.Context(), "flexid_ledger"); err != nil {
		t.Fatalf("deleting the bucket: %v", err)
	}
	b.sendFields("BEFORE", map[string]any{"cisObj": "other"})
	b.sendFields("DURING", fields(2, "DURING"))
	ways := []string{"restore NATS's files", "flexid ledger accept-empty"}
	eventually(t, 30*time.Second, "status and log say both ways out", func() (bool, string) {
		text, _, _ := b.daemon.get("/api/v1/status")
		ready, code, _ := b.daemon.get("/readyz")
		log := b.daemon.log()
		for _, way := range ways {
			if !strings.Contains(text, way) || !strings.Contains(ready, way) || !strings.Contains(log, way) {
				return false, fmt.Sprintf("%s: status %s; readyz %s", way, text, ready)
			}
		}
		return code == 503, fmt.Sprint(code)
	})
	if _, talk, code := b.daemon.command("docs", "list"); code != 75 || !strings.Contains(talk, "accept-empty") {
		t.Errorf("docs list exits with %d: %s", code, talk)
	}
	if n := b.erp.Count(flexitest.Write); n != 1 {
		t.Errorf("%d writes, want none while the ledger is gone", n-1)
	}
	if _, talk, code := b.daemon.command("ledger", "accept-empty", "--by", "novak", "--reason", "test"); code != 0 {
		t.Fatalf("ledger accept-empty exits with %d: %s", code, talk)
	}
	b.daemon.settles(issued, "DURING", "confirmed", time.Minute)
	// What the old ledger knew is found in Flexi, and not made twice.
	b.daemon.settles(issued, "BEFORE", "parked(conflict)", time.Minute)
	if n := len(b.erp.Find(issued, "code:BEFORE")); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}
