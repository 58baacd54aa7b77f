package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

func minute(n int) time.Time {
	return testNow.Add(time.Duration(n) * time.Minute).In(time.FixedZone("CET", 3600))
}

func attempt(n int, outcome string, at time.Time, status int) ledger.Attempt {
	return ledger.Attempt{N: n, Op: flexi.Create, Claimed: at, Ended: at.Add(time.Second), Outcome: outcome, Requests: []flexi.Request{{
		Time: at.Add(100 * time.Millisecond), Kind: "write", Method: "POST", URL: "/c/firma/faktura-vydana.json", Status: status, Outcome: outcome,
		Sent: 812, Received: 90, Millis: 350,
	}}}
}

// storyRow is a document with one event confirmed at its second attempt, one that is a maybe, and one behind it.
func storyRow() (ledger.Row, []ledger.Event) {
	row := ledger.Row{
		Evidence: "faktura-vydana", Source: "eshop", Key: "FV-1", Ext: "ext:FLEXID.eshop:FV-1", State: ledger.Maybe, Number: "FV-1",
		Amount: "1210.00", Currency: "CZK", Sends: 1, FlexiID: "41", Updated: minute(20), Owner: "jana", Due: minute(25), Quiet: minute(30),
		Head: 2, Tail: 3,
		Work: &ledger.Work{N: 2, Op: flexi.Update, Open: true, Ended: minute(11), Story: ledger.Story{
			Attempts:  []ledger.Attempt{attempt(1, "maybe", minute(10), 504)},
			Looks:     []ledger.Look{{Time: minute(12), Why: "settle", Verdict: "differs", Found: []string{"41"}}},
			Decisions: []ledger.Decision{{Time: minute(13), By: "jana", What: "note", Why: "asked the bank"}},
			Cut:       4,
			Problem:   &ledger.Problem{Text: "Flexi shows something else", Differ: []ledger.Difference{{Field: "popis", Sent: "a", Found: "b"}}},
		}},
	}
	events := []ledger.Event{
		{N: 1, EventID: "e1", Op: flexi.Create, Received: minute(0), State: ledger.Confirmed, Sends: 2, Done: minute(5),
			Story: &ledger.Story{Attempts: []ledger.Attempt{attempt(1, "maybe", minute(1), 500), attempt(2, "accepted", minute(3), 201)},
				Looks: []ledger.Look{{Time: minute(2), Why: "settle", Verdict: "absent"}}}},
		{N: 2, EventID: "e2", Op: flexi.Update, Received: minute(9), Version: &ledger.Version{Text: "7"}, Body: json.RawMessage(`{"sumCelkem":1210.00}`),
			// An old copy of the story at the event: the row's own is the newer one.
			Story: &ledger.Story{}},
		{N: 3, EventID: "e3", Op: flexi.Storno, Received: minute(14)},
	}
	return row, events
}

