package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Limits of the listener.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 10 * time.Second
	writeTimeout  = 15 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10
	storeTimeout  = 2 * time.Second // the tightest sender gives up after 4 s
	inFlight      = 256             // of all sources
	maxWaits      = 256
	maxWait       = time.Minute
	retryAfter    = 5 // seconds
)

// Options of a Server. Sources, Sink and Reader are required.
type Options struct {
	Addr    string
	Sources map[string]Source
	Sink    Sink
	Reader  Reader
	Waiter  Waiter              // nil: ?wait= is answered at once
	Wake    func(source string) // something changed in Flexi; must not block
	// Proxies are believed when they say in X-Forwarded-For for whom they speak.
	Proxies  []netip.Prefix
	Registry prometheus.Registerer // nil = not registered
	Now      func() time.Time
	NewID    func() string // of deliveries without an id; never the same twice
	Log      zerolog.Logger
}

// Server is the listener of the intake.
type Server struct {
	o       Options
	sources map[string]*source
	slots   chan struct{}
	waits   chan struct{}
	metrics *metrics
	noisy   zerolog.Logger // for what strangers can cause
	inHand  atomic.Int64   // deliveries

	http   *http.Server
	listen net.Listener
	served sync.WaitGroup
}

// New checks the sources. Its error is a *SourceError, or about the metrics.
func New(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = rand.Text
	}
	if o.Wake == nil {
		o.Wake = func(string) {}
	}
	s := &Server{o: o, sources: map[string]*source{}, slots: make(chan struct{}, inFlight), waits: make(chan struct{}, maxWaits),
		noisy: o.Log.Sample(&zerolog.BurstSampler{Burst: 10, Period: 10 * time.Second})}
	for name, settings := range o.Sources {
		source, err := newSource(name, settings)
		if err != nil {
			return nil, &SourceError{name, err}
		}
		s.sources[name] = source
	}
	var err error
	if s.metrics, err = newMetrics(o.Registry); err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		// Its lines are about what strangers send.
		ErrorLog: log.New(s.noisy, "", 0),
	}
	// Whoever waits for an outcome is answered when the server stops; what is being stored is not cut off by it.
	base, end := context.WithCancel(context.Background())
	s.http.BaseContext = func(net.Listener) context.Context { return base }
	s.http.RegisterOnShutdown(end)
	return s, nil
}

// SourceError is a source whose settings cannot be used; it wraps a *SettingError.
type SourceError struct {
	Source string
	Err    error
}

func (e *SourceError) Error() string { return "source " + e.Source + ": " + e.Err.Error() }

func (e *SourceError) Unwrap() error { return e.Err }

// Start listens and serves in the background until Stop; the error is about the address.
func (s *Server) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.o.Addr)
	if err != nil {
		return fmt.Errorf("listening on FLEXID_WEBHOOK_ADDR %s: %w", s.o.Addr, err)
	}
	s.Serve(l)
	return nil
}

// Serve is Start on a listener that is there already.
func (s *Server) Serve(l net.Listener) {
	s.listen = l
	s.served.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.o.Log.Error().Err(err).Msg("the webhook listener ended")
		}
	})
}

// Addr is where the server listens, with the port that was given when the address asked for any.
func (s *Server) Addr() string { return s.listen.Addr().String() }

// stopGrace is how long a connection that has not asked for anything may still do so when the server stops. It is longer than
// the half second that net/http takes to close one whose answer was the last.
const stopGrace = time.Second

// Stop answers the requests in hand until ctx ends, then cuts them off. A connection that was opened in store and has not asked
// for anything is no delivery: to cut it off is no error.
func (s *Server) Stop(ctx context.Context) error {
	var err error
	for again := true; again; again = err != nil && ctx.Err() == nil && s.inHand.Load() > 0 {
		grace, cancel := context.WithTimeout(ctx, stopGrace) // what follows in the stop needs time too
		err = s.http.Shutdown(grace)
		cancel()
	}
	if err != nil {
		inHand := s.inHand.Load()
		cut := s.http.Close()
		if err = cut; inHand > 0 {
			err = errors.Join(fmt.Errorf("%d deliveries were cut off: %w", inHand, ctx.Err()), cut)
		}
	}
	s.served.Wait()
	return err
}
