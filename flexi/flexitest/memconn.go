package flexitest

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// window is how many bytes are on their way in one direction before a writer has to wait.
const window = 64 << 10

// stream is one direction of an in-memory connection. Unlike net.Pipe it holds bytes that nobody has read yet, as a
// kernel does: a server that refuses early, or a TLS alert that crosses a handshake, would block a synchronous pipe for
// good.
type stream struct {
	mu      sync.Mutex
	change  chan struct{} // closed and replaced whenever something below changes
	buf     []byte
	ended   bool // the writer closed: the reader gets what is left, then EOF
	gone    bool // the reader closed: writing fails
	reset   bool
	readBy  time.Time
	writeBy time.Time
}

func newStream() *stream { return &stream{change: make(chan struct{})} }

func (s *stream) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.change)
	s.change = make(chan struct{})
}

func (s *stream) read(p []byte) (int, error) {
	for {
		var n int
		var err error
		var wait <-chan struct{}
		var until time.Time
		s.mu.Lock()
		switch {
		case s.gone:
			err = net.ErrClosed
		case s.reset:
			err = syscall.ECONNRESET
		case expired(s.readBy):
			err = os.ErrDeadlineExceeded
		case len(s.buf) > 0 || len(p) == 0:
			n = copy(p, s.buf)
		case s.ended:
			err = io.EOF
		default:
			wait, until = s.change, s.readBy
		}
		s.mu.Unlock()
		if wait == nil {
			if n > 0 {
				s.set(func() { s.buf = s.buf[n:] })
			}
			return n, err
		}
		sleep(wait, until)
	}
}

func (s *stream) write(p []byte) (int, error) {
	sent := 0
	for {
		var n int
		var err error
		s.mu.Lock()
		wait, until := s.change, s.writeBy
		switch {
		case s.ended:
			err = net.ErrClosed
		case s.reset:
			err = syscall.ECONNRESET
		case s.gone:
			err = syscall.EPIPE
		case expired(s.writeBy):
			err = os.ErrDeadlineExceeded
		default:
			n = min(len(p)-sent, window-len(s.buf))
		}
		s.mu.Unlock()
		if err != nil {
			return sent, err
		}
		if n > 0 {
			part := p[sent : sent+n]
			s.set(func() { s.buf = append(s.buf, part...) })
			sent += n
		}
		if sent == len(p) {
			return sent, nil
		}
		if n <= 0 {
			sleep(wait, until)
		}
	}
}

func expired(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// sleep waits for a change or a deadline.
func sleep(change <-chan struct{}, until time.Time) {
	if until.IsZero() {
		<-change
		return
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-change:
	case <-t.C:
	}
}

// memConn is one end of an in-memory connection.
type memConn struct {
	in, out *stream
	readMu  sync.Mutex // one reader, one writer at a time, as the streams expect
	writeMu sync.Mutex
}

func memPipe() (client, server *memConn) {
	a, b := newStream(), newStream()
	return &memConn{in: a, out: b}, &memConn{in: b, out: a}
}

func (c *memConn) Read(p []byte) (int, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	n, err := c.in.read(p)
	return n, c.wrap("read", err)
}

func (c *memConn) Write(p []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	n, err := c.out.write(p)
	return n, c.wrap("write", err)
}

func (c *memConn) wrap(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) { // readers compare EOF, so it must stay bare
		return err
	}
	return &net.OpError{Op: op, Net: "pipe", Addr: pipeAddr{}, Err: err}
}

// Close ends the connection in order: the peer reads what is left.
func (c *memConn) Close() error {
	c.out.set(func() { c.out.ended = true })
	c.in.set(func() { c.in.gone = true })
	return nil
}

// abort ends it with a reset: what was not read yet is lost.
func (c *memConn) abort() {
	c.out.set(func() { c.out.reset, c.out.buf = true, nil })
	c.in.set(func() { c.in.reset = true })
	_ = c.Close()
}

func (c *memConn) LocalAddr() net.Addr  { return pipeAddr{} }
func (c *memConn) RemoteAddr() net.Addr { return pipeAddr{} }

func (c *memConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *memConn) SetReadDeadline(t time.Time) error {
	c.in.set(func() { c.in.readBy = t })
	return nil
}

func (c *memConn) SetWriteDeadline(t time.Time) error {
	c.out.set(func() { c.out.writeBy = t })
	return nil
}
