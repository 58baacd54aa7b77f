package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"flexid/cmd/internal/api"
	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

func TestDocsShowTellsTheStory(t *testing.T) {
	story := api.Story{
		Row:        api.Row{Evidence: "faktura-vydana", Key: "FV-1", State: "parked", Reason: "conflict", Sends: 2, Updated: at},
		ExternalID: "ext:FLEXID:FV-1", Amount: "1210.00", Currency: "CZK", Sent: json.RawMessage(`{"sumCelkem":1210.00}`),
		Problem: &ledger.Problem{Text: "Flexi shows something else", Differ: []ledger.Difference{{Field: "popis", Sent: "a", Found: "b"}}},
		Events:  []api.StoryEvent{{N: 1, EventID: "e-1", Op: flexi.Create, Received: at}},
		Attempts: []api.StoryAttempt{{Event: 1,
			Attempt: ledger.Attempt{N: 1, Op: flexi.Create, Claimed: at.Add(2 * time.Second), Ended: at.Add(4 * time.Second), Outcome: "maybe", Speaker: "no_answer", Group: "run.1", Size: 4,
				Errors: []flexi.Message{{Text: "chyba", For: "kod"}}},
			Requests: []flexi.Request{{Time: at.Add(3 * time.Second), Method: "POST", URL: "/c/firma/faktura-vydana.json", Status: 504, Outcome: "maybe", Sent: 812, Millis: 900},
				{Time: at.Add(3500 * time.Millisecond), Method: "POST", URL: "/x", Error: "connection reset"}},
		}},
		Looks:     []api.StoryLook{{Event: 1, Look: ledger.Look{Time: at.Add(5 * time.Second), Why: "settle", Verdict: "differs", Found: []string{"41"}}}},
		Decisions: []api.StoryDecision{{Event: 1, Decision: ledger.Decision{Time: at.Add(9 * time.Second), By: "jana", What: "note", Why: "asked\x1b[2J"}}},
		Cut:       3,
	}
	f := newFakeDaemon(t, map[string]string{"GET /api/v1/documents/faktura-vydana/FV-1": encode(t, story)})
	code, out, _ := call(f.env(), "docs", "show", "faktura-vydana/FV-1")
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	last := -1
	for _, want := range []string{
		"faktura-vydana/FV-1", "parked, conflict", `popis: sent "a", Flexi shows "b"`, "asks for create", "attempt", "create claimed, in one request with 3 others",
		"POST /c/firma/faktura-vydana.json: 504, maybe, 812 bytes out", "no answer", "connection reset", "maybe, no_answer", "kod: chyba",
		"settle: differs, found 41", "jana: note", "3 entries were left out", `{"sumCelkem":1210.00}`,
	} {
		i := strings.Index(out, want)
		if i < last {
			t.Errorf("%q is missing or out of order in\n%s", want, out)
		}
		last = i
	}
	if strings.ContainsRune(out, '\x1b') {
		t.Error("a note can steer the terminal")
	}
	_, asJSON, _ := call(f.env(), "docs", "show", "faktura-vydana/FV-1", "-o", "json")
	var back map[string]any
	if err := json.Unmarshal([]byte(asJSON), &back); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"evidence", "key", "state", "events", "attempts", "looks", "decisions", "sent", "found"} {
		if _, ok := back[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if !strings.Contains(asJSON, "1210.00") {
		t.Error("the amount was changed on its way")
	}
	if _, asCSV, _ := call(f.env(), "docs", "show", "faktura-vydana/FV-1", "-o", "csv"); strings.Count(asCSV, "\n") != 8 {
		t.Errorf("csv %q", asCSV)
	}
}

func TestMaybeListSaysWhatToDo(t *testing.T) {
	item := api.Item{Row: api.Row{Evidence: "banka", Key: "1", State: "parked", Reason: "unknown"}, Owner: "operator", Since: at, Text: "nobody knows",
		Can: []string{"look", "confirm"}}
	f := newFakeDaemon(t, map[string]string{"GET /api/v1/queue": encode(t, item)})
	code, out, _ := call(f.env(), "maybe", "list")
	for _, want := range []string{"unknown", "operator", "2026-03-01T12:00:00Z", "look confirm", "nobody knows"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is missing in %q", code, want, out)
		}
	}
}

func TestStatusAfterAnAct(t *testing.T) {
	st := api.Status{Info: api.Info{Company: "firma", Phase: "running"}, Troubles: []api.Trouble{{Text: "no ledger", Remedy: "restore it"}},
		Engine: &verify.Status{Stops: []verify.Stop{{Evidence: "banka", Reason: "person", Text: "year end", Remedy: "`flexid writes resume banka`"}},
			Documents: map[string]int{"queued": 3}}}
	f := newFakeDaemon(t, map[string]string{"POST /api/v1/writes/stop": encode(t, st)})
	_, out, _ := call(f.env(), "writes", "stop", "banka", "--reason", "year end")
	for _, want := range []string{"not ready: no ledger; restore it", "writes stopped: banka (person): year end; `flexid writes resume banka`", "queued     3"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %q", want, out)
		}
	}
}
