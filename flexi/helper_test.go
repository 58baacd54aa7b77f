package flexi

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
	"sync/atomic"
	"testing"
	"time"
)

// rawServer parses bytes itself and counts them: a server built on net/http would hide what a client sends twice.
type rawServer struct {
	ln     net.Listener
	handle func(*rawConn)

	mu       sync.Mutex
	conns    int
	bytes    int64
	requests []rawRequest
	wg       sync.WaitGroup
}

type rawRequest struct {
	head string
	body []byte
}

func (r rawRequest) header(name string) string {
	for _, line := range strings.Split(r.head, "\r\n")[1:] {
		k, v, _ := strings.Cut(line, ":")
		if strings.EqualFold(k, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func startRaw(t testing.TB, handle func(*rawConn)) *rawServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveRaw(t, ln, handle)
}

func serveRaw(t testing.TB, ln net.Listener, handle func(*rawConn)) *rawServer {
	s := &rawServer{ln: ln, handle: handle}
	s.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		s.wg.Wait()
	})
	return s
}

func (s *rawServer) serve(conn net.Conn) {
	defer conn.Close()
	s.mu.Lock()
	s.conns++
	s.mu.Unlock()
	if tc, ok := conn.(*net.TCPConn); ok {
		_ = tc.SetReadBuffer(4 << 10) // so that a request of a megabyte does not fit into the kernel
	}
	c := &rawConn{Conn: conn, s: s}
	c.br = bufio.NewReader(counting{c})
	s.handle(c)
	if !c.gone { // whatever else the client sends is counted too
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		for {
			if _, err := c.request(); err != nil {
				return
			}
		}
	}
}

func (s *rawServer) url() string { return "http://" + s.ln.Addr().String() }

func (s *rawServer) seen() (conns int, bytes int64, requests []rawRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns, s.bytes, append([]rawRequest(nil), s.requests...)
}

type rawConn struct {
	net.Conn
	s    *rawServer
	br   *bufio.Reader
	read atomic.Int64 // bytes
	gone bool
	back *rawRequest // was read before, for whoever asks next
}

type counting struct{ c *rawConn }

func (r counting) Read(p []byte) (int, error) {
	n, err := r.c.Conn.Read(p)
	r.c.read.Add(int64(n))
	r.c.s.mu.Lock()
	r.c.s.bytes += int64(n)
	r.c.s.mu.Unlock()
	return n, err
}

// request reads one whole request and counts it.
func (c *rawConn) request() (rawRequest, error) {
	if r := c.back; r != nil {
		c.back = nil
		return *r, nil
	}
	var head strings.Builder
	length := 0
	for {
		line, err := c.br.ReadString('\n')
		if err != nil {
			return rawRequest{}, err
		}
		if line == "\r\n" {
			break
		}
		head.WriteString(line)
		if k, v, _ := strings.Cut(line, ":"); strings.EqualFold(k, "Content-Length") {
			if _, err := fmt.Sscan(v, &length); err != nil {
				return rawRequest{}, err
			}
		}
	}
	r := rawRequest{head: head.String(), body: make([]byte, length)}
	if _, err := io.ReadFull(c.br, r.body); err != nil {
		return rawRequest{}, err
	}
	c.s.mu.Lock()
	c.s.requests = append(c.s.requests, r)
	c.s.mu.Unlock()
	return r, nil
}

// reset closes the connection with a RST.
func (c *rawConn) reset() {
	if tc, ok := c.Conn.(*net.TCPConn); ok {
		_ = tc.SetLinger(0)
	}
	c.hangUp()
}

func (c *rawConn) hangUp() {
	c.gone = true
	_ = c.Close()
}

// answer writes a whole answer with a length.
func (c *rawConn) answer(status int, body string) { c.answerWith(status, "", body) }

func (c *rawConn) answerWith(status int, header, body string) {
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), header, len(body), body)
}

