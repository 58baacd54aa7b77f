package batch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"flexid/batch"
	"flexid/flexi"
)

func delivered(body string, headers ...string) batch.Message {
	m := message("flexi.in.shop.abc234", body, headers...)
	m.Stream = "FLEXID_INBOX"
	return m
}

func TestDecodeDeliveries(t *testing.T) {
	const doc = `{"kod":"FV-1"}`
	event := func(rest string) string { return `{"evidence":"faktura-vydana",` + rest + `"document":` + doc + `}` }
	for name, tc := range map[string]struct {
		m                    batch.Message
		key, op, version, id string
		given                bool
		body                 string
		problem              string
	}{
		"document": {m: delivered(doc, "Flexid-Evidence", "faktura-vydana", "Flexid-Event-Id", "1"),
			key: "FV-1", op: "create", id: "shop 1", given: true, body: doc},
		"document, all headers": {m: delivered(doc, "Flexid-Evidence", "faktura-vydana", "Flexid-Key", " order 7", "Flexid-Op", "update", "Flexid-Version", "3", "Flexid-Delivery", "r"),
			key: "order 7", op: "update", version: "3", id: "shop r", body: doc},
		"document, no id at all": {m: delivered(doc, "Flexid-Evidence", "faktura-vydana"), key: "FV-1", op: "create", id: "flexi.in.shop.abc234", body: doc},
		"delete without a body": {m: delivered("", "Flexid-Evidence", "faktura-vydana", "Flexid-Key", "A", "Flexid-Op", "delete"),
			key: "A", op: "delete", id: "flexi.in.shop.abc234", body: "{}"},
		"event":                 {m: delivered(event(""), "Flexid-Event-Id", "m"), key: "FV-1", op: "upsert", id: "shop m", given: true, body: doc},
		"event, all fields":     {m: delivered(event(`"op":"create","key":"A","version":7,`), "Flexid-Event-Id", "m"), key: "A", op: "create", version: "7", id: "shop m", given: true, body: doc},
		"event, header ignored": {m: delivered(event(""), "Flexid-Event-Id", "m", "Flexid-Key", "unsigned", "Flexid-Op", "delete"), key: "FV-1", op: "upsert", id: "shop m", given: true, body: doc},

		"event without evidence": {m: delivered(`{"document":{"kod":"A"}}`), problem: "names no evidence"},
		"bare document":          {m: delivered(doc), problem: "is not an event"},
		"unknown field":          {m: delivered(`{"evidence":"banka","x":1,"document":{"kod":"A"}}`), problem: `"x"`},
		"evidence is no word":    {m: delivered(doc, "Flexid-Evidence", "Banka"), problem: "faktura-vydana"},
		"unknown operation":      {m: delivered(doc, "Flexid-Evidence", "banka", "Flexid-Op", "put"), problem: "Flexid-Op"},
		"no number":              {m: delivered(`{}`, "Flexid-Evidence", "banka"), problem: "Flexid-Key"},
		"winstrom":               {m: delivered(`{"winstrom":{}}`, "Flexid-Evidence", "banka"), problem: "winstrom"},
		"our own external id":    {m: delivered(`{"kod":"A","id":"ext:FLEXID:1"}`, "Flexid-Evidence", "banka"), problem: "FLEXID"},
		"too large":              {m: delivered(strings.Repeat(" ", batch.MaxEvent+1), "Flexid-Evidence", "banka"), problem: "more than"},
		"marked by the receiver": {m: delivered(event(""), "Flexid-Problem", "came before with another body"), problem: "came before"},
	} {
		e := decoder.Decode(tc.m)
		if tc.problem != "" {
			if !strings.Contains(e.Problem, tc.problem) || e.Body != nil || string(e.Raw) != string(tc.m.Data) || e.Source != "shop" || e.EventID == "" {
				t.Errorf("%s: %+v", name, e)
			}
			continue
		}
		op, _ := flexi.ParseOp(tc.op)
		if e.Problem != "" || e.Source != "shop" || e.Evidence != "faktura-vydana" || e.Key != tc.key || e.Op != op || e.Version != tc.version ||
			e.EventID != tc.id || e.Given != tc.given || string(e.Body) != tc.body || e.Stream != "FLEXID_INBOX" || e.Seq != 7 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestSubjectsOfTheInbox: only the inbox's own shape is a delivery; everything else is judged as an event of NATS.
func TestSubjectsOfTheInbox(t *testing.T) {
	for subject, source := range map[string]string{
		"flexi.in.shop.x": "shop", "flexi.in.shop": "", "flexi.in..x": "", "acme.in.shop.x": "", "flexi.push.in.shop": "",
	} {
		if e := decoder.Decode(message(subject, `{"kod":"A"}`, "Flexid-Evidence", "banka")); e.Source != source {
			t.Errorf("%s: source %q", subject, e.Source)
		}
	}
	other := batch.Decoder{Prefix: "acme"}
	if e := other.Decode(message("acme.in.shop.x", `{"kod":"A"}`, "Flexid-Evidence", "banka")); e.Source != "shop" || e.Problem != "" {
		t.Errorf("%+v", e)
	}
}

func FuzzDecodeDelivery(f *testing.F) {
	f.Add(`{"kod":"A"}`, "banka", "k", "create", "1")
	f.Add(`{"evidence":"banka","document":{"kod":"A"}}`, "", "", "", "")
	f.Fuzz(func(t *testing.T, body, evidence, key, op, id string) {
		e := decoder.Decode(delivered(body, "Flexid-Evidence", evidence, "Flexid-Key", key, "Flexid-Op", op, "Flexid-Event-Id", id))
		if e.EventID == "" || e.Source != "shop" {
			t.Errorf("%+v", e)
		}
		if e.Problem == "" && (e.Key == "" || !json.Valid(e.Body)) {
			t.Errorf("taken: %+v", e)
		}
	})
}
