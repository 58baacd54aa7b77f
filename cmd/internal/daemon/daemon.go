package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"flexid/batch/stream"
	"flexid/batch/stream/embedded"
	"flexid/cmd/internal/api"
	"flexid/config"
	"flexid/config/statedir"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Options of a daemon. Config and Log are required.
type Options struct {
	Config   config.Config
	Log      zerolog.Logger
	Build    api.Build
	Registry *prometheus.Registry // nil = a new one
	Ready    func(Info)           // called once, when events are taken and the ledger has been read
	Notify   Notify               // the service manager, if there is one
	// ExistingLedger makes a missing ledger a *NoLedgerError instead of making one, for a command that may have been given
	// the wrong state directory.
	ExistingLedger bool
	// ReadBack is how long after its confirmation a document is read back; 0 = the engine's default.
	ReadBack time.Duration
	// Dial replaces the dialler to the ERP, for tests and the demo.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	Now  func() time.Time
	Rand func() float64 // in [0, 1)
}

// Info is how to reach a running daemon.
type Info struct {
	HTTP      string // http://host:port
	Token     string // of its API
	Webhook   string // http://host:port; "" = off
	NATS      string // address
	NATSToken string // of the embedded server
	StateDir  string
	// FollowUps counts the documents that still have to be read back or notified of. It reads the whole ledger.
	FollowUps func(ctx context.Context) (int, error)
}

// daemon is one run.
type daemon struct {
	o        Options
	cfg      config.Config
	log      zerolog.Logger
	now      func() time.Time
	metrics  *api.Metrics
	http     *api.Server
	undo     *undo
	webhooks *webhooks
	notify   *notifier
	standing

	instance string
	known    statedir.Known // of ledger and streams; beside the instance's id in the state directory
	info     Info
	streams  stream.Options
	js       jetstream.JetStream

	acceptMu  sync.Mutex
	accepting bool // a missing ledger is being waited for

	takenMu sync.Mutex
	taken   map[string]uint64 // up to which message streams were taken, by name, as this process knows

	accept    chan struct{}
	found     chan struct{} // closed when it is there
	readyOnce sync.Once
}

// Run runs the daemon until ctx ends, then stops it within FLEXID_DRAIN_TIMEOUT. It returns nil after a clean stop. Errors
// that need another configuration: *PinError, *stream.ContradictionError, *ledger.ConfigError, *SettingError; a state
// directory in other hands is a *statedir.HeldError.
func Run(ctx context.Context, o Options) (err error) {
	d := newDaemon(o)
	d.notify.feed()
	defer func() {
		d.standing.setPhase("stopping")
		d.notify.say("STOPPING=1")
		// Intake had a quarter of the time, the engine half of it, the end of a session an eighth.
		rest := d.cfg.DrainTimeout / 4
		if d.cfg.Flexi.Auth == "session" {
			rest /= 2
		}
		err = errors.Join(err, d.undo.run(rest))
		d.notify.close()
		if err == nil {
			d.log.Info().Msg("stopped")
		}
	}()
	if err := d.start(ctx); err != nil {
		return d.stopped(ctx, err)
	}
	for {
		l, state, err := d.openLedger(ctx)
		if err != nil {
			return d.stopped(ctx, err)
		}
		if err := d.runCore(ctx, l, state); !ledgerGone(err) {
			return d.stopped(ctx, err)
		}
	}
}

// stopped tells a stop from a failure: what was waited for when ctx ended did not fail.
func (d *daemon) stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return nil
	}
	return err
}

