package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// companies says who the company behind the address is; met by erp.
type companies interface {
	Company(ctx context.Context) (flexi.Company, error)
	RegistrationNumber(ctx context.Context) (string, error)
}

// pins keeps the identity; met by *ledger.Ledger.
type pins interface {
	Meta(ctx context.Context) (ledger.Meta, uint64, error)
	SetMeta(ctx context.Context, m ledger.Meta, revision uint64) error
}

// identity compares the company behind the address with the one that the ledger was begun with. An address names a
// company, and the name can be given to another one: to a copy, a new one, or the same set up again.
type identity struct {
	erp  companies
	pins pins
	name string // of the company in the settings
	hold func(text, remedy string)

	asked atomic.Int64 // how often a new check was asked for
	lost  atomic.Int64 // requests in a row without an answer that means something

	mu       sync.Mutex
	answered int64 // asked + 1 when the last check began that went well
}

// CompanyError is another company than the ledger's behind the same address.
type CompanyError struct{ Ledger, ERP ledger.CompanyIdentity }

func (e *CompanyError) Error() string {
	return fmt.Sprintf("the company behind the address is not the ledger's (%s): the ledger was begun with %s, Flexi shows %s",
		strings.Join(differences(e.Ledger, e.ERP), ", "), describe(e.Ledger), describe(e.ERP))
}

func describe(c ledger.CompanyIdentity) string {
	text := fmt.Sprintf("%q (id %s, database %s, made %s", c.Name, c.ID, c.DBName, c.CreatedAt)
	if c.RegistrationNumber != "" {
		text += ", registration number " + c.RegistrationNumber
	}
	return text + ")"
}

const companyWaysOut = "if it is another company under the name: `flexid company accept --new`; if it was set up again from a backup: " +
	"`flexid company accept --restored`; else set FLEXID_FLEXI_URL and FLEXID_FLEXI_COMPANY"

// ensure checks once, and again after again; concurrent callers wait for the one check. An error means that nothing may be
// written yet.
func (i *identity) ensure(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked := i.asked.Load()
	if i.answered > asked {
		return nil
	}
	now, err := i.shown(ctx)
	if err != nil {
		return err
	}
	meta, rev, err := i.pins.Meta(ctx)
	if err != nil {
		return fmt.Errorf("reading the ledger's company: %w", err)
	}
	if meta.Company != i.name { // before it was confirmed, another daemon was started with another name
		return &PinError{Variable: "FLEXID_FLEXI_COMPANY", Ledger: meta.Company, Settings: i.name}
	}
	pinned := meta.Identity
	if pinned != (ledger.CompanyIdentity{}) && len(differences(pinned, now)) > 0 {
		err := &CompanyError{Ledger: pinned, ERP: now}
		i.hold(err.Error(), companyWaysOut)
		return err
	}
	if meta.Identity = completed(now, pinned); meta.Identity != pinned {
		if err := i.pins.SetMeta(ctx, meta, rev); err != nil {
			return fmt.Errorf("noting the company in the ledger: %w", err)
		}
	}
	i.answered = asked + 1
	return nil
}

func (i *identity) shown(ctx context.Context) (ledger.CompanyIdentity, error) {
	c, err := i.erp.Company(ctx)
	if err != nil {
		return ledger.CompanyIdentity{}, fmt.Errorf("asking Flexi which company this is: %w", err)
	}
	number, err := i.erp.RegistrationNumber(ctx)
	if err != nil {
		return ledger.CompanyIdentity{}, fmt.Errorf("asking Flexi for the company's registration number: %w", err)
	}
	return ledger.CompanyIdentity{ID: c.ID, DBName: c.DBName, Name: c.Name, CreatedAt: c.CreatedAt, RegistrationNumber: number}, nil
}

// askAnew makes the next ensure ask anew.
func (i *identity) askAnew() { i.asked.Add(1) }

// lostInARow is how many requests without a real answer make an outage: after it the ERP may be another one.
const lostInARow = 3

// heard notices an outage. It may be called from inside a check.
func (i *identity) heard(answered bool) {
	if answered {
		i.lost.Store(0)
	} else if i.lost.Add(1) == lostInARow {
		i.askAnew()
	}
}

// unreachable notices an ERP that takes no connection.
func (i *identity) unreachable(err error) {
	var quota *flexi.QuotaError
	var read *flexi.Error
	if errors.As(err, &read) && read.Outcome == flexi.NotSent && read.Status == 0 && !errors.As(err, &quota) {
		i.askAnew()
	}
}

// replace takes what Flexi shows now as the ledger's company: a person said so.
func (i *identity) replace(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked := i.asked.Load()
	now, err := i.shown(ctx)
	if err != nil {
		return err
	}
	meta, rev, err := i.pins.Meta(ctx)
	if err != nil {
		return fmt.Errorf("reading the ledger's company: %w", err)
	}
	meta.Identity = now
	if err := i.pins.SetMeta(ctx, meta, rev); err != nil {
		return fmt.Errorf("noting the company in the ledger: %w", err)
	}
	i.answered = asked + 1
	return nil
}

// differences names in what b is another company than a. What one side does not tell cannot contradict. People rename
// companies: another name counts only where neither the time at which it was made nor the registration number says that it
// is the same, since ids and database names are given again.
func differences(a, b ledger.CompanyIdentity) []string {
	var out []string
	agree := 0
	for _, f := range []struct {
		name, a, b string
		proof      bool
	}{
		{"another id", a.ID, b.ID, false},
		{"another database", a.DBName, b.DBName, false},
		{"made at another time", a.CreatedAt, b.CreatedAt, true},
		{"another registration number", a.RegistrationNumber, b.RegistrationNumber, true},
	} {
		switch {
		case f.a == "" || f.b == "":
		case f.a != f.b:
			out = append(out, f.name)
		case f.proof:
			agree++
		}
	}
	if len(out) == 0 && agree == 0 && a.Name != "" && b.Name != "" && a.Name != b.Name {
		out = append(out, "another name, and nothing else that tells them apart")
	}
	return out
}

// completed keeps what was known and is not told this time.
func completed(now, known ledger.CompanyIdentity) ledger.CompanyIdentity {
	for _, f := range []struct {
		now   *string
		known string
	}{
		{&now.ID, known.ID}, {&now.DBName, known.DBName}, {&now.Name, known.Name}, {&now.CreatedAt, known.CreatedAt},
		{&now.RegistrationNumber, known.RegistrationNumber},
	} {
		if *f.now == "" {
			*f.now = f.known
		}
	}
	return now
}
