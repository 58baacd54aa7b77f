package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"flexid/cmd/internal/daemon"
	"flexid/flexi"
	"flexid/flexi/probe"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

// probeLimit bounds a whole probe: no call is begun after it. probeTimeout is for one request to the scripted server,
// shorter than the daemon's, so that a script of silences ends while somebody watches.
const (
	probeLimit   = 10 * time.Minute
	probeTimeout = 10 * time.Second
	probeSettle  = time.Second // how long requests that were cut off may still arrive
	probeWrites  = 20          // most records that a probe leaves in a test company
)

// probing is one run of the command.
type probing struct {
	p         *program
	script    string
	scripted  bool
	write     bool
	test      bool // --write-to-test-company
	calls     int
	timeout   time.Duration
	listen    string
	via       string
	evidence  string
	hasListen bool
}

func (p *program) probe() *cobra.Command {
	run := &probing{p: p}
	c := &cobra.Command{
		Use: "probe", Short: "count how many requests one call becomes",
		Long: "Counts logical calls and the requests that they become: amplification = requests / calls.\n\n" +
			"With --script a server of its own answers as told and counts what arrives, which shows layers that repeat unseen;\n" +
			"no settings are needed. Steps, one for each request, separated by commas: a status (503), a status with Retry-After\n" +
			"(429:2), stale, reset, close, silence, half, html; commit before a step: the write was done nevertheless (commit500);\n" +
			"* after a step: for ever (500*), *3: three times. After the last step every request is answered well.\n\n" +
			"Without --script the Flexi of the settings is asked. It is only read, unless --write-to-test-company.",
		Example: "  flexid probe --script 503,503,200\n  flexid probe --script 503,503,200 --write\n" +
			"  flexid probe --script commit500 --write --listen 127.0.0.1:9480 --via http://localhost:8080",
		Args: exactly(0),
	}
	f := c.Flags()
	f.StringVar(&run.script, "script", "", "what the scripted server answers")
	f.BoolVar(&run.write, "write", false, "make the call a write (with --script, or to a test company)")
	f.BoolVar(&run.test, "write-to-test-company", false, "create records in the company of the settings: it is for tests, and no daemon writes to it")
	f.IntVar(&run.calls, "calls", 1, "logical calls, one after the other")
	f.DurationVar(&run.timeout, "timeout", 0, "for one request (default 10s with --script, else as set)")
	f.StringVar(&run.listen, "listen", "127.0.0.1:0", "where the scripted server listens")
	f.StringVar(&run.via, "via", "", "send to this address, from which a proxy leads to the scripted server")
	f.StringVar(&run.evidence, "evidence", "adresar", "evidence to read or write")
	c.RunE = func(c *cobra.Command, _ []string) error {
		run.scripted, run.hasListen = f.Changed("script"), f.Changed("listen")
		return run.run(c.Context())
	}
	return c
}

// check refuses what makes no sense before anything is asked.
func (r *probing) check() error {
	switch {
	case r.scripted && r.test:
		return usagef("--write-to-test-company is for a Flexi; with --script use --write")
	case !r.scripted && r.write && !r.test:
		return usagef("a probe only reads a Flexi; to create records in a company for tests, say --write-to-test-company")
	case !r.scripted && (r.via != "" || r.hasListen):
		return usagef("--listen and --via belong to --script")
	case r.calls < 1 || r.calls > probe.MaxCalls:
		return usagef("--calls %d: 1 to %d", r.calls, probe.MaxCalls)
	case r.test && r.calls > probeWrites:
		return usagef("--calls %d: at most %d records are made in a test company", r.calls, probeWrites)
	case r.timeout < 0:
		return usagef("--timeout is negative")
	}
	return nil
}

func (r *probing) run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, probeLimit, errors.New("the time for the probe is over"))
	defer cancel()
	if r.scripted {
		return r.againstScript(ctx)
	}
	return r.againstFlexi(ctx)
}

// plan is the same for both servers. The name is new at every run, so that a write is never taken for an earlier one.
func (r *probing) plan(system string) probe.Plan {
	return probe.Plan{
		Evidence: r.evidence, Calls: r.calls, Write: r.write || r.test, System: system,
		Name: "PROBE" + strconv.FormatInt(time.Now().UnixMilli(), 36),
	}
}

