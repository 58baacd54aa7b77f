package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"flexid/batch/stream"
	"flexid/batch/stream/embedded"
	"flexid/cmd/internal/api"
	"flexid/cmd/internal/push"
	"flexid/config/statedir"
	"flexid/verify"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// pushTarget is where events go and who is asked about them.
type pushTarget struct {
	js        jetstream.JetStream
	streams   stream.Options
	daemon    push.Daemon
	followUps func(ctx context.Context) (int, error) // nil = the daemon goes on after us
	ended     <-chan struct{}                        // closed when the daemon of this process has ended; nil = it is another one
	closers   []func() error                         // last one first
}

// whileAlive runs f and ends it when the daemon of this process ends by itself: nobody would take or tell anything more.
func (t *pushTarget) whileAlive(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-t.ended:
			cancel(errors.New("the daemon of this command has ended"))
		case <-ctx.Done():
		}
	})
	err := f(ctx)
	cancel(nil)
	watch.Wait()
	return err
}

func (t *pushTarget) close() error {
	var errs []error
	for i := len(t.closers) - 1; i >= 0; i-- {
		errs = append(errs, t.closers[i]())
	}
	return errors.Join(errs...)
}

// pushTarget finds the running daemon, or becomes it. With an external NATS the daemon may run on another machine, so that
// is only done when asked for; with an embedded one the lock of the state directory tells.
func (p *program) pushTarget(ctx context.Context, s pushSettings, fl pushFlags, log zerolog.Logger) (*pushTarget, error) {
	probe := newClient(s.API.URL, "")
	probe.http.Timeout = 5 * time.Second
	down := probe.health(ctx, "/healthz")
	switch {
	case down == nil:
		return p.runningTarget(ctx, s, fl, log)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !s.NATS.Embedded() && !fl.alone:
		return nil, fmt.Errorf("%w; FLEXID_API_URL says where the daemon is, --alone makes this command the daemon", down)
	}
	p.say("no daemon answers at %s: working alone on %s", s.API.URL, s.StateDir)
	return p.aloneTarget(ctx, s, fl, log)
}

// runningTarget connects to the NATS of a running daemon, once that is ready.
func (p *program) runningTarget(ctx context.Context, s pushSettings, fl pushFlags, log zerolog.Logger) (*pushTarget, error) {
	token := s.API.Token.Reveal()
	if token == "" {
		var err error
		if token, err = adminToken(s.StateDir); err != nil {
			return nil, err
		}
	}
	cl := newClient(s.API.URL, token)
	st, err := p.readyDaemon(ctx, cl, fl.patience(readyMost))
	if err != nil {
		return nil, err
	}
	o := natsOptions(s.NATS, "flexid push")
	if s.NATS.Embedded() {
		info, err := embedded.ReadInfo(filepath.Join(s.StateDir, "nats.json"))
		if err != nil {
			return nil, fmt.Errorf("%w: run this as the user flexid runs as, or set FLEXID_NATS_URL and FLEXID_NATS_TOKEN", err)
		}
		if info.URL != st.NATS {
			return nil, fmt.Errorf("the daemon at %s works with NATS at %s, but %s names %s: set FLEXID_STATE_DIR or FLEXID_NATS_URL as the daemon has it",
				s.API.URL, st.NATS, filepath.Join(s.StateDir, "nats.json"), info.URL)
		}
		o = stream.ConnOptions{InProcess: embeddedNATS(filepath.Join(s.StateDir, "nats.json")), Token: info.Token, Name: o.Name}
	}
	return p.target(ctx, s, o, daemonAPI{cl}, log)
}

// embeddedNATS is the file that says where the embedded server listens. It is read for every connection: after a restart of
// the daemon the port is another one, and the token the same.
type embeddedNATS string

// InProcessConn connects; it makes embeddedNATS a nats.InProcessConnProvider.
func (file embeddedNATS) InProcessConn() (net.Conn, error) {
	info, err := embedded.ReadInfo(string(file))
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(info.URL)
	if err != nil {
		return nil, fmt.Errorf("address of NATS in %s: %w", string(file), err)
	}
	return net.DialTimeout("tcp", address.Host, 5*time.Second)
}

