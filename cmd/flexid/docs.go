package main

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"flexid/cmd/internal/api"

	"github.com/spf13/cobra"
)

func (p *program) docs() *cobra.Command {
	return grouped("docs", "what became of what", p.docsList(), p.docsShow("show", "the whole story of one document"))
}

func (p *program) docsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "documents, the latest change first", Args: exactly(0)}
	p.filterFlags(c)
	limit := c.Flags().Int("limit", api.DefaultLimit, "most rows; 0 = all, in the order of the ledger")
	c.RunE = func(c *cobra.Command, _ []string) error {
		q, _, err := filterValues(c.Flags())
		if err != nil {
			return err
		}
		q.Set("limit", strconv.Itoa(*limit))
		q.Set("format", "ndjson")
		if _, err := api.ParseFilter(q); err != nil {
			return usagef("%w", err)
		}
		return p.listDocuments(c, q)
	}
	return c
}

func (p *program) listDocuments(c *cobra.Command, q url.Values) error {
	cl, err := p.client()
	if err != nil {
		return err
	}
	resp, err := cl.do(c.Context(), http.MethodGet, "/api/v1/documents?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	matched, _ := strconv.Atoi(resp.Header.Get(api.HeaderMatched))
	pr := p.printer("evidence", "source", "key", "number", "state", "reason", "cause", "sends", "flexi_id", "updated")
	err = lines(resp, func(r api.Row) {
		pr.row(r, r.Evidence, r.Source, r.Key, r.Number, r.State, r.Reason, r.Cause, strconv.Itoa(r.Sends), r.FlexiID, stamp(r.Updated))
	})
	if err != nil {
		return err
	}
	if err := pr.end(); err != nil {
		return err
	}
	if matched > pr.n {
		p.say("%d of %d shown; --limit 0 shows all", pr.n, matched)
	}
	if n := resp.Header.Get(api.HeaderUnreadable); n != "" {
		p.say("%s documents were written by a newer flexid and are not shown", n)
	}
	return p.nothing(pr.n, "no document matches")
}

// nothing is exit code 3 for an empty list.
func (p *program) nothing(n int, text string) error {
	if n > 0 {
		return nil
	}
	p.say("%s", text)
	return &exitError{code: exitNothing}
}

func (p *program) docsShow(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use + " EVIDENCE/[SOURCE:]KEY", Short: short, Args: exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := addressPath(args[0])
			if err != nil {
				return err
			}
			cl, err := p.client()
			if err != nil {
				return err
			}
			var story api.Story
			if err := cl.get(c.Context(), "/api/v1/documents/"+path, &story); err != nil {
				return err
			}
			return p.story(&story)
		},
	}
}

// addressPath escapes an address as the user wrote it; which of its readings is meant, the daemon finds out.
func addressPath(text string) (string, error) {
	readings, ok := api.ParseAddress(text)
	if !ok {
		return "", usagef("%q is not EVIDENCE/[SOURCE:]KEY, such as faktura-vydana/FV-2026-001", text)
	}
	return api.Path(readings[0]), nil
}

// stamp is a time for people and scripts alike.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
