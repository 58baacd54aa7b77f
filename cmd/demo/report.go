package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// report writes the tables, then one figure a line for scripts.
func (t *tally) report(w io.Writer) {
	fmt.Fprintf(w, "%d documents, %d events, %s\n", t.documents, t.logical, t.took.Round(100*time.Millisecond))
	t.reportMishaps(w)
	t.reportDoubts(w)
	t.reportParked(w)
	t.reportWrong(w)
	t.figures(w)
}

func (t *tally) reportMishaps(w io.Writer) {
	fmt.Fprintf(w, "\nWHAT WENT WRONG ON PURPOSE, and how often it was sent. The right half is computed from the same script, not run:\n"+
		"go-retryablehttp with its defaults (5 attempts, 1 s x2, after every 5xx, 429 and transport error).\n\n")
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "first send of a write\twrites\tflexid sent\tdoubled\tit would send\tit would double\tit would give up")
	for _, m := range t.byMishap {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", m.name, m.events, m.wire, m.duplicates, m.peer.wire, m.peer.duplicates, m.peer.gaveUp)
	}
	_ = tw.Flush()
}

func (t *tally) reportDoubts(w io.Writer) {
	fmt.Fprintf(w, "\nMAYBES: the outcome of a send was not known, so the document was looked up before anything else.\n\n")
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "document\toperation\treason\tlook-ups\tsends\twhat the look-ups showed\tnow")
	for _, d := range t.doubts {
		shown := "it was not done: sent again"
		if d.found {
			shown = "it was done: not sent again"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", d.document, d.op, d.because, d.looks, d.sends, shown, d.ended)
	}
	_ = tw.Flush()
}

func (t *tally) reportParked(w io.Writer) {
	fmt.Fprintf(w, "\nPARKED: what a person has to look at.\n")
	for _, p := range t.parked {
		fmt.Fprintf(w, "\n  %s\n    reason  %s\n", p.document, p.reason)
		if p.cause != "" {
			fmt.Fprintf(w, "    cause   %s\n", p.cause)
		}
		fmt.Fprintf(w, "    why     %s\n    to do   %s\n", p.text, p.todo)
	}
}

func (t *tally) reportWrong(w io.Writer) {
	if len(t.wrong) > 0 {
		fmt.Fprintf(w, "\nWRONG CONTENT: this must not be.\n\n")
	}
	for _, line := range t.wrong {
		fmt.Fprintln(w, " ", line)
	}
}

// found is how many doubts a look-up ended without another send.
func (t *tally) found() int {
	n := 0
	for _, d := range t.doubts {
		if d.found {
			n++
		}
	}
	return n
}

// figures are a contract with scripts: name, value, and whether the value was computed.
func (t *tally) figures(w io.Writer) {
	fmt.Fprintf(w, "\nCounted in the fake's books and its request log; what is computed says so.\n\n")
	ratio := func(n int) string { return fmt.Sprintf("%.3f", float64(n)/float64(t.logical)) }
	for _, f := range [][2]any{
		{"documents", t.documents},
		{"logical_writes", t.logical},
		{"wire_writes", t.wire},
		{"amplification", ratio(t.wire)},
		{"duplicates", t.duplicates},
		{"lost", t.lost},
		{"wrong_content", len(t.wrong)},
		{"maybes", len(t.doubts)},
		{"confirmed_by_lookup", t.found()},
		{"sent_again_after_lookup", len(t.doubts) - t.found()},
		{"parked", len(t.parked)},
		{"reads", t.reads},
	} {
		fmt.Fprintln(w, f[0], f[1])
	}
	for _, f := range [][2]any{
		{"wire_writes", t.peer.wire}, {"amplification", ratio(t.peer.wire)}, {"duplicates", t.peer.duplicates}, {"gave_up", t.peer.gaveUp},
	} {
		fmt.Fprintf(w, "retryablehttp_%s %v (computed)\n", f[0], f[1])
	}
}
