package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"flexid/cmd/internal/api"
	"flexid/verify"
)

// asker reads the daemon's API, as the commands do.
type asker struct{ base, token string }

func (a *asker) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return fmt.Errorf("asking the daemon: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking the daemon: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var text bytes.Buffer
		_, _ = text.ReadFrom(resp.Body) // only for the message
		return fmt.Errorf("asking the daemon for %s: %s: %s", path, resp.Status, bytes.TrimSpace(text.Bytes()))
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("reading the daemon's answer: %w", err)
	}
	return nil
}

func (a *asker) rows(ctx context.Context) ([]api.Row, error) {
	var rows []api.Row
	return rows, a.get(ctx, "/api/v1/documents?limit=0&format=json", &rows)
}

func (a *asker) story(ctx context.Context, d *document) (api.Story, error) {
	var s api.Story
	return s, a.get(ctx, "/api/v1/documents/"+api.Path(verify.Address{Evidence: d.evidence, Key: d.key}), &s)
}

func (a *asker) status(ctx context.Context) (api.Status, error) {
	var s api.Status
	return s, a.get(ctx, "/api/v1/status", &s)
}
