package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Options of a Server. Everything but Hosts, Metrics and Now is required.
type Options struct {
	Addr    string   // host:port to listen on
	Hosts   []string // further names it goes by
	Token   string   // bearer token of /api/v1
	Company string   // of the ERP, and the system part of external ids: where a document lies in the ledger
	System  string
	Info    func() Info
	// Troubles is empty while NATS and ledger can be used. The ERP being down is not among them: intake goes on.
	Troubles    func() []Trouble
	AcceptEmpty func(ctx context.Context, by, why string) error
	Metrics     http.Handler // nil = no /metrics
	Profiles    bool         // Go's profiles at /debug/pprof/, for who has the token
	Now         func() time.Time
	Log         zerolog.Logger
}

// Server is the HTTP face. Make one with New.
type Server struct {
	o       Options
	current atomic.Pointer[Backend]

	http   *http.Server
	listen net.Listener
	served sync.WaitGroup
	inHand atomic.Int64 // requests
}

// New makes a server that does not listen yet.
func New(o Options) (*Server, error) {
	if o.Token == "" {
		// An empty token would let "Authorization: Bearer" pass.
		return nil, errors.New("the API needs a token")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o}
	s.http = &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      5 * time.Minute, // a list of every document
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	s.http.Handler = s.counted(s.Handler())
	return s, nil
}

// Use hands over the running engine; before it, what needs the ledger answers 503. A nil takes it away again.
func (s *Server) Use(b *Backend) { s.current.Store(b) }

// Start listens and serves in the background until Stop; the error is about the address.
func (s *Server) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.o.Addr)
	if err != nil {
		return fmt.Errorf("listening on FLEXID_HTTP_ADDR %s: %w", s.o.Addr, err)
	}
	s.listen = l
	s.served.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.o.Log.Error().Err(err).Msg("the HTTP server ended")
		}
	})
	return nil
}

// Addr is where the server listens, with the port that was given when the address asked for any.
func (s *Server) Addr() string { return s.listen.Addr().String() }

// stopGrace is how long a connection that has not asked for anything may still do so when the server stops. It is longer than
// the half second that net/http takes to close one whose answer was the last.
const stopGrace = time.Second

// Stop finishes the requests in hand until ctx ends, then cuts them off. A connection that was opened in store, as browsers
// do, and has not asked for anything is no request: to cut it off is no error.
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
			err = errors.Join(fmt.Errorf("%d HTTP requests were cut off: %w", inHand, ctx.Err()), cut)
		}
	}
	s.served.Wait()
	return err
}

// counted knows how many requests are in hand.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inHand.Add(1)
		defer s.inHand.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// Handler is all paths; the page mounts beside it later.
func (s *Server) Handler() http.Handler {
	guarded := http.NewServeMux()
	for pattern, h := range map[string]handler{
		"GET /api/v1/documents":                     s.list,
		"GET /api/v1/documents/{evidence}/{key...}": s.show,
		"GET /api/v1/queue":                         s.queue,
		"POST /api/v1/queue/{decision}":             s.decideMany,
		"POST /api/v1/queue/{evidence}/{rest...}":   s.decide,
		"GET /api/v1/status":                        func(w http.ResponseWriter, _ *http.Request) error { return answer(w, s.status()) },
		"POST /api/v1/writes/{verb}":                s.writes,
		"POST /api/v1/company/accept":               s.acceptCompany,
		"POST /api/v1/ledger/accept-empty":          s.acceptEmpty,
	} {
		guarded.Handle(pattern, h)
	}
	open := http.NewServeMux()
	open.Handle("/api/", s.tokenGuard(guarded))
	if s.o.Profiles {
		open.Handle("/debug/pprof/", s.tokenGuard(s.profiles()))
	}
	open.Handle("GET /readyz", handler(s.readyz))
	if s.o.Metrics != nil {
		open.Handle("GET /metrics", s.o.Metrics)
	}
	outer := http.NewServeMux()
	outer.Handle("GET /healthz", handler(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
		return nil
	}))
	outer.Handle("/", s.hostGuard(open))
	return plainHeaders(outer)
}

// handler turns an error into a problem document.
type handler func(http.ResponseWriter, *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		problemOf(err).write(w)
	}
}

func plainHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func (s *Server) backend() (*Backend, error) {
	if b := s.current.Load(); b != nil {
		for _, t := range s.o.Troubles() {
			if t.Part == PartNATS { // every answer would come from there, after a time-out that names something else
				p := newProblem(http.StatusServiceUnavailable, t.Text, t.Remedy)
				p.Retry = true
				return nil, p
			}
		}
		return b, nil
	}
	detail := "the daemon is not ready: " + s.o.Info().Phase
	next := ""
	for _, t := range s.o.Troubles() {
		detail, next = t.Text, t.Remedy
	}
	p := newProblem(503, detail, next)
	p.Retry = true
	return nil, p
}

func (s *Server) status() Status {
	st := Status{Info: s.o.Info(), Troubles: s.o.Troubles()}
	st.Ready = len(st.Troubles) == 0
	if b := s.current.Load(); b != nil {
		engine := b.Reporter.Status()
		st.Engine = &engine
	}
	st.Parts, st.Waits, st.WritesStopped = parts(&st), waits(st.Engine), stopped(&st)
	return st
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	troubles := s.o.Troubles()
	if len(troubles) == 0 {
		_, _ = w.Write([]byte("ready\n"))
		return nil
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	for _, t := range troubles {
		text := t.Text
		if t.Remedy != "" {
			text += "; " + t.Remedy
		}
		_, _ = w.Write([]byte(text + "\n"))
	}
	return nil
}
