package flexi

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSendOnTheWire(t *testing.T) {
	s := startRaw(t, answering(201, "", okBody))
	var seen []Request
	c := testClient(t, s.url(), func(o *Options) { o.Observe = func(r Request) { seen = append(seen, r) } })
	p := mustPrepare(t, createWrite())
	r := send(t, c, p, permit("a1"))

	if r.Outcome != Accepted || r.Err != nil || r.Docs[0].FlexiID != "805" || r.Docs[0].Number != "FV-1" {
		t.Fatalf("result: %+v", r)
	}
	conns, bytes, reqs := s.seen()
	if conns != 1 || len(reqs) != 1 {
		t.Fatalf("%d connections, %d requests; want one of each", conns, len(reqs))
	}
	q := reqs[0]
	if !strings.HasPrefix(q.head, "POST /c/demo/faktura-vydana.json?code-in-response=true&auth=http HTTP/1.1\r\n") {
		t.Errorf("request line: %q", strings.SplitN(q.head, "\r\n", 2)[0])
	}
	for name, want := range map[string]string{
		"Connection": "close", "Authorization": "Basic ZmxleGlkOnRham5l", "Content-Type": "application/json",
		"Idempotency-Key": "", "X-Idempotency-Key": "", "Expect": "", "Accept-Encoding": "", "Transfer-Encoding": "",
	} {
		if got := q.header(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if string(q.body) != string(p.Body()) {
		t.Errorf("body: %s", q.body)
	}
	if len(seen) != 1 || seen[0].Sent != bytes || seen[0].Kind != "write" || seen[0].Outcome != "accepted" ||
		seen[0].Status != 201 || strings.Contains(seen[0].URL, "127.0.0.1") {
		t.Errorf("observed %+v, the server has %d bytes", seen, bytes)
	}
}

// Every fault after the connection stands: whatever the server does, there is one request, and what may have been
// committed is a maybe.
func TestSendFaults(t *testing.T) {
	large := sendFault{"answer beyond the limit", answering(201, "", okBody+strings.Repeat(" ", maxWriteAnswer)), Maybe, NoAnswer}
	for _, tc := range append(sendFaults(), large) {
		t.Run(tc.name, func(t *testing.T) {
			s := startRaw(t, tc.handle)
			r := send(t, testClient(t, s.url()), mustPrepare(t, createWrite()), permit("a1"))
			if r.Outcome != tc.outcome || r.Speaker != tc.speaker {
				t.Errorf("%s by %s, want %s by %s: %v", r.Outcome, r.Speaker, tc.outcome, tc.speaker, r.Err)
			}
			if conns, _, reqs := s.seen(); conns != 1 || len(reqs) != 1 {
				t.Errorf("%d connections and %d requests at the server, want one of each", conns, len(reqs))
			}
			if (r.Err == nil) != (tc.outcome == Accepted) || OutcomeOf(r.Err) != r.Outcome {
				t.Errorf("error %v for %s", r.Err, r.Outcome)
			}
		})
	}
}

func TestSendIsNotSentWhenNothingLeft(t *testing.T) {
	cases := []struct {
		name   string
		handle func(*rawConn)
	}{
		{"closed before the request", (*rawConn).hangUp},
		{"reset before the request", (*rawConn).reset},
		{"ghost answer", func(c *rawConn) { c.answer(201, okBody) }},
		{"ghost 408", func(c *rawConn) { c.answer(408, ""); c.hangUp() }},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := startRaw(t, tc.handle)
			c := testClient(t, s.url(), func(o *Options) { o.Observe = func(r Request) { t.Errorf("observed %+v", r) } })
			cn, err := c.Dial(t.Context())
			if err != nil { // the reset was faster than the handshake
				if OutcomeOf(err) != NotSent {
					t.Error(err)
				}
				return
			}
			waitClosed(t, cn)
			r := cn.Send(t.Context(), mustPrepare(t, createWrite()), permit("a1"))
			if r.Outcome != NotSent || r.Request.Sent != 0 {
				t.Errorf("%s with %d bytes: %v", r.Outcome, r.Request.Sent, r.Err)
			}
			if _, bytes, _ := s.seen(); bytes != 0 {
				t.Errorf("the server has %d bytes of a request that was not sent", bytes)
			}
		})
	}
}