// answering is a handler that reads a request and gives this answer.
func answering(status int, header, body string) func(*rawConn) {
	return func(c *rawConn) {
		if _, err := c.request(); err == nil {
			c.answerWith(status, header, body)
		}
	}
}

const (
	testExt      = ExternalID("ext:FLEXID:k1")
	noImportBody = `{"winstrom":{"@version":"1.0","success":"false","message":"Import není povolen.","message@messageCode":"importNotAllowed"}}`
	okBody       = `{"winstrom":{"@version":"1.0","success":"true","stats":{"created":"1","updated":"0","deleted":"0","skipped":"0",` +
		`"failed":"0"},"results":[{"id":"805","code":"FV-1","request-id":"ext:FLEXID:k1"}]}}`
	errorsBody = `{"winstrom":{"@version":"1.0","success":"false","stats":{"created":"0","failed":"1"},` +
		`"results":[{"errors":[{"message":"Je očekáváno číselné ID","for":"typDokl","code":"PROP"}]}]}}`
	messageBody = `{"winstrom":{"@version":"1.0","success":"false","message":"Nelze provést"}}`
	existsBody  = `{"winstrom":{"success":"false","results":[{"errors":[{"message":"Import není povolen",` +
		`"messageCode":"importXmlUpdateNeniPovolen"}]}]}}`
	htmlBody = `<!DOCTYPE html><html><body>login</body></html>`
)

func createWrite() Write {
	return Write{Evidence: "faktura-vydana", Op: Create, Docs: []Doc{{
		Ext: testExt, Number: "FV-1", Body: []byte(`{"kod":"FV-1","typDokl":"code:FAKTURA","varSym":"1"}`),
	}}}
}

func mustPrepare(t testing.TB, w Write) Prepared {
	t.Helper()
	p, err := Prepare(w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// testOptions are valid options for a server; change them with more.
func testOptions(url string, more ...func(*Options)) Options {
	o := Options{URL: url, Company: "demo", User: "flexid", Password: "tajne", WriteTimeout: 5 * time.Second,
		ReadTimeout: 5 * time.Second, Rand: func() float64 { return 0 }}
	for _, f := range more {
		f(&o)
	}
	return o
}

func testClient(t testing.TB, url string, more ...func(*Options)) *Client {
	t.Helper()
	c, err := New(testOptions(url, more...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func permit(attempt string) Permit { return Permit{Attempt: attempt, Claimed: time.Now()} }

// send dials and sends once.
func send(t testing.TB, c *Client, p Prepared, pm Permit) Result {
	t.Helper()
	cn, err := c.Dial(t.Context())
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer cn.Close()
	return cn.Send(t.Context(), p, pm)
}

// waitClosed returns when the connection has noticed that the server did something to it.
func waitClosed(t testing.TB, cn *Conn) {
	t.Helper()
	done := make(chan struct{})
	var once sync.Once
	cn.cc.SetStateHook(func(cc *http.ClientConn) {
		if cc.Err() != nil {
			once.Do(func() { close(done) })
		}
	})
	if cn.cc.Err() != nil {
		return
	}
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("the connection did not notice")
	}
}

// smallBuffers keeps what the client has written in its own hands.
func smallBuffers(o *Options) {
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if tc, ok := conn.(*net.TCPConn); ok {
			_ = tc.SetWriteBuffer(4 << 10)
		}
		return conn, err
	}
}

// pad makes a body larger than one piece and one socket buffer round.
func pad(n int) Write {
	w := createWrite()
	w.Docs[0].Body = []byte(`{"kod":"FV-1","popis":"` + strings.Repeat("x", n) + `"}`)
	return w
}

func asError(t testing.TB, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error is a %T, not an *Error: %v", err, err)
	}
	return e
}

// pipes is a server in memory, for tests in virtual time: every dial is a connection of its own.
func pipes(handle func(*rawConn)) (*rawServer, func(*Options)) {
	s := &rawServer{handle: handle}
	return s, func(o *Options) {
		o.Dial = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			s.wg.Go(func() { s.serve(server) })
			return client, nil
		}
	}
}
