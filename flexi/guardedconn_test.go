package flexi

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clock is a clock that a test moves.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time         { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) move(d time.Duration)   { c.ahead.Add(int64(d)) }
func (c *clock) options(o *Options)     { o.Now = c.now }
func (c *clock) wall() time.Time        { return c.now().Round(0) }
func (c *clock) wallOptions(o *Options) { o.Now = c.wall }

func TestSendRefusesAnOldClaim(t *testing.T) {
	cases := []struct {
		name      string
		old       time.Duration
		firstByte time.Duration
		want      Outcome
	}{
		{"fresh", 0, 0, Accepted},
		{"within the default", 4 * time.Second, 0, Accepted},
		{"beyond the default", 5*time.Second + time.Millisecond, 0, NotSent},
		{"within its own limit", 7 * time.Second, 8 * time.Second, Accepted},
		{"beyond its own limit", 3 * time.Second, 2 * time.Second, NotSent},
	}
	for _, tc := range cases {
		for name, opts := range map[string]func(*clock) func(*Options){
			"monotonic": func(c *clock) func(*Options) { return c.options },
			"wall":      func(c *clock) func(*Options) { return c.wallOptions },
		} {
			t.Run(tc.name+", "+name, func(t *testing.T) {
				s, cl := startRaw(t, answering(201, "", okBody)), &clock{}
				c := testClient(t, s.url(), opts(cl), func(o *Options) { o.WriteTimeout = time.Minute })
				cn, err := c.Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				pm := Permit{Attempt: "a1", Claimed: cl.now(), FirstByte: tc.firstByte}
				cl.move(tc.old)
				r := cn.Send(t.Context(), mustPrepare(t, createWrite()), pm)
				if r.Outcome != tc.want {
					t.Errorf("%s: %v", r.Outcome, r.Err)
				}
				if tc.want == NotSent && !errors.Is(r.Err, errClaimOld) {
					t.Errorf("error does not say why: %v", r.Err)
				}
				if _, bytes, _ := s.seen(); (bytes == 0) != (tc.want == NotSent) {
					t.Errorf("%s, but the server has %d bytes", tc.want, bytes)
				}
			})
		}
	}
}

func TestSendNeedsAClaim(t *testing.T) {
	for name, pm := range map[string]Permit{
		"none": {}, "no attempt": {Claimed: time.Now()}, "no time": {Attempt: "a1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startRaw(t, answering(201, "", okBody))
			r := send(t, testClient(t, s.url()), mustPrepare(t, createWrite()), pm)
			if r.Outcome != NotSent || !errors.Is(r.Err, errNoClaim) {
				t.Errorf("%s: %v", r.Outcome, r.Err)
			}
			if _, bytes, _ := s.seen(); bytes != 0 {
				t.Errorf("the server has %d bytes", bytes)
			}
		})
	}
}

// A process that is stopped in mid-body and goes on when its write is over must not finish the request: another owner
// may be at work.
func TestSendStopsInMidBodyWhenTimeIsOver(t *testing.T) {
	cl := &clock{}
	s := startRaw(t, func(c *rawConn) {
		_, _ = c.br.Peek(1) // the first byte is out, most of the body is not
		cl.move(time.Hour)
	})
	c := testClient(t, s.url(), smallBuffers, cl.options)
	r := send(t, c, mustPrepare(t, pad(1<<20)), Permit{Attempt: "a1", Claimed: cl.now()})
	if r.Outcome != Maybe || !errors.Is(r.Err, errWriteOver) {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
	s.ln.Close()
	s.wg.Wait()
	if _, bytes, reqs := s.seen(); len(reqs) != 0 || bytes > 900<<10 {
		t.Errorf("the server has %d bytes and %d whole requests", bytes, len(reqs))
	}
}

func TestAge(t *testing.T) {
	now := time.Now()
	if got := age(now, now.Add(time.Minute)); got != time.Minute {
		t.Errorf("both clocks: %s", got)
	}
	if got := age(now.Round(0), now.Add(time.Hour)); got != time.Hour {
		t.Errorf("a claim without a monotonic reading: %s", got)
	}
	if got := age(now, now.Round(0).Add(-time.Hour)); got != -time.Hour {
		t.Errorf("a clock set back, nothing else known: %s", got)
	}
}

func TestGuardStopsASecondSend(t *testing.T) {
	s := startRaw(t, answering(500, "", ""))
	var tripped []string
	c := testClient(t, s.url(), func(o *Options) { o.Tripped = func(a string) { tripped = append(tripped, a) } })
	p := mustPrepare(t, createWrite())
	if r := send(t, c, p, permit("a1")); r.Outcome != Maybe {
		t.Fatalf("first: %s", r.Outcome)
	}
	_, before, _ := s.seen()
	r := send(t, c, p, permit("a1"))
	if r.Outcome != Blocked || r.Scope != ScopeAll || r.Remedy == "" || OutcomeOf(r.Err) != Blocked {
		t.Errorf("second: %+v", r)
	}
	if _, after, _ := s.seen(); after != before {
		t.Errorf("%d bytes of a second send", after-before)
	}
	if len(tripped) != 1 || tripped[0] != "a1" {
		t.Errorf("told: %v", tripped)
	}
	if r := send(t, c, p, permit("a2")); r.Outcome != Maybe {
		t.Errorf("another attempt: %s", r.Outcome)
	}
}

// What never left was no send: the attempt is still free.
func TestGuardDoesNotCountWhatWasNotSent(t *testing.T) {
	s, cl := startRaw(t, answering(201, "", okBody)), &clock{}
	c := testClient(t, s.url(), cl.options)
	p := mustPrepare(t, createWrite())
	if r := send(t, c, p, Permit{Attempt: "a1", Claimed: cl.now().Add(-time.Minute)}); r.Outcome != NotSent {
		t.Fatalf("old claim: %s", r.Outcome)
	}
	if r := send(t, c, p, Permit{Attempt: "a1", Claimed: cl.now()}); r.Outcome != Accepted {
		t.Errorf("fresh claim: %s, %v", r.Outcome, r.Err)
	}
}

func TestGuardIsBounded(t *testing.T) {
	g := NewGuard()
	names := make(chan string)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range names {
				if !g.First(n) {
					t.Errorf("%s was not the first", n)
				}
			}
		})
	}
	for i := range 3 * guardSize {
		names <- time.Duration(i).String()
	}
	close(names)
	wg.Wait()
	if len(g.seen) != guardSize || g.age.Len() != guardSize {
		t.Errorf("%d and %d names kept", len(g.seen), g.age.Len())
	}
}

