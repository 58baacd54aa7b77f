package flexi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fire is a TLS server that does to every connection whatever has made a client of net/http send a request twice, or
// call one unsent that was not. It parses requests itself.
type fire struct {
	cert tls.Certificate

	mu    sync.Mutex
	r     *rand.Rand
	conns map[string][]*burnt // by the client's address, in order of their coming: ports are used again
	dials map[string][]int    // the numbers of the writes that dialled from an address, in order
}

// burnt is what the server has of one connection.
type burnt struct {
	bytes     atomic.Int64 // of requests, below them the TLS is gone
	requests  atomic.Int64 // whole ones
	committed atomic.Bool
	protocol  atomic.Value // that ALPN chose
}

func (f *fire) intn(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.r.IntN(n)
}

func (f *fire) chance(n int) bool { return f.intn(n) == 0 }

// wrap gives a connection its TLS.
func (f *fire) wrap(conn net.Conn) net.Conn {
	b := &burnt{}
	f.mu.Lock()
	from := conn.RemoteAddr().String()
	f.conns[from] = append(f.conns[from], b)
	f.mu.Unlock()
	conf := &tls.Config{
		Certificates: []tls.Certificate{f.cert},
		NextProtos:   [][]string{{"h2", "http/1.1"}, {"h2", "http/1.1"}, {"h2", "http/1.1"}, {"http/1.1"}, nil}[f.intn(5)],
		VerifyConnection: func(s tls.ConnectionState) error {
			b.protocol.Store(s.NegotiatedProtocol)
			return nil
		},
	}
	switch f.intn(30) {
	case 0:
		conf.NextProtos = []string{"h2"}
	case 1:
		conf.ClientAuth = tls.RequireAnyClientCert // with TLS 1.3 the refusal comes after the request
	case 2, 3, 4:
		conf.MaxVersion = tls.VersionTLS12
	}
	under := conn
	if f.chance(6) { // somewhere in the handshake, the request or the answer
		under = &cut{Conn: conn, in: 1 + f.intn(6000), out: f.intn(4000)}
	}
	return &burning{Conn: tls.Server(under, conf), tcp: conn, b: b}
}

// cut resets a connection after so many bytes in one of the directions.
type cut struct {
	net.Conn
	in, out int
}

func (c *cut) Read(p []byte) (int, error) {
	if c.in <= 0 {
		return 0, resetNow(c.Conn)
	}
	n, err := c.Conn.Read(p[:min(len(p), c.in)])
	c.in -= n
	return n, err
}

func (c *cut) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p[:min(len(p), c.out)])
	if c.out -= n; err == nil && n < len(p) {
		err = resetNow(c.Conn)
	}
	return n, err
}

func resetNow(c net.Conn) error {
	if tc, ok := c.(*net.TCPConn); ok {
		_ = tc.SetLinger(0)
	}
	_ = c.Close()
	return errors.New("cut")
}

// burning counts what comes out of the TLS.
type burning struct {
	net.Conn
	tcp net.Conn
	b   *burnt
}

func (c *burning) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.b.bytes.Add(int64(n))
	return n, err
}

// listener puts fire on every connection.
type listener struct {
	net.Listener
	f *fire
}

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.f.wrap(conn), nil
}

