package main

import (
	"errors"
	"strings"

	"flexid/batch/stream"
	"flexid/config"
)

// pushSettings are all settings, with the faults that only matter to a push that works alone.
type pushSettings struct {
	config.Config
	faults error // of the ERP's and other settings; nil = push could be the daemon
}

// pushSettings reads the settings. Where a daemon runs, push needs neither the ERP's address nor its password.
func (p *program) pushSettings() (pushSettings, error) {
	environ, err := p.environ()
	if err != nil {
		return pushSettings{}, err
	}
	cfg, _, err := config.Load(environ, p.lookup("CREDENTIALS_DIRECTORY"))
	s := pushSettings{Config: cfg, faults: err}
	var all, mine config.Faults
	if !errors.As(err, &all) {
		return s, err
	}
	for _, f := range all {
		for _, needed := range []string{"FLEXID_API_", "FLEXID_NATS_", "FLEXID_STATE_DIR", "FLEXID_HTTP_ADDR", "FLEXID_FLEXI_SYSTEM", "FLEXID_LOG_"} {
			if strings.HasPrefix(f.Variable, needed) {
				mine = append(mine, f)
				break
			}
		}
	}
	if len(mine) > 0 {
		return s, mine
	}
	return s, nil
}

// natsOptions are those of an external server.
func natsOptions(n config.NATS, name string) stream.ConnOptions {
	return stream.ConnOptions{URL: n.URL, CredsFile: n.CredsFile, User: n.User, Password: n.Password.Reveal(), Token: n.Token.Reveal(),
		CAFile: n.CAFile, CertFile: n.CertFile, KeyFile: n.KeyFile, Name: name}
}
