//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// valve holds bytes back while it is shut.
type valve struct {
	mu   sync.Mutex
	open chan struct{} // closed while bytes may pass
}

func newValve() *valve {
	v := &valve{open: make(chan struct{})}
	close(v.open)
	return v
}

func (v *valve) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.open:
		v.open = make(chan struct{})
	default:
	}
}

func (v *valve) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.open:
	default:
		close(v.open)
	}
}

func (v *valve) isShut() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.open:
		return false
	default:
		return true
	}
}

func (v *valve) pass(done <-chan struct{}) {
	v.mu.Lock()
	open := v.open
	v.mu.Unlock()
	select {
	case <-open:
	case <-done:
	}
}

// proxy stands between a daemon and a server. It sees every byte before it passes on, and can hold each direction.
type proxy struct {
	listener net.Listener
	target   string
	up, down *valve // from the daemon, to the daemon
	queue    int    // how many pieces are still read while a valve is shut

	// sends and answers are called before bytes from and to the daemon pass on.
	sends   func(c *proxied, b []byte)
	answers func(c *proxied, b []byte)

	conns atomic.Int64
	done  chan struct{}
	wg    sync.WaitGroup
}

// proxied is one connection.
type proxied struct {
	mu   sync.Mutex
	sent []byte // the first bytes from the daemon

	here, there string // both ends as the system's table names them
}

const keepSent = 1 << 20

func (c *proxied) add(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sent) < keepSent {
		c.sent = append(c.sent, b...)
	}
}

// request is what the daemon has sent so far.
func (c *proxied) request() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

// newProxy listens with small buffers, so that a body of some hundred KiB does not fit into the kernel.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	small := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		ctl := c.Control(func(fd uintptr) {
			if err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 8<<10); err == nil {
				err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 1400)
			}
		})
		if ctl != nil {
			return ctl
		}
		return err
	}}
	p := &proxy{target: target, up: newValve(), down: newValve(), done: make(chan struct{})}
	p.listener = must(small.Listen(context.Background(), "tcp", "127.0.0.1:0"))(t, "listening for a proxy")
	return p
}

// run begins to serve; the hooks are set by now.
func (p *proxy) run(t *testing.T) {
	p.wg.Go(p.serve)
	t.Cleanup(func() {
		close(p.done)
		_ = p.listener.Close()
		p.wg.Wait()
	})
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.carry(client) })
	}
}

func (p *proxy) carry(client net.Conn) {
	p.conns.Add(1)
	defer p.conns.Add(-1)
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	ended := make(chan struct{})
	defer close(ended)
	p.wg.Go(func() {
		select {
		case <-p.done: // breaks both directions off
			_, _ = client.Close(), server.Close()
		case <-ended:
		}
	})
	c := &proxied{here: tableAddress(client.LocalAddr()), there: tableAddress(client.RemoteAddr())}
	back := make(chan struct{})
	p.wg.Go(func() {
		defer close(back)
		p.copy(client, server, p.down, func(b []byte) {
			if p.answers != nil {
				p.answers(c, b)
			}
		})
		_ = client.(*net.TCPConn).CloseWrite()
	})
	p.copy(server, client, p.up, func(b []byte) {
		c.add(b)
		if p.sends != nil {
			p.sends(c, b)
		}
	})
	// The daemon is done with it: the server must see that a body was cut.
	_ = server.(*net.TCPConn).CloseWrite()
	<-back
}

func (p *proxy) copy(to, from net.Conn, v *valve, see func([]byte)) {
	pieces := make(chan []byte, p.queue)
	written := make(chan struct{})
	p.wg.Go(func() {
		defer close(written)
		for b := range pieces {
			v.pass(p.done)
			if _, err := to.Write(b); err != nil {
				_ = from.Close()
			}
		}
	})
	for {
		b := make([]byte, 4096)
		n, err := from.Read(b)
		if n > 0 {
			see(b[:n])
			pieces <- b[:n]
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	<-written
}

// handed is how many bytes of a request the daemon has given to its kernel: what the proxy has read, and what waits in the
// buffers of both ends. What a kernel has will arrive whatever becomes of the process.
func (p *proxy) handed(t *testing.T, c *proxied) int {
	t.Helper()
	table := must(os.ReadFile("/proc/net/tcp"))(t, "reading the table of connections")
	waiting := 0
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		var tx, rx int
		_, _ = fmt.Sscanf(f[4], "%x:%x", &tx, &rx)
		switch { // the addresses are hexadecimal, the port after the colon
		case f[1] == c.here && f[2] == c.there:
			waiting += rx
		case f[1] == c.there && f[2] == c.here:
			waiting += tx
		}
	}
	return len(c.request()) + waiting
}

// tableAddress is how /proc/net/tcp writes an address of the loopback.
func tableAddress(a net.Addr) string {
	return fmt.Sprintf("0100007F:%04X", a.(*net.TCPAddr).Port)
}
