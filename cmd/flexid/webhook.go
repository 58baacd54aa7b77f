package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"flexid/cmd/internal/daemon"
	"flexid/config"
	"flexid/webhook"

	"github.com/spf13/cobra"
)

// sample is what is sent where no file is named. It goes the whole way into the ERP, so it is a document that nobody minds
// and that is the same each time: sent again it costs no write.
const (
	sampleEvidence = "adresar"
	sampleDocument = `{"kod":"FLEXID-TEST","nazev":"flexid: test of a webhook"}`
	sampleEvent    = `{"evidence":"adresar","key":"FLEXID-TEST","document":` + sampleDocument + `}`
	sampleHook     = `{"winstrom":{"changes":[{"@evidence":"adresar","@in-version":"1","@operation":"update","id":"1","external-ids":[]}],"next":"none"}}`
)

// sending is the flags of `webhook send`.
type sending struct{ url, evidence, key, op, id, wait string }

func (p *program) webhook() *cobra.Command {
	var s sending
	send := &cobra.Command{
		Use: "send SOURCE [FILE]", Short: "sign a delivery as the source would, and send it",
		Long: "Sign a delivery as the source would, and send it to the running daemon. FILE (- = standard input) is the body: a document\n" +
			"for a source of kind token, an event for one of kind standard. Without FILE a sample is sent: for those two kinds it\n" +
			"makes the contact FLEXID-TEST in the address book, for one of kind flexi it only wakes the reader of changes.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return usagef("usage: %s", c.UseLine())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return p.sendDelivery(c.Context(), s, args) },
	}
	f := send.Flags()
	f.StringVar(&s.url, "url", "", "where the listener is (default: from FLEXID_WEBHOOK_ADDR)")
	f.StringVar(&s.evidence, "evidence", "", "of the document (kind token)")
	f.StringVar(&s.key, "key", "", "header Flexid-Key (kind token)")
	f.StringVar(&s.op, "op", "", "header Flexid-Op (kind token)")
	f.StringVar(&s.id, "id", "", "event id (default: a new one)")
	f.StringVar(&s.wait, "wait", "", "wait so long for the outcome, such as 20s (kind token)")
	return grouped("webhook", "deliveries over HTTP", send)
}

func (p *program) sendDelivery(ctx context.Context, s sending, args []string) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	settings, ok := cfg.Webhook.Source[args[0]]
	if !ok {
		return usagef("there is no source %q; FLEXID_WEBHOOK_SOURCES names: %s", args[0], strings.Join(cfg.Webhook.Sources, ", "))
	}
	source := daemon.SourceSettings(settings)
	if s.id == "" {
		s.id = "test-" + rand.Text()
	}
	body, err := p.deliveryBody(&s, source.Kind, args[1:])
	if err != nil {
		return err
	}
	header, err := webhook.Sign(source, s.id, time.Now(), body)
	if err != nil {
		return fmt.Errorf("signing as %s: %w", args[0], err)
	}
	for name, value := range map[string]string{"Flexid-Key": s.key, "Flexid-Op": s.op} {
		if value != "" {
			header.Set(name, value)
		}
	}
	target, err := s.target(cfg.Webhook, args[0])
	if err != nil {
		return err
	}
	return p.post(ctx, target, header, body)
}

// deliveryBody reads the file, or takes the sample and says what it does.
func (p *program) deliveryBody(s *sending, kind string, files []string) ([]byte, error) {
	if kind != "token" && (s.evidence != "" || s.key != "" || s.op != "" || s.wait != "") {
		return nil, usagef("--evidence, --key, --op and --wait are for a source of kind token; an event of kind %s says it in its body", kind)
	}
	if len(files) == 1 {
		if kind == "token" && s.evidence == "" {
			return nil, usagef("say the evidence of the document: --evidence faktura-vydana")
		}
		if files[0] == "-" {
			return io.ReadAll(p.in)
		}
		return os.ReadFile(files[0])
	}
	switch kind {
	case "flexi":
		return []byte(sampleHook), nil
	case "standard":
		p.say("the sample makes the contact FLEXID-TEST in the address book")
		return []byte(sampleEvent), nil
	}
	if s.evidence != "" && s.evidence != sampleEvidence {
		return nil, usagef("there is no sample of %s: name a file", s.evidence)
	}
	s.evidence = sampleEvidence
	p.say("the sample makes the contact FLEXID-TEST in the address book")
	return []byte(sampleDocument), nil
}

// target is the whole address of the delivery.
func (s *sending) target(w config.Webhook, source string) (string, error) {
	base := strings.TrimRight(s.url, "/")
	if base == "" {
		if w.Addr == "" {
			return "", usagef("FLEXID_WEBHOOK_ADDR is not set: say --url where the listener is")
		}
		host, port, err := net.SplitHostPort(w.Addr)
		if err != nil {
			return "", fmt.Errorf("FLEXID_WEBHOOK_ADDR: %w", err)
		}
		if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		base = "http://" + net.JoinHostPort(host, port)
	}
	target := base + "/in/" + source
	if s.evidence != "" {
		target += "/" + url.PathEscape(s.evidence)
	}
	if s.wait != "" {
		target += "?wait=" + url.QueryEscape(s.wait)
	}
	return target, nil
}

// post sends once: a delivery that is repeated unasked would hide what a single one does.
func (p *program) post(ctx context.Context, target string, header http.Header, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return usagef("--url: %w", err)
	}
	req.Header = header
	client := http.Client{
		Timeout: 90 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		// The secret in the header must not follow a redirect to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return &exitError{exitTryAgain, fmt.Errorf("nobody answers at %s: is `flexid serve` running? %w", target, err)}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	p.say("POST %s: %s", target, resp.Status)
	if len(text) > 0 {
		fmt.Fprintln(p.out, strings.TrimSpace(string(text)))
	}
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case slices.Contains([]int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusRequestTimeout}, resp.StatusCode):
		return &exitError{exitTryAgain, nil}
	}
	return &exitError{exitFailed, nil}
}
