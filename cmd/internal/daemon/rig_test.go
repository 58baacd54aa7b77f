package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/batch/stream"
	"flexid/cmd/internal/api"
	"flexid/config"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testenv.InMemory()
	testenv.Parallel(8)
	goleak.VerifyTestMain(m)
}

// logBook collects the daemon's log.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// line is the first log line that holds all words, "" if there is none.
func (l *logBook) line(words ...string) string {
next:
	for line := range strings.Lines(l.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		return line
	}
	return ""
}

// settings are those of a daemon beside a fake ERP; more comes last and wins.
func settings(t *testing.T, erp *flexitest.Server, dir string, more ...string) config.Config {
	t.Helper()
	env := append([]string{
		"FLEXID_FLEXI_URL=" + erp.URL(), "FLEXID_FLEXI_COMPANY=firma", "FLEXID_FLEXI_USER=flexid", "FLEXID_FLEXI_PASSWORD=secret",
		"FLEXID_STATE_DIR=" + dir, "FLEXID_HTTP_ADDR=127.0.0.1:0", "FLEXID_DRAIN_TIMEOUT=10s", "FLEXID_VERIFY_LOOKS=0s,200ms,500ms",
		"FLEXID_VERIFY_SETTLE_NO_ANSWER=1s", "FLEXID_VERIFY_SETTLE_SERVER_ERROR=500ms",
	}, more...)
	cfg, _, err := config.Load(env, "")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func startERP(t *testing.T, o flexitest.Options) *flexitest.Server {
	t.Helper()
	s := flexitest.New(o)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// running is a daemon in this process.
type running struct {
	t    *testing.T
	log  *logBook
	info Info
	stop context.CancelFunc
	done chan error
	over bool
}

// launch starts a daemon and does not wait for it.
func launch(t *testing.T, cfg config.Config) (r *running, ready chan Info) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r = &running{t: t, log: &logBook{}, stop: cancel, done: make(chan error, 1)}
	ready = make(chan Info, 1)
	go func() {
		r.done <- Run(ctx, Options{Config: cfg, Log: zerolog.New(r.log).Level(zerolog.DebugLevel), Build: api.Build{Version: "test"},
			Ready: func(i Info) { ready <- i }})
	}()
	t.Cleanup(func() {
		if !r.over {
			r.end()
		}
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", r.log)
		}
	})
	return r, ready
}

// begin starts a daemon and waits until it is ready.
func begin(t *testing.T, cfg config.Config) *running {
	t.Helper()
	r, ready := launch(t, cfg)
	select {
	case r.info = <-ready:
	case err := <-r.done:
		r.over = true
		t.Fatalf("the daemon ended: %v", err)
	case <-time.After(20 * time.Second):
		t.Fatal("the daemon does not become ready")
	}
	return r
}

// end stops the daemon and returns what Run did.
func (r *running) end() error {
	r.stop()
	r.over = true
	select {
	case err := <-r.done:
		return err
	case <-time.After(30 * time.Second):
		r.t.Error("the daemon does not stop")
		return nil
	}
}

// wait is for errors that end the daemon by itself.
func (r *running) wait() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		r.over = true
		return err
	case <-time.After(20 * time.Second):
		r.t.Fatal("the daemon goes on")
		return nil
	}
}

// logged waits for a line of the log with all of the words: it is written a moment after the API shows what it tells of.
func (r *running) logged(words ...string) (line string) {
	r.t.Helper()
	eventually(r.t, strings.Join(words, ", ")+" in the log", func() bool {
		line = r.log.line(words...)
		return line != ""
	})
	return line
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	waitFor(t, 20*time.Second, what, is)
}

// waitFor bounds a test that would hang; how long something takes is not judged.
func waitFor(t *testing.T, most time.Duration, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(most)
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func (r *running) do(method, path, body string) (int, string) {
	r.t.Helper()
	return ask(r.t, r.info, method, path, body)
}

func ask(t *testing.T, info Info, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, info.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+info.Token)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func (r *running) status() (s api.Status) {
	r.t.Helper()
	code, text := r.do("GET", "/api/v1/status", "")
	if err := json.Unmarshal([]byte(text), &s); code != 200 || err != nil {
		r.t.Fatalf("status: %d %s %v", code, text, err)
	}
	return s
}

func (r *running) story(address string) (s api.Story, ok bool) {
	r.t.Helper()
	code, text := r.do("GET", "/api/v1/documents/"+address, "")
	return s, code == 200 && json.Unmarshal([]byte(text), &s) == nil
}

// nats connects as a stranger would: by address and token.
func (r *running) nats() (*nats.Conn, jetstream.JetStream) {
	r.t.Helper()
	nc, err := nats.Connect(r.info.NATS, nats.Token(r.info.NATSToken))
	if err != nil {
		r.t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		r.t.Fatal(err)
	}
	return nc, js
}

func (r *running) push(key string) {
	r.t.Helper()
	nc, js := r.nats()
	defer nc.Close()
	body := fmt.Appendf(nil, `{"kod":%q,"typDokl":"code:FAKTURA","varSym":"2026001","polozkyFaktury":[{"nazev":"práce","mnozMj":"1","cenaMj":"100"}]}`, key)
	if _, err := stream.NewPublisher(js, stream.Options{}).Push(r.t.Context(), "faktura-vydana", key, nil, body); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) becomes(key, state string) api.Story {
	r.t.Helper()
	var s api.Story
	eventually(r.t, key+" "+state, func() bool {
		var ok bool
		s, ok = r.story("faktura-vydana/" + key)
		return ok && s.State == state
	})
	return s
}