func newDaemon(o Options) *daemon {
	d := &daemon{o: o, cfg: o.Config, log: o.Log, now: o.Now, undo: &undo{log: o.Log}, accept: make(chan struct{}, 1)}
	if d.now == nil {
		d.now = time.Now
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	d.o.Registry = o.Registry
	d.notify = &notifier{n: o.Notify, log: o.Log, check: d.lookAlive, status: d.statusText}
	d.metrics = api.NewMetrics(o.Registry, o.Build, o.Log)
	d.standing.started = d.now()
	d.streams = stream.Options{Prefix: d.cfg.NATS.Prefix, Replicas: d.cfg.NATS.Replicas, Log: d.log}
	return d
}

// start brings up what a core needs besides the ledger.
func (d *daemon) start(ctx context.Context) error {
	if err := d.takeStateDir(); err != nil {
		return err
	}
	// Registered before HTTP is, so that it is stopped after it.
	var ns *embedded.Server
	var nc *nats.Conn
	d.undo.push("NATS", func(ctx context.Context) error {
		if nc != nil {
			nc.Close()
		}
		if ns != nil {
			return ns.Stop(ctx)
		}
		return nil
	})
	if err := d.startHTTP(ctx); err != nil {
		return err
	}
	if err := d.startWebhooks(ctx, d.o.Registry); err != nil {
		return err
	}
	var err error
	if ns, err = d.startEmbedded(); err != nil {
		return err
	}
	if nc, err = d.connect(ctx, ns); err != nil {
		return err
	}
	d.standing.connection(nc.IsConnected)
	if most := nc.MaxPayload(); most < stream.WantPayload {
		d.log.Warn().Int64("max_payload", most).Int("wanted", stream.WantPayload).Msg("NATS takes only small messages: events that do not fit into one " +
			"with what flexid notes about them are parked; set `max_payload: 1MB` at the NATS server")
	}
	if d.js, err = jetstream.New(nc); err != nil {
		return fmt.Errorf("JetStream: %w", err)
	}
	return nil
}

// takeStateDir takes the state directory. One that cannot be used is a *SettingError: no restart makes it another one.
func (d *daemon) takeStateDir() error {
	err := d.lockStateDir()
	if statedir.Unusable(err) {
		return &SettingError{"FLEXID_STATE_DIR", err}
	}
	return err
}

func (d *daemon) lockStateDir() error {
	lock, err := statedir.Acquire(d.cfg.StateDir)
	if err != nil {
		return err
	}
	d.undo.push("lock of the state directory", func(context.Context) error { return lock.Release() })
	if d.instance, err = statedir.InstanceID(d.cfg.StateDir); err != nil {
		return err
	}
	if d.known, err = statedir.ReadKnown(d.cfg.StateDir, d.cfg.NATS.Prefix); err != nil {
		return err
	}
	d.info.StateDir = d.cfg.StateDir
	d.info.Token = d.cfg.API.Token.Reveal()
	if d.info.Token == "" {
		d.info.Token, err = statedir.AdminToken(d.cfg.StateDir)
	}
	return err
}

func (d *daemon) startHTTP(ctx context.Context) error {
	if err := errors.Join(d.metrics.Watch(&d.standing, d.now), d.metrics.WatchQuota(d.standing.quotaStatus)); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	s, err := api.New(api.Options{
		Addr: d.cfg.HTTP.Addr, Hosts: d.cfg.HTTP.Hosts, Token: d.info.Token, Company: d.cfg.Flexi.Company, System: d.cfg.Flexi.System,
		Info: d.about, Troubles: d.standing.troubles, AcceptEmpty: d.acceptEmpty, Metrics: d.metrics.Handler(), Profiles: d.cfg.HTTP.Pprof,
		Now: d.now, Log: d.log,
	})
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	d.http = s
	d.undo.push("HTTP", s.Stop)
	d.info.HTTP = "http://" + s.Addr()
	d.standing.setAPI(d.info.HTTP)
	d.log.Info().Str("address", d.info.HTTP).Msg("API, metrics and health")
	return nil
}

func (d *daemon) about() api.Info {
	i := d.standing.about()
	i.Version, i.Company, i.System = d.o.Build.Version, d.cfg.Flexi.Company, d.cfg.Flexi.System
	i.Quota = d.standing.quotaStatus()
	i.Refused = d.standing.refused()
	return i
}

// startEmbedded starts NATS in this process, or nothing where an external one is set.
func (d *daemon) startEmbedded() (*embedded.Server, error) {
	if !d.cfg.NATS.Embedded() {
		d.log.Warn().Str("nats", d.cfg.NATS.URL).Msg("an external NATS server does not show whether it syncs every write to disk: " +
			"set `sync_interval: always` in its jetstream block, or a power cut can lose acknowledged claims")
		return nil, nil
	}
	file := filepath.Join(d.cfg.StateDir, "nats.json")
	s, err := embedded.Start(embedded.Options{
		Dir: filepath.Join(d.cfg.StateDir, "nats"), Listen: d.cfg.NATS.Listen, InfoFile: file, Log: d.log,
	})
	if err != nil {
		return nil, err
	}
	d.standing.embedded(s.Broken)
	// Three streams and the ledger, which reserves nothing, share what the disk has. With the usual size a daemon on a disk
	// with less than 4 GiB free would never become ready.
	d.streams.NewBytes = min(stream.StreamBytes, s.MaxStore()/4)
	d.info.NATS, d.info.NATSToken = s.URL(), s.Token()
	d.log.Info().Str("address", s.URL()).Str("token_in", file).
		Str("try", "nats -s "+s.URL()+` --user "$(sed 's/.*"token":"\([^"]*\)".*/\1/' `+file+`)" stream ls`).Msg("embedded NATS")
	return s, nil
}

func (d *daemon) connect(ctx context.Context, s *embedded.Server) (*nats.Conn, error) {
	n := d.cfg.NATS
	o := stream.ConnOptions{URL: n.URL, CredsFile: n.CredsFile, User: n.User, Password: n.Password.Reveal(), Token: n.Token.Reveal(),
		CAFile: n.CAFile, CertFile: n.CertFile, KeyFile: n.KeyFile, Name: "flexid " + d.instance, Log: d.log}
	if s != nil {
		o = stream.ConnOptions{InProcess: s, Token: s.Token(), Name: o.Name, Log: d.log}
	} else {
		d.info.NATS = n.URL
	}
	d.standing.setPhase("waiting for NATS at " + d.info.NATS)
	d.standing.reach(d.info.NATS)
	return stream.Connect(ctx, o)
}

// newRun names this run of the core: leases of an earlier one are then known to be nobody's.
func newRun() string { return rand.Text() }
