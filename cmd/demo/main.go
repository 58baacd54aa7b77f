package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the flags.
type options struct {
	docs    int
	seed    uint64
	addr    string
	exit    bool
	verbose bool
}

// maxDocs keeps the run within what the request log of the fake and a person can hold.
const maxDocs = 5000

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.docs, "docs", 200, "documents to publish")
	f.Uint64Var(&o.seed, "seed", 1, "decides which writes go wrong, and how")
	f.StringVar(&o.addr, "addr", "127.0.0.1:0", "where the daemon serves its API; port 0 = any")
	f.BoolVar(&o.exit, "exit", false, "end after the report instead of staying up until Ctrl-C")
	f.BoolVar(&o.verbose, "v", false, "show the daemon's log")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.docs < 1 || o.docs > maxDocs {
		return o, fmt.Errorf("-docs is from 1 to %d", maxDocs)
	}
	return o, nil
}

// run is the demo; it returns the exit code: 0 when no document was doubled, lost or left with other content, 1 when one
// was or the demo itself failed, 2 for wrong flags.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return 2
	}
	good, err := show(ctx, o, stdout, stderr)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(stderr, "demo: stopped")
		return 1
	case err != nil:
		fmt.Fprintln(stderr, "demo:", err)
		return 1
	case !good:
		return 1
	}
	return 0
}

// show runs the stage, plays the piece on it and tells how it went.
func show(ctx context.Context, o options, stdout, stderr io.Writer) (good bool, err error) {
	piece, err := compose(o.docs, o.seed)
	if err != nil {
		return false, err
	}
	s, err := raise(ctx, o, piece, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.strike()) }()
	s.introduce(stdout)
	started := time.Now()
	if err := s.play(ctx, piece, stderr); err != nil {
		return false, err
	}
	tally, err := s.count(ctx, piece)
	if err != nil {
		return false, err
	}
	tally.took = time.Since(started)
	tally.report(stdout)
	if !o.exit {
		s.howToLook(stdout)
		select {
		case <-ctx.Done():
		case err := <-s.ended:
			s.ended <- err // strike reads it
			return false, errors.New("the daemon ended by itself")
		}
	}
	return tally.good(), nil
}
