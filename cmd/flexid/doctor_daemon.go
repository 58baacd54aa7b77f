package main

import (
	"context"
	"fmt"
	"time"

	"flexid/cmd/internal/api"
)

// daemon tells what a running daemon waits for, above all writes that are stopped.
func (d *doctor) daemon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	st, err := d.status(ctx)
	if err != nil {
		d.say("writes", resultSkip, "no daemon answers at "+d.cfg.API.URL+": whether writes are stopped is known once `flexid serve` runs", "")
		return
	}
	for _, tr := range st.Troubles {
		d.say("daemon", resultWarn, tr.Text, tr.Remedy)
	}
	d.writes(st)
}

func (d *doctor) writes(st api.Status) {
	if st.Engine == nil {
		d.say("writes", resultWarn, "the daemon has no ledger yet", "see the lines above, and the check of nats")
		return
	}
	stopped := false
	for _, g := range st.Engine.Stops {
		if g.Open {
			continue
		}
		stopped = true
		what, result := "all evidences", resultWarn
		if g.Evidence != "" {
			what = g.Evidence
		}
		if g.NeedsYou {
			result = resultFail
		}
		do := g.Remedy
		if do == "" {
			do = "`flexid writes resume`"
		}
		d.say("writes", result, fmt.Sprintf("stopped for %s since %s (%s): %s", what, g.Since.UTC().Format(time.RFC3339), g.Reason, g.Text), do)
	}
	if !stopped {
		d.say("writes", resultOK, fmt.Sprintf("not stopped; %s to be sent", many(st.Engine.Waiting, "document")+" waiting"), "")
	}
}
