package batch_test

import (
	"strings"
	"testing"

	"flexid/batch"
	"flexid/flexi"
	"flexid/verify"
)

func TestDecodeFileEvent(t *testing.T) {
	for _, tc := range []struct {
		name, line, beside  string
		evidence, key, body string
		op                  flexi.Op
		version             string
		says                string // a part of the problem
	}{
		{name: "whole event", line: `{"evidence":"banka","op":"update","key":"K","version":3,"document":{"popis":"x"}}`,
			evidence: "banka", key: "K", op: flexi.Update, version: "3", body: `{"popis":"x"}`},
		{name: "defaults", line: `{"document":{"kod":"a"}}`, beside: "faktura-vydana", evidence: "faktura-vydana", key: "A", op: flexi.Upsert, body: `{"kod":"a"}`},
		{name: "bare document", line: `{"kod":"a"}`, beside: "faktura-vydana", evidence: "faktura-vydana", key: "A", op: flexi.Upsert, body: `{"kod":"a"}`},
		{name: "the event's evidence counts", line: `{"evidence":"banka","document":{"kod":"a"}}`, beside: "faktura-vydana", evidence: "banka", key: "A", op: flexi.Upsert, body: `{"kod":"a"}`},
		{name: "key as a number", line: `{"evidence":"banka","key":17,"document":{}}`, evidence: "banka", key: "17", op: flexi.Upsert, body: `{}`},
		{name: "bare document without evidence", line: `{"kod":"a"}`, evidence: batch.UnknownEvidence, key: "A", op: flexi.Upsert, says: "no evidence"},
		{name: "misspelt field", line: `{"evidence":"banka","keys":"K","document":{"kod":"a"}}`, evidence: "banka", key: "A", op: flexi.Upsert, says: `"keys"`},
		{name: "a field twice", line: `{"evidence":"banka","key":"K","key":"L","document":{}}`, evidence: "banka", key: "L", op: flexi.Upsert, says: "twice"},
		{name: "misspelt document", line: `{"evidence":"banka","documnt":{"kod":"a"}}`, evidence: "banka", op: flexi.Upsert, says: `no field "document"`},
		{name: "neither key nor number", line: `{"evidence":"banka","document":{}}`, evidence: "banka", op: flexi.Upsert, says: "write key into the event"},
		{name: "several lines", line: "{\"evidence\":\"banka\",\n \"document\":{\"kod\":\"a\"\n \"x\":1}}", beside: "banka", evidence: "banka", op: flexi.Upsert, says: "its line 3, byte 2: "},
		{name: "a list in a line", line: `[{"kod":"a"}]`, beside: "banka", evidence: "banka", op: flexi.Upsert, says: "must be the whole file"},
		{name: "document that is a list", line: `{"evidence":"banka","key":"K","document":[]}`, evidence: "banka", key: "K", op: flexi.Upsert, says: "list"},
		{name: "version that is none", line: `{"evidence":"banka","key":"K","version":"x","document":{}}`, evidence: "banka", key: "K", op: flexi.Upsert, says: "version"},
		{name: "key that is an object", line: `{"evidence":"banka","key":{},"document":{"kod":"a"}}`, evidence: "banka", key: "A", op: flexi.Upsert, says: "key of the event"},
		{name: "broken line", line: `{"evidence":`, beside: "banka", evidence: "banka", op: flexi.Upsert, says: "not JSON"},
		{name: "too large", line: `{"kod":"` + strings.Repeat("x", batch.MaxEvent) + `"}`, beside: "banka", evidence: batch.UnknownEvidence, op: flexi.Upsert, says: "524288"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := decoder.DecodeFileEvent([]byte(tc.line), tc.beside)
			if tc.says == "" && e.Problem != "" || !strings.Contains(e.Problem, tc.says) {
				t.Fatalf("problem %q, want %q", e.Problem, tc.says)
			}
			if e.Evidence != tc.evidence || e.Key != tc.key || e.Op != tc.op || e.Version != tc.version || string(e.Body) != tc.body {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func FuzzDecodeFileEvent(f *testing.F) {
	f.Add(`{"evidence":"banka","op":"update","key":"K","version":3,"document":{"popis":"x"}}`, "")
	f.Add(`{"kod":"a"}`, "banka")
	f.Fuzz(func(t *testing.T, line, beside string) {
		e := decoder.DecodeFileEvent([]byte(line), beside)
		if e.Problem == "" && (e.Key == "" || e.Body == nil || e.Evidence == batch.UnknownEvidence) {
			t.Fatalf("a readable event that could not be sent: %+v", e)
		}
	})
}

// TestSourceOfAnEvent: a file or a message may be about the document of a webhook source; a delivery only about its own.
func TestSourceOfAnEvent(t *testing.T) {
	file := func(beside, line string) verify.Event {
		return batch.Decoder{Source: beside}.DecodeFileEvent([]byte(line), "")
	}
	message := func(source string) verify.Event {
		return batch.Decoder{}.Decode(batch.Message{Subject: "flexi.push.banka", Header: map[string][]string{"Flexid-Source": {source}}, Data: []byte(`{"kod":"B-1"}`)})
	}
	delivery := func(source string) verify.Event {
		return batch.Decoder{}.Decode(batch.Message{Subject: "flexi.in.eshop.0123", Data: []byte(`{"evidence":"banka","source":"` + source + `","document":{"kod":"B-1"}}`)})
	}
	const bare = `{"evidence":"banka","document":{"kod":"B-1"}}`
	const said = `{"evidence":"banka","source":"eshop","document":{"kod":"B-1"}}`
	for name, tc := range map[string]struct {
		got     verify.Event
		source  string
		problem string
	}{
		"none":                          {file("", bare), "", ""},
		"beside the file":               {file("eshop", bare), "eshop", ""},
		"in the event":                  {file("", said), "eshop", ""},
		"in both: the event's":          {file("pos", said), "eshop", ""},
		"no name":                       {file("", strings.Replace(said, "eshop", "E shop", 1)), "", "small letters"},
		"too long":                      {file("", strings.Replace(said, "eshop", strings.Repeat("e", 21), 1)), "", "20"},
		"in a message":                  {message("eshop"), "eshop", ""},
		"no name in a message":          {message("e.shop"), "", "header Flexid-Source"},
		"a delivery's own":              {delivery("eshop"), "eshop", ""},
		"of another one, in a delivery": {delivery("pos"), "eshop", "came from"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got.Source != tc.source || !strings.Contains(tc.got.Problem, tc.problem) || (tc.problem == "") != (tc.got.Problem == "") {
				t.Errorf("source %q, problem %q", tc.got.Source, tc.got.Problem)
			}
		})
	}
}
