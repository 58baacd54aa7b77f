package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "throughput:", err)
		os.Exit(1)
	}
}

// command is the whole program: one of the parts that it starts of itself, or the measuring.
func command(ctx context.Context, args []string, out, talk io.Writer) error {
	if part := partOf(args); part != nil {
		return part(ctx, args[1:], &stage{in: os.Stdin, out: out})
	}
	o, err := parse(args, talk)
	if err != nil {
		return err
	}
	return measure(ctx, o, out, talk)
}

// partOf is what this program does in a process of its own, nil when it is to measure.
func partOf(args []string) func(context.Context, []string, *stage) error {
	if len(args) == 0 {
		return nil
	}
	return map[string]func(context.Context, []string, *stage) error{"erp": erp, "peer": peer, "limit": limit}[args[0]]
}

type options struct {
	dir, flexid, profiles string
	n, rounds             int
	only                  []string
	strace                bool
	slice                 int           // seconds that a profile covers
	rest                  time.Duration // how long a daemon is left alone before its memory is read
}

func parse(args []string, talk io.Writer) (options, error) {
	o := options{slice: 5, rest: 12 * time.Second} // NATS keeps what it has read for 10 s
	f := flag.NewFlagSet("throughput", flag.ContinueOnError)
	f.SetOutput(talk)
	f.StringVar(&o.dir, "dir", "/var/tmp", "where all files are kept meanwhile: the disk that is measured")
	f.StringVar(&o.flexid, "flexid", "", "a flexid that is measured instead of this source's")
	f.StringVar(&o.profiles, "profiles", "", "folder that keeps profiles of flexid; taking them costs it a little")
	f.IntVar(&o.n, "n", 10_000, "documents in a run")
	f.IntVar(&o.rounds, "rounds", 5, "how often each is run")
	only := f.String("only", "", "cases, separated by commas: "+strings.Join(caseNames(), ", "))
	f.BoolVar(&o.strace, "strace", false, "count syncs too, in a run of its own under strace")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.n < 1 || o.rounds < 1 || f.NArg() > 0 {
		return o, errors.New("at least one document, one round, and no arguments")
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.Contains(caseNames(), name) {
			return o, fmt.Errorf("-only %s: one of %s", name, strings.Join(caseNames(), ", "))
		}
	}
	return o, nil
}

// bench is one call of the command.
type bench struct {
	options
	self   string // this program
	dir    string // all files of this call
	runs   int
	talk   io.Writer
	table  table
	faults []error // documents that were doubled or lost
}

func measure(ctx context.Context, o options, out, talk io.Writer) (err error) {
	b := &bench{options: o, talk: talk}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(o.dir, "throughput-"); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(b.dir)) }()
	if b.flexid == "" {
		b.flexid = filepath.Join(b.dir, "flexid")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.flexid, "flexid/cmd/flexid")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building flexid: %w\n%s", err, text)
		}
	}
	if b.profiles != "" {
		if err := os.MkdirAll(b.profiles, 0o755); err != nil {
			return err
		}
	}
	head, err := b.head(ctx)
	if err != nil {
		return err
	}
	if err := b.all(ctx); err != nil {
		return errors.Join(append(b.faults, err)...)
	}
	fmt.Fprintln(out, head)
	b.table.write(out)
	if len(b.faults) > 0 {
		return errors.Join(b.faults...)
	}
	_, err = fmt.Fprintln(out, "\nEvery document was made once.")
	return err
}

// all runs every case as often as it is asked for. Who begins changes with the round: what slows the machine down for a
// while then meets another one.
func (b *bench) all(ctx context.Context) error {
	programs := []string{"flexid", "peer", "limit"}
	for round := range b.rounds {
		for _, l := range loads() {
			for i := range programs {
				if err := b.load(ctx, l, programs[(round+i)%len(programs)], false); err != nil {
					return err
				}
			}
		}
		if err := b.file(ctx); err != nil {
			return err
		}
	}
	if !b.strace {
		return nil
	}
	for _, l := range loads() {
		for _, program := range programs {
			if err := b.load(ctx, l, program, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) wanted(name string) bool { return len(b.only) == 0 || slices.Contains(b.only, name) }

// folder makes an empty one for a run.
func (b *bench) folder() (string, error) {
	b.runs++
	dir := filepath.Join(b.dir, fmt.Sprint("run-", b.runs))
	return dir, os.Mkdir(dir, 0o755)
}
