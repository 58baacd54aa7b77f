package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"

	"github.com/rs/zerolog"
)

const (
	testCompany = "firma"
	testSystem  = "FLEXID"
	testToken   = "correct horse battery staple"
)

var testNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func idOf(a verify.Address) ledger.ID {
	return ledger.RowID(testCompany, a.Evidence, flexi.NewExternalID(testSystem, a.Source, a.Key))
}

// fakeLedger is a ledger in memory.
type fakeLedger struct {
	rows    []ledger.Row
	events  map[ledger.ID]map[int]ledger.Event
	aside   map[ledger.ID][]ledger.ID
	damaged []ledger.ID // yielded with ErrNewer before the rows
	listErr error       // yielded after the rows
	getErr  error
	lists   int // how often all of it was read
}

// Candidates makes it a Finder, for what is not over.
func (f *fakeLedger) Candidates(number string, states func(verify.Standing) bool) (ids []ledger.ID, ok bool) {
	for _, r := range f.rows {
		s := verify.Standing{State: r.State, Reason: r.Reason, Cause: r.Cause}
		switch {
		case number != "" && verify.FoldNumber(r.Number) == number:
			ids = append(ids, r.ID)
		case number != "" || !states(s):
		case r.State == ledger.Confirmed || r.State == ledger.Dropped:
			return nil, false
		default:
			ids = append(ids, r.ID)
		}
	}
	return ids, true
}

func (f *fakeLedger) Get(_ context.Context, id ledger.ID) (ledger.Row, error) {
	if f.getErr != nil {
		return ledger.Row{}, f.getErr
	}
	for _, r := range f.rows {
		if r.ID == id {
			return r, nil
		}
	}
	return ledger.Row{}, ledger.ErrNoRow
}

func (f *fakeLedger) List(_ context.Context, want func(*ledger.Row) bool) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		f.lists++
		for _, id := range f.damaged {
			if !yield(ledger.Row{ID: id}, ledger.ErrNewer) {
				return
			}
		}
		for _, r := range f.rows {
			if want(&r) && !yield(r, nil) {
				return
			}
		}
		if f.listErr != nil {
			yield(ledger.Row{}, f.listErr)
		}
	}
}

func (f *fakeLedger) Event(_ context.Context, id ledger.ID, n int) (ledger.Event, error) {
	ev, ok := f.events[id][n]
	if !ok {
		return ev, ledger.ErrNoEvent
	}
	return ev, nil
}

func (f *fakeLedger) AsideOf(_ context.Context, id ledger.ID) ([]ledger.ID, error) {
	return f.aside[id], nil
}

func (f *fakeLedger) add(r ledger.Row, events ...ledger.Event) {
	r.ID = idOf(verify.Address{Evidence: r.Evidence, Source: r.Source, Key: r.Key})
	r.Format = ledger.Format
	f.rows = append(f.rows, r)
	if f.events == nil {
		f.events = map[ledger.ID]map[int]ledger.Event{}
	}
	f.events[r.ID] = map[int]ledger.Event{}
	for _, ev := range events {
		f.events[r.ID][ev.N] = ev
	}
}

// fakeEngine records what it was asked.
type fakeEngine struct {
	mu      sync.Mutex
	asked   []string
	err     error
	status  verify.Status
	choices func(*ledger.Row) []verify.What
	decided func(a verify.Address, d verify.Decision) error // beside err
}

func (e *fakeEngine) Decide(_ context.Context, a verify.Address, d verify.Decision) (ledger.Row, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.decided != nil {
		if err := e.decided(a, d); err != nil {
			return ledger.Row{}, err
		}
	}
	e.asked = append(e.asked, strings.Join([]string{string(d.What), a.String(), d.By, d.Why}, "|"))
	return ledger.Row{Evidence: a.Evidence, Source: a.Source, Key: a.Key, State: ledger.Queued}, e.err
}

func (e *fakeEngine) Choices(row *ledger.Row) []verify.What {
	if e.choices != nil {
		return e.choices(row)
	}
	return verify.Decisions()
}

func (e *fakeEngine) StopWrites(_ context.Context, evidence, by, why string) error {
	e.asked = append(e.asked, strings.Join([]string{"stop", evidence, by, why}, "|"))
	return e.err
}

func (e *fakeEngine) ResumeWrites(_ context.Context, evidence, by, why string) error {
	e.asked = append(e.asked, strings.Join([]string{"resume", evidence, by, why}, "|"))
	return e.err
}

func (e *fakeEngine) AcceptCompany(_ context.Context, how, by, why string) error {
	e.asked = append(e.asked, strings.Join([]string{"company", how, by, why}, "|"))
	return e.err
}

func (e *fakeEngine) Status() verify.Status { return e.status }

// rig is a server over fakes.
type rig struct {
	t        *testing.T
	ledger   *fakeLedger
	engine   *fakeEngine
	server   *Server
	troubles []Trouble
	checked  *Check
	empty    []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, ledger: &fakeLedger{}, engine: &fakeEngine{}}
	s, err := New(Options{
		Addr: "127.0.0.1:8480", Hosts: []string{"Flexid.Example.com"}, Token: testToken, Company: testCompany, System: testSystem,
		Info: func() Info {
			return Info{Version: "1.2.3", Phase: "waiting for NATS", Company: testCompany, System: testSystem, Checked: r.checked}
		},
		Troubles: func() []Trouble { return r.troubles },
		AcceptEmpty: func(_ context.Context, by, why string) error {
			r.empty = append(r.empty, by+"|"+why)
			return nil
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }),
		Now:     func() time.Time { return testNow },
		Log:     zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.server = s
	s.Use(r.backend(nil))
	return r
}

func (r *rig) backend(f Finder) *Backend {
	return &Backend{Ledger: r.ledger, Decider: r.engine, Operator: r.engine, Reporter: r.engine, Finder: f}
}

func (r *rig) do(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Host = "127.0.0.1:8480"
	req.Header.Set("Authorization", "Bearer "+testToken)
	for _, c := range change {
		c(req)
	}
	w := httptest.NewRecorder()
	r.server.Handler().ServeHTTP(w, req)
	return w
}

func (r *rig) json(method, path, body string, into any) {
	r.t.Helper()
	w := r.do(method, path, body)
	if w.Code != http.StatusOK {
		r.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		r.t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
	}
}

func (r *rig) problem(w *httptest.ResponseRecorder) Problem {
	r.t.Helper()
	var p Problem
	if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
		r.t.Fatalf("content type %q, status %d: %s", ct, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		r.t.Fatal(err)
	}
	if p.Status != w.Code || p.Detail == "" {
		r.t.Errorf("problem %+v under status %d", p, w.Code)
	}
	return p
}

var errStore = errors.New("NATS does not answer")
