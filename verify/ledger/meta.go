package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Meta says whose ledger this is. The system of our external ids is pinned at the first start, the company when Flexi has
// confirmed it, which is when Identity is set: until then its name is only what the settings said.
type Meta struct {
	Format   int             `json:"format"`
	Ledger   string          `json:"ledger"`         // LedgerID
	Company  string          `json:"company"`        // as in the ERP's address
	System   string          `json:"system"`         // of our external ids
	Zone     string          `json:"zone,omitempty"` // in which moments become days, and payables years; "" = not pinned yet
	Identity CompanyIdentity `json:"identity,omitzero"`

	// Rows is the company's name as it is part of the rows' ids, "" = Company. The name in the settings may be corrected as
	// long as Flexi has not confirmed it; rows that were made under the first one must stay findable.
	Rows string `json:"rows,omitempty"`

	Token string `json:"token"` // as Row.Token; set by SetMeta

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

// RowsUnder is the company's name for RowID.
func (m Meta) RowsUnder() string {
	if m.Rows != "" {
		return m.Rows
	}
	return m.Company
}

// Confirmed says whether Flexi has told who the company is.
func (m Meta) Confirmed() bool { return m.Identity != CompanyIdentity{} }

// Meta reads what is pinned and its revision; revision 0 = nothing yet.
func (l *Ledger) Meta(ctx context.Context) (Meta, uint64, error) {
	raw, rev, err := l.value(ctx, metaKey)
	if err != nil || rev == 0 {
		return Meta{}, 0, err
	}
	var m Meta
	if m.Extra, err = decode(raw, &m, metaFields); err != nil {
		return Meta{}, 0, fmt.Errorf("reading %s: %w", metaKey, err)
	}
	if m.Format > Format {
		return m, rev, fmt.Errorf("%s has format %d: %w", metaKey, m.Format, ErrNewer)
	}
	return m, rev, nil
}

// value reads a key; revision 0 = there is none.
func (l *Ledger) value(ctx context.Context, key string) ([]byte, uint64, error) {
	e, err := l.get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return e.Value(), e.Revision(), nil
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

// Correct gives the ledger another company than the one in the first settings, which Flexi never confirmed. Rows that were
// made meanwhile keep their ids.
func (l *Ledger) Correct(ctx context.Context, company string) error {
	m, rev, err := l.Meta(ctx)
	if err != nil {
		return err
	}
	if m.Confirmed() {
		return fmt.Errorf("the ledger's company is %q, as Flexi has confirmed", m.Company)
	}
	m.Rows, m.Company = m.RowsUnder(), company
	return l.SetMeta(ctx, m, rev)
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