func (r *probing) againstScript(ctx context.Context) error {
	script, err := probe.ParseScript(r.script)
	if err != nil {
		return usagef("%w", err)
	}
	server, err := probe.Start(ctx, r.listen, script)
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // closed below with its error; here for the other ways out
	timeout := r.timeout
	if timeout == 0 {
		timeout = probeTimeout
	}
	address := server.URL()
	if r.via != "" {
		address = r.via
		r.p.say("the scripted server listens at %s", server.URL())
	}
	tally := new(probe.Tally)
	client, err := flexi.New(flexi.Options{
		URL: address, Company: "probe", User: "probe", Password: "probe", WriteTimeout: timeout, ReadTimeout: timeout,
		Observe: tally.Observe, Probe: true, Log: zerolog.Nop(),
	})
	if err != nil {
		return usagef("%w", err)
	}
	report, err := probe.Run(ctx, client, tally, r.plan("FLEXID"))
	if err != nil {
		return err
	}
	settle, cancel := context.WithTimeout(ctx, probeSettle)
	defer cancel()
	server.Settled(settle, report.WireRequests)
	if err := server.Close(); err != nil {
		return err
	}
	report.Compare(server.Requests(), server.Commits())
	if err := r.print(report); err != nil {
		return err
	}
	if report.Mismatch != "" {
		return errors.New(report.Mismatch)
	}
	return nil
}

func (r *probing) againstFlexi(ctx context.Context) error {
	cfg, err := r.p.load()
	if err != nil {
		return err
	}
	if r.test && !cfg.Flexi.Allow.Allowed(r.evidence, string(flexi.Create)) {
		return usagef("FLEXID_FLEXI_ALLOW does not let %s be created", r.evidence)
	}
	if r.timeout > 0 {
		cfg.Flexi.ReadTimeout, cfg.Flexi.WriteTimeout = r.timeout, r.timeout
	}
	tally := new(probe.Tally)
	client, err := daemon.NewClient(cfg.Flexi, flexi.Options{Observe: tally.Observe, Probe: true, Log: zerolog.Nop()})
	if err != nil {
		return &exitError{exitConfig, err}
	}
	plan := r.plan(cfg.Flexi.System)
	if plan.Write {
		r.p.say("creating %s-1 to -%d in %s of the company %s", plan.Name, plan.Calls, plan.Evidence, cfg.Flexi.Company)
	}
	report, err := probe.Run(ctx, client, tally, plan)
	if err != nil {
		return err
	}
	if err := r.print(report); err != nil {
		return err
	}
	if !report.Clean() {
		return fmt.Errorf("not every call ended well; the last one: %s", report.Outcome)
	}
	return nil
}

// print writes the report. Spreadsheets get the figures in one row.
func (r *probing) print(report probe.Report) error {
	server := "not counted"
	if report.ServerRequests != nil {
		server = strconv.Itoa(*report.ServerRequests)
	}
	figures := []string{
		strconv.Itoa(report.LogicalCalls), strconv.Itoa(report.WireRequests), server,
		fmt.Sprintf("%.2f", report.Amplification), fmt.Sprintf("%.3f", report.SpentSeconds), fmt.Sprintf("%.3f", report.AttemptSeconds), report.Outcome,
	}
	names := []string{"logical_calls", "wire_requests", "server_requests", "amplification", "spent_seconds", "attempt_seconds", "outcome"}
	if r.p.format == "csv" {
		pr := r.p.printer(names...)
		pr.row(report, figures...)
		return pr.end()
	}
	return r.p.object(report, func(w io.Writer) {
		for i, label := range []string{"logical calls", "wire requests", "server requests", "amplification", "spent seconds", "of it attempts", "outcome"} {
			fmt.Fprintf(w, "%-16s  %s\n", label, figures[i])
		}
		r.details(w, report)
	})
}

func (r *probing) details(w io.Writer, report probe.Report) {
	if report.Error != "" {
		fmt.Fprintf(w, "%-16s  %s\n", "reason", clean(report.Error))
	}
	if report.Commits != nil && (r.write || *report.Commits > 0) {
		fmt.Fprintf(w, "%-16s  %d\n", "writes done", *report.Commits)
	}
	if report.WaitMillis > 0 {
		fmt.Fprintf(w, "%-16s  %s, then the daemon sends it again from its queue\n", "wait",
			time.Duration(report.WaitMillis)*time.Millisecond)
	}
	if report.Mismatch != "" {
		fmt.Fprintf(w, "%-16s  %s\n", "MISMATCH", report.Mismatch)
	}
	fmt.Fprintln(w)
	for i, q := range report.Requests {
		status := "-"
		if q.Status != 0 {
			status = strconv.Itoa(q.Status)
		}
		fmt.Fprintf(w, "%3d  %-4s  %3s  %-8s  %6d ms\n", i+1, q.Method, status, q.Outcome, q.Millis)
	}
}