// target connects to NATS.
func (p *program) target(ctx context.Context, s pushSettings, o stream.ConnOptions, d push.Daemon, log zerolog.Logger) (*pushTarget, error) {
	o.Log = log
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	defer p.sayLater(1500*time.Millisecond, "waiting for NATS")()
	nc, err := stream.Connect(wait, o)
	if err != nil {
		return nil, &exitError{exitTryAgain, err}
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("JetStream: %w", err)
	}
	return &pushTarget{js: js, streams: stream.Options{Prefix: s.NATS.Prefix, Log: log}, daemon: d,
		closers: []func() error{func() error { return drain(nc) }}}, nil
}

// sayLater says something if the function that it returns is not called before: nobody likes a command that is silent.
func (p *program) sayLater(after time.Duration, text string) (stop func()) {
	said := make(chan struct{})
	timer := time.AfterFunc(after, func() {
		p.say("%s", text)
		close(said)
	})
	return func() {
		if !timer.Stop() {
			<-said // not beside what is written next
		}
	}
}

func drain(nc *nats.Conn) error {
	nc.Close() // everything published was acknowledged
	return nil
}

// readyMost is how long a daemon that answers may take to become ready.
const readyMost = 30 * time.Second

// readyDaemon waits for a daemon that is starting, and says what it waits for.
func (p *program) readyDaemon(ctx context.Context, cl *client, most time.Duration) (st api.Status, err error) {
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	said := ""
	for within.Err() == nil {
		if err := cl.get(within, "/api/v1/status", &st); err != nil && within.Err() != nil {
			break
		} else if err != nil {
			return st, err
		}
		if st.Ready {
			return st, nil
		}
		if text := stoppedText(&st, nil); text != said {
			said = text
			p.say("waiting: %s", clean(text))
		}
		timer := time.NewTimer(time.Second)
		select {
		case <-timer.C:
		case <-within.Done():
			timer.Stop()
		}
	}
	if ctx.Err() != nil {
		return st, context.Cause(ctx)
	}
	text := cmp.Or(st.Phase, "it gives no answer")
	for _, t := range st.Troubles {
		text = t.Text + "; " + t.Remedy
	}
	return st, &exitError{exitTryAgain, fmt.Errorf("the daemon is not ready after %v: %s; nothing was sent", most, text)}
}

// daemonAPI asks the daemon about documents.
type daemonAPI struct{ c *client }

// Maybes lists the maybes.
func (d daemonAPI) Maybes(ctx context.Context, each func(api.Row)) error {
	q := url.Values{"state": {"maybe"}, "limit": {"0"}, "format": {"ndjson"}}
	resp, err := d.c.do(ctx, http.MethodGet, "/api/v1/documents?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	return lines(resp, each)
}

// Story reads one document.
func (d daemonAPI) Story(ctx context.Context, a verify.Address) (s api.Story, ok bool, err error) {
	err = d.c.get(ctx, "/api/v1/documents/"+api.Path(a), &s)
	var exit *exitError
	if errors.As(err, &exit) && exit.code == exitNothing {
		return s, false, nil
	}
	return s, err == nil, err
}

// Stopped says what keeps documents of the evidences from being sent.
func (d daemonAPI) Stopped(ctx context.Context, evidences map[string]bool) (string, error) {
	var st api.Status
	if err := d.c.get(ctx, "/api/v1/status", &st); err != nil {
		return "", err
	}
	return stoppedText(&st, evidences), nil
}

// stoppedText is why nothing is sent, with what to do, "" when it is.
func stoppedText(st *api.Status, evidences map[string]bool) string {
	for _, t := range st.Troubles {
		return "the daemon is not ready: " + joinedBy("; ", t.Text, t.Remedy)
	}
	if st.Engine == nil {
		return ""
	}
	for _, g := range st.Engine.Stops {
		if g.Open || g.Evidence != "" && !evidences[g.Evidence] {
			continue
		}
		what := "writes are stopped"
		if g.Evidence != "" {
			what += " for " + g.Evidence
		}
		return what + " (" + g.Reason + "): " + joinedBy("; ", g.Text, g.Remedy)
	}
	if r := st.Refused; r != nil {
		return "Flexi asks for patience until " + stamp(r.Until)
	}
	return ""
}

// heldElsewhere explains a state directory whose daemon does not answer.
func heldElsewhere(err error, url string) error {
	var held *statedir.HeldError
	if errors.As(err, &held) {
		return &exitError{exitTryAgain, fmt.Errorf("%w, but no daemon answers at %s: is FLEXID_API_URL or FLEXID_HTTP_ADDR as the daemon has it?", err, url)}
	}
	return err
}
