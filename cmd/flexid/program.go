package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"flexid/config"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// program is one call of flexid: its streams, environment and global flags.
type program struct {
	env      []string
	in       io.Reader
	out, err io.Writer
	answers  bool // in is somebody who answers questions, though no terminal: in tests

	envFile string
	format  string
	excel   bool
	noColor bool
}

// Exit codes of DESIGN 6.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNothing  = 3
	exitTryAgain = 75
	exitConfig   = 78
)

// exitError carries the exit code of an error. A nil err says that everything was said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usagef(format string, a ...any) error { return &exitError{exitUsage, fmt.Errorf(format, a...)} }

func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{codeOf(err), err}
	}
	if exit.err != nil {
		fmt.Fprintln(p.err, "flexid:", exit.err)
	}
	return exit.code
}

// codeOf sorts errors that nobody gave a code: faults of the settings are 78 wherever they come from.
func codeOf(err error) int {
	var faults config.Faults
	if errors.As(err, &faults) {
		return exitConfig
	}
	return exitFailed
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "flexid",
		Short:         "document events from NATS JetStream into ABRA Flexi, each exactly once",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE:          group,

		SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if p.excel && p.format != "csv" {
				if c.Flags().Changed("output") {
					return usagef("--excel is a kind of -o csv, not of -o %s", p.format)
				}
				p.format = "csv"
			}
			switch p.format {
			case "table", "json", "ndjson", "csv":
				return nil
			}
			return usagef("-o %s: one of table, json, ndjson, csv", p.format)
		},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w; see `%s --help`", err, c.CommandPath())
	})
	root.SetHelpCommand(p.help())
	root.Long = "flexid puts document events from NATS JetStream into ABRA Flexi, each exactly once in effect.\n\n" +
		"Pages, by `flexid help TOPIC`:\n\n" + topicList() +
		"\nExit: 0 ok, 1 error, 2 wrong usage, 3 nothing matches, 4 some documents were rejected, 5 of some it is not known (4 and 5\n" +
		"of push), 75 try again later: some still wait, or writes are stopped, 78 bad settings."
	b := build()
	root.Version = joinedBy(" ", b.Version, b.Revision, b.Go)
	root.SetVersionTemplate("flexid {{.Version}}\n")
	f := root.PersistentFlags()
	f.BoolVar(&p.excel, "excel", false, "CSV as a Czech spreadsheet opens it: byte order mark, semicolons, decimal commas")
	f.StringVar(&p.envFile, "env-file", "", "file of FLEXID_… lines (default "+config.DefaultEnvFile+" if it exists)")
	f.StringVarP(&p.format, "output", "o", "table", "table, json, ndjson or csv")
	completes(root, "output", "table", "json", "ndjson", "csv")
	f.BoolVar(&p.noColor, "no-color", false, "no colour on a terminal")
	root.AddCommand(p.serve(), p.status(), p.doctor(), p.probe(), p.push(), p.webhook(), p.docs(), p.maybe(), p.company(), p.writes(), p.ledger(), p.configuration(),
		p.healthcheck(), p.version())
	return root
}

// group is the body of a command that only holds others: cobra would print its help and say that all is well, also for a
// misspelt subcommand in a script.
func group(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	hint := "see `" + c.CommandPath() + " --help`"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("%s has no command %q; %s", c.CommandPath(), args[0], hint)
}

// grouped makes a command that only holds others.
func grouped(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: group, SuggestionsMinimumDistance: 2}
	c.AddCommand(children...)
	return c
}

// exactly is cobra.ExactArgs with an exit code and the usage line.
func exactly(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("usage: %s", c.UseLine())
		}
		return nil
	}
}

func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("usage: %s", c.UseLine())
		}
		return nil
	}
}

// lookup reads a variable of the environment that the program was given.
func (p *program) lookup(name string) string {
	for i := len(p.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(p.env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (p *program) color() bool {
	return !p.noColor && p.lookup("NO_COLOR") == "" && p.lookup("TERM") != "dumb" && isTerminal(p.out)
}

// say writes talk, never data.
func (p *program) say(format string, a ...any) { fmt.Fprintf(p.err, format+"\n", a...) }
