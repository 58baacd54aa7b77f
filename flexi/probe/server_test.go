package probe

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// meddler stands between client and server as a proxy does: handle gets each request, and upstream sends it on.
type meddler struct {
	ln     net.Listener
	wg     sync.WaitGroup
	handle func(client io.Writer, req *http.Request, body []byte, upstream func() *http.Response)
}

func meddling(t *testing.T, s *Server, handle func(io.Writer, *http.Request, []byte, func() *http.Response)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &meddler{ln: ln, handle: handle}
	m.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			m.wg.Go(func() {
				defer conn.Close()
				m.pass(t, conn, s.ln.Addr().String())
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		m.wg.Wait()
	})
	return "http://" + ln.Addr().String()
}

func (m *meddler) pass(t *testing.T, client net.Conn, to string) {
	req, err := http.ReadRequest(bufio.NewReader(client))
	if err != nil {
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	m.handle(client, req, body, func() *http.Response {
		up, err := net.Dial("tcp", to)
		if err != nil {
			t.Error(err)
			return nil
		}
		defer up.Close()
		again := req.Clone(t.Context())
		again.Body = io.NopCloser(strings.NewReader(string(body)))
		if err := again.Write(up); err != nil {
			t.Error(err)
			return nil
		}
		resp, err := http.ReadResponse(bufio.NewReader(up), again)
		if err != nil {
			return nil
		}
		data, _ := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(strings.NewReader(string(data)))
		return resp
	})
}

// TestHiddenRetryLayer: a proxy that repeats makes three writes of one, and client and final status know nothing of it.
func TestHiddenRetryLayer(t *testing.T) {
	for _, write := range []bool{false, true} {
		s := listening(t, "commit503,commit503,200")
		address := meddling(t, s, func(client io.Writer, _ *http.Request, _ []byte, upstream func() *http.Response) {
			for range 3 {
				if resp := upstream(); resp != nil && resp.StatusCode < 500 {
					_ = resp.Write(client)
					return
				}
			}
		})
		r := compared(t, s, address, Plan{Write: write})
		if r.WireRequests != 1 || *r.ServerRequests != 3 || r.Amplification != 3 || r.Clean() {
			t.Errorf("write %v: %+v", write, r)
		}
		if !strings.Contains(r.Mismatch, "hidden retry layer") {
			t.Errorf("write %v: mismatch %q", write, r.Mismatch)
		}
		if write && (*r.Commits != 3 || r.Outcome != "accepted") {
			t.Errorf("%d commits, %s", *r.Commits, r.Outcome)
		}
	}
}

// TestAnsweredOnTheWay: something that answers by itself is a mismatch too, and not called a retry.
func TestAnsweredOnTheWay(t *testing.T) {
	s := listening(t, "200")
	address := meddling(t, s, func(client io.Writer, _ *http.Request, _ []byte, _ func() *http.Response) {
		_, _ = io.WriteString(client, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
	})
	r := probed(t, address, Plan{Write: true})
	r.Compare(s.Requests(), s.Commits())
	if r.WireRequests != 1 || *r.ServerRequests != 0 || r.Amplification != 1 || !strings.Contains(r.Mismatch, "lost") {
		t.Errorf("%+v", r)
	}
}

// raw sends bytes and returns everything that comes back.
func raw(t *testing.T, s *Server, bytes string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	// A server that had enough closes in the middle of it: what counts is what it counted.
	_, _ = io.WriteString(conn, bytes)
	_ = conn.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(conn)
	return string(got)
}

// TestCountsWhatArrives: the count is of requests, not of connections or of bytes.
func TestCountsWhatArrives(t *testing.T) {
	const write = "POST /c/x/adresar.json HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
	cases := []struct {
		name, bytes       string
		requests, commits int
	}{
		{"nothing", "", 0, 0},
		{"half a head", "GET /c/x HTTP/1.1\r\nHost: ", 0, 0},
		{"no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 0, 0},
		{"one write", write, 1, 1},
		{"two on one connection", write + write, 2, 2},
		{"a repeat that was cut off", write + write[:len(write)-1], 2, 1},
		{"in chunks", "PUT /c/x/adresar HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 1, 1},
		{"a question", strings.Replace(write, "adresar.json", "adresar/query.json", 1), 1, 0},
		{"a get", "GET /c/x.json HTTP/1.1\r\nHost: h\r\n\r\n", 1, 0},
		{"a head without end", "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 2*maxHead), 0, 0},
		{"a broken length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 0, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := listening(t, "200*")
			answers := raw(t, s, tc.bytes)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s.Requests() != tc.requests || s.Commits() != tc.commits {
				t.Errorf("%d requests, %d commits; want %d, %d", s.Requests(), s.Commits(), tc.requests, tc.commits)
			}
			if n := strings.Count(answers, "HTTP/1.1 200"); n != tc.commits && tc.commits > 0 {
				t.Errorf("%d answers:\n%s", n, answers)
			}
		})
	}
}

// TestCloseEndsSilence: a connection that is never answered must not outlive the server.
func TestCloseEndsSilence(t *testing.T) {
	s := listening(t, "silence*")
	conn, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	s.Settled(t.Context(), 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", s.ln.Addr().String()); err == nil {
		t.Error("a closed server takes connections")
	}
	if s.Requests() != 1 {
		t.Errorf("%d requests", s.Requests())
	}
}
