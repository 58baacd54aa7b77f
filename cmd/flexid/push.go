package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"flexid/batch"
	"flexid/batch/read"
	"flexid/cmd/internal/push"
	"flexid/config"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

// Exit codes of what a batch came to.
const (
	exitRejected = 4
	exitUnknown  = 5
)

// pushFlags are the flags of push.
type pushFlags struct {
	evidence, format string
	source           string
	check, all       bool
	quiet            bool
	newLedger, alone bool
	wait             time.Duration
}

// patience is how long something before the first event may take: no longer than the whole run may stand still.
func (fl *pushFlags) patience(most time.Duration) time.Duration {
	if fl.wait == 0 {
		return most
	}
	return min(most, fl.wait)
}

func (p *program) push() *cobra.Command {
	var fl pushFlags
	c := &cobra.Command{
		Use: "push FILE…", Short: "documents from files, with progress and a report",
		Long: "Put the documents of files into Flexi: NDJSON, a JSON list or object, a winstrom envelope, each also in gzip; - is\n" +
			"standard input, a folder stands for the *.json, *.ndjson and *.jsonl in it. All of the input is checked before\n" +
			"anything is sent; meanwhile it lies in TMPDIR, by default /var/tmp. The same file again writes nothing.\n" +
			"Without a running daemon, push works alone on the daemon's state directory.\n\n" +
			"Exit: 0 all is in Flexi, 4 some were rejected or differ, 5 of some it is not known, 75 some still wait, 1 faults in the\n" +
			"input (nothing was sent), 3 no documents. Ctrl-C stops the publishing and reports, a second one leaves at once;\n" +
			"nothing is lost either way: push the same files again.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("usage: %s", c.UseLine())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return p.pushFiles(c.Context(), args, fl) },
	}
	f := c.Flags()
	f.StringVar(&fl.evidence, "evidence", "", "evidence of documents that stand in the files without an event around them")
	f.StringVar(&fl.source, "source", "", "webhook source whose documents these are: its keys name the same documents here and there")
	_ = c.RegisterFlagCompletionFunc("evidence", p.completeEvidence)
	completes(c, "source")
	f.StringVar(&fl.format, "format", "", "ndjson or json (default: by name and content)")
	f.BoolVar(&fl.check, "check", false, "check the files and stop")
	f.BoolVar(&fl.all, "all", false, "list every document in the table, not only those that need somebody")
	f.BoolVar(&fl.quiet, "quiet", false, "no progress")
	f.DurationVar(&fl.wait, "wait", 30*time.Minute, "how long to wait while nothing happens; 0 = publish and leave")
	f.BoolVar(&fl.newLedger, "new-ledger", false, "alone: begin a ledger where there is none yet")
	f.BoolVar(&fl.alone, "alone", false, "with an external NATS: be the daemon where none answers")
	return c
}

func (p *program) pushFiles(ctx context.Context, args []string, fl pushFlags) error {
	if fl.format != "" && fl.format != read.NDJSON && fl.format != read.JSON {
		return usagef("--format %s: one of ndjson, json", fl.format)
	}
	if fl.source != "" && !batch.IsSource(fl.source) {
		return usagef("--source %s: a source is written with small letters, digits and -, at most 20 of them", fl.source)
	}
	if fl.wait < 0 {
		return usagef("--wait may not be negative")
	}
	files, passed, err := push.Expand(args)
	if err != nil {
		return usagef("%w", err)
	}
	if err := p.printPassed(files, passed); err != nil {
		return err
	}
	s, err := p.pushSettings()
	if err != nil && !fl.check {
		return err
	}
	if known := s.Webhook.Sources; fl.source != "" && len(known) > 0 && !slices.Contains(known, fl.source) {
		p.say("warning: --source %s is none of FLEXID_WEBHOOK_SOURCES (%s): keys in it name other documents than theirs", fl.source, strings.Join(known, ", "))
	}
	spool, err := push.NewSpool(p.spoolDir())
	if err != nil {
		return err
	}
	defer spool.Close()
	if err := p.pushCheck(ctx, files, fl, s.Config, spool); err != nil || fl.check {
		return err
	}
	run := strings.ToLower(rand.Text()[:12])
	if err := p.pushRun(ctx, run, fl, s, spool); err != nil {
		return err
	}
	return p.pushReport(run, fl, spool)
}

