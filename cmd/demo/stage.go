package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"flexid/cmd/internal/api"
	"flexid/cmd/internal/daemon"
	"flexid/config"
	"flexid/flexi/flexitest"

	"github.com/rs/zerolog"
)

// system is the system part of our external ids.
const system = "FLEXID"

// Times of the demo. A real server is given a quarter of an hour for what is seconds here.
const (
	writeTimeout = 3 * time.Second
	settleError  = 2 * time.Second
	settleSilent = 6 * time.Second
	looks        = "0s,500ms,1s,2s,4s,6s"
)

// stage is what the piece is played on: the fake ERP and the daemon, in one process and one directory.
type stage struct {
	dir    string
	erp    *flexitest.Server
	before int // records in the books before the first event
	info   daemon.Info
	api    *asker
	stop   context.CancelFunc
	ended  chan error // the daemon's result, once
}

// raise starts everything and waits until the daemon takes events.
func raise(ctx context.Context, o options, p *piece, stderr io.Writer) (*stage, error) {
	dir, err := os.MkdirTemp("", "flexid-demo-")
	if err != nil {
		return nil, fmt.Errorf("a directory for the demo: %w", err)
	}
	s := &stage{dir: dir, ended: make(chan error, 1)}
	s.stop = func() { s.ended <- nil } // until there is a daemon
	// Uniqueness of numbers is off, so that a doubled write shows as a second record and is not refused by luck.
	s.erp = flexitest.New(flexitest.Options{AllowUsedNumbers: true, Seed: o.seed})
	if err := s.begin(ctx, o, p, stderr); err != nil {
		return nil, errors.Join(err, s.strike())
	}
	return s, nil
}

func (s *stage) begin(ctx context.Context, o options, p *piece, stderr io.Writer) error {
	if err := s.erp.Start(); err != nil {
		return err
	}
	p.install(s.erp)
	for _, evidence := range p.evidences() {
		s.before += len(s.erp.Records(evidence))
	}
	cfg, err := s.settings(o.addr)
	if err != nil {
		return err
	}
	return s.startDaemon(ctx, cfg, logger(o, stderr))
}

func logger(o options, stderr io.Writer) zerolog.Logger {
	if !o.verbose {
		return zerolog.Nop()
	}
	return zerolog.New(zerolog.SyncWriter(zerolog.ConsoleWriter{Out: stderr, NoColor: true, TimeFormat: time.TimeOnly})).With().Timestamp().Logger()
}

// settings are read the way `flexid serve` reads them; the environment of the demo itself plays no part.
func (s *stage) settings(addr string) (config.Config, error) {
	cfg, _, err := config.Load([]string{ // the warnings say that the times are short, which is on purpose here
		"FLEXID_FLEXI_URL=" + s.erp.URL(), "FLEXID_FLEXI_COMPANY=firma", "FLEXID_FLEXI_USER=flexid", "FLEXID_FLEXI_PASSWORD=secret",
		"FLEXID_FLEXI_SYSTEM=" + system, "FLEXID_STATE_DIR=" + filepath.Join(s.dir, "state"), "FLEXID_HTTP_ADDR=" + addr,
		"FLEXID_FLEXI_WRITE_TIMEOUT=" + writeTimeout.String(), "FLEXID_VERIFY_LOOKS=" + looks,
		"FLEXID_VERIFY_SETTLE_SERVER_ERROR=" + settleError.String(), "FLEXID_VERIFY_SETTLE_PROXY=" + settleError.String(),
		"FLEXID_VERIFY_SETTLE_NO_ANSWER=" + settleSilent.String(), "FLEXID_FLEXI_PAUSE=500ms", "FLEXID_DRAIN_TIMEOUT=10s", "FLEXID_TZ=Europe/Prague",
		"FLEXID_FLEXI_PACK=1", // each document in a request of its own, so that each fault has its document, as for the client beside it
	}, "")
	if err != nil {
		return cfg, fmt.Errorf("settings of the demo: %w", err)
	}
	return cfg, nil
}

func (s *stage) startDaemon(ctx context.Context, cfg config.Config, log zerolog.Logger) error {
	// The daemon outlives the interrupt that ends the demo, so that it can be stopped in order and before the ERP.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	ready := make(chan daemon.Info, 1)
	go func() {
		s.ended <- daemon.Run(run, daemon.Options{Config: cfg, Log: log, Build: api.Build{Version: "demo"},
			Ready: func(i daemon.Info) { ready <- i }})
	}()
	select {
	case s.info = <-ready:
	case err := <-s.ended:
		s.ended <- err
		return errors.New("the daemon did not start")
	case <-ctx.Done():
		return ctx.Err()
	}
	s.api = &asker{base: s.info.HTTP, token: s.info.Token}
	return nil
}

// strike stops the daemon, then the ERP, and removes the directory.
func (s *stage) strike() error {
	s.stop()
	err := <-s.ended
	if err != nil {
		err = fmt.Errorf("the daemon: %w", err)
	}
	s.erp.Close()
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *stage) introduce(w io.Writer) {
	fmt.Fprintf(w, `flexid demo: events over NATS into a Flexi that fails on purpose

  fake Flexi     %s/c/firma   user flexid, password secret
  flexid's API   %s
  NATS           %s   embedded in the daemon

Times are short for the demo: a write has %.0f s instead of 200 s, and its outcome counts as settled %.0f s after a 500 and
%.0f s after no answer, instead of 30 s and 15 min; an outage pauses writes from 0.5 s on, not from 5 s. Each
document goes in a request of its own (FLEXID_FLEXI_PACK=1). The fake takes a number twice, so that a doubled write would show.

`, s.erp.URL(), s.info.HTTP, s.info.NATS, writeTimeout.Seconds(), settleError.Seconds(), settleSilent.Seconds())
}

// howToLook says how the same commands that an operator uses reach this daemon.
func (s *stage) howToLook(w io.Writer) {
	fmt.Fprintf(w, `
flexid is still running. In another terminal, in the same folder:

  export FLEXID_API_URL=%s FLEXID_STATE_DIR=%s
  go run ./cmd/flexid docs list --state parked
  go run ./cmd/flexid docs show faktura-vydana/%s
  go run ./cmd/flexid maybe list
  curl -s %s/metrics | grep ^flexid_
  curl -s -u flexid:secret '%s/c/firma/faktura-vydana.json?limit=3'

Ctrl-C ends it and removes what it kept.
`, s.info.HTTP, s.info.StateDir, conflictKey, s.info.HTTP, s.erp.URL())
}
