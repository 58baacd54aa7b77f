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
	free   func(dir string) (int64, error)
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
		d := &doctor{cfg: cfg, client: client, now: time.Now, free: statedir.Free, report: func(f finding) {
			pr.row(f, f.Check, f.Result, f.Text, f.Do)
			if pr.format == "table" && isTerminal(p.err) {
				p.say("%s: %s", f.Check, f.Result) // a check can take its time
			}
		}}
		d.erp(ctx, *evidences)
		d.quota(ctx)
		d.state()
		d.nats(ctx)
		d.daemon(ctx)
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
	free, err := d.free(d.cfg.StateDir)
	if err != nil {
		d.say("disk", resultWarn, err.Error(), "see how much room the disk of "+d.cfg.StateDir+" has")
		return
	}
	result, do := room(free, d.cfg.Flexi.Concurrency*d.cfg.Flexi.Pack, d.cfg.NATS.Embedded())
	d.say("disk", result, fmt.Sprintf("%d MiB free (%d KiB)", free>>20, free>>10), do)
}

// Room for what one document in flight may write, and for a few weeks of many.
const (
	roomRow    = 64 << 10
	roomLeast  = 16 << 20
	roomLittle = 1 << 30
	roomFiles  = 1 << 20 // lock, ids and token, where NATS keeps the rest elsewhere
)

// room judges what a disk has free; flying is how many documents may be written at once.
func room(free int64, flying int, embedded bool) (result, do string) {
	const more = "make room, or set FLEXID_STATE_DIR to a disk that has it"
	switch least := int64(roomLeast) + int64(flying)*roomRow; {
	case !embedded && free < roomFiles:
		return resultFail, more
	case !embedded:
	case free < least:
		return resultFail, fmt.Sprintf("%s: at least %d MiB; with less flexid takes in no documents, and a full disk stops NATS", more, (least+1<<20-1)>>20)
	case free < roomLittle:
		return resultWarn, more + ": what came in and what became of it is kept as long as FLEXID_KEEP_BODIES says"
	}
	return resultOK, ""
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
		if d.rights(ctx, e, known) {
			d.look(ctx, e)
		}
	}
	d.types(ctx, known)
}
