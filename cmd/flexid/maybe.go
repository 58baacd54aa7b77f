package main

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"flexid/cmd/internal/api"
	"flexid/verify"

	"github.com/spf13/cobra"
)

func (p *program) maybe() *cobra.Command {
	return grouped("maybe", "the queue of what is not known, and of what waits for a person",
		p.maybeList(), p.docsShow("show", "the whole story of one document"),
		p.decision(verify.DecideLook, "look it up in Flexi now"),
		p.decision(verify.DecideConfirm, "the record in Flexi is the document: take it as done"),
		p.decision(verify.DecideResend, "send it again; where an attempt is open, after three looks that do not find it"),
		p.decision(verify.DecideDrop, "close the event without sending it; only where Flexi shows no record of ours"),
		p.decision(verify.DecideNote, "write a sentence into its history"),
	)
}

func (p *program) maybeList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "what waits for Flexi or for a person, the oldest first", Args: exactly(0)}
	p.filterFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		q, _, err := filterValues(c.Flags())
		if err != nil {
			return err
		}
		q.Set("format", "ndjson")
		cl, err := p.client()
		if err != nil {
			return err
		}
		resp, err := cl.do(c.Context(), http.MethodGet, "/api/v1/queue?"+q.Encode(), nil)
		if err != nil {
			return err
		}
		matched, _ := strconv.Atoi(resp.Header.Get(api.HeaderMatched))
		pr := p.printer("evidence", "source", "key", "number", "state", "reason", "cause", "owner", "since", "next", "can", "text")
		err = lines(resp, func(it api.Item) {
			pr.row(it, it.Evidence, it.Source, it.Key, it.Number, it.State, it.Reason, it.Cause, it.Owner, stamp(it.Since), stamp(it.Next),
				strings.Join(it.Can, " "), it.Text)
		})
		if err != nil {
			return err
		}
		if err := pr.end(); err != nil {
			return err
		}
		if matched > pr.n {
			p.say("%d of %d shown: choose fewer, by --evidence, --reason or --from", pr.n, matched)
		}
		return p.nothing(pr.n, "nothing waits for an answer")
	}
	return c
}

// person adds the flags that say who acts and why.
func (p *program) person(c *cobra.Command) func() (api.Act, error) {
	by := c.Flags().String("by", "", "who decides (default: $USER)")
	why := c.Flags().String("why", "", "why you decide so; it stands in the history")
	reason := new(string)
	if c.Flags().Lookup("reason") == nil { // else it is a filter; see decisionReason
		c.Flags().StringVar(reason, "reason", "", "the same as --why")
	}
	return func() (api.Act, error) {
		act := api.Act{By: strings.TrimSpace(*by), Why: strings.TrimSpace(cmp.Or(*why, *reason))}
		for _, name := range []string{"SUDO_USER", "USER", "LOGNAME"} {
			if act.By == "" {
				act.By = p.lookup(name)
			}
		}
		if act.By == "" {
			return act, usagef("who decides? set --by, or the variable USER")
		}
		return act, nil
	}
}

func needReason(act api.Act) error {
	if act.Why == "" {
		return usagef("why? set --why (or --reason); it stands in the history")
	}
	return nil
}

// rowNow shows where a document stands after an act.
func (p *program) rowNow(r api.Row) error {
	pr := p.printer("evidence", "source", "key", "state", "reason", "updated")
	if pr.format == "json" {
		// One value, not a list of one.
		return p.object(r, nil)
	}
	pr.row(r, r.Evidence, r.Source, r.Key, r.State, r.Reason, r.Updated.UTC().Format(time.RFC3339))
	return pr.end()
}