// handle plays one fault, chosen by chance.
func (f *fire) handle(c *rawConn) {
	burning := c.Conn.(*burning)
	gone := func(orderly bool) {
		c.gone = true
		if orderly {
			_ = c.Close() // with an alert
		} else {
			_ = resetNow(burning.tcp)
		}
	}
	switch f.intn(20) {
	case 0: // in the first byte of the handshake: before it the client might not know that it is connected
		_, _ = burning.tcp.Read(make([]byte, 1))
		if f.chance(2) {
			_, _ = io.WriteString(burning.tcp, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}
		gone(false)
		return
	case 1, 2: // idle: the client is still about to write, or just does
		_ = burning.Conn.(*tls.Conn).Handshake()
		sleep(context.Background(), time.Duration(f.intn(2000))*time.Microsecond)
		gone(f.chance(2))
		return
	case 3: // ghosts: bytes before the request
		switch f.intn(3) {
		case 0:
			c.answer(201, okBody)
		case 1:
			c.answer(408, "")
			gone(true)
		case 2:
			_, _ = c.Write([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")) // SETTINGS, GOAWAY
			gone(true)
		}
		return
	case 4: // in the middle, by an answer or without
		all := earlyFaults(1 + f.intn(6000))
		all[2+f.intn(len(all)-2)](c)
		return
	}
	f.answer(c, burning.b, gone)
}

// answer reads the request and does something with it; what it says fits what it did only now and then.
func (f *fire) answer(c *rawConn, b *burnt, gone func(orderly bool)) {
	r, err := c.request()
	if err != nil {
		return
	}
	b.requests.Add(1)
	b.committed.Store(f.chance(2))
	name := nameIn(r.body)
	good := strings.NewReplacer("k1", name, "FV-1", strings.ToUpper(name)).Replace(okBody)
	switch n := f.intn(8); {
	case n == 0:
		gone(f.chance(2))
	case n == 1 && f.chance(4):
		_, _ = io.Copy(io.Discard, c) // silence until the client gives up
		gone(true)
	case b.committed.Load() && n < 5:
		c.answer(201, good)
	case b.committed.Load() && n == 5:
		c.answerWith([]int{301, 302, 303, 307, 308}[f.intn(5)], "Location: https://"+c.LocalAddr().String()+"/c/demo/x.json\r\n", good)
	case b.committed.Load() && n == 6:
		_, _ = fmt.Fprintf(c, "HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s", len(good), good[:f.intn(len(good))])
		gone(f.chance(2))
	case !b.committed.Load() && n < 4:
		c.answerWith([]int{429, 421, 425, 401, 400, 400, 403, 403}[f.intn(8)], "Retry-After: 0\r\n", errorsBody)
	default: // these do not say what became of it, or say it to nobody
		unclear := slices.DeleteFunc(sendFaults(), func(s sendFault) bool { return s.outcome != Maybe })
		c.back = &r
		unclear[f.intn(len(unclear))].handle(c)
	}
}

func nameIn(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte(`"ext:FLEXID:`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}

// written is one write as the client saw it.
type written struct {
	name    string
	outcome Outcome
	sent    int64
}

// TestTLSUnderFire: whatever happens to the connections, the transport sends no request twice, and what is called not
// sent has not reached the server with a single byte.
func TestTLSUnderFire(t *testing.T) {
	seeds, writes := 1, 500
	if os.Getenv("FLEXID_SLOW") == "1" {
		seeds, writes = 10, 1000
	}
	cert, fp := testCert(t)
	counts := make(map[Outcome]int)
	for seed := range uint64(seeds) {
		f := &fire{cert: cert, r: rand.New(rand.NewPCG(seed, 4)), conns: map[string][]*burnt{}, dials: map[string][]int{}}
		all := f.burn(t, fp, writes)
		for _, w := range all {
			counts[w.outcome]++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("seeds 0 to %d, %d writes each: %v", seeds-1, writes, counts)
	for _, o := range []Outcome{Maybe, NotSent, Refused, Rejected, Blocked, Accepted} {
		if counts[o] == 0 {
			t.Errorf("no write ended %s: the run proves nothing about it", o)
		}
	}
}

// burn sends documents from several clients at once and compares both sides when all is over.
func (f *fire) burn(t *testing.T, fp string, n int) []written {
	const clients = 8
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serveRaw(t, listener{ln, f}, f.handle)
	all := make([]written, n)
	var observed atomic.Int64
	var wg sync.WaitGroup
	for k := range clients {
		wg.Go(func() {
			now := k
			c := testClient(t, secure(s), func(o *Options) {
				o.CertSHA256, o.WriteTimeout = fp, 100*time.Millisecond
				o.Observe = func(Request) { observed.Add(1) }
				o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					// Without ctx: a dial that is given up may stand at the server and be nobody's.
					conn, err := new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, addr)
					if err == nil {
						f.dialled(conn.LocalAddr().String(), now)
					}
					return conn, err
				}
			})
			for ; now < n; now += clients {
				all[now] = f.write(t, c, fmt.Sprint("n", now))
			}
		})
	}
	wg.Wait()
	_ = ln.Close()
	s.wg.Wait()
	_, _, reqs := s.seen()
	f.judge(t, all, reqs, observed.Load())
	return all
}

func (f *fire) dialled(from string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials[from] = append(f.dials[from], n)
}

// write sends one document once, by a caller that is slow after it has dialled, or gives up, now and then.
func (f *fire) write(t *testing.T, c *Client, name string) written {
	w := Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: NewExternalID("FLEXID", "", name), Number: name,
		Body: fmt.Appendf(nil, `{"kod":%q,"popis":%q}`, name, strings.Repeat("x", f.intn(3)*3000))}}}
	ctx, cancel := t.Context(), context.CancelFunc(func() {})
	if f.chance(8) {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(f.intn(4000))*time.Microsecond)
	}
	defer cancel()
	cn, err := c.Dial(ctx)
	if err != nil {
		return written{name, OutcomeOf(err), 0}
	}
	defer cn.Close()
	if f.chance(4) {
		sleep(t.Context(), time.Duration(f.intn(2000))*time.Microsecond)
	}
	r := cn.Send(ctx, mustPrepare(t, w), permit(name))
	return written{name, r.Outcome, r.Request.Sent}
}

