package main

import (
	"fmt"
	"strconv"
	"strings"

	"flexid/cmd/internal/push"
)

// faultPrinter writes faults of the input: where an editor finds them, or as rows for a script.
func (p *program) faultPrinter(pr *printer, say func(line string)) func(push.Fault) {
	return func(f push.Fault) {
		if p.format == "table" {
			say(clean(f.String()))
			return
		}
		pr.row(f, f.File, strconv.Itoa(f.Line), f.Evidence, f.Key, f.Problem)
	}
}

// pushReport writes what became of every document and gives the exit code.
func (p *program) pushReport(run string, fl pushFlags, spool *push.Spool) error {
	counts, _ := spool.Counts()
	p.say("run %s: %s", run, summary(counts, spool.Len()))
	var err error
	switch p.format {
	case "json":
		err = push.Report(p.out, run, spool)
	case "table":
		err = p.pushTable(run, fl, spool, counts)
	default:
		err = p.pushRows(run, spool, func(*push.Row) bool { return true })
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if counts[push.Dropped], err = droppedNow(run, spool, counts[push.Dropped]); err != nil {
		return fmt.Errorf("reading what was dropped: %w", err)
	}
	return pushCode(counts, fl.wait == 0)
}

// droppedNow is how many of those that ended as dropped were dropped in this run. What a person had given up before, and the
// file of the next night repeats, is no failure of that night.
func droppedNow(run string, spool *push.Spool, dropped int) (n int, err error) {
	if dropped == 0 {
		return 0, nil
	}
	err = spool.Rows(run, func(r *push.Row) error {
		if r.Outcome == push.Dropped && !r.Good() {
			n++
		}
		return nil
	})
	return n, err
}

func summary(counts push.Counts, total int) string {
	var parts []string
	for o, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, push.Outcome(o)))
		}
	}
	return fmt.Sprintf("%s: %s", many(total, "document"), strings.Join(parts, ", "))
}

func (p *program) pushTable(run string, fl pushFlags, spool *push.Spool, counts push.Counts) error {
	pr := p.printer("outcome", "documents")
	for o, n := range counts {
		if n > 0 {
			pr.row(nil, push.Outcome(o).String(), strconv.Itoa(n))
		}
	}
	if err := pr.end(); err != nil {
		return err
	}
	return p.pushRows(run, spool, func(r *push.Row) bool {
		// What only waits or was not sent is the rest of the files: a number says enough.
		return fl.all || !r.Good() && r.Outcome != push.Unsent && (r.Outcome != push.Waiting || r.Held)
	})
}

func (p *program) pushRows(run string, spool *push.Spool, wanted func(*push.Row) bool) error {
	pr := p.printer("file", "line", "evidence", "key", "outcome", "state", "reason", "cause", "number", "flexi_id", "sends", "text")
	err := spool.Rows(run, func(r *push.Row) error {
		if !wanted(r) {
			return nil
		}
		if p.format == "table" && pr.n == 0 {
			fmt.Fprintln(p.out)
		}
		pr.row(r, r.File, strconv.Itoa(r.Line), r.Evidence, r.Key, r.Outcome.String(), string(r.State), string(r.Reason), r.Cause,
			r.Number, r.FlexiID, strconv.Itoa(r.Sends), r.Text())
		return pr.err
	})
	if err != nil {
		return err
	}
	return pr.end()
}

// pushCode is the exit code. Events that never left come first: whoever reads 4 or 5 takes the run for complete. A push
// that was told not to wait has done its work when everything is published.
func pushCode(c push.Counts, published bool) error {
	code := exitOK
	switch {
	case c[push.Unsent] > 0:
		code = exitTryAgain
	case c[push.Maybe] > 0:
		code = exitUnknown
	case c[push.Rejected]+c[push.Conflict]+c[push.Dropped] > 0:
		code = exitRejected
	case c[push.Waiting] > 0 && !published:
		code = exitTryAgain
	}
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}
