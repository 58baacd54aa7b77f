package flexi_test

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
)

const evidence = "faktura-vydana"

// erp is a fake ERP in memory and a client of it.
func erp(t *testing.T, opt flexitest.Options) (*flexitest.Server, *flexi.Client) {
	t.Helper()
	s := flexitest.New(opt)
	t.Cleanup(s.Close)
	c, err := flexi.New(flexi.Options{URL: s.URL(), Company: "firma", User: "flexid", Password: "secret", Dial: s.Dial,
		Rand: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func ext(n int) flexi.ExternalID { return flexi.NewExternalID("FLEXID", "", fmt.Sprintf("k%d", n)) }

func invoice(n int) flexi.Doc {
	number := fmt.Sprintf("FV-%d", n)
	return flexi.Doc{Ext: ext(n), Number: number, Body: fmt.Appendf(nil,
		`{"kod":%q,"typDokl":"code:FAKTURA","varSym":"%d","datVyst":"2026-11-30","polozkyFaktury":[{"nazev":"Práce","mnozMj":"2","cenaMj":"100"}]}`,
		number, n)}
}

func do(t *testing.T, c *flexi.Client, attempt string, op flexi.Op, docs ...flexi.Doc) flexi.Result {
	t.Helper()
	p, err := flexi.Prepare(flexi.Write{Evidence: evidence, Op: op, Docs: docs})
	if err != nil {
		t.Fatal(err)
	}
	cn, err := c.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cn.Close()
	return cn.Send(t.Context(), p, flexi.Permit{Attempt: attempt, Claimed: time.Now()})
}

func want(t *testing.T, what string, r flexi.Result, o flexi.Outcome) {
	t.Helper()
	if r.Outcome != o {
		t.Errorf("%s: %s, want %s: %v", what, r.Outcome, o, r.Err)
	}
}

// One document through its life, in virtual time.
func TestLifeOfADocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := erp(t, flexitest.Options{})
		r := do(t, c, "a1", flexi.Create, invoice(1))
		want(t, "create", r, flexi.Accepted)
		id := r.Docs[0].FlexiID
		if r.Docs[0].Number != "FV-1" || id == "" {
			t.Fatalf("%+v", r.Docs)
		}
		again := do(t, c, "a2", flexi.Create, invoice(1))
		want(t, "create again", again, flexi.Rejected)
		if !again.Exists || !again.NeedLook {
			t.Errorf("the fence did not speak: %+v", again)
		}
		page, err := c.List(t.Context(), flexi.Query{Evidence: evidence, Lookup: true, Fields: []string{"kod", "varSym", "storno", "polozkyFaktury(nazev)"},
			Filter: flexi.Or(flexi.ExtEq(ext(1)), flexi.Eq("kod", "FV-1"), flexi.IDEq(id))})
		if err != nil || len(page.Records) != 1 || !page.Records[0].HasExternalID(ext(1)) || page.Records[0].ID() != id {
			t.Fatalf("%+v, %v", page, err)
		}
		want(t, "update", do(t, c, "a3", flexi.Update, flexi.Doc{FlexiID: id, Body: []byte(`{"varSym":"77","polozkyFaktury":[{"nazev":"Jiná"}]}`)}), flexi.Accepted)
		if rows := s.Records(evidence)[0].Fields["polozkyFaktury"]; fmt.Sprint(len(rows.([]map[string]any))) != "1" {
			t.Errorf("rows after an update: %v", rows)
		}
		want(t, "attach", do(t, c, "a4", flexi.Attach, flexi.Doc{FlexiID: id, Ext: ext(2)}), flexi.Accepted)
		want(t, "storno", do(t, c, "a5", flexi.Storno, flexi.Doc{FlexiID: id}), flexi.Accepted)
		want(t, "delete", do(t, c, "a6", flexi.Delete, flexi.Doc{FlexiID: id}), flexi.Accepted)
		if n := s.Count(flexitest.Write); n != 6 {
			t.Errorf("%d writes at the server for 6 sends", n)
		}
		gone := do(t, c, "a7", flexi.Update, flexi.Doc{FlexiID: id, Body: json.RawMessage(`{"varSym":"1"}`)})
		if gone.Outcome == flexi.Accepted || gone.Outcome == flexi.Maybe || len(s.Records(evidence)) != 0 {
			t.Errorf("an update of what is gone: %s, %d records", gone.Outcome, len(s.Records(evidence)))
		}
	})
}

