package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"flexid/cmd/internal/api"
	"flexid/verify"

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
		Use: use + " EVIDENCE/[SOURCE:]KEY", Short: short, Args: exactly(1), ValidArgsFunction: p.completeDocument,
		Long: short + ".\n\nA document number or a key alone does too, where only one document has it; several are listed.",
		RunE: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return usagef("name a document: EVIDENCE/[SOURCE:]KEY, or its number")
			}
			cl, err := p.client()
			if err != nil {
				return err
			}
			var story api.Story
			if path, bad := addressPath(args[0]); bad == nil {
				err = cl.get(c.Context(), "/api/v1/documents/"+path, &story)
				if err == nil {
					return p.story(&story)
				}
			}
			var exit *exitError
			if err != nil && (!errors.As(err, &exit) || exit.code != exitNothing) {
				return err
			}
			found, searchErr := cl.search(c.Context(), args[0])
			switch {
			case searchErr != nil:
				return searchErr
			case len(found) == 0 && err != nil:
				return err
			case len(found) == 0:
				return &exitError{exitNothing, fmt.Errorf("no document has the number or the key %q; `flexid docs list` shows what is known", args[0])}
			case len(found) > 1:
				return p.ambiguous(args[0], found)
			}
			a := verify.Address{Evidence: found[0].Evidence, Source: found[0].Source, Key: found[0].Key}
			if err := cl.get(c.Context(), "/api/v1/documents/"+api.Path(a), &story); err != nil {
				return err
			}
			return p.story(&story)
		},
	}
}

// mostFound bounds the documents that a search by number lists.
const mostFound = 50

// search finds documents by number, then by key; text may begin with the evidence.
func (c *client) search(ctx context.Context, text string) (found []api.Row, err error) {
	evidence, rest, ok := strings.Cut(text, "/")
	ways := []url.Values{{"number": {text}}, {"key": {text}}}
	if ok {
		ways = append(ways, url.Values{"number": {rest}, "evidence": {evidence}})
	}
	for _, q := range ways {
		q.Set("limit", strconv.Itoa(mostFound))
		q.Set("format", "ndjson")
		resp, err := c.do(ctx, http.MethodGet, "/api/v1/documents?"+q.Encode(), nil)
		if err != nil {
			return nil, err
		}
		if err := lines(resp, func(r api.Row) { found = append(found, r) }); err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

// ambiguous lists the documents of one number.
func (p *program) ambiguous(text string, found []api.Row) error {
	pr := p.printer("evidence", "source", "key", "number", "state", "reason", "updated")
	for _, r := range found {
		pr.row(r, r.Evidence, r.Source, r.Key, r.Number, r.State, r.Reason, stamp(r.Updated))
	}
	if err := pr.end(); err != nil {
		return err
	}
	return &exitError{exitFailed, fmt.Errorf("%s are found by %q: name one of them as EVIDENCE/[SOURCE:]KEY", many(len(found), "document"), text)}
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
