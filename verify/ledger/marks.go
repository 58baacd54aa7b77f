package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// Marks are how far the company's books were when we last saw them. Books that lie below were restored from a backup, and
// that must be noticed also when nobody ran meanwhile; so they are kept here and not with what may be lost.
type Marks struct {
	Format  int               `json:"format"`
	Version int64             `json:"version,omitempty"` // highest @globalVersion seen
	Tops    map[string]string `json:"tops,omitempty"`    // highest Flexi id seen, by evidence

	// Era counts the companies that a person accepted as new ones. What a row of an earlier era says about Flexi is about
	// another company.
	Era int `json:"era,omitempty"`
	// Accepted is when a person last accepted the company. Ids are given again after a restore, so that one drawn before it
	// contradicts nothing drawn after.
	Accepted time.Time `json:"accepted,omitzero"`

	Token string                     `json:"token"` // as Row.Token; set by SetMarks
	Extra map[string]json.RawMessage `json:"-"`     // as Row.Extra
}

// Clone copies marks so that no change of one shows in the other.
func (m Marks) Clone() Marks {
	m.Tops, m.Extra = maps.Clone(m.Tops), maps.Clone(m.Extra)
	return m
}

// Marks reads the marks and their revision; revision 0 = nothing was seen yet.
func (l *Ledger) Marks(ctx context.Context) (Marks, uint64, error) {
	raw, rev, err := l.value(ctx, marksKey)
	if err != nil || rev == 0 {
		return Marks{}, 0, err
	}
	var m Marks
	if m.Extra, err = decode(raw, &m, marksFields); err != nil {
		return Marks{}, 0, fmt.Errorf("reading %s: %w", marksKey, err)
	}
	if m.Format > Format {
		return m, rev, fmt.Errorf("%s has format %d: %w", marksKey, m.Format, ErrNewer)
	}
	return m, rev, nil
}

// SetMarks replaces the marks if they still have the revision; errors as Claim.
func (l *Ledger) SetMarks(ctx context.Context, m Marks, revision uint64) error {
	m.Format, m.Token = Format, l.token()
	data, err := encode(m, m.Extra, marksFields)
	if err != nil {
		return fmt.Errorf("writing %s: %w", marksKey, err)
	}
	if _, err := l.cas(ctx, marksKey, data, revision); err != nil {
		return fmt.Errorf("writing %s: %w", marksKey, err)
	}
	return nil
}