func TestConnIsUsedOnce(t *testing.T) {
	s := startRaw(t, answering(201, "", okBody))
	cn, err := testClient(t, s.url()).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := mustPrepare(t, createWrite())
	if r := cn.Send(t.Context(), p, permit("a1")); r.Outcome != Accepted {
		t.Fatal(r.Err)
	}
	if r := cn.Send(t.Context(), p, permit("a2")); r.Outcome != NotSent || r.Request.Sent != 0 || !errors.Is(r.Err, errConnUsed) {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
	if _, _, reqs := s.seen(); len(reqs) != 1 {
		t.Errorf("%d requests", len(reqs))
	}
}

func TestConnClosedBeforeSend(t *testing.T) {
	s := startRaw(t, answering(201, "", okBody))
	cn, err := testClient(t, s.url()).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := cn.Close(); err != nil {
		t.Error(err)
	}
	if r := cn.Send(t.Context(), mustPrepare(t, createWrite()), permit("a1")); r.Outcome != NotSent {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
}

func TestGateOnItsOwn(t *testing.T) {
	era := func(bool) error { return nil }
	a, b := net.Pipe()
	defer b.Close()
	gc := &guardedConn{Conn: a}
	if _, err := gc.Write([]byte("x")); !errors.Is(err, errNotOpen) {
		t.Errorf("before it was allowed: %v", err)
	}
	gc.allow(era)
	if sent, _, _ := gc.seal(); sent != 0 {
		t.Errorf("%d bytes of nothing", sent)
	}
	if _, err := gc.Write([]byte("x")); !errors.Is(err, errSealed) {
		t.Errorf("after it was sealed: %v", err)
	}

	// A piece that hangs counts as sent.
	gc = &guardedConn{Conn: a}
	entered := make(chan struct{})
	gc.allow(func(bool) error { close(entered); return nil })
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = gc.Write([]byte("xyz"))
	}()
	<-entered
	if sent, _, _ := gc.seal(); sent != 3 {
		t.Errorf("a hanging piece counts %d", sent)
	}
	_ = a.Close()
	<-done
}

// What arrives before the request is handed to nobody, and nothing is sent after it.
func TestGateServerSpeaksFirst(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	gc := &guardedConn{Conn: a}
	gc.allow(func(bool) error { return nil })
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.Write([]byte("HTTP/1.1 201 Created"))
	}()
	buf := make([]byte, 64)
	if n, err := gc.Read(buf); n != 0 || !errors.Is(err, errSpokeFirst) {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	<-done
	if n, err := gc.Write([]byte("POST")); n != 0 || !errors.Is(err, errSpokeFirst) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if sent, _, refusal := gc.seal(); sent != 0 || !errors.Is(refusal, errSpokeFirst) {
		t.Errorf("sent %d, refusal %v", sent, refusal)
	}
}

// The clock is looked at between pieces, however much is written at once.
func TestGateLooksAtTheClockBetweenPieces(t *testing.T) {
	gc := &guardedConn{Conn: sink{}}
	var asked []bool
	gc.allow(func(first bool) error { asked = append(asked, first); return nil })
	if n, err := gc.Write(make([]byte, 10*piece)); n != 10*piece || err != nil {
		t.Fatal(n, err)
	}
	if len(asked) != 10 || !asked[0] || asked[1] || piece > 4096 {
		t.Errorf("asked %v for ten pieces of %d", asked, piece)
	}
}

type sink struct{ net.Conn }

func (sink) Write(p []byte) (int, error) { return len(p), nil }

// A TLS write that fails says that nothing was written, though bytes may have left below it.
func TestGateCountsBelow(t *testing.T) {
	m := &meter{Conn: leaky{}}
	gc := &guardedConn{Conn: silent{m}, below: m.out.Load}
	gc.allow(func(bool) error { return nil })
	if _, err := gc.Write([]byte("xyz")); err == nil {
		t.Fatal("no error")
	}
	if sent, _, _ := gc.seal(); sent != 2 {
		t.Errorf("%d bytes, want the 2 that left", sent)
	}
}

type leaky struct{ net.Conn }

func (leaky) Write(p []byte) (int, error) { return len(p) - 1, errors.New("broken") }

type silent struct{ net.Conn }

func (s silent) Write(p []byte) (int, error) {
	_, err := s.Conn.Write(p)
	return 0, err
}

func TestDialTimesOut(t *testing.T) {
	c := testClient(t, "http://erp.test", func(o *Options) {
		o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Dial(ctx); OutcomeOf(err) != NotSent {
		t.Errorf("%v", err)
	}
}
