package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"flexid/cmd/internal/daemon"
	"flexid/config"
	"flexid/config/statedir"

	"github.com/rs/zerolog"
)

// Times of a push that is the daemon: how long its start may take, and when it reads confirmed documents back (the daemon
// that goes on takes its time, to ask for many at once).
const (
	aloneStart    = 2 * time.Minute
	aloneReadBack = 4 * time.Second
)

// aloneTarget runs the daemon in this process until the target is closed. Webhooks stay off: a listener that is open for the
// minutes of a push makes senders think that somebody is there.
func (p *program) aloneTarget(ctx context.Context, s pushSettings, fl pushFlags, log zerolog.Logger) (*pushTarget, error) {
	if s.faults != nil {
		return nil, &exitError{exitConfig, s.faults}
	}
	if err := ledgerMeant(s.Config, fl.newLedger); err != nil {
		return nil, err
	}
	cfg := s.Config
	cfg.Webhook = config.Webhook{}
	cfg.HTTP.Addr = loopback(cfg.HTTP.Addr)
	// Not the command's context: after Ctrl-C the report is still to be gathered, then the daemon stops in order.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready, done := make(chan daemon.Info, 1), make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		done <- daemon.Run(run, daemon.Options{Config: cfg, Log: log, Build: build(), ExistingLedger: !fl.newLedger, ReadBack: aloneReadBack,
			Ready: func(i daemon.Info) { ready <- i }})
	}()
	end := func() error {
		stop()
		return <-done
	}
	info, err := started(ctx, fl.patience(aloneStart), ready, done, end)
	if err != nil {
		return nil, aloneFailed(err, s.API.URL, s.StateDir)
	}
	o := natsOptions(cfg.NATS, "flexid push")
	if cfg.NATS.Embedded() {
		o.URL, o.Token = info.NATS, info.NATSToken
	}
	t, err := p.target(ctx, s, o, daemonAPI{newClient(info.HTTP, info.Token)}, log)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	t.followUps, t.ended = info.FollowUps, ended
	t.closers = append([]func() error{end}, t.closers...)
	return t, nil
}

// started waits for the daemon of this process.
func started(ctx context.Context, most time.Duration, ready <-chan daemon.Info, done <-chan error, end func() error) (daemon.Info, error) {
	limit := time.NewTimer(most)
	defer limit.Stop()
	select {
	case info := <-ready:
		return info, nil
	case err := <-done:
		return daemon.Info{}, errors.Join(errors.New("the daemon did not start"), err)
	case <-ctx.Done():
		return daemon.Info{}, errors.Join(context.Cause(ctx), end())
	case <-limit.C:
		err := fmt.Errorf("the daemon is not ready after %v; its warnings above say why, and nothing was sent", most)
		return daemon.Info{}, errors.Join(&exitError{exitTryAgain, err}, end())
	}
}

func aloneFailed(err error, url, stateDir string) error {
	var none *daemon.NoLedgerError
	switch {
	case errors.As(err, &none) && none.Known != "":
		return none
	case errors.As(err, &none):
		return noLedger(stateDir)
	case badSettings(err):
		return &exitError{exitConfig, err}
	}
	return heldElsewhere(err, url)
}

// ledgerMeant refuses a state directory without a ledger before anything is made in it: behind a misspelt path everything
// would look new, and be sent again.
func ledgerMeant(cfg config.Config, newLedger bool) error {
	if newLedger || !cfg.NATS.Embedded() {
		return nil // an external NATS is asked by the daemon
	}
	_, err := os.Stat(filepath.Join(cfg.StateDir, "nats"))
	if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if known, err := statedir.ReadKnown(cfg.StateDir, cfg.NATS.Prefix); err == nil && known.Ledger != "" {
		return &daemon.NoLedgerError{Prefix: cfg.NATS.Prefix, Known: known.Ledger}
	}
	return noLedger(cfg.StateDir)
}

func noLedger(stateDir string) error {
	return fmt.Errorf("there is no ledger for %s yet: is FLEXID_STATE_DIR right? --new-ledger begins one", stateDir)
}

// loopback keeps the port: nobody outside is served by a command.
func loopback(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}
