package main

import (
	"context"
	"fmt"
	"time"

	"flexid/cmd/internal/daemon"
	"flexid/config"
	"flexid/config/statedir"
	"flexid/flexi"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

// Results of a check.
const (
	resultOK   = "ok"
	resultWarn = "warn" // works, and is likely not meant
	resultFail = "fail"
	resultSkip = "skip" // an earlier failure stands before it
)

// finding is one line of doctor.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Text   string `json:"text"`
	Do     string `json:"do,omitempty"` // what to do
}

// doctor is one run: findings in order, each written as soon as it is known.
type doctor struct {
	cfg    config.Config
	client *flexi.Client
	now    func() time.Time
	report func(finding)
	failed int
}

func (d *doctor) say(check, result, text, do string) {
	if result == resultFail {
		d.failed++
	}
	d.report(finding{check, result, text, do})
}

// doctorTimeout bounds the whole run, so that it can stand in a script.
const doctorTimeout = 2 * time.Minute

func (p *program) doctor() *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "ask ERP and NATS whether flexid can work; writes nothing", Args: exactly(0),
	}
	evidences := c.Flags().StringSlice("evidence", []string{"faktura-vydana", "faktura-prijata", "adresar"}, "evidences to check the rights of")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := p.load()
		if err != nil {
			return err
		}
		client, err := daemon.NewClient(cfg.Flexi, flexi.Options{Probe: true, Log: zerolog.Nop()})
		if err != nil {
			return &exitError{exitConfig, err}
		}
		ctx, cancel := context.WithTimeout(c.Context(), doctorTimeout)
		defer cancel()
		pr := p.printer("check", "result", "text", "do")
		d := &doctor{cfg: cfg, client: client, now: time.Now, report: func(f finding) {
			pr.row(f, f.Check, f.Result, f.Text, f.Do)
			if pr.format == "table" && isTerminal(p.err) {
				p.say("%s: %s", f.Check, f.Result) // a check can take its time
			}
		}}
		d.erp(ctx, *evidences)
		d.quota(ctx)
		d.state()
		d.nats(ctx)
		if err := pr.end(); err != nil {
			return err
		}
		if d.failed > 0 {
			return fmt.Errorf("%s failed", many(d.failed, "check"))
		}
		return nil
	}
	return c
}

// state looks at where the lock, the tokens and the embedded NATS server are kept.
func (d *doctor) state() {
	if err := statedir.Usable(d.cfg.StateDir); err != nil {
		d.say("state directory", resultFail, err.Error(), "set FLEXID_STATE_DIR to one that the user may write whom flexid runs as")
		return
	}
	d.say("state directory", resultOK, d.cfg.StateDir, "")
}

// erp asks from the outside in; what an earlier answer makes pointless is skipped.
func (d *doctor) erp(ctx context.Context, evidences []string) {
	if !d.address(ctx) || !d.certificate(ctx) {
		d.say("login", resultSkip, "the ERP cannot be reached", "")
		return
	}
	company, ok := d.login(ctx)
	if !ok {
		d.say("licence", resultSkip, "without a login nothing more can be asked", "")
		return
	}
	d.company(company)
	d.server(ctx)
	d.changes(company)
	known, ok := d.known(ctx)
	if !ok {
		return
	}
	for _, e := range evidences {
		d.rights(ctx, e, known)
	}
	d.types(ctx, known)
}
