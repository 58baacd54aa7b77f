package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Meta says whose ledger this is. It pins the company and the system of our external ids at the first start.
type Meta struct {
	Format   int             `json:"format"`
	Ledger   string          `json:"ledger"`  // LedgerID
	Company  string          `json:"company"` // as in the ERP's address
	System   string          `json:"system"`  // of our external ids
	Identity CompanyIdentity `json:"identity,omitzero"`
	Token    string          `json:"token"` // as Row.Token; set by SetMeta

	Extra map[string]json.RawMessage `json:"-"` // as Row.Extra
}

// CompanyIdentity is how the ERP names the company itself: another one behind the same address must be noticed.
type CompanyIdentity struct {
	ID        string `json:"id,omitempty"`
	DBName    string `json:"db_name,omitempty"`
	Name      string `json:"name,omitempty"`
	CreatedAt string `json:"created_at,omitempty"`

	RegistrationNumber string `json:"registration_number,omitempty"` // "" where our user may not read it
}

// Meta reads what is pinned and its revision; revision 0 = nothing yet.
func (l *Ledger) Meta(ctx context.Context) (Meta, uint64, error) {
	e, err := l.get(ctx, metaKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Meta{}, 0, nil
	}
	if err != nil {
		return Meta{}, 0, err
	}
	var m Meta
	m.Extra, err = decode(e.Value(), &m, metaFields)
	if err != nil {
		return Meta{}, 0, fmt.Errorf("reading %s: %w", metaKey, err)
	}
	if m.Format > Format {
		return m, e.Revision(), fmt.Errorf("%s has format %d: %w", metaKey, m.Format, ErrNewer)
	}
	return m, e.Revision(), nil
}

// SetMeta replaces what is pinned if it still has the revision; errors as Claim. Ledger is always this ledger's id.
func (l *Ledger) SetMeta(ctx context.Context, m Meta, revision uint64) error {
	m.Format, m.Ledger, m.Token = Format, l.id, l.token()
	data, err := encode(m, m.Extra, metaFields)
	if err != nil {
		return fmt.Errorf("writing %s: %w", metaKey, err)
	}
	if _, err := l.cas(ctx, metaKey, data, revision); err != nil {
		return fmt.Errorf("writing %s: %w", metaKey, err)
	}
	return nil
}

// pin writes the first Meta. Losing the race is fine: the winner's company counts and the caller compares.
func (l *Ledger) pin(ctx context.Context, company, system string) error {
	if company == "" {
		return nil
	}
	_, rev, err := l.Meta(ctx)
	if err != nil || rev > 0 {
		return err
	}
	err = l.SetMeta(ctx, Meta{Company: company, System: system}, 0)
	if lostRace(err) {
		return nil
	}
	return err
}
