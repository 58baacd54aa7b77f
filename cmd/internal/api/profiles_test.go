package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// profilesOf are the addresses that profiles are served at.
func profilesOf() []string {
	return []string{"", "goroutine", "heap", "cmdline", "symbol", "profile?seconds=1", "trace?seconds=1"}
}

// TestProfilesAreOff: net/http/pprof registers itself at the mux of net/http, which nobody serves.
func TestProfilesAreOff(t *testing.T) {
	r := newRig(t)
	unknown := r.do("GET", "/debug/nothing", "")
	for _, path := range profilesOf() {
		if w := r.do("GET", "/debug/pprof/"+path, ""); w.Code != http.StatusNotFound || w.Body.String() != unknown.Body.String() {
			t.Errorf("%s: %d, want what an unknown path gives", path, w.Code)
		}
	}
}

func TestProfilesNeedTheToken(t *testing.T) {
	r := newRig(t)
	r.server.o.Profiles = true
	for name, header := range map[string]string{"none": "", "wrong": "Bearer wrong", "prefix": "Bearer " + testToken[:10]} {
		for _, path := range append(profilesOf(), "nothing") {
			w := r.do("GET", "/debug/pprof/"+path, "", func(q *http.Request) { q.Header.Set("Authorization", header) })
			if p := r.problem(w); p.Status != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s, %s: %+v", name, path, p)
			}
		}
	}
	if w := r.do("GET", "/debug/pprof/heap", "", func(q *http.Request) { q.Host = "evil.example.com" }); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("under another name: %d", w.Code)
	}
}

func TestProfilesCanBeRead(t *testing.T) {
	r := newRig(t)
	r.server.o.Profiles = true
	kept := make([][]byte, 64)
	for i := range kept {
		kept[i] = make([]byte, 1<<20) // larger than the rate at which memory is sampled
	}
	for path, want := range map[string]string{"goroutine": "TestProfilesCanBeRead", "heap?gc=1": "TestProfilesCanBeRead", "allocs": "TestProfilesCanBeRead"} {
		w := r.do("GET", "/debug/pprof/"+path, "")
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		samples, text, err := readProfile(w.Body)
		if err != nil || samples == 0 || !strings.Contains(text, want) {
			t.Errorf("%s: %d samples, %v, nothing of %s in %q", path, samples, err, want, text)
		}
	}
	clear(kept)
	if w := r.do("GET", "/debug/pprof/", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "goroutine") {
		t.Errorf("the index: %d %s", w.Code, w.Body)
	}
	if w := r.do("GET", "/debug/pprof/nothing", ""); w.Code != http.StatusNotFound {
		t.Errorf("an unknown profile: %d", w.Code)
	}
	if w := r.do("DELETE", "/debug/pprof/heap", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %d", w.Code)
	}
}

// TestLongProfile: one that takes longer than the server gives other answers arrives whole.
func TestLongProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newProfiled(t)
		resp, err := r.goroutines(30 * time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, _, err := readProfile(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("status %d, %v", resp.StatusCode, err)
		}
		if took := time.Since(r.begun); took != 30*time.Minute {
			t.Errorf("after %v", took)
		}
		if err := r.server.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestStopEndsAProfile: the stop neither waits for a profile nor cuts it off.
func TestStopEndsAProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newProfiled(t)
		answered := make(chan error)
		go func() {
			resp, err := r.goroutines(time.Minute)
			if err == nil {
				resp.Body.Close()
			}
			answered <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		if err := r.server.Stop(ctx); err != nil || time.Since(r.begun) > 2*time.Second {
			t.Errorf("after %v: %v", time.Since(r.begun), err)
		}
		if err := <-answered; err != nil {
			t.Errorf("the profile was not answered: %v", err)
		}
	})
}

// profiled is a server with profiles over connections in memory, in a bubble.
type profiled struct {
	server *Server
	client http.Client
	begun  time.Time
}

func newProfiled(t *testing.T) *profiled {
	s, err := New(Options{Addr: "127.0.0.1:0", Token: testToken, Profiles: true, Info: func() Info { return Info{} }, Troubles: func() []Trouble { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.served.Go(func() { _ = s.http.Serve(l) })
	return &profiled{server: s, client: http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}, begun: time.Now()}
}

// goroutines asks for what becomes of the goroutines within d: of all profiles that take their time, the one that touches
// nothing outside of the bubble.
func (p *profiled) goroutines(d time.Duration) (*http.Response, error) {
	req, err := http.NewRequest("GET", fmt.Sprint("http://127.0.0.1/debug/pprof/goroutine?seconds=", int(d.Seconds())), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	return p.client.Do(req)
}

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return mine, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

// readProfile reads the outermost level of a profile (profile.proto): how many samples, and all strings.
func readProfile(r io.Reader) (samples int, text string, err error) {
	plain, err := gzip.NewReader(r)
	if err != nil {
		return 0, "", err
	}
	raw, err := io.ReadAll(plain)
	if err != nil {
		return 0, "", err
	}
	const sample, stringTable = 2, 6
	var names bytes.Buffer
	for len(raw) > 0 {
		tag, n := binary.Uvarint(raw)
		value, m := binary.Uvarint(raw[max(n, 0):])
		if n <= 0 || m <= 0 {
			return 0, "", errors.New("a number is cut off")
		}
		raw = raw[n+m:]
		switch tag & 7 {
		case 0: // a number
		case 2: // bytes
			if uint64(len(raw)) < value {
				return 0, "", errors.New("a field is cut off")
			}
			switch tag >> 3 {
			case sample:
				samples++
			case stringTable:
				names.Write(raw[:value])
				names.WriteByte('\n')
			}
			raw = raw[value:]
		default:
			return 0, "", errors.New("a field of a kind that profiles do not have")
		}
	}
	return samples, names.String(), nil
}
