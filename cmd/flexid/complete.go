package main

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"flexid/cmd/internal/api"
	"flexid/flexi"
	"flexid/verify"

	"github.com/spf13/cobra"
)

// completeFor is how long a completion may ask the daemon: a shell that hangs at a key press is worse than no help.
const completeFor = 2 * time.Second

// completes makes a flag complete to words; names of files would be offered else.
func completes(c *cobra.Command, flag string, words ...string) {
	// It fails for a flag that is not there, which TestCompletion would meet.
	_ = c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return starting(slices.Clone(words), begun), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeFilters makes the flags of filterFlags complete.
func (p *program) completeFilters(c *cobra.Command) {
	completes(c, "state", api.States()...)
	completes(c, "reason", api.Reasons()...)
	_ = c.RegisterFlagCompletionFunc("evidence", p.completeEvidence)
	causes := make([]string, 0)
	for _, cause := range flexi.Causes() {
		causes = append(causes, string(cause))
	}
	completes(c, "cause", causes...)
	for _, name := range []string{"number", "from", "to", "source"} {
		completes(c, name)
	}
}

// completeEvidence offers the usual evidences and those that the daemon works with.
func (p *program) completeEvidence(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	all := map[string]bool{}
	for _, e := range []string{"adresar", "banka", "cenik", "faktura-prijata", "faktura-vydana", "interni-doklad", "objednavka-prijata",
		"objednavka-vydana", "pohledavka", "pokladni-pohyb", "skladovy-pohyb", "zavazek"} {
		all[e] = true
	}
	ctx, cancel := context.WithTimeout(c.Context(), completeFor)
	defer cancel()
	var st api.Status
	if cl, err := p.client(); err == nil && cl.get(ctx, "/api/v1/status", &st) == nil && st.Engine != nil {
		for e := range st.Engine.Fence {
			all[e] = true
		}
	}
	return starting(slices.Sorted(maps.Keys(all)), begun), cobra.ShellCompDirectiveNoFileComp
}

// completeStop offers an evidence for the one argument of writes stop and resume.
func (p *program) completeStop(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completeEvidence(c, args, begun)
}

// completeDocument offers the documents that changed last.
func (p *program) completeDocument(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completeFrom(c, "/api/v1/documents", begun)
}

// completeWaiting offers what waits for a decision.
func (p *program) completeWaiting(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	offered, how := p.completeFrom(c, "/api/v1/queue", begun)
	return slices.DeleteFunc(offered, func(s string) bool { return slices.Contains(args, s) }), how
}

func (p *program) completeFrom(c *cobra.Command, path, begun string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	ctx, cancel := context.WithTimeout(c.Context(), completeFor)
	defer cancel()
	cl, err := p.client()
	if err != nil {
		return nil, none
	}
	q := url.Values{"format": {"ndjson"}, "limit": {"1000"}}
	if evidence, _, ok := strings.Cut(begun, "/"); ok {
		q.Set("evidence", evidence)
	}
	resp, err := cl.do(ctx, http.MethodGet, path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, none
	}
	var all []string
	err = lines(resp, func(r api.Row) {
		all = append(all, verify.Address{Evidence: r.Evidence, Source: r.Source, Key: r.Key}.String())
	})
	if err != nil {
		return nil, none
	}
	return starting(all, begun), none
}

func starting(words []string, begun string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, begun) })
}
