package main

import (
	"cmp"
	"errors"
	"io/fs"
	"strings"

	"flexid/cmd/internal/daemon"
	"flexid/config"

	"github.com/spf13/cobra"
)

// environ is the environment above the lines of the env file.
func (p *program) environ() ([]string, error) {
	path := p.envFile
	if path == "" {
		path = config.DefaultEnvFile
	}
	file, err := config.ReadEnvFile(path)
	switch {
	case err == nil:
		return config.Merge(file, p.env), nil
	case p.envFile == "" && errors.Is(err, fs.ErrNotExist):
		return p.env, nil
	case p.envFile == "" && errors.Is(err, fs.ErrPermission) && p.configured():
		// An operator who set what he needs himself must not need the daemon's secrets.
		return p.env, nil
	}
	return nil, &exitError{exitConfig, err}
}

func (p *program) configured() bool {
	for _, kv := range p.env {
		if strings.HasPrefix(kv, config.Prefix) {
			return true
		}
	}
	return false
}

// load reads all settings and says its warnings; the error is 78.
func (p *program) load() (config.Config, error) {
	environ, err := p.environ()
	if err != nil {
		return config.Config{}, err
	}
	c, warnings, err := config.Load(environ, p.lookup("CREDENTIALS_DIRECTORY"))
	for _, w := range warnings {
		p.say("warning: %s", w)
	}
	if path := cmp.Or(p.envFile, config.DefaultEnvFile); config.Exposed(path) {
		if lines, err := config.ReadEnvFile(path); err == nil && config.HoldsSecret(lines) {
			p.say("warning: %s holds a secret and may be read by every user of this machine: chmod 600 %s", path, path)
		}
	}
	if err != nil {
		return c, &exitError{exitConfig, err}
	}
	return c, nil
}

func (p *program) configuration() *cobra.Command {
	check := &cobra.Command{
		Use: "check", Short: "all settings, all faults at once", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error {
			cfg, err := p.load()
			if err != nil {
				return err
			}
			if err := daemon.CheckSources(cfg.Webhook); err != nil {
				return &exitError{exitConfig, err}
			}
			p.say("the settings are right; `flexid doctor` asks ERP and NATS")
			return nil
		},
	}
	docs := &cobra.Command{
		Use: "docs", Short: "every variable with meaning and default", Args: exactly(0),
	}
	format := docs.Flags().String("format", "", "table, markdown, json or env (default: as -o says)")
	docs.RunE = func(*cobra.Command, []string) error {
		f := *format
		switch {
		case f == "" && (p.format == "table" || p.format == "json"):
			f = p.format
		case f == "":
			return usagef("config docs: -o table or json, or --format markdown or env")
		}
		if err := config.Docs(p.out, f); err != nil {
			return usagef("%w", err)
		}
		return nil
	}
	return grouped("config", "settings", check, docs)
}