// printPassed names what lies in a folder and is not pushed. Nothing but folders is an error: a night whose exporter began to
// write into a folder by date must not look like a night without work.
func (p *program) printPassed(files []string, passed []push.Passed) error {
	folders := 0
	for _, at := range passed {
		if at.Folder {
			folders++
			p.say("%s is passed over: push does not go into folders; to push what is in it: flexid push %s", clean(at.Name), clean(at.Name))
			continue
		}
		p.say("%s is passed over: in a folder push takes *.json, *.ndjson and *.jsonl, with or without .gz", clean(at.Name))
	}
	if len(files) == 0 && folders > 0 {
		return &exitError{exitFailed, fmt.Errorf("no file to push, only %s that push does not go into: push them by their names", many(folders, "folder"))}
	}
	return nil
}

// spoolDir is where the input lies meanwhile. /tmp is memory on many systems, and a file may be larger than that.
func (p *program) spoolDir() string {
	const large = "/var/tmp"
	if info, err := os.Stat(large); p.lookup("TMPDIR") == "" && err == nil && info.IsDir() {
		return large
	}
	return p.lookup("TMPDIR")
}

// pushCheck is the first pass. Without a document there is nothing to do: exit 3.
func (p *program) pushCheck(ctx context.Context, files []string, fl pushFlags, cfg config.Config, spool *push.Spool) error {
	pr := p.printer("file", "line", "evidence", "key", "problem")
	progress := p.startProgress(fl.quiet, checked(spool))
	faults, err := push.Check(ctx, push.Input{
		Files: files, Stdin: p.in, Format: fl.format, Evidence: fl.evidence,
		Decoder: batch.Decoder{Prefix: cfg.NATS.Prefix, System: cfg.Flexi.System, Zone: cfg.Location, Source: fl.source},
	}, spool, p.faultPrinter(pr, progress.say))
	progress.stop()
	switch {
	case ctx.Err() != nil:
		return stoppedEarly()
	case err != nil:
		return err
	case faults > 0:
		p.say("%s, %s without one; nothing was sent", many(faults, "fault"), many(spool.Len(), "document"))
		return cmp.Or(pr.end(), error(&exitError{code: exitFailed}))
	case spool.Len() == 0:
		p.say("no documents in %s", many(len(files), "file"))
		return &exitError{code: exitNothing}
	case fl.check:
		p.say("%s in %s, no faults", many(spool.Len(), "document"), many(len(files), "file"))
	}
	return nil
}

// pushRun is the second pass: from here on events leave.
func (p *program) pushRun(ctx context.Context, run string, fl pushFlags, s pushSettings, spool *push.Spool) error {
	log := p.logger(quieter(s.Config.Log))
	t, err := p.pushTarget(ctx, s, fl, log)
	if err != nil && ctx.Err() != nil {
		return stoppedEarly()
	}
	if err != nil {
		return err
	}
	meter := push.Meter{Spool: spool, Now: time.Now}
	progress := p.startProgress(fl.quiet, meter.Line)
	err = t.whileAlive(ctx, func(ctx context.Context) error {
		return push.Run(ctx, push.Options{Spool: spool, Run: run, JS: t.js, Stream: t.streams, Daemon: t.daemon, Wait: fl.wait, FollowUps: t.followUps,
			Trouble: progress.trouble, Log: log})
	})
	progress.stop()
	p.sayWhy(ctx, t.daemon, fl, spool)
	if ctx.Err() != nil {
		with := "the daemon"
		if t.ended != nil {
			with = "the next push or daemon"
		}
		p.say("stopped; what was published goes on with %s, the rest is not sent", with)
		if errors.Is(err, context.Cause(ctx)) {
			err = nil
		}
	}
	if stopped := t.close(); err != nil {
		err = errors.Join(err, stopped)
	} else if stopped != nil {
		p.say("warning: %v", stopped) // what is in flight is looked up by the next start
	}
	if err != nil {
		// What happened is reported all the same: events may have left. The error counts more than the report's code.
		_ = p.pushReport(run, fl, spool)
	}
	return err
}

// sayWhy says at the end why documents still wait, since that is what somebody has to do something about.
func (p *program) sayWhy(ctx context.Context, d push.Daemon, fl pushFlags, spool *push.Spool) {
	if counts, _ := spool.Counts(); fl.wait == 0 || counts[push.Waiting] == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if text, err := d.Stopped(ctx, spool.Evidences(push.Waiting)); err == nil && text != "" {
		p.say("what still waits: %s", clean(text))
	}
}

func stoppedEarly() error { return &exitError{exitTryAgain, errors.New("stopped; nothing was sent")} }

// quieter: what the daemon says of a good day would stand between the lines of a command.
func quieter(l config.Log) config.Log {
	if l.Level == zerolog.LevelInfoValue {
		l.Level = zerolog.LevelWarnValue
	}
	return l
}

// many is a number with its thing, one or several.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
