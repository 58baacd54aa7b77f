package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"flexid/cmd/internal/api"

	"github.com/spf13/cobra"
)

func (p *program) status() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "how it stands: what runs, what is stopped, what waits for whom", Args: exactly(0),
		Long: "How it stands: what runs, what is stopped and why, what waits for whom. It changes nothing, and answers also while Flexi\n" +
			"or NATS is down.\n\nExit: 0 writes go out, 75 they are stopped (all, or those of an evidence) or the daemon is not ready, 1 no daemon answers.",
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := p.client()
		if err != nil {
			return err
		}
		var st api.Status
		if err := cl.get(c.Context(), "/api/v1/status", &st); err != nil {
			return err
		}
		if err := p.showStatus(&st); err != nil {
			return err
		}
		if st.WritesStopped {
			return &exitError{code: exitTryAgain}
		}
		return nil
	}
	return c
}

// showStatus prints a status; in CSV what waits, since that is its list.
func (p *program) showStatus(st *api.Status) error {
	if p.format != "csv" {
		return p.object(st, func(w io.Writer) { printStatus(w, st, time.Now()) })
	}
	pr := p.printer("state", "reason", "cause", "documents", "who", "text", "do")
	for _, w := range st.Waits {
		pr.row(w, w.State, w.Reason, w.Cause, fmt.Sprint(w.Documents), w.Who, w.Text, w.Do)
	}
	return pr.end()
}

func printStatus(w io.Writer, st *api.Status, now time.Time) {
	fmt.Fprintf(w, "company %s, system %s, %s", clean(st.Company), clean(st.System), clean(st.Phase))
	if !st.Started.IsZero() {
		fmt.Fprintf(w, ", version %s since %s", clean(st.Version), stamp(st.Started))
	}
	fmt.Fprintln(w)
	for _, t := range st.Troubles {
		fmt.Fprintf(w, "not ready: %s\n", joinedBy("; ", clean(t.Text), clean(t.Remedy)))
	}
	if st.GivenUp != "" {
		fmt.Fprintf(w, "missing: %s\n", clean(st.GivenUp))
	}
	for _, p := range st.Parts {
		if p.Name == api.PartERP || p.State != "down" { // what is down of the others is said above
			fmt.Fprintf(w, "%-7s %s\n", clean(p.Name), joinedBy("; ", clean(p.State), clean(p.Text), clean(p.Remedy)))
		}
	}
	if st.Engine != nil {
		printStops(w, st)
	}
	if q := st.Quota; q != nil {
		fmt.Fprintf(w, "quota   %d of %d requests used today\n", q.Used, q.Limit)
	}
	if r := st.Refused; r != nil {
		fmt.Fprintf(w, "Flexi asks for patience until %s: %s; %s\n", stamp(r.Until), clean(r.Reason), many(r.Waiting, "request")+" wait")
	}
	printWaits(w, st, now)
}

func printStops(w io.Writer, st *api.Status) {
	open := true
	for _, g := range st.Engine.Stops {
		if g.Open {
			continue
		}
		open = false
		name := g.Evidence
		if name == "" {
			name = "all evidences"
		}
		by := ""
		if g.By != "" {
			by = " by " + g.By
		}
		fmt.Fprintf(w, "writes stopped: %s (%s%s): %s; %s", clean(name), g.Reason, clean(by), clean(g.Text), clean(g.Remedy))
		if !g.Since.IsZero() {
			fmt.Fprintf(w, "; since %s", stamp(g.Since))
		}
		if !g.NeedsYou && !g.NextTry.IsZero() {
			fmt.Fprintf(w, "; tried again at %s", stamp(g.NextTry))
		}
		fmt.Fprintln(w)
	}
	if open {
		fmt.Fprintln(w, "writes are open")
	}
}

func printWaits(w io.Writer, st *api.Status, now time.Time) {
	if st.Engine == nil {
		return
	}
	states := make([]string, 0, len(st.Engine.Documents))
	for s := range st.Engine.Documents {
		states = append(states, s)
	}
	slices.Sort(states)
	for _, s := range states {
		fmt.Fprintf(w, "%-10s %d\n", s, st.Engine.Documents[s])
	}
	if len(st.Waits) > 0 {
		fmt.Fprintln(w, "\nwhat waits for whom:")
	}
	for _, x := range st.Waits {
		what := x.State
		if more := joined(x.Reason, x.Cause); more != "" {
			what += " (" + more + ")"
		}
		fmt.Fprintf(w, "  %-8s %6d %s\n", clean(x.Who), x.Documents, joinedBy("; ", clean(what)+": "+strings.TrimSuffix(clean(x.Text), "."), clean(x.Do)))
	}
	if oldest := st.Engine.Oldest; !oldest.IsZero() {
		fmt.Fprintf(w, "  the oldest one whose outcome is not known is of %s, %s ago\n", stamp(oldest), now.Sub(oldest).Round(time.Second))
	}
}

// joinedBy leaves out what is empty.
func joinedBy(between string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), between)
}
