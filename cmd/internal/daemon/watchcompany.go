package daemon

import (
	"context"
	"errors"
	"time"

	"flexid/cmd/internal/api"
	"flexid/flexi"
)

// Pauses of the company check: while Flexi does not answer, while all is well, and while all is well and requests are
// counted: each check takes two of them. After an outage it is asked at once (see identity).
const (
	companySoon    = 15 * time.Second
	companyLater   = 10 * time.Minute
	companyCounted = time.Hour
)

// watchCompany asks who the company is also while nothing is written, and again from time to time: it can be set up anew
// under a running daemon.
func (c *core) watchCompany(ctx context.Context) {
	said, waiting := "", 0
	select {
	case <-c.engine.Ready(): // the stored stops are read by then
	case <-ctx.Done():
	}
	for ctx.Err() == nil {
		err := c.who.ensure(ctx)
		c.noteCheck(ctx, err)
		pause := companyLater
		if c.quota != nil {
			pause = companyCounted
		}
		var pin *PinError
		if errors.As(err, &pin) {
			c.fail(err)
			return
		}
		if err != nil {
			pause = companySoon
			if aboutFlexi(err) { // nobody else asks while no document waits, and the status would call all well
				c.engine.ReadEnded(err)
			}
			if waiting == 0 {
				waiting = c.logWaiting()
			}
			if err.Error() != said && ctx.Err() == nil {
				said = err.Error()
				c.d.log.Warn().Err(err).Msg("the company in Flexi is not checked yet; intake goes on, nothing is written: `flexid doctor` says what to do")
			}
		} else {
			if said != "" {
				said, waiting = "", 0
				c.engine.ReadEnded(nil)
				c.d.log.Info().Msg("the company in Flexi is checked")
			}
			if c.stoppedFor("company", "") {
				// Stored by an earlier start, whose settings pointed to another company.
				c.engine.EndStop("company")
				pause = companySoon
			}
		}
		if !sleep(ctx, pause) {
			return
		}
		c.who.askAnew()
	}
}

// noteCheck keeps how the check went for the status, except one that the end of the process broke off.
func (c *core) noteCheck(ctx context.Context, err error) {
	check := api.Check{Time: c.d.now().UTC()}
	if err != nil {
		check.Text = err.Error()
	}
	if ctx.Err() == nil {
		c.d.standing.setChecked(check)
	}
}

// aboutFlexi says whether a failed check of the company tells how Flexi is to all: not what only the company's own record
// refuses, what it shows, or what the ledger does not give.
func aboutFlexi(err error) bool {
	var answer *flexi.Error
	var cert *flexi.CertError
	if errors.As(err, &cert) {
		return true
	}
	return errors.As(err, &answer) && answer.Status != 403 && answer.Status != 404
}

// stopForCompany stops writes once: each StopFor is an alert.
func (c *core) stopForCompany(text, remedy string) {
	if !c.stoppedFor("company", text) {
		c.engine.StopFor("company", text, remedy)
	}
}

// stoppedFor says whether writes are stopped for a reason, "" = with any text.
func (c *core) stoppedFor(reason, text string) bool {
	for _, g := range c.engine.Status().Stops {
		if g.NeedsYou && g.Reason == reason && (text == "" || g.Text == text) {
			return true
		}
	}
	return false
}
