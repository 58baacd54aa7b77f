package daemon

import (
	"context"
	"errors"
	"time"

	"flexid/cmd/internal/api"
	"flexid/verify/ledger"
)

// ledgerPause is between two looks for a ledger that is not there.
const ledgerPause = 2 * time.Second

// waitForLedger stays up, not ready, until the ledger is back or a person accepts an empty one.
func (d *daemon) waitForLedger(ctx context.Context, missing *missingLedger) (*ledger.Ledger, *ledger.StateBucket, error) {
	d.standing.setNoLedger(api.Trouble{Part: api.PartLedger, Text: missing.text, Remedy: waysOut})
	d.standing.setPhase("the ledger is missing")
	d.log.Error().Str("remedy", waysOut).Msg(missing.text)
	d.waiting(true)
	defer d.waiting(false)
	givenUp := describeLost(missing.text, d.known)
	for accepted := false; ; {
		l, state, err := d.tryLedger(ctx, accepted)
		var still *missingLedger
		switch {
		case err == nil:
			if accepted {
				d.standing.setGivenUp(givenUp)
				d.log.Warn().Str("ledger", l.LedgerID()).Str("given_up", givenUp).Msg("it goes on without what was lost")
			} else {
				d.log.Info().Str("ledger", l.LedgerID()).Msg("the ledger is there")
			}
			return l, state, nil
		case final(err) || ctx.Err() != nil:
			return nil, nil, err
		case !errors.As(err, &still):
			d.log.Warn().Err(err).Msg("NATS cannot be asked for the ledger yet")
		}
		timer := time.NewTimer(ledgerPause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-d.accept:
			accepted = true
		}
		timer.Stop()
	}
}

// waiting opens and closes the time in which an empty ledger can be accepted; an acceptance must not be kept for a loss
// that has not happened yet.
func (d *daemon) waiting(is bool) {
	d.acceptMu.Lock()
	defer d.acceptMu.Unlock()
	d.accepting = is
	if is {
		d.found = make(chan struct{})
	} else {
		close(d.found)
	}
	select {
	case <-d.accept:
	default:
	}
}

// acceptPatience is how long an acceptance waits to see its effect.
const acceptPatience = 10 * time.Second

func (d *daemon) acceptEmpty(ctx context.Context, by, why string) error {
	found, err := d.acceptNow()
	if err != nil {
		return err
	}
	d.log.Warn().Str("by", by).Str("why", why).Msg("an empty ledger was accepted")
	ctx, cancel := context.WithTimeout(ctx, acceptPatience)
	defer cancel()
	select {
	case <-found:
	case <-ctx.Done(): // it is accepted all the same; the status says how far it is
	}
	return nil
}

func (d *daemon) acceptNow() (found <-chan struct{}, err error) {
	d.acceptMu.Lock()
	defer d.acceptMu.Unlock()
	if !d.accepting && d.standing.lost() {
		return nil, &api.Problem{Type: "about:blank", Title: "Service Unavailable", Status: 503, Retry: true,
			Detail: "the daemon is still letting go of the lost ledger", Next: "ask again in some seconds"}
	}
	if !d.accepting {
		return nil, &api.Problem{Type: "about:blank", Title: "Conflict", Status: 409, Detail: "the ledger is not missing",
			Next: "nothing was changed; an empty ledger is only accepted in place of one that is gone"}
	}
	select {
	case d.accept <- struct{}{}:
	default: // accepted already
	}
	return d.found, nil
}
