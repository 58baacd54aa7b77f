package webhook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// pipes is a listener in memory, for virtual time.
type pipes struct {
	conns chan net.Conn
	gone  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.gone:
	default:
		close(p.gone)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial gives the sender's end. What the receiver writes is read at once: a pipe has no buffer.
func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

// waiter is over when told.
type waiter struct {
	over    chan json.RawMessage
	started chan Document
}

func (w *waiter) Wait(ctx context.Context, d Document) (json.RawMessage, bool) {
	w.started <- d
	select {
	case outcome := <-w.over:
		return outcome, true
	case <-ctx.Done():
		return nil, false
	}
}

// virtual runs a server in virtual time.
func virtual(t *testing.T, f func(t *testing.T, s *Server, p *pipes, sink *memory, w *waiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sink, w := &memory{}, &waiter{make(chan json.RawMessage, 1), make(chan Document, 1)}
		s, err := New(Options{Sources: map[string]Source{"shop": {Kind: "token", Secret: tokenSecret}}, Sink: sink, Reader: sink, Waiter: w, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		s.Serve(p)
		f(t, s, p, sink, w)
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func head(length string) string {
	return "POST /in/shop/banka HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + bearer + "\r\nContent-Length: " + length + "\r\n\r\n"
}

func TestSlowHeader(t *testing.T) {
	virtual(t, func(t *testing.T, _ *Server, p *pipes, sink *memory, _ *waiter) {
		conn, begun := p.dial(), time.Now()
		_, _ = io.WriteString(conn, "POST /in/shop/banka HTTP/1.1\r\nX: ")
		// net/http answers nothing or a 408; either way the connection ends.
		text, _ := io.ReadAll(conn)
		if took := time.Since(begun); took != headerTimeout || strings.Contains(string(text), "HTTP/1.1 2") {
			t.Errorf("after %v: %q", took, text)
		}
		_ = conn.Close()
		if len(sink.all()) != 0 {
			t.Error("stored")
		}
	})
}

func TestSlowBody(t *testing.T) {
	virtual(t, func(t *testing.T, s *Server, p *pipes, sink *memory, _ *waiter) {
		conn, begun := p.dial(), time.Now()
		_, _ = io.WriteString(conn, head("14")+`{"kod`)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != bodyTimeout || resp.StatusCode != http.StatusRequestTimeout || len(s.slots) != 0 {
			t.Errorf("after %v: %d, %d places taken", took, resp.StatusCode, len(s.slots))
		}
		_ = resp.Body.Close()
		_ = conn.Close()
		if len(sink.all()) != 0 {
			t.Error("stored")
		}
	})
}

// TestDeclaredSize: a body that is too large by its head is not waited for.
func TestDeclaredSize(t *testing.T) {
	virtual(t, func(t *testing.T, _ *Server, p *pipes, _ *memory, _ *waiter) {
		conn, begun := p.dial(), time.Now()
		_, _ = io.WriteString(conn, head("1073741824"))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 0 || resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("after %v: %d", took, resp.StatusCode)
		}
		_ = resp.Body.Close()
		_ = conn.Close()
	})
}

// TestWaitWithoutABody: the deadline of a body that never comes does not end the wait.
func TestWaitWithoutABody(t *testing.T) {
	virtual(t, func(t *testing.T, _ *Server, p *pipes, _ *memory, w *waiter) {
		conn, begun := p.dial(), time.Now()
		text := strings.Replace(head("0"), "banka", "banka?wait=20s", 1)
		_, _ = io.WriteString(conn, strings.Replace(text, "Host: x", "Host: x\r\nFlexid-Op: delete\r\nFlexid-Key: A", 1))
		<-w.started
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 20*time.Second || resp.StatusCode != http.StatusAccepted {
			t.Errorf("after %v: %d", took, resp.StatusCode)
		}
		_ = resp.Body.Close()
		_ = conn.Close()
	})
}

func TestBodyThatBreaksOff(t *testing.T) {
	virtual(t, func(t *testing.T, _ *Server, p *pipes, sink *memory, _ *waiter) {
		conn := p.dial()
		_, _ = io.WriteString(conn, head("14")+`{"kod":"A"}`)
		_ = conn.Close()
		synctest.Wait()
		if len(sink.all()) != 0 {
			t.Error("half a document was stored")
		}
	})
}

// TestSlowStore: the sender is answered within the time of the tightest one.
func TestSlowStore(t *testing.T) {
	virtual(t, func(t *testing.T, _ *Server, p *pipes, sink *memory, _ *waiter) {
		sink.block, sink.holds = make(chan struct{}), make(chan struct{}, 1)
		conn, begun := p.dial(), time.Now()
		_, _ = io.WriteString(conn, head("14")+doc)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != storeTimeout || resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("after %v: %d", took, resp.StatusCode)
		}
		_ = resp.Body.Close()
		_ = conn.Close()
	})
}

// TestWait: longer than every deadline of a request, and what is waited for takes no place of a delivery.
func TestWait(t *testing.T) {
	for name, tc := range map[string]struct {
		query   string
		outcome time.Duration // 0 = never
		stop    time.Duration // of the server, 0 = not
		took    time.Duration
		status  int
	}{
		"over in time":      {"?wait=20s", 15 * time.Second, 0, 15 * time.Second, 200},
		"not over":          {"?wait=20s", 0, 0, 20 * time.Second, 202},
		"the most":          {"?wait=10m", 0, 0, maxWait, 202},
		"the server stops":  {"?wait=20s", 0, 3 * time.Second, 3 * time.Second, 202},
		"not asked to wait": {"", 0, 0, 0, 202},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, s *Server, p *pipes, _ *memory, w *waiter) {
				conn, begun := p.dial(), time.Now()
				_, _ = io.WriteString(conn, strings.Replace(head("14"), "banka", "banka"+tc.query, 1)+doc)
				if tc.query != "" {
					if d := <-w.started; d.Key != "FV-1" || d.Evidence != "banka" {
						t.Errorf("waits for %+v", d)
					}
					if len(s.slots) != 0 {
						t.Error("who waits keeps others out")
					}
				}
				done := make(chan error, 1)
				if tc.outcome > 0 {
					time.AfterFunc(tc.outcome, func() { w.over <- json.RawMessage(`{"state":"confirmed"}`) })
				}
				if tc.stop > 0 {
					time.AfterFunc(tc.stop, func() { done <- s.Stop(context.Background()) })
				}
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if took := time.Since(begun); took != tc.took || resp.StatusCode != tc.status || strings.Contains(string(text), "confirmed") != (tc.status == 200) {
					t.Errorf("after %v: %d %s", took, resp.StatusCode, text)
				}
				if tc.stop > 0 {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
				_ = conn.Close()
			})
		})
	}
}

// TestWaitEndsWithTheSender: nobody waits for one who went away.
func TestWaitEndsWithTheSender(t *testing.T) {
	virtual(t, func(t *testing.T, s *Server, p *pipes, sink *memory, w *waiter) {
		conn := p.dial()
		_, _ = io.WriteString(conn, strings.Replace(head("14"), "banka", "banka?wait=60s", 1)+doc)
		<-w.started
		_ = conn.Close()
		synctest.Wait()
		if len(s.waits) != 0 || len(sink.all()) != 1 {
			t.Errorf("%d wait, %d stored", len(s.waits), len(sink.all()))
		}
	})
}

func TestAddressInUse(t *testing.T) {
	r := start(t, nil)
	other, err := New(Options{Addr: r.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(t.Context()); err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "FLEXID_WEBHOOK_ADDR") {
		t.Errorf("%v", err)
	}
}
