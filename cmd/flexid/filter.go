package main

import (
	"net/url"
	"strings"

	"flexid/cmd/internal/api"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// filterFlags adds the flags that choose documents.
func (p *program) filterFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringArray("state", nil, "open (not final), queued, sending, maybe, confirmed, parked, dropped")
	f.StringArray("reason", nil, "why they stand there: rejected, conflict, duplicate, unknown, unreadable, id_reused, blocked, …")
	f.String("evidence", "", "such as faktura-vydana")
	f.String("number", "", "document number")
	f.String("from", "", "document date from, 2026-01-31")
	f.String("to", "", "document date to")
	f.String("source", "", "webhook source; '' = without one")
	f.String("cause", "", "cause of a rejection or conflict, such as period_locked")
	p.completeFilters(c)
}

// filterNames are those flags.
func filterNames() []string {
	return []string{"state", "reason", "evidence", "number", "from", "to", "source", "cause"}
}

// filterValues reads the flags as parameters of the API; some says whether any was given. The daemon would refuse the same
// words; asked here, a typo is a usage error also when no daemon runs.
func filterValues(f *pflag.FlagSet) (q url.Values, some bool, err error) {
	q = url.Values{}
	for _, name := range filterNames() {
		flag := f.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		some = true
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				for _, word := range strings.Split(v, ",") {
					q.Add(name, word)
				}
			}
			continue
		}
		q.Set(name, flag.Value.String())
	}
	if _, err := api.ParseFilter(q); err != nil {
		return nil, some, usagef("%w", err)
	}
	return q, some, nil
}

// queueFilter is the same in the body of a decision.
func queueFilter(q url.Values) *api.QueueFilter {
	f := &api.QueueFilter{State: q["state"], Reason: q["reason"], Evidence: q.Get("evidence"), Number: q.Get("number"),
		Cause: q.Get("cause"), From: q.Get("from"), To: q.Get("to")}
	if q.Has("source") {
		source := q.Get("source")
		f.Source = &source
	}
	return f
}