// judge compares what the client says of each write with what the server has of it.
func (f *fire) judge(t *testing.T, all []written, reqs []rawRequest, observed int64) {
	touched := make(map[int]int) // connections by write on which at least a byte of a request came
	total := int64(0)
	for from, conns := range f.conns {
		if len(conns) > len(f.dials[from]) {
			t.Fatalf("%d connections from %s of %d dials", len(conns), from, len(f.dials[from]))
		}
		for i, b := range conns {
			n := f.dials[from][i]
			if got := b.protocol.Load(); got == "h2" {
				t.Errorf("%s: HTTP/2 was chosen", all[n].name)
			}
			if b.bytes.Load() > 0 {
				touched[n]++
				total++
			}
			f.compare(t, all[n], b)
		}
	}
	for n, times := range touched {
		if times > 1 {
			t.Errorf("%s was sent %d times", all[n].name, times)
		}
	}
	if total > observed {
		t.Errorf("%d requests reached the server, %d were observed", total, observed)
	}
	wireRules(t, reqs)
}

func (f *fire) compare(t *testing.T, w written, b *burnt) {
	bytes, requests, committed := b.bytes.Load(), b.requests.Load(), b.committed.Load() && b.requests.Load() > 0
	switch {
	case w.outcome == NotSent && bytes > 0:
		t.Errorf("%s: not sent, but the server has %d bytes", w.name, bytes)
	case bytes > w.sent:
		t.Errorf("%s: %d bytes sent, but the server has %d", w.name, w.sent, bytes)
	case requests > 1:
		t.Errorf("%s: %d requests on one connection", w.name, requests)
	case committed && w.outcome != Accepted && w.outcome != Maybe:
		t.Errorf("%s: committed, but %s", w.name, w.outcome)
	case w.outcome == Accepted && !committed:
		t.Errorf("%s: accepted, but not committed", w.name)
	}
}

// wireRules: each document came whole at most once, and nothing in its request invites anyone to repeat it.
func wireRules(t *testing.T, reqs []rawRequest) {
	came := make(map[string]int)
	for _, r := range reqs {
		name := nameIn(r.body)
		if came[name]++; came[name] > 1 {
			t.Errorf("%s came %d times", name, came[name])
		}
		if !strings.HasPrefix(r.head, "POST ") || r.header("Connection") != "close" || r.header("Expect") != "" ||
			r.header("Idempotency-Key") != "" || r.header("X-Idempotency-Key") != "" {
			t.Errorf("%s: %s", name, r.head)
		}
	}
}
