package daemon

import (
	"context"
	"errors"
	"fmt"

	"flexid/verify/ledger"
)

// PinError is a ledger of another company, or of another system of external ids: what it says about sent documents means
// nothing for this one. Exit code 78.
type PinError struct {
	Variable         string // that contradicts
	Ledger, Settings string // both names
}

func (e *PinError) Error() string {
	return fmt.Sprintf("the ledger belongs to %q, but %s says %q: set %s=%s to go on with that ledger, "+
		"or give %q a ledger of its own with another FLEXID_NATS_PREFIX (embedded: another FLEXID_STATE_DIR)",
		e.Ledger, e.Variable, e.Settings, e.Variable, e.Ledger, e.Settings)
}

func (d *daemon) checkPin(ctx context.Context, l *ledger.Ledger) error {
	if err := d.pinZone(ctx, l); err != nil {
		return err
	}
	meta, _, err := l.Meta(ctx)
	if err != nil {
		return err
	}
	if meta.Company != d.cfg.Flexi.Company && !meta.Confirmed() {
		// A slip of the pen at the first start must not bind the ledger: Flexi never said that there is such a company.
		if err := l.Correct(ctx, d.cfg.Flexi.Company); err != nil {
			return err
		}
		d.log.Info().Str("was", meta.Company).Str("is", d.cfg.Flexi.Company).Msg("the ledger's company is corrected: Flexi had not confirmed the first one")
		meta.Company = d.cfg.Flexi.Company
	}
	if meta.Company != d.cfg.Flexi.Company {
		return d.anotherCompany(meta)
	}
	if meta.System != d.cfg.Flexi.System {
		return &PinError{Variable: "FLEXID_FLEXI_SYSTEM", Ledger: meta.System, Settings: d.cfg.Flexi.System}
	}
	return nil
}

// pinZone makes the first time zone the ledger's, and refuses another: by the zone a moment becomes a day, and the year of that
// day is part of the keys of payables, so that the same document would be another one.
func (d *daemon) pinZone(ctx context.Context, l *ledger.Ledger) error {
	zone := d.cfg.Location.String()
	meta, revision, err := l.Meta(ctx)
	if err != nil || meta.Zone == zone {
		return err
	}
	if meta.Zone != "" {
		return &PinError{Variable: "FLEXID_TZ", Ledger: meta.Zone, Settings: zone}
	}
	meta.Zone = zone
	err = l.SetMeta(ctx, meta, revision)
	var conflict *ledger.ConflictError
	if errors.As(err, &conflict) { // another replica was faster: what it pinned counts
		return d.pinZone(ctx, l)
	}
	return err
}

func (d *daemon) anotherCompany(meta ledger.Meta) *PinError {
	return &PinError{Variable: "FLEXID_FLEXI_COMPANY", Ledger: meta.Company, Settings: d.cfg.Flexi.Company}
}
