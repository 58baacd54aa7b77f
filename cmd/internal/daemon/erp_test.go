package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// fakeCompany is both sides of the check: what Flexi shows, and what the ledger keeps.
type fakeCompany struct {
	shown  flexi.Company
	erpErr error
	meta   ledger.Meta
	pinErr error
	asked  int
	stored int
	holds  []string
	remedy string
}

func (f *fakeCompany) Company(context.Context) (flexi.Company, error) {
	f.asked++
	return f.shown, f.erpErr
}

func (f *fakeCompany) Meta(context.Context) (ledger.Meta, uint64, error) { return f.meta, 1, nil }

func (f *fakeCompany) SetMeta(_ context.Context, m ledger.Meta, _ uint64) error {
	if f.pinErr == nil {
		f.meta = m
		f.stored++
	}
	return f.pinErr
}

func (f *fakeCompany) identity() *identity {
	return &identity{erp: f, pins: f, hold: func(text, remedy string) { f.holds, f.remedy = append(f.holds, text), remedy }}
}

func TestCompanyIdentity(t *testing.T) {
	shown := flexi.Company{ID: "7", DBName: "firma", Name: "Firma s.r.o.", CreatedAt: "2020-01-02"}
	mine := ledger.CompanyIdentity{ID: "7", DBName: "firma", Name: "Firma s.r.o.", CreatedAt: "2020-01-02"}
	with := func(change func(*ledger.CompanyIdentity)) ledger.CompanyIdentity {
		c := mine
		change(&c)
		return c
	}
	for name, tc := range map[string]struct {
		pinned ledger.CompanyIdentity
		held   bool
		stored int
	}{
		"first time":        {ledger.CompanyIdentity{}, false, 1},
		"the same":          {mine, false, 0},
		"renamed":           {with(func(c *ledger.CompanyIdentity) { c.Name = "Firma a.s." }), false, 1},
		"another id":        {with(func(c *ledger.CompanyIdentity) { c.ID = "8" }), true, 0},
		"another database":  {with(func(c *ledger.CompanyIdentity) { c.DBName = "firma_2" }), true, 0},
		"made anew":         {with(func(c *ledger.CompanyIdentity) { c.CreatedAt = "2026-03-01" }), true, 0},
		"a field not known": {with(func(c *ledger.CompanyIdentity) { c.CreatedAt = "" }), false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeCompany{shown: shown, meta: ledger.Meta{Company: "firma", Identity: tc.pinned}}
			i := f.identity()
			err := i.ensure(t.Context())
			var wrong *CompanyError
			if errors.As(err, &wrong) != tc.held || (len(f.holds) == 1) != tc.held || f.stored != tc.stored {
				t.Fatalf("err %v, holds %q, stored %d", err, f.holds, f.stored)
			}
			if !tc.held {
				if f.meta.Identity != mine {
					t.Errorf("the ledger keeps %+v", f.meta.Identity)
				}
				if i.ensure(t.Context()) != nil || f.asked != 1 {
					t.Errorf("asked %d times", f.asked)
				}
				return
			}
			for _, want := range []string{"accept --new", "accept --restored", "FLEXID_FLEXI_COMPANY"} {
				if !strings.Contains(f.remedy, want) {
					t.Errorf("the remedy %q does not say %s", f.remedy, want)
				}
			}
			if err := i.replace(t.Context()); err != nil || f.meta.Identity != mine || i.ensure(t.Context()) != nil {
				t.Errorf("accepted: %v, %+v", err, f.meta.Identity)
			}
		})
	}
}

func TestUncheckedCompanyTakesNoWrite(t *testing.T) {
	fake := flexitest.New(flexitest.Options{})
	defer fake.Close()
	client, err := flexi.New(flexi.Options{URL: fake.URL(), Company: "firma", User: "flexid", Password: "secret", Dial: fake.Dial})
	if err != nil {
		t.Fatal(err)
	}
	down := &flexi.Error{Op: "company", Status: 401, Outcome: flexi.Blocked, Err: errors.New("no")}
	for name, f := range map[string]*fakeCompany{
		"ERP down":        {erpErr: down},
		"another company": {shown: flexi.Company{ID: "1"}, meta: ledger.Meta{Identity: ledger.CompanyIdentity{ID: "2"}}},
		"ledger gone":     {shown: flexi.Company{ID: "1"}, pinErr: &ledger.MissingError{}},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := erp{client, func(string) {}, f.identity()}.Dial(t.Context())
			if err == nil {
				conn.Close()
				t.Fatal("a connection for a write was opened")
			}
			// not_sent: the document stays queued, whatever the reason was.
			if flexi.OutcomeOf(err) != flexi.NotSent {
				t.Errorf("outcome %v of %v", flexi.OutcomeOf(err), err)
			}
		})
	}
	f := &fakeCompany{shown: flexi.Company{ID: "1"}}
	e := erp{client, func(string) {}, f.identity()}
	conn, err := e.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	e.who.again()
	f.erpErr = down
	if _, err := e.Dial(t.Context()); err == nil {
		t.Error("a later check was not asked for")
	}
}

func TestCertificateThatDoesNotFit(t *testing.T) {
	fake := startERP(t, flexitest.Options{TLS: true})
	r := begin(t, settings(t, fake, t.TempDir()))
	r.push("FV-1")
	eventually(t, "the gate says which line to set", func() bool {
		for _, g := range r.status().Engine.Gates {
			if g.Reason == "certificate" {
				return strings.Contains(g.Remedy, "FLEXID_FLEXI_CERT_SHA256=")
			}
		}
		return false
	})
	if fake.Count("write")+fake.Count("read") != 0 {
		t.Error("a request went over a connection that was not verified")
	}
}
