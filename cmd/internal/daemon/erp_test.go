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
	number string
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

func (f *fakeCompany) RegistrationNumber(context.Context) (string, error) { return f.number, f.erpErr }

func (f *fakeCompany) Meta(context.Context) (ledger.Meta, uint64, error) { return f.meta, 1, nil }

func (f *fakeCompany) SetMeta(_ context.Context, m ledger.Meta, _ uint64) error {
	if f.pinErr == nil {
		f.meta = m
		f.stored++
	}
	return f.pinErr
}

func (f *fakeCompany) identity() *identity {
	if f.meta.Company == "" {
		f.meta.Company = "firma"
	}
	return &identity{erp: f, name: "firma", pins: f, hold: func(text, remedy string) { f.holds, f.remedy = append(f.holds, text), remedy }}
}

func TestCompanyIdentity(t *testing.T) {
	shown := flexi.Company{ID: "7", DBName: "firma", Name: "Firma s.r.o.", CreatedAt: "2020-01-02"}
	mine := ledger.CompanyIdentity{ID: "7", DBName: "firma", Name: "Firma s.r.o.", CreatedAt: "2020-01-02", RegistrationNumber: "12345679"}
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
		"another number":    {with(func(c *ledger.CompanyIdentity) { c.RegistrationNumber = "87654321" }), true, 0},
		"number not known":  {with(func(c *ledger.CompanyIdentity) { c.RegistrationNumber = "" }), false, 1},
		"renamed, and only the number agrees": {
			with(func(c *ledger.CompanyIdentity) { c.Name, c.CreatedAt = "Firma a.s.", "" }), false, 1},
		"renamed, and nothing agrees that is given once": {
			with(func(c *ledger.CompanyIdentity) { c.Name, c.CreatedAt, c.RegistrationNumber = "Jiná", "", "" }), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeCompany{shown: shown, number: "12345679", meta: ledger.Meta{Company: "firma", Identity: tc.pinned}}
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

// What is not told today is kept from yesterday: else a right that was taken away would take the pin with it.
func TestPinOutlivesALostRight(t *testing.T) {
	pinned := ledger.CompanyIdentity{ID: "7", DBName: "firma", Name: "Firma", CreatedAt: "2020-01-02", RegistrationNumber: "12345679"}
	f := &fakeCompany{shown: flexi.Company{ID: "7", DBName: "firma", Name: "Firma a.s."}, meta: ledger.Meta{Company: "firma", Identity: pinned}}
	f.shown.CreatedAt = pinned.CreatedAt
	i := f.identity()
	if err := i.ensure(t.Context()); err != nil || f.meta.Identity.RegistrationNumber != "12345679" || f.meta.Identity.Name != "Firma a.s." {
		t.Fatalf("%v, %+v", err, f.meta.Identity)
	}
	i.askAnew()
	f.number = "87654321"
	var wrong *CompanyError
	if err := i.ensure(t.Context()); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "another registration number") {
		t.Errorf("%v", err)
	}
}

// An outage makes the next write ask who the company is; a single lost answer does not, and neither does our own quota.
func TestOutageAsksForTheCompanyAgain(t *testing.T) {
	notSent := func(cause error) error { return &flexi.Error{Outcome: flexi.NotSent, Err: cause} }
	for name, tc := range map[string]struct {
		happens func(*identity)
		again   bool
	}{
		"nothing":              {func(*identity) {}, false},
		"no connection":        {func(i *identity) { i.unreachable(notSent(errors.New("refused"))) }, true},
		"no quota":             {func(i *identity) { i.unreachable(notSent(&flexi.QuotaError{})) }, false},
		"no login":             {func(i *identity) { i.unreachable(&flexi.Error{Outcome: flexi.NotSent, Status: 401}) }, false},
		"no error":             {func(i *identity) { i.unreachable(nil) }, false},
		"two lost answers":     {func(i *identity) { i.heard(false); i.heard(false); i.heard(true); i.heard(false) }, false},
		"three lost answers":   {func(i *identity) { i.heard(false); i.heard(false); i.heard(false) }, true},
		"asked for in a check": {func(i *identity) { i.askAnew() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeCompany{shown: flexi.Company{ID: "1"}}
			i := f.identity()
			for range 2 {
				if err := i.ensure(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			tc.happens(i)
			for range 2 {
				if err := i.ensure(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if want := map[bool]int{false: 1, true: 2}[tc.again]; f.asked != want {
				t.Errorf("asked %d times, want %d", f.asked, want)
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
	e.who.askAnew()
	f.erpErr = down
	if _, err := e.Dial(t.Context()); err == nil {
		t.Error("a later check was not asked for")
	}
}

func TestCertificateThatDoesNotFit(t *testing.T) {
	fake := startERP(t, flexitest.Options{TLS: true})
	r := begin(t, settings(t, fake, t.TempDir()))
	r.push("FV-1")
	eventually(t, "the status says which line to set", func() bool {
		for _, g := range r.status().Engine.Stops {
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
