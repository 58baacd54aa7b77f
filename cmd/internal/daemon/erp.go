package daemon

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"

	"flexid/config"
	"flexid/flexi"
	"flexid/verify/ledger"
)

// SettingError is a setting that can be read and cannot be used. Exit code 78.
type SettingError struct {
	Variable string
	Err      error
}

func (e *SettingError) Error() string { return e.Variable + ": " + e.Err.Error() }

func (e *SettingError) Unwrap() error { return e.Err }

func checkAuth(f config.Flexi) error {
	if f.Auth != "basic" {
		return &SettingError{"FLEXID_FLEXI_AUTH", fmt.Errorf("%q is not supported by this version; set basic", f.Auth)}
	}
	return nil
}

// NewClient makes the ERP client that the settings describe.
func NewClient(f config.Flexi, more flexi.Options) (*flexi.Client, error) {
	if err := checkAuth(f); err != nil {
		return nil, err
	}
	more.URL, more.Company, more.User, more.Password = f.URL, f.Company, f.User, f.Password.Reveal()
	more.CertSHA256, more.WriteTimeout, more.ReadTimeout = f.CertSHA256, f.WriteTimeout, f.ReadTimeout
	if f.CAFile != "" {
		pem, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, &SettingError{"FLEXID_FLEXI_CA_FILE", err}
		}
		more.CAs = x509.NewCertPool()
		if !more.CAs.AppendCertsFromPEM(pem) {
			return nil, &SettingError{"FLEXID_FLEXI_CA_FILE", fmt.Errorf("%s holds no certificate in PEM", f.CAFile)}
		}
	}
	c, err := flexi.New(more)
	if err != nil {
		return nil, fmt.Errorf("settings of the ERP: %w", err)
	}
	return c, nil
}

// companies says who the company behind the address is; met by *flexi.Client.
type companies interface {
	Company(ctx context.Context) (flexi.Company, error)
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
	hold func(text, remedy string)

	mu      sync.Mutex
	checked bool
}

// CompanyError is another company than the ledger's behind the same address.
type CompanyError struct{ Ledger, ERP ledger.CompanyIdentity }

func (e *CompanyError) Error() string {
	return fmt.Sprintf("the company behind the address is not the ledger's: the ledger was begun with %s, Flexi shows %s",
		describe(e.Ledger), describe(e.ERP))
}

func describe(c ledger.CompanyIdentity) string {
	return fmt.Sprintf("%q (id %s, database %s, made %s)", c.Name, c.ID, c.DBName, c.CreatedAt)
}

const companyWaysOut = "if it is another company under the name: `flexid company accept --new`; if it was set up again from a backup: " +
	"`flexid company accept --restored`; else set FLEXID_FLEXI_URL and FLEXID_FLEXI_COMPANY"

// ensure checks once per run; concurrent callers wait for the one check. An error means that nothing may be written yet.
func (i *identity) ensure(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.checked {
		return nil
	}
	shown, err := i.erp.Company(ctx)
	if err != nil {
		return fmt.Errorf("asking Flexi which company this is: %w", err)
	}
	meta, rev, err := i.pins.Meta(ctx)
	if err != nil {
		return fmt.Errorf("reading the ledger's company: %w", err)
	}
	now := ledger.CompanyIdentity{ID: shown.ID, DBName: shown.DBName, Name: shown.Name, CreatedAt: shown.CreatedAt}
	if meta.Identity != (ledger.CompanyIdentity{}) && !same(meta.Identity, now) {
		err := &CompanyError{Ledger: meta.Identity, ERP: now}
		i.hold(err.Error(), companyWaysOut)
		return err
	}
	if meta.Identity != now {
		meta.Identity = now
		if err := i.pins.SetMeta(ctx, meta, rev); err != nil {
			return fmt.Errorf("noting the company in the ledger: %w", err)
		}
	}
	i.checked = true
	return nil
}

// again makes the next ensure ask anew.
func (i *identity) again() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.checked = false
}

// replace takes what Flexi shows now as the ledger's company: a person said so.
func (i *identity) replace(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	shown, err := i.erp.Company(ctx)
	if err != nil {
		return fmt.Errorf("asking Flexi which company this is: %w", err)
	}
	meta, rev, err := i.pins.Meta(ctx)
	if err != nil {
		return fmt.Errorf("reading the ledger's company: %w", err)
	}
	meta.Identity = ledger.CompanyIdentity{ID: shown.ID, DBName: shown.DBName, Name: shown.Name, CreatedAt: shown.CreatedAt}
	if err := i.pins.SetMeta(ctx, meta, rev); err != nil {
		return fmt.Errorf("noting the company in the ledger: %w", err)
	}
	i.checked = true
	return nil
}

// same ignores the name, which people change. What one side does not tell cannot contradict.
func same(a, b ledger.CompanyIdentity) bool {
	agree := func(x, y string) bool { return x == "" || y == "" || x == y }
	return agree(a.ID, b.ID) && agree(a.DBName, b.DBName) && agree(a.CreatedAt, b.CreatedAt)
}

// erp is the client as the engine gets it: every read is counted as one call, whoever asks, so that the requests on the
// wire have something to be divided by; and the company is checked before every dial, so that no write leaves for one that
// nobody has looked at.
type erp struct {
	*flexi.Client
	call func(kind string)
	who  *identity
}

// List counts and asks.
func (e erp) List(ctx context.Context, q flexi.Query) (flexi.Page, error) {
	kind := "read"
	if q.Lookup {
		kind = "lookup"
	}
	e.call(kind)
	return e.Client.List(ctx, q)
}

// Properties counts and asks.
func (e erp) Properties(ctx context.Context, evidence string) (*flexi.Properties, error) {
	e.call("read")
	return e.Client.Properties(ctx, evidence)
}

// Evidences counts and asks.
func (e erp) Evidences(ctx context.Context) ([]flexi.EvidenceInfo, error) {
	e.call("read")
	return e.Client.Evidences(ctx)
}

// Company counts and asks.
func (e erp) Company(ctx context.Context) (flexi.Company, error) {
	e.call("read")
	return e.Client.Company(ctx)
}

// EndUserContext counts and asks.
func (e erp) EndUserContext(ctx context.Context) error {
	e.call("read")
	return e.Client.EndUserContext(ctx)
}

// Dial answers not_sent while the company is not known, so that the gate treats it as an outage and opens by itself.
func (e erp) Dial(ctx context.Context) (*flexi.Conn, error) {
	if err := e.who.ensure(ctx); err != nil {
		refused := &flexi.Error{Op: "dial", Outcome: flexi.NotSent, Err: err}
		var read *flexi.Error
		if errors.As(err, &read) {
			refused.Status = read.Status
		}
		return nil, refused
	}
	return e.Client.Dial(ctx)
}
