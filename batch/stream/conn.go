package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
)

// ConnOptions says how to reach NATS: URL, or InProcess for a server in this process.
type ConnOptions struct {
	URL                       string // one or several, separated by commas
	InProcess                 nats.InProcessConnProvider
	CredsFile                 string
	User, Password, Token     string
	CAFile, CertFile, KeyFile string
	Name                      string // shown in the server's lists; "" = flexid
	Log                       zerolog.Logger
}

// Connect connects and waits until NATS is there or ctx ends (an attempt under way may take 5 s more). Afterwards the connection heals by itself for as long as the
// process lives; a login that is refused is tried again too, since credentials get renewed. Every change is logged once.
func Connect(ctx context.Context, o ConnOptions) (*nats.Conn, error) {
	w := &watcher{log: o.Log, connected: make(chan struct{})}
	nc, err := nats.Connect(o.URL, o.options(w)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	if nc.IsConnected() {
		w.up(nc)
	}
	select {
	case <-w.connected:
		return nc, nil
	case <-ctx.Done():
		err := errors.Join(context.Cause(ctx), w.lastError(), nc.LastError())
		nc.Close()
		return nil, fmt.Errorf("waiting for NATS: %w", err)
	}
}

func (o ConnOptions) options(w *watcher) []nats.Option {
	name := o.Name
	if name == "" {
		name = "flexid"
	}
	options := []nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(500 * time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, 500*time.Millisecond),
		// A publish that waits in a buffer while NATS is away takes effect after its caller has given up: a claim would
		// appear from nowhere.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(20 * time.Second), nats.Timeout(5 * time.Second), nats.DrainTimeout(5 * time.Second),
		nats.ConnectHandler(w.up), nats.ReconnectHandler(w.up), nats.DisconnectErrHandler(w.down),
		nats.ReconnectErrHandler(w.failed), nats.ErrorHandler(w.async),
	}
	if o.InProcess != nil {
		options = append(options, nats.InProcessServer(o.InProcess))
	}
	if o.CredsFile != "" {
		options = append(options, nats.UserCredentials(o.CredsFile))
	}
	if o.User != "" {
		options = append(options, nats.UserInfo(o.User, o.Password))
	}
	if o.Token != "" {
		options = append(options, nats.Token(o.Token))
	}
	if o.CAFile != "" {
		options = append(options, nats.RootCAs(o.CAFile))
	}
	if o.CertFile != "" {
		options = append(options, nats.ClientCert(o.CertFile, o.KeyFile))
	}
	return options
}

// watcher logs each change of a connection once, however often the client tries.
type watcher struct {
	log zerolog.Logger

	mu        sync.Mutex
	isUp      bool
	last      error
	said      map[string]bool // what was logged since the last change
	connected chan struct{}
}

func (w *watcher) up(nc *nats.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isUp {
		return
	}
	w.isUp, w.said = true, nil
	w.log.Info().Str("server", nc.ConnectedServerName()).Str("version", nc.ConnectedServerVersion()).Msg("NATS is connected")
	select {
	case <-w.connected:
	default:
		close(w.connected)
	}
}

func (w *watcher) down(_ *nats.Conn, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isUp && err != nil { // without an error we closed it ourselves
		w.log.Warn().Err(err).Msg("NATS is gone; events wait at their senders, writes wait in the ledger")
	}
	w.isUp, w.said = false, nil
}

func (w *watcher) failed(_ *nats.Conn, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
	w.once(err.Error(), func() { w.log.Warn().Err(err).Msg(meaning(err, "NATS cannot be reached yet")) })
}

// async hears what no caller gets: a denied permission reaches the caller as a timeout, the subject stands only here.
func (w *watcher) async(_ *nats.Conn, sub *nats.Subscription, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
	w.once(err.Error(), func() {
		line := w.log.Error().Err(err)
		if sub != nil {
			line = line.Str("subject", sub.Subject)
		}
		line.Msg(meaning(err, "NATS reports an error"))
	})
}

// meaning says what an operator has to do about an error, else otherwise.
func meaning(err error, otherwise string) string {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		return "NATS denies a permission that flexid needs: add the subject to the user's permissions"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return "NATS refuses the login: check credentials file, token or password"
	}
	return otherwise
}

// once keeps the list of what was said bounded: an error text may hold a number that changes every time.
func (w *watcher) once(text string, say func()) {
	if w.said[text] {
		return
	}
	if w.said == nil || len(w.said) > 100 {
		w.said = map[string]bool{}
	}
	w.said[text] = true
	say()
}

func (w *watcher) lastError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}