func TestStoryTellsEverything(t *testing.T) {
	r := newRig(t)
	row, events := storyRow()
	r.ledger.add(row, events...)
	var s Story
	r.json("GET", "/api/v1/documents/faktura-vydana/eshop:FV-1", "", &s)

	var states []string
	for _, e := range s.Events {
		states = append(states, e.EventID+" "+e.State+" "+e.Reason)
	}
	if want := []string{"e1 confirmed ", "e2 maybe ", "e3 queued behind"}; !slices.Equal(states, want) {
		t.Errorf("events %q, want %q", states, want)
	}
	var attempts []string
	for _, a := range s.Attempts {
		attempts = append(attempts, a.Outcome)
		if len(a.Requests) != 1 || a.Requests[0].Status == 0 || a.Requests[0].Time.Location() != time.UTC {
			t.Errorf("requests of attempt %d: %+v", a.N, a.Requests)
		}
	}
	if want := []string{"maybe", "accepted", "maybe"}; !slices.Equal(attempts, want) {
		t.Errorf("attempts %q, want %q", attempts, want)
	}
	if len(s.Looks) != 2 || s.Looks[1].Event != 2 || len(s.Decisions) != 1 || s.Decisions[0].By != "jana" || s.Cut != 4 {
		t.Errorf("looks %+v, decisions %+v, cut %d", s.Looks, s.Decisions, s.Cut)
	}
	if s.Owner != "jana" || s.ExternalID != "ext:FLEXID.eshop:FV-1" || s.Amount != "1210.00" || !s.Settled.Equal(minute(30)) {
		t.Errorf("head %+v", s)
	}
	if s.Found == nil || !slices.Equal(s.Found.FlexiIDs, []string{"41"}) || len(s.Found.Differ) != 1 || s.Problem == nil {
		t.Errorf("found %+v, problem %+v", s.Found, s.Problem)
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(s.Sent, &sent); err != nil || string(sent["sumCelkem"]) != "1210.00" {
		t.Errorf("the amount was changed on its way: %s", s.Sent)
	}
}

func TestStoryTimesAreUTC(t *testing.T) {
	r := newRig(t)
	row, events := storyRow()
	r.ledger.add(row, events...)
	w := r.do("GET", "/api/v1/documents/faktura-vydana/eshop:FV-1", "")
	if strings.Contains(w.Body.String(), "+01:00") {
		t.Errorf("a time is not UTC: %s", w.Body)
	}
	for _, name := range []string{`"duration_ms"`, `"bytes_sent"`, `"flexi_id"`, `"decisions"`} {
		if !strings.Contains(w.Body.String(), name) {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestStoryOfAFinishedDocumentShowsItsLastEvent(t *testing.T) {
	r := newRig(t)
	r.ledger.add(ledger.Row{Evidence: "banka", Key: "1", State: ledger.Parked, Reason: ledger.Rejected, Head: 2, Tail: 2, FlexiID: "9"},
		ledger.Event{N: 1, State: ledger.Confirmed, Body: json.RawMessage(`{"a":1}`)},
		ledger.Event{N: 2, State: ledger.Parked, Reason: ledger.Rejected, Body: json.RawMessage(`{"a":2}`), Problem: &ledger.Problem{Text: "too long"}})
	var s Story
	r.json("GET", "/api/v1/documents/banka/1", "", &s)
	if s.Problem == nil || s.Problem.Text != "too long" || !strings.Contains(string(s.Sent), "2") || s.Events[1].State != "parked" {
		t.Errorf("%+v", s)
	}
	if s.Found == nil || s.Found.FlexiIDs[0] != "9" {
		t.Errorf("found %+v", s.Found)
	}
}

// TestStoryShowsTheWholeThatWasSent: what a person had put in the place of the event's own fields is what Flexi got.
func TestStoryShowsTheWholeThatWasSent(t *testing.T) {
	for name, c := range map[string]struct {
		whole []int
		sent  string
	}{"whole": {[]int{1, 2}, `{"a":2,"b":1}`}, "an event of it is not there any more": {[]int{1, 2, 7}, `{"a":2}`}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.ledger.add(ledger.Row{Evidence: "banka", Key: "1", State: ledger.Confirmed, Head: 2, Tail: 2, Work: &ledger.Work{N: 2, Final: true}},
				ledger.Event{N: 1, State: ledger.Confirmed, Body: json.RawMessage(`{"a":1,"b":1}`)},
				ledger.Event{N: 2, State: ledger.Confirmed, Body: json.RawMessage(`{"a":2}`), Whole: c.whole})
			var s Story
			r.json("GET", "/api/v1/documents/banka/1", "", &s)
			if strings.Join(strings.Fields(string(s.Sent)), "") != c.sent {
				t.Errorf("sent %s", s.Sent)
			}
		})
	}
}

func TestStoryStaysBounded(t *testing.T) {
	r := newRig(t)
	var events []ledger.Event
	for n := 1; n <= maxEvents+20; n++ {
		events = append(events, ledger.Event{N: n, State: ledger.Confirmed})
	}
	events[maxEvents+10].N = 0 // one that is not there any more
	r.ledger.add(ledger.Row{Evidence: "banka", Key: "1", State: ledger.Confirmed, Head: len(events) + 1, Tail: len(events)}, events...)
	var s Story
	r.json("GET", "/api/v1/documents/banka/1", "", &s)
	if s.Earlier != 20 || len(s.Events) != maxEvents-1 || s.Cut != 1 || s.Events[0].N != 21 {
		t.Errorf("earlier %d, events %d, cut %d", s.Earlier, len(s.Events), s.Cut)
	}
}

func TestQueue(t *testing.T) {
	r := newRig(t)
	r.engine.status.Stops = []verify.Stop{
		{Evidence: "cenik", Reason: "right", Text: "no right", NeedsYou: true},
		{Reason: "login", Text: "Flexi refuses the login", Remedy: "set FLEXID_FLEXI_PASSWORD", NeedsYou: true},
	}
	begun := func(hours int, looks ...ledger.Look) *ledger.Work {
		return &ledger.Work{Begun: testNow.Add(-time.Duration(hours) * time.Hour), Story: ledger.Story{Looks: looks}}
	}
	for _, row := range []ledger.Row{
		{Evidence: "banka", Key: "maybe", State: ledger.Maybe, Work: begun(1)},
		{Evidence: "banka", Key: "conflict", State: ledger.Parked, Reason: ledger.Conflict, Work: begun(2, ledger.Look{Found: []string{"7"}}, ledger.Look{})},
		{Evidence: "banka", Key: "unknown", State: ledger.Parked, Reason: ledger.Unknown, Owner: "petr", Work: begun(3, ledger.Look{Found: []string{"7"}})},
		{Evidence: "banka", Key: "rejected", State: ledger.Parked, Reason: ledger.Rejected, Work: begun(9)},
		{Evidence: "banka", Key: "new", State: ledger.Queued, Work: begun(0)},
		{Evidence: "banka", Key: "old", State: ledger.Queued, Reason: ledger.Blocked, Work: begun(30)},
		{Evidence: "banka", Key: "done", State: ledger.Confirmed, Updated: testNow.Add(-99 * time.Hour)},
	} {
		r.ledger.add(row)
	}
	r.engine.choices = func(row *ledger.Row) []verify.What {
		if row.Key == "conflict" {
			return []verify.What{verify.DecideConfirm, verify.DecideDrop}
		}
		return []verify.What{verify.DecideLook}
	}
	var items []Item
	r.json("GET", "/api/v1/queue", "", &items)
	var got []string
	for _, it := range items {
		got = append(got, it.Key+" "+it.Owner+" "+strings.Join(it.Can, ","))
		if it.Text == "" || it.AgeMS != testNow.Sub(it.Since).Milliseconds() {
			t.Errorf("%s: text %q, age %d", it.Key, it.Text, it.AgeMS)
		}
	}
	want := []string{
		"old operator look",
		"rejected operator look",
		"unknown petr look",
		"conflict operator confirm,drop",
		"maybe flexid look",
	}
	if !slices.Equal(got, want) {
		t.Errorf("queue\n got %q\nwant %q", got, want)
	}
	if text := items[0].Text; !strings.Contains(text, "refuses the login; set FLEXID_FLEXI_PASSWORD") {
		t.Errorf("the blocked one says %q", text)
	}
	r.json("GET", "/api/v1/queue?reason=rejected,unknown&evidence=banka", "", &items)
	if len(items) != 2 || items[0].Key != "rejected" {
		t.Errorf("filtered: %+v", items)
	}
	if p := r.problem(r.do("GET", "/api/v1/queue?reason=nonsense", "")); p.Status != http.StatusBadRequest || !strings.Contains(p.Detail, "rejected") {
		t.Errorf("%+v", p)
	}
}