// Every fault of the fake, in both forms: what was committed is never called anything but accepted or a maybe.
func TestFaultsOfTheFake(t *testing.T) {
	faults := map[string]flexitest.Fault{
		"500": {Kind: flexitest.ServerError, Status: 500}, "502": {Kind: flexitest.ServerError, Status: 502},
		"503": {Kind: flexitest.ServerError, Status: 503}, "503 with envelope": {Kind: flexitest.ServerError, Status: 503, Says: flexitest.Envelope},
		"504": {Kind: flexitest.ServerError, Status: 504}, "429": {Kind: flexitest.TooMany, RetryAfter: "3"},
		"401": {Kind: flexitest.Unauthorized}, "stale role": {Kind: flexitest.StaleRole},
		"reset before": {Kind: flexitest.ResetBefore}, "reset in the middle": {Kind: flexitest.ResetMiddle, Bytes: 20},
		"reset instead of an answer": {Kind: flexitest.ResetAnswer}, "silence": {Kind: flexitest.Silence},
		"half an answer": {Kind: flexitest.HalfAnswer}, "half an answer without a length": {Kind: flexitest.HalfAnswer, Unbounded: true},
		"page behind a 200": {Kind: flexitest.HTML200}, "answer of another": {Kind: flexitest.OtherDocument},
		"late commit": {Kind: flexitest.LateCommit, Delay: time.Minute}, "redirect": {Kind: flexitest.Redirect, Status: 303, Location: "/x"},
		"slow answer": {Kind: flexitest.ResponseDelay, Delay: time.Minute},
	}
	for name, f := range faults {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, done %v", name, done), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, c := erp(t, flexitest.Options{})
					f.Done = done
					s.Script(f)
					r := do(t, c, "a1", flexi.Create, invoice(1))
					committed := s.Commits(string(ext(1)))+s.Pending() > 0
					switch {
					case committed && r.Outcome != flexi.Maybe && r.Outcome != flexi.Accepted && !refusedThoughDone(r):
						t.Errorf("committed, but %s: %v", r.Outcome, r.Err)
					case r.Outcome == flexi.Accepted && s.Commits(string(ext(1))) != 1:
						t.Errorf("accepted, but %d commits", s.Commits(string(ext(1))))
					}
					if n := s.Count(flexitest.Write); n > 1 {
						t.Errorf("%d requests", n)
					}
				})
			})
		}
	}
}

// refusedThoughDone is a server that did the work and says that it did not want to: no client can tell.
func refusedThoughDone(r flexi.Result) bool {
	return r.Status == http.StatusTooManyRequests || r.Status == http.StatusUnauthorized ||
		r.Status == http.StatusBadRequest && r.Outcome == flexi.Refused
}

func TestStaleRoleIsCuredByLogout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := erp(t, flexitest.Options{})
		s.MakeStale("flexid")
		r := do(t, c, "a1", flexi.Create, invoice(1))
		want(t, "stale", r, flexi.Refused)
		if r.Refresh != flexi.RefreshUser {
			t.Errorf("nothing to refresh: %+v", r)
		}
		if err := c.EndUserContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, "after the logout", do(t, c, "a2", flexi.Create, invoice(1)), flexi.Accepted)
	})
}

func TestBlockedByTheFake(t *testing.T) {
	cases := []struct {
		name  string
		set   func(*flexitest.Server)
		scope flexi.Scope
	}{
		{"no licence", func(s *flexitest.Server) { s.SetLicence(false) }, flexi.ScopeAll},
		{"no right", func(s *flexitest.Server) { s.SetRight(evidence, false) }, flexi.ScopeEvidence},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := erp(t, flexitest.Options{})
				tc.set(s)
				r := do(t, c, "a1", flexi.Create, invoice(1))
				if r.Outcome != flexi.Blocked || r.Scope != tc.scope || r.Remedy == "" {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

func TestBrokenFenceOfTheFake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := erp(t, flexitest.Options{})
		want(t, "first", do(t, c, "a1", flexi.Create, invoice(1)), flexi.Accepted)
		s.IgnoreFence(true)
		if r := do(t, c, "a2", flexi.Create, invoice(1)); r.Outcome != flexi.Maybe || !r.FenceBroken {
			t.Errorf("%s, fence broken %v: %v", r.Outcome, r.FenceBroken, r.Err)
		}
	})
}

func TestGroupOfTheFake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := erp(t, flexitest.Options{})
		r := do(t, c, "a1", flexi.Create, invoice(1), invoice(2), invoice(3))
		want(t, "group", r, flexi.Accepted)
		for i, d := range r.Docs {
			if found := s.Find(evidence, string(ext(i+1))); len(found) != 1 || d.FlexiID != fmt.Sprint(found[0].ID) {
				t.Errorf("document %d: %+v, found %+v", i+1, d, found)
			}
		}
	})
}

func TestServiceAddressesOfTheFake(t *testing.T) {
	s := flexitest.New(flexitest.Options{TLS: true})
	t.Cleanup(s.Close)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	c, err := flexi.New(flexi.Options{URL: s.URL(), Company: "firma", User: "flexid", Password: "secret", CAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	co, err := c.Company(t.Context())
	if err != nil || co.DBName != "firma" || co.Name == "" || co.State != "ESTABLISHED" {
		t.Errorf("%+v, %v", co, err)
	}
	info, err := c.Server(t.Context())
	if err != nil || info.Version == "" || info.User != "flexid" || info.Date.IsZero() {
		t.Errorf("%+v, %v", info, err)
	}
	props, err := c.Properties(t.Context(), evidence)
	if err != nil || props.ByName["kod"].MaxLength != flexi.MaxNumber(evidence) || !props.ByName["kod"].UpperCase {
		t.Errorf("%+v, %v", props, err)
	}
	list, err := c.Evidences(t.Context())
	if err != nil || len(list) == 0 {
		t.Errorf("%d evidences, %v", len(list), err)
	}
	want(t, "create", do(t, c, "a1", flexi.Create, invoice(1)), flexi.Accepted)
	ch, err := c.Changes(t.Context(), 1, 100)
	if err != nil || len(ch.Changes) == 0 || ch.GlobalVersion == 0 {
		t.Errorf("%+v, %v", ch, err)
	}
}
