package sidebyside

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// reply is what one request gets; status 0 = 200.
type reply struct {
	status     int
	retryAfter string
	after      time.Duration // until the server answers
}

// script decides about the n-th request (from 1) of a call.
type script func(call, n int) reply

// arrival is one call in a request that the server received. Documents can share a request, calls do not.
type arrival struct {
	call, n int
	request int
	at      time.Time
	after   time.Duration // until it was answered, as the script says
}

// scripted answers by call, whoever asks: the number of the call stands in the address where an evidence would.
type scripted struct {
	script script
	queue  chan net.Conn
	closed chan struct{}
	http   *http.Server
	wg     sync.WaitGroup

	mu   sync.Mutex
	seen []arrival
	tell map[int]int
}

func serve(t *testing.T, s script) *scripted {
	t.Helper()
	out := &scripted{script: s, queue: make(chan net.Conn), closed: make(chan struct{}), tell: make(map[int]int)}
	out.http = &http.Server{Handler: out}
	out.wg.Go(func() { _ = out.http.Serve(out) })
	return out
}

// stop ends the server and everything it started.
func (s *scripted) stop() {
	_ = s.http.Close()
	s.wg.Wait()
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	part := strings.Split(strings.TrimSuffix(r.URL.Path, ".json"), "/") // /c/firma/call-17[/query]
	call, err := strconv.Atoi(strings.TrimPrefix(part[3], "call-"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	s.mu.Lock()
	s.tell[call]++
	n := s.tell[call]
	got := s.script(call, n)
	s.seen = append(s.seen, arrival{call, n, len(s.seen), time.Now(), got.after})
	s.mu.Unlock()
	after(got.after)
	if got.retryAfter != "" {
		w.Header().Set("Retry-After", got.retryAfter)
	}
	if got.status != 0 {
		w.WriteHeader(got.status)
	}
	_, _ = io.WriteString(w, `{"winstrom":{"@version":"1.0","success":"true","@rowCount":"0"}}`)
}

func address(call int) string {
	return fmt.Sprintf("http://flexi.test:5434/c/firma/call-%d.json", call)
}

func (s *scripted) arrivals() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]arrival(nil), s.seen...)
}

// Accept, Close and Addr make the server its own listener.
func (s *scripted) Accept() (net.Conn, error) {
	select {
	case c := <-s.queue:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *scripted) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

func (s *scripted) Addr() net.Addr { return &net.TCPAddr{} }

func (s *scripted) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case s.queue <- server:
		return client, nil
	case <-s.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// after returns when a span of virtual time is over.
func after(d time.Duration) {
	t := time.NewTimer(d)
	<-t.C
}
