package flexitest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Options of a Server; the zero value is a working ERP.
type Options struct {
	Company, User, Password string // "firma", "flexid", "secret"
	CompanyName             string // as people know it: "Ukázková firma s.r.o."
	Addr                    string // where Start listens: "127.0.0.1:0"
	TLS                     bool   // speak TLS with a certificate of its own, as own installations do
	// AllowUsedNumbers starts with uniqueness off, so that a doubled write shows as two records. See Server.AllowUsedNumbers.
	AllowUsedNumbers bool
	ConcurrencyLimit int // more requests than this at once are answered 429; 0 = no limit
	// SessionIdle is how long a session lives without a request: 30 minutes.
	SessionIdle time.Duration
	Seed        uint64 // decides Probability and the drawn uuids
	KeepBody    int    // bytes of a request body that the log keeps: 65536
	Now         func() time.Time
}

// Server is a fake ABRA Flexi. All methods may be called from several goroutines.
type Server struct {
	opt     Options
	zone    *time.Location
	catalog *catalog
	cert    tls.Certificate
	leaf    *x509.Certificate

	http   *http.Server
	pipes  *pipeListener
	wg     sync.WaitGroup
	done   chan struct{}
	series chan struct{} // held by the one write that may commit, as the row of a number series is

	mu       sync.Mutex
	closed   bool
	serving  bool // the in-memory listener is served
	tcp      net.Listener
	addr     string
	conns    map[net.Conn]struct{}
	store    *store
	users    map[string]string
	sessions map[string]*session // by id
	refresh  map[string]string   // users by refresh token
	stale    map[string]bool
	modes    modes
	faults   faultPlan
	log      requestLog
	inflight int
	late     int
	logins   int

	companyID, companyMade string
	uuids                  uint64
}

// New makes a server that is not listening yet; Dial works at once. It has one company, one user and the usual code
// lists. It panics if no key for the certificate can be made.
func New(opt Options) *Server {
	opt = opt.withDefaults()
	s := &Server{
		opt: opt, catalog: newCatalog(), store: newStore(),
		done: make(chan struct{}), series: make(chan struct{}, 1), conns: map[net.Conn]struct{}{},
		users: map[string]string{opt.User: opt.Password}, sessions: map[string]*session{}, refresh: map[string]string{}, stale: map[string]bool{},
		log: newRequestLog(), modes: newModes(opt),
		companyID: "1", companyMade: "2020-01-02T08:00:00.000+01:00",
	}
	s.zone = loadZone()
	s.pipes = newPipeListener()
	if opt.TLS {
		s.cert, s.leaf = newCertificate()
	}
	s.http = &http.Server{
		Handler:   http.HandlerFunc(s.serve),
		ErrorLog:  log.New(io.Discard, "", 0), // broken connections are what this server is for
		ConnState: s.trackConn,
	}
	s.seed()
	return s
}

func (o Options) withDefaults() Options {
	def := func(v *string, to string) {
		if *v == "" {
			*v = to
		}
	}
	def(&o.Company, "firma")
	def(&o.User, "flexid")
	def(&o.Password, "secret")
	def(&o.CompanyName, "Ukázková firma s.r.o.")
	def(&o.Addr, "127.0.0.1:0")
	if o.SessionIdle == 0 {
		o.SessionIdle = 30 * time.Minute
	}
	if o.KeepBody == 0 {
		o.KeepBody = 64 << 10
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// loadZone: dates carry the zone of the server; without a zone database winter time is good enough for a fake.
func loadZone() *time.Location {
	if loc, err := time.LoadLocation("Europe/Prague"); err == nil {
		return loc
	}
	return time.FixedZone("CET", 3600)
}

func (s *Server) now() time.Time { return s.opt.Now() }

// Start listens on Options.Addr. It may be called once; Close ends what it began.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("start fake Flexi: closed")
	}
	if s.addr != "" {
		return errors.New("start fake Flexi: it listens already")
	}
	if err := s.listen(s.opt.Addr); err != nil {
		return fmt.Errorf("start fake Flexi: %w", err)
	}
	s.addr = s.tcp.Addr().String()
	return nil
}

// listen needs mu.
func (s *Server) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s.tcp = l
	s.wg.Go(func() { _ = s.http.Serve(&refusingListener{Listener: l, s: s}) })
	return nil
}

// URL is the address of the server, without a path. Before Start it names a host that only Dial knows.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	scheme, host := "http", "flexi.test:5434"
	if s.opt.TLS {
		scheme = "https"
	}
	if s.addr != "" {
		host = s.addr
	}
	return scheme + "://" + host
}

// Dial connects in memory, whatever the address says. It uses no sockets, so it works inside testing/synctest; otherwise
// it behaves as TCP does: bytes may be on their way, a reset loses them. While the server is down it fails as a closed
// port does.
func (s *Server) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s.mu.Lock()
	if s.closed || s.modes.down {
		s.mu.Unlock()
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	if !s.serving {
		s.serving = true
		s.wg.Go(func() { _ = s.http.Serve(&refusingListener{Listener: s.pipes, s: s}) })
	}
	s.mu.Unlock()
	return s.pipes.dial(ctx)
}

// Certificate is the one that the server shows, nil without Options.TLS.
func (s *Server) Certificate() *x509.Certificate { return s.leaf }

// Close ends hanging requests, drops commits that are still to come and waits for everything that the server started.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.done)
	s.mu.Unlock()
	_ = s.http.Close()
	_ = s.pipes.Close()
	s.wg.Wait()
}

// enter counts a request in, unless the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// pause waits for d or until the server closes; it says whether the whole time passed.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.done:
	}
	return false
}

// newUUID needs mu. It is drawn from the seed, so that two runs of one test see the same.
func (s *Server) newUUID() string {
	s.uuids++
	a, b := mix(s.opt.Seed, s.uuids), mix(s.opt.Seed+1, s.uuids)
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

// mix spreads a seed and a number over 64 bits.
func mix(seed, n uint64) uint64 {
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], seed)
	binary.LittleEndian.PutUint64(b[8:], n)
	_, _ = h.Write(b[:])
	z := h.Sum64()
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
