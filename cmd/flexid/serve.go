package main

import (
	"errors"
	"io"
	"time"

	"flexid/batch/stream"
	"flexid/cmd/internal/daemon"
	"flexid/config"
	"flexid/verify/ledger"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

func (p *program) serve() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "the daemon", Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.load()
			if err != nil {
				return err
			}
			log := p.logger(cfg.Log)
			err = daemon.Run(c.Context(), daemon.Options{Config: cfg, Log: log, Build: build(), Notify: daemon.NotifyFrom(p.lookup)})
			if err != nil && badSettings(err) {
				return &exitError{exitConfig, err}
			}
			return err
		},
	}
}

// badSettings are errors that no restart heals: exit 78, so that a supervisor does not try for ever.
func badSettings(err error) bool {
	var pin *daemon.PinError
	var setting *daemon.SettingError
	var contradiction *stream.ContradictionError
	var unfit *ledger.ConfigError
	return errors.As(err, &pin) || errors.As(err, &setting) || errors.As(err, &contradiction) || errors.As(err, &unfit)
}

// logger writes to standard error, in lines for people only on a terminal or on demand.
func (p *program) logger(l config.Log) zerolog.Logger {
	level, err := zerolog.ParseLevel(l.Level)
	if err != nil {
		level = zerolog.InfoLevel // config has checked the word
	}
	var w io.Writer = p.err
	if l.Format == "console" || l.Format == "" && isTerminal(p.err) {
		w = zerolog.ConsoleWriter{Out: p.err, TimeFormat: time.RFC3339, NoColor: p.noColor || !isTerminal(p.err) || p.lookup("NO_COLOR") != ""}
	}
	return zerolog.New(zerolog.SyncWriter(w)).Level(level).With().Timestamp().Logger()
}
