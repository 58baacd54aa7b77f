package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"flexid/batch/stream/embedded"
	"flexid/testdata/testenv"
)

func TestMain(m *testing.M) {
	testenv.InMemory()
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, url string, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestOtherProgramsReachItByTheInfoFile(t *testing.T) {
	info := filepath.Join(t.TempDir(), "nats.json")
	s := start(t, embedded.Options{InfoFile: info})
	read, err := embedded.ReadInfo(info)
	if err != nil || read.URL != s.URL() || read.Token != s.Token() || len(read.Token) < 32 {
		t.Fatalf("%+v, %v", read, err)
	}
	if file, err := os.Stat(info); err != nil || file.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", file.Mode(), err)
	}
	host, _, err := net.SplitHostPort(strings.TrimPrefix(read.URL, "nats://"))
	if err != nil || host != "127.0.0.1" {
		t.Errorf("listens on %s, %v", read.URL, err)
	}
	js := connect(t, read.URL, nats.Token(read.Token))
	if _, err := js.AccountInfo(t.Context()); err != nil {
		t.Errorf("JetStream: %v", err)
	}
	if _, err := nats.Connect(read.URL); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without the token: %v", err)
	}
}

func TestRestartKeepsDataAndToken(t *testing.T) {
	dir := t.TempDir()
	o := embedded.Options{Dir: dir, InfoFile: filepath.Join(dir, "nats.json")}
	first := start(t, o)
	js := connect(t, "", nats.InProcessServer(first), nats.Token(first.Token()))
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	stop(t, first)

	second := start(t, o)
	if second.Token() != first.Token() {
		t.Error("senders were given a token that does not hold any more")
	}
	js = connect(t, "", nats.InProcessServer(second), nats.Token(second.Token()))
	s, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.GetMsg(t.Context(), 1); err != nil || string(m.Data) != "kept" {
		t.Errorf("%v, %v", m, err)
	}
}

func TestPrivateServerDoesNotListen(t *testing.T) {
	info := filepath.Join(t.TempDir(), "nats.json")
	s := start(t, embedded.Options{Private: true, InfoFile: info})
	js := connect(t, "", nats.InProcessServer(s), nats.Token(s.Token()))
	if _, err := js.AccountInfo(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := embedded.ReadInfo(info); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an address that nobody can reach was written: %v", err)
	}
}

func TestMaxStoreIsAHardLimit(t *testing.T) {
	s := start(t, embedded.Options{Private: true, MaxStore: 1 << 20})
	if s.MaxStore() != 1<<20 {
		t.Errorf("max store %d", s.MaxStore())
	}
	js := connect(t, "", nats.InProcessServer(s), nats.Token(s.Token()))
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, MaxBytes: 2 << 20})
	if err == nil {
		t.Error("a stream larger than the store was reserved")
	}
}

func TestStartSaysWhyItCannot(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, says string
		o          embedded.Options
	}{
		{"a port in use", "in use", embedded.Options{Listen: taken.Addr().String()}},
		{"an address that is none", "host:port", embedded.Options{Listen: "nowhere"}},
		{"a directory that is a file", "", embedded.Options{Dir: file, Private: true}},
		{"an info file that cannot be written", "nats.json", embedded.Options{InfoFile: filepath.Join(file, "nats.json")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.o.Dir == "" {
				tc.o.Dir = t.TempDir()
			}
			s, err := embedded.Start(tc.o)
			if err == nil {
				stop(t, s)
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReadInfoRefusesHalfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nats.json")
	for _, text := range []string{"", "{", `{"url":"nats://a"}`, `{"token":"t"}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if info, err := embedded.ReadInfo(path); err == nil {
			t.Errorf("%q is read as %+v", text, info)
		}
	}
}

// safe is a buffer that the server's goroutines may write to.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestServerErrorsReachTheLogWithoutTheToken(t *testing.T) {
	log := &safe{}
	s := start(t, embedded.Options{Log: zerolog.New(log)})
	_, _ = nats.Connect(s.URL(), nats.Token("wrong"))
	if !strings.Contains(log.String(), `"part":"nats"`) || strings.Contains(log.String(), s.Token()) {
		t.Errorf("log:\n%s", log.String())
	}
}
