package batch_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"flexid/batch"
	"flexid/flexi"
	"flexid/verify"
)

var stored = time.Date(2026, 11, 30, 8, 15, 0, 42, time.UTC)

func message(subject, body string, headers ...string) batch.Message {
	m := batch.Message{
		Subject: subject, Data: []byte(body), Stream: "FLEXID_PUSH", Seq: 7,
		Time: stored, Received: stored.Add(time.Second), Header: map[string][]string{},
	}
	for i := 0; i < len(headers); i += 2 {
		m.Header[headers[i]] = append(m.Header[headers[i]], headers[i+1])
	}
	return m
}

var decoder = batch.Decoder{System: "FLEXID", Zone: prague()}

func prague() *time.Location {
	zone, err := time.LoadLocation("Europe/Prague")
	if err != nil {
		panic(err)
	}
	return zone
}

const invoice = "flexi.push.faktura-vydana"

func TestDecodeReadsEvents(t *testing.T) {
	const body = `{"kod":"fv-1 ","typDokl":"code:FAKTURA"}`
	cloud := func(attributes, rest string) string {
		return `{"specversion":"1.0","source":"/shop","id":"e1",` + attributes + rest + `}`
	}
	for _, tc := range []struct {
		name string
		m    batch.Message
		want verify.Event // Key, Op, EventID, Given, Version, Body; the rest is checked below
	}{
		{"plain body, key from the number, normalised", message(invoice, body),
			verify.Event{Key: "FV-1", Op: flexi.Create, Body: json.RawMessage(body)}},
		{"key in the subject", message(invoice+".a-1", `{"popis":"x"}`),
			verify.Event{Key: "a-1", Op: flexi.Create, Body: json.RawMessage(`{"popis":"x"}`)}},
		{"key in the header wins over the number", message(invoice, body, "Flexid-Key", "order 7"),
			verify.Event{Key: "order 7", Op: flexi.Create, Body: json.RawMessage(body)}},
		{"key in header and subject, equal", message(invoice+".A", body, "flexid-key", " A "),
			verify.Event{Key: "A", Op: flexi.Create, Body: json.RawMessage(body)}},
		{"headers in any case", message(invoice, body, "FLEXID-OP", "update", "flexid-version", "12", "nats-msg-id", "m1"),
			verify.Event{Key: "FV-1", Op: flexi.Update, Version: "12", EventID: "m1", Given: true, Body: json.RawMessage(body)}},
		{"our own event id", message(invoice, body, "flexid-event-id", "m1"),
			verify.Event{Key: "FV-1", Op: flexi.Create, EventID: "m1", Given: true, Body: json.RawMessage(body)}},
		{"our own event id before the server's", message(invoice, body, "Flexid-Event-Id", "m1", "Nats-Msg-Id", strings.Repeat("k", 256)),
			verify.Event{Key: "FV-1", Op: flexi.Create, EventID: "m1", Given: true, Body: json.RawMessage(body)}},
		{"our own event id before a CloudEvent's", message(invoice, cloud(`"type":"update",`, `"data":`+body), "Flexid-Event-Id", "m1"),
			verify.Event{Key: "FV-1", Op: flexi.Update, EventID: "m1", Given: true, Body: json.RawMessage(body)}},
		{"version as a time", message(invoice, body, "Flexid-Version", "2026-11-30T08:15:00+01:00"),
			verify.Event{Key: "FV-1", Op: flexi.Create, Version: "2026-11-30T08:15:00+01:00", Body: json.RawMessage(body)}},
		{"payable, key from partner and supplier's number",
			message("flexi.push.faktura-prijata", `{"firma":"code:acme","cisDosle":"2026/17","datVyst":"2027-01-02"}`),
			verify.Event{Key: "code:ACME/2027/2026/17", Derived: true, Op: flexi.Create,
				Body: json.RawMessage(`{"firma":"code:acme","cisDosle":"2026/17","datVyst":"2027-01-02"}`)}},
		{"payable of a partner with a slash", message("flexi.push.zavazek", `{"firma":"code:a/b","cisDosle":"1","datVyst":"2027-01-02"}`),
			verify.Event{Key: "code:A%2FB/2027/1", Derived: true, Op: flexi.Create,
				Body: json.RawMessage(`{"firma":"code:a/b","cisDosle":"1","datVyst":"2027-01-02"}`)}},
		{"payable issued in the last hour of a year in UTC", message("flexi.push.zavazek", `{"firma":"7","cisDosle":"1","datVyst":"2026-12-31T23:30:00Z"}`),
			verify.Event{Key: "7/2027/1", Derived: true, Op: flexi.Create,
				Body: json.RawMessage(`{"firma":"7","cisDosle":"1","datVyst":"2026-12-31T23:30:00Z"}`)}},
		{"payable without a day, with a key", message("flexi.push.zavazek.K1", `{"firma":"7","cisDosle":"1"}`),
			verify.Event{Key: "K1", Op: flexi.Create, Body: json.RawMessage(`{"firma":"7","cisDosle":"1"}`)}},
		{"delete without a body", message(invoice+".A", "", "Flexid-Op", "delete"),
			verify.Event{Key: "A", Op: flexi.Delete, Body: json.RawMessage("{}")}},
		{"storno with an empty object", message(invoice+".A", "{}", "Flexid-Op", "storno"),
			verify.Event{Key: "A", Op: flexi.Storno, Body: json.RawMessage("{}")}},
		{"the same key composed and decomposed", message(invoice+".Že", body, "Flexid-Key", "Z\u030ce"),
			verify.Event{Key: "Že", Op: flexi.Create, Body: json.RawMessage(body)}},
		{"CloudEvent, structured", message(invoice, cloud(`"type":"cz.shop.invoice.upsert","subject":"K1",`, `"data":{"popis":"x"}`),
			"Content-Type", "application/cloudevents+json; charset=utf-8"),
			verify.Event{Key: "K1", Op: flexi.Upsert, EventID: "/shop e1", Given: true, Body: json.RawMessage(`{"popis":"x"}`)}},
		{"CloudEvent, structured, without a header", message(invoice, cloud(`"type":"update",`, `"data":`+body)),
			verify.Event{Key: "FV-1", Op: flexi.Update, EventID: "/shop e1", Given: true, Body: json.RawMessage(body)}},
		{"CloudEvent, data in base64", message(invoice, cloud(`"type":"a.create",`, `"data_base64":"`+base64.StdEncoding.EncodeToString([]byte(body))+`"`)),
			verify.Event{Key: "FV-1", Op: flexi.Create, EventID: "/shop e1", Given: true, Body: json.RawMessage(body)}},
		{"CloudEvent, delete without data", message(invoice, cloud(`"type":"a.delete",`, `"subject":"K1","data":null`)),
			verify.Event{Key: "K1", Op: flexi.Delete, EventID: "/shop e1", Given: true, Body: json.RawMessage("{}")}},
		{"CloudEvent, a type of the sender's and our header", message(invoice, cloud(`"type":"invoice.issued.v1",`, `"data":`+body), "Flexid-Op", "upsert"),
			verify.Event{Key: "FV-1", Op: flexi.Upsert, EventID: "/shop e1", Given: true, Body: json.RawMessage(body)}},
		{"CloudEvent, binary, percent-encoded", message(invoice, body, "ce-specversion", "1.0", "CE-Type", "x.create", "ce-source", "/e%20shop", "ce-id", "5", "ce-subject", "%C5%BD1"),
			verify.Event{Key: "Ž1", Op: flexi.Create, EventID: "/e%20shop 5", Given: true, Body: json.RawMessage(body)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decoder.Decode(tc.m)
			if got.Problem != "" {
				t.Fatalf("problem: %s", got.Problem)
			}
			if tc.want.EventID == "" {
				tc.want.EventID = fmt.Sprintf("FLEXID_PUSH:7:%d", stored.UnixNano())
			}
			if got.Key != tc.want.Key || got.Op != tc.want.Op || got.EventID != tc.want.EventID || got.Given != tc.want.Given ||
				got.Version != tc.want.Version || string(got.Body) != string(tc.want.Body) {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
			if got.Source != "" || got.Raw != nil || got.Seq != 7 || got.Stream != "FLEXID_PUSH" || !got.StreamTime.Equal(stored) || got.Subject != tc.m.Subject {
				t.Errorf("envelope of the event: %+v", got)
			}
		})
	}
}

func TestDecodeNamesWhatIsWrong(t *testing.T) {
	const ok = `{"kod":"A"}`
	cloud := func(rest string) string { return `{"specversion":"1.0","source":"s","id":"1",` + rest + `}` }
	for _, tc := range []struct {
		name string
		m    batch.Message
		key  string   // under which the event is shown
		says []string // parts of the sentence
	}{
		{"no key and no number", message(invoice, `{"popis":"x"}`), "", []string{"could not be looked up", "Flexid-Key", "kod"}},
		{"payable without a day", message("flexi.push.faktura-prijata", `{"firma":"code:A","cisDosle":"17"}`), "", []string{"Flexid-Key", "datVyst"}},
		{"payable whose partner is free text", message("flexi.push.faktura-prijata", `{"firma":"Acme s.r.o.","cisDosle":"17","datVyst":"2026-01-02"}`), "", []string{"Flexid-Key", "firma"}},
		{"payable without a partner", message("flexi.push.faktura-prijata", `{"cisDosle":"17"}`), "", []string{"Flexid-Key", "cisDosle", "firma"}},
		{"two keys that differ", message(invoice+".B", ok, "Flexid-Key", "C"), "", []string{"key is given twice", `"B"`, `"C"`, "subject", "header Flexid-Key"}},
		{"one header twice", message(invoice, ok, "Flexid-Key", "C", "flexid-key", "D"), "A", []string{"Flexid-Key is given twice", `"C"`, `"D"`}},
		{"two operations that differ", message(invoice, cloud(`"type":"x.create","data":{"kod":"A"}`), "Flexid-Op", "delete"), "A", []string{"operation is given twice", "create", "delete"}},
		{"an operation that does not exist", message(invoice, ok, "Flexid-Op", "remove"), "A", []string{"Flexid-Op", "remove", "storno"}},
		{"a number over its length", message(invoice+".K", `{"kod":"`+strings.Repeat("x", 25)+`"}`), "K", []string{"kod", "25", "20"}},
		{"a supplier's number over its length", message("flexi.push.faktura-prijata", `{"firma":"code:A","cisDosle":"`+strings.Repeat("1", 41)+`"}`), "", []string{"cisDosle", "41", "40"}},
		{"a number that is a list", message(invoice+".K", `{"kod":["x"]}`), "K", []string{"kod"}},
		{"broken JSON", message(invoice+".K", "{\"kod\":\"A\",\n\"popis\":x}"), "K", []string{"not JSON", "its line 2, byte 9"}},
		{"JSON that ends too early", message(invoice, `{"kod":"A"`), "", []string{"ends too early", "byte 10"}},
		{"two documents", message(invoice, ok+ok), "", []string{"goes on", "flexid push"}},
		{"a list", message(invoice, "["+ok+"]"), "", []string{"list", "flexid push"}},
		{"an envelope", message(invoice, `{"winstrom":{"faktura-vydana":[`+ok+`]}}`), "", []string{"winstrom", "flexid push"}},
		{"a bare string", message(invoice, `"A"`), "", []string{"not a JSON object"}},
		{"nothing", message(invoice, ""), "", []string{"empty"}},
		{"nothing to delete by", message(invoice, "", "Flexid-Op", "delete"), "", []string{"could not be looked up"}},
		{"two byte order marks", message(invoice, "\ufeff\ufeff"+ok), "", []string{"byte order mark", "very beginning"}},
		{"a byte order mark after a blank", message(invoice, " \ufeff"+ok), "", []string{"byte order mark", "very beginning"}},
		{"XML", message(invoice, `<?xml version="1.0"?><winstrom/>`), "", []string{"XML", "NDJSON"}},
		{"not UTF-8", message(invoice+".K", "{\"kod\":\"\xe8\"}"), "K", []string{"not UTF-8", "byte 9"}},
		{"two kod", message(invoice, `{"kod":"A","kod":"B"}`), "B", []string{"kod", "twice"}},
		{"id in the body", message(invoice, `{"kod":"A","id":"123"}`), "A", []string{"id"}},
		{"our own external id in the body", message(invoice, `{"kod":"A","id":"ext:FLEXID:x"}`), "A", []string{"ext:FLEXID:x"}},
		{"@update in the body", message(invoice, `{"kod":"A","@update":"ok"}`), "A", []string{"@update"}},
		{"@update in a row", message(invoice, `{"kod":"A","polozkyFaktury":[{"@update":"ok"}]}`), "A", []string{"polozkyFaktury", "@update"}},
		{"external-ids in the body", message(invoice, `{"kod":"A","external-ids":[]}`), "A", []string{"external-ids"}},
		{"a version that is none", message(invoice, ok, "Flexid-Version", "v2"), "A", []string{"Flexid-Version", "v2"}},
		{"a version with a plus", message(invoice, ok, "Flexid-Version", "+2"), "A", []string{"Flexid-Version"}},
		{"an event of 513 KiB", message(invoice+".K", `{"kod":"`+strings.Repeat("x", 513<<10)+`"}`), "K", []string{"524288"}},
		{"an evidence that is none", message("flexi.push.Faktura", ok), "A", []string{"Faktura", "evidence"}},
		{"a subject with too many tokens", message(invoice+".a.b", ok), "A", []string{"several tokens", "Flexid-Key"}},
		{"a foreign subject", message("orders.new", ok), "A", []string{"orders.new"}},
		{"a key over its length", message(invoice, ok, "Flexid-Key", strings.Repeat("k", 256)), "A", []string{"key", "256", "255"}},
		{"a key with a control character", message(invoice, ok, "Flexid-Key", "a\x00b"), "A", []string{"control"}},
		{"a number with a control character", message(invoice, `{"kod":"A\nB"}`), "", []string{"control"}},
		{"our own event id over its length", message(invoice, ok, "Flexid-Event-Id", strings.Repeat("k", 256)), "A", []string{"Flexid-Event-Id"}},
		{"our own event id twice", message(invoice, ok, "Flexid-Event-Id", "a", "flexid-event-id", "b"), "A", []string{"Flexid-Event-Id", "twice"}},
		{"a version over its length", message(invoice, ok, "Flexid-Version", strings.Repeat("0", 400)+"1"), "A", []string{"Flexid-Version", "whole number"}},
		{"an event id over its length", message(invoice, ok, "Nats-Msg-Id", strings.Repeat("k", 256)), "A", []string{"Nats-Msg-Id"}},
		{"CloudEvent of another version", message(invoice, `{"specversion":"0.3","source":"s","id":"1","type":"create","data":{"kod":"A"}}`), "A", []string{"specversion", "0.3"}},
		{"CloudEvent without an id", message(invoice, `{"specversion":"1.0","source":"s","type":"create","data":{"kod":"A"}}`), "A", []string{"id is missing"}},
		{"CloudEvent of a type without operation", message(invoice, cloud(`"type":"invoice.issued","data":{"kod":"A"}`)), "A", []string{"invoice.issued", "Flexid-Op"}},
		{"CloudEvent that holds XML", message(invoice, cloud(`"type":"create","datacontenttype":"text/xml","data":{"kod":"A"}`)), "A", []string{"text/xml"}},
		{"CloudEvent with data twice over", message(invoice, cloud(`"type":"create","data":{"kod":"A"},"data_base64":"e30="`)), "", []string{"both data and data_base64"}},
		{"CloudEvent with a name twice", message(invoice, cloud(`"type":"create","data":{"kod":"A"},"data":{"kod":"B"}`)), "", []string{"data", "twice"}},
		{"CloudEvent with bad base64", message(invoice, cloud(`"type":"create","subject":"K","data_base64":"*"`)), "K", []string{"base64"}},
		{"CloudEvent with a number as subject", message(invoice, cloud(`"type":"create","subject":7,"data":{"kod":"A"}`)), "A", []string{"subject", "string"}},
		{"several CloudEvents at once", message(invoice, "[]", "Content-Type", "application/cloudevents-batch+json"), "", []string{"cloudevents-batch"}},
		{"binary CloudEvent, bad encoding", message(invoice, ok, "ce-specversion", "1.0", "ce-type", "create", "ce-source", "%zz", "ce-id", "1"), "A", []string{"ce-source", "percent"}},
		{"CloudEvent subject against the header", message(invoice, cloud(`"type":"create","subject":"K","data":{"kod":"A"}`), "Flexid-Key", "L"), "", []string{"given twice", `"K"`, `"L"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decoder.Decode(tc.m)
			for _, part := range tc.says {
				if !strings.Contains(got.Problem, part) {
					t.Errorf("problem %q does not say %q", got.Problem, part)
				}
			}
			if got.Key != tc.key {
				t.Errorf("key %q, want %q (%s)", got.Key, tc.key, got.Problem)
			}
			if got.Body != nil || !bytes.Equal(got.Raw, tc.m.Data) {
				t.Error("an unreadable event keeps its bytes, and nothing else")
			}
		})
	}
}

func TestDecodeDoesNotShareMemoryWithTheMessage(t *testing.T) {
	m := message(invoice, `{"kod":"A"}`)
	event := decoder.Decode(m)
	clear(m.Data)
	if string(event.Body) != `{"kod":"A"}` {
		t.Errorf("body changed with the message: %q", event.Body)
	}
}

func TestDecodeOtherPrefix(t *testing.T) {
	event := batch.Decoder{Prefix: "acme", System: "FLEXID"}.Decode(message("acme.push.banka", `{"kod":"A"}`))
	if event.Problem != "" || event.Evidence != "banka" {
		t.Errorf("%+v", event)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(invoice, `{"kod":"A"}`, "create", "K", "application/json", "1")
	f.Add(invoice+".K", `{"specversion":"1.0","source":"s","id":"1","type":"a.update","data_base64":"e30="}`, "", "", "application/cloudevents+json", "")
	f.Add("flexi.push.faktura-prijata", `{"firma":"code:A","cisDosle":"1"}`, "", "", "", "")
	f.Add("flexi.push.", "[]", "x", "", "", "+1")
	f.Fuzz(func(t *testing.T, subject, body, op, key, contentType, version string) {
		m := message(subject, body, "Flexid-Op", op, "Flexid-Key", key, "Content-Type", contentType, "Flexid-Version", version)
		e := decoder.Decode(m)
		switch {
		case e.EventID == "" || e.Evidence == "":
			t.Fatalf("an event without id or evidence: %+v", e)
		case e.Problem == "" && (e.Key == "" || e.Op == "" || e.Raw != nil || !json.Valid(e.Body)):
			t.Fatalf("a readable event that could not be sent or looked up: %+v", e)
		case e.Problem == "" && flexi.CheckBody(e.Evidence, "FLEXID", e.Body) != nil:
			t.Fatalf("a body that must not be sent: %s", e.Body)
		case e.Problem != "" && (e.Body != nil || !bytes.Equal(e.Raw, m.Data)):
			t.Fatalf("an unreadable event that lost its bytes: %+v", e)
		case utf8.ValidString(subject+op+key+contentType) && !utf8.ValidString(e.Problem):
			t.Fatalf("a problem nobody can read: %q", e.Problem)
		}
	})
}
