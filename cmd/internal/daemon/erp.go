package daemon

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"flexid/config"
	"flexid/flexi"
)

// SettingError is a setting that can be read and cannot be used. Exit code 78.
type SettingError struct {
	Variable string
	Err      error
}

func (e *SettingError) Error() string { return e.Variable + ": " + e.Err.Error() }

func (e *SettingError) Unwrap() error { return e.Err }

// NewClient makes the ERP client that the settings describe.
func NewClient(f config.Flexi, more flexi.Options) (*flexi.Client, error) {
	more.Session = f.Auth == "session"
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
	page, err := e.Client.List(ctx, q)
	e.who.unreachable(err)
	return page, err
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

// RegistrationNumber counts and asks.
func (e erp) RegistrationNumber(ctx context.Context) (string, error) {
	e.call("read")
	return e.Client.RegistrationNumber(ctx)
}

// EndUserContext counts and asks.
func (e erp) EndUserContext(ctx context.Context) error {
	e.call("read")
	return e.Client.EndUserContext(ctx)
}

// Dial answers not_sent while the company is not known, so that the engine treats it as an outage and goes on by itself.
func (e erp) Dial(ctx context.Context) (*flexi.Conn, error) {
	if err := e.who.ensure(ctx); err != nil {
		refused := &flexi.Error{Op: "dial", Outcome: flexi.NotSent, Err: err}
		var read *flexi.Error
		if errors.As(err, &read) {
			refused.Status = read.Status
		}
		return nil, refused
	}
	conn, err := e.Client.Dial(ctx)
	e.who.unreachable(err)
	return conn, err
}