// A server that resets in the middle of a large body has bytes of it; that is a maybe, since what it does with half a
// request is its own affair.
func TestSendResetInTheMiddle(t *testing.T) {
	s := startRaw(t, func(c *rawConn) {
		_, _ = c.br.Peek(100)
		c.reset()
	})
	r := send(t, testClient(t, s.url(), smallBuffers), mustPrepare(t, pad(1<<20)), permit("a1"))
	if r.Outcome != Maybe || r.Request.Sent == 0 {
		t.Errorf("%s with %d bytes: %v", r.Outcome, r.Request.Sent, r.Err)
	}
	if _, _, reqs := s.seen(); len(reqs) != 0 {
		t.Errorf("%d whole requests", len(reqs))
	}
}

func TestSendEarlySuccessProvesNothing(t *testing.T) {
	over := make(chan struct{})
	s := startRaw(t, func(c *rawConn) {
		_, _ = c.br.Peek(100)
		c.answer(201, okBody)
		<-over // neither reads on nor hangs up: the answer is all that the client has
		c.hangUp()
	})
	defer close(over)
	r := send(t, testClient(t, s.url(), smallBuffers), mustPrepare(t, pad(4<<20)), permit("a1"))
	if r.Outcome != Maybe || r.Status != 201 || !strings.Contains(r.Err.Error(), "sent whole") {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
}

// Silence, in virtual time: the first byte of the answer has nine tenths of the write's time.
func TestSendSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := testClient(t, "http://erp.test", func(o *Options) {
			o.WriteTimeout = 0
			o.Dial = func(context.Context, string, string) (net.Conn, error) { return client, nil }
		})
		done := make(chan struct{})
		go func() { // reads all and says nothing
			defer close(done)
			buf := make([]byte, 4096)
			for {
				if _, err := server.Read(buf); err != nil {
					return
				}
			}
		}()
		start := time.Now()
		r := send(t, c, mustPrepare(t, createWrite()), permit("a1"))
		if took := time.Since(start); r.Outcome != Maybe || took != 180*time.Second {
			t.Errorf("%s after %s: %v", r.Outcome, took, r.Err)
		}
		if !strings.Contains(r.Err.Error(), "no first byte") {
			t.Errorf("error does not say why: %v", r.Err)
		}
		<-done
	})
}

func TestSendStopsWhenTheCallerDoes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := startRaw(t, func(c *rawConn) {
		if _, err := c.request(); err == nil {
			cancel()
		}
	})
	cn, err := testClient(t, s.url()).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r := cn.Send(ctx, mustPrepare(t, createWrite()), permit("a1")); r.Outcome != Maybe || !errors.Is(r.Err, context.Canceled) {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
}

func TestSendAfterTheCallerLeft(t *testing.T) {
	s := startRaw(t, answering(201, "", okBody))
	c := testClient(t, s.url())
	for range 20 { // the transport would choose by chance between the request and the cancellation
		cn, err := c.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r := cn.Send(ctx, mustPrepare(t, createWrite()), permit("a1")); r.Outcome != NotSent {
			t.Errorf("%s: %v", r.Outcome, r.Err)
		}
	}
	if _, bytes, _ := s.seen(); bytes != 0 {
		t.Errorf("the server has %d bytes", bytes)
	}
}

func TestDialRefused(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	_, err = testClient(t, "http://"+ln.Addr().String()).Dial(t.Context())
	if e := asError(t, err); e.Outcome != NotSent || e.MaybeCommitted() || OutcomeOf(err) != NotSent {
		t.Errorf("%v is %s", err, e.Outcome)
	}
}

// The environment's proxy is another way to the ERP that nobody asked for.
func TestDialIgnoresTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.test:3128")
	t.Setenv("http_proxy", "http://proxy.test:3128")
	var asked atomic.Value
	c := testClient(t, "http://erp.test", func(o *Options) {
		o.Dial = func(_ context.Context, _, addr string) (net.Conn, error) {
			asked.Store(addr)
			return nil, errors.New("no network in tests")
		}
	})
	if _, err := c.Dial(t.Context()); err == nil || asked.Load() != "erp.test:80" {
		t.Errorf("dialled %v, %v", asked.Load(), err)
	}
}
