package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"flexid/cmd/internal/api"
	"flexid/config"
	"flexid/config/statedir"
)

// client asks the running daemon.
type client struct {
	base, token string
	http        *http.Client
}

func (p *program) client() (*client, error) {
	c, err := p.clientConfig()
	token := c.API.Token.Reveal()
	if token != "" {
		err = withoutFault(err, "FLEXID_STATE_DIR")
	}
	if err != nil {
		return nil, err
	}
	if token == "" {
		if token, err = adminToken(c.StateDir); err != nil {
			return nil, err
		}
	}
	return newClient(c.API.URL, token), nil
}

// clientConfig reads the settings of a command that only asks the daemon.
func (p *program) clientConfig() (config.Config, error) {
	environ, err := p.environ()
	if err != nil {
		return config.Config{}, err
	}
	c, _, err := config.LoadClient(environ, p.lookup("CREDENTIALS_DIRECTORY"))
	return c, err
}

// withoutFault leaves out the fault of a variable that is not needed here: where a token is given, nobody looks for the
// one in the state directory, and the machine may have none.
func withoutFault(err error, variable string) error {
	var faults config.Faults
	if !errors.As(err, &faults) {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(faults), func(f config.Fault) bool { return f.Variable == variable })
	if len(rest) == 0 {
		return nil
	}
	return rest
}

func newClient(base, token string) *client {
	return &client{base: strings.TrimRight(base, "/"), token: token, http: &http.Client{
		// The token must not follow a redirect to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{ResponseHeaderTimeout: time.Minute, DisableKeepAlives: true},
	}}
}

func adminToken(dir string) (string, error) {
	token, err := statedir.ReadAdminToken(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("there is no token in %s, and FLEXID_API_TOKEN is not set: is `flexid serve` running, with this FLEXID_STATE_DIR?", dir)
	case errors.Is(err, os.ErrPermission):
		return "", fmt.Errorf("the token in %s may only be read by the user flexid runs as: run this as that user, or set FLEXID_API_TOKEN", dir)
	}
	return token, err
}

// do sends one request; an answer that is no 2xx is an error with the daemon's words and an exit code.
func (c *client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request: %w", err)
		}
		in = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, in)
	if err != nil {
		return nil, fmt.Errorf("FLEXID_API_URL %s: %w", c.base, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/x-ndjson, application/json")
	resp, err := c.http.Do(req)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, fmt.Errorf("stopped: %w", ctx.Err())
	case err != nil:
		return nil, c.unreachable(err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refused(resp)
}

func (c *client) refused(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var problem api.Problem
	if json.Unmarshal(data, &problem) != nil || problem.Detail == "" {
		return fmt.Errorf("%s answered %s: is this flexid? (FLEXID_API_URL)", c.base, resp.Status)
	}
	switch {
	case problem.Status == http.StatusNotFound:
		return &exitError{exitNothing, &problem}
	case problem.Retry:
		return &exitError{exitTryAgain, &problem}
	}
	return &problem
}

// get reads one JSON value.
func (c *client) get(ctx context.Context, path string, into any) error {
	resp, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return decode(resp, into)
}

// post acts and reads the answer.
func (c *client) post(ctx context.Context, path string, act api.Act, into any) error {
	resp, err := c.do(ctx, http.MethodPost, path, act)
	if err != nil {
		return err
	}
	return decode(resp, into)
}

func decode(resp *http.Response, into any) error {
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("reading the daemon's answer: %w", err)
	}
	return nil
}

// lines reads NDJSON row by row. A list that breaks off is an error: half of it must not look like the whole.
func lines[T any](resp *http.Response, each func(T)) error {
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var row T
			if jerr := json.Unmarshal(line, &row); jerr != nil {
				return fmt.Errorf("reading the daemon's answer: %w", jerr)
			}
			each(row)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the daemon's answer broke off: %w", err)
		}
	}
}

// unreachable leaves out the url.Error: the address stands in the sentence already.
func (c *client) unreachable(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return fmt.Errorf("no daemon answers at %s: is `flexid serve` running? (FLEXID_API_URL says where to ask): %w", c.base, err)
}

// health asks a path that needs no token; its plain text is the reason.
func (c *client) health(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return fmt.Errorf("FLEXID_API_URL %s: %w", c.base, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s: %s: %s", c.base, path, resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}
