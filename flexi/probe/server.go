package probe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The bounds of one request and of an idle connection.
const (
	maxHead  = 64 << 10
	maxBody  = 8 << 20
	idleTime = 2 * time.Minute
)

// Server answers by a script and counts what arrives. It reads requests off the connection itself.
type Server struct {
	ln net.Listener
	wg sync.WaitGroup

	mu       sync.Mutex
	steps    []step
	requests int
	commits  int
	arrived  chan struct{} // closed and replaced with every request
	conns    map[net.Conn]struct{}
	closed   bool
}

// Start listens on addr (host:port, port 0 = any) until Close.
func Start(ctx context.Context, addr string, script Script) (*Server, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("starting the scripted server: %w", err)
	}
	s := newServer(script)
	s.ln = ln
	s.wg.Go(s.accept)
	return s, nil
}

func newServer(script Script) *Server {
	return &Server{
		steps: append([]step(nil), script.steps...), arrived: make(chan struct{}), conns: make(map[net.Conn]struct{}),
	}
}

// URL is the address of the server, without a path.
func (s *Server) URL() string { return "http://" + s.ln.Addr().String() }

// Requests is how many requests arrived so far. One counts when its head has come whole, whatever becomes of its body.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Commits is how many writes were done: answered 200 or 201, or by a step that says commit.
func (s *Server) Commits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}

// Settled waits until want requests have arrived or ctx ends: a request whose client was cut off may still lie in a
// buffer.
func (s *Server) Settled(ctx context.Context, want int) {
	for {
		s.mu.Lock()
		n, arrived := s.requests, s.arrived
		s.mu.Unlock()
		if n >= want {
			return
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return
		}
	}
}

// Close ends every connection and waits for everything that the server started.
func (s *Server) Close() error {
	var err error
	s.mu.Lock()
	s.closed = true
	if s.ln != nil {
		err = s.ln.Close()
	}
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stopping the scripted server: %w", err)
	}
	return nil
}

func (s *Server) accept() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.serve(conn)
	}
}

// serve works on a connection in a goroutine that Close waits for.
func (s *Server) serve(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return
	}
	s.conns[conn] = struct{}{}
	s.wg.Go(func() {
		s.converse(conn)
		_ = conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
	})
}

// converse answers requests until a step or the client ends it. Whatever else a client sends on a connection is counted
// too: a repeat need not open a new one.
func (s *Server) converse(conn net.Conn) {
	limited := &io.LimitedReader{R: conn}
	br := bufio.NewReader(limited)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(idleTime))
		limited.N = maxHead
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		st := s.take()
		limited.N = maxBody
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		write := isWrite(req)
		if write && (st.commit || st.kind == status && (st.status == http.StatusOK || st.status == http.StatusCreated)) {
			s.commit()
		}
		if !deliver(conn, st, write) || req.Close {
			return
		}
	}
}

// take counts a request and gives it its step.
func (s *Server) take() step {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	close(s.arrived)
	s.arrived = make(chan struct{})
	if len(s.steps) == 0 {
		return step{status: http.StatusOK}
	}
	st := s.steps[0]
	switch st.times {
	case 0:
	case 1:
		s.steps = s.steps[1:]
	default:
		s.steps[0].times--
	}
	return st
}

func (s *Server) commit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
}

// isWrite tells a write from a question, which the ERP takes as a POST too when it is long.
func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasSuffix(r.URL.Path, "/query.json")
}
