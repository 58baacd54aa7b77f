package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/cmd/internal/api"
	"flexid/flexi/flexitest"

	"github.com/rs/zerolog"
)

// manager plays systemd.
type manager struct {
	conn *net.UnixConn
	path string
	done sync.WaitGroup

	mu   sync.Mutex
	said []string
}

func startManager(t *testing.T, name string) *manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{conn: conn, path: name}
	m.done.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.said = append(m.said, string(buf[:n]))
			m.mu.Unlock()
		}
	})
	t.Cleanup(func() { conn.Close(); m.done.Wait() })
	return m
}

func (m *manager) heard(part string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, s := range m.said {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

func TestNotifyFrom(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for name, tc := range map[string]struct {
		env  map[string]string
		want Notify
	}{
		"nobody":          {nil, Notify{}},
		"no watchdog":     {map[string]string{"NOTIFY_SOCKET": "/run/s"}, Notify{Socket: "/run/s"}},
		"watchdog":        {map[string]string{"NOTIFY_SOCKET": "@s", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": pid}, Notify{"@s", 30 * time.Second}},
		"of no pid":       {map[string]string{"NOTIFY_SOCKET": "@s", "WATCHDOG_USEC": "2000"}, Notify{"@s", 2 * time.Millisecond}},
		"of another pid":  {map[string]string{"NOTIFY_SOCKET": "@s", "WATCHDOG_USEC": "2000", "WATCHDOG_PID": "1"}, Notify{Socket: "@s"}},
		"of a wrong time": {map[string]string{"WATCHDOG_USEC": "soon"}, Notify{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NotifyFrom(func(n string) string { return tc.env[n] }); got != tc.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestServiceManagerIsTold(t *testing.T) {
	for name, socket := range map[string]string{"file": filepath.Join(t.TempDir(), "notify"), "abstract": "@flexid-test-" + strconv.Itoa(os.Getpid())} {
		t.Run(name, func(t *testing.T) {
			m := startManager(t, socket)
			cfg := settings(t, startERP(t, flexitest.Options{}), t.TempDir())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				done <- Run(ctx, Options{Config: cfg, Log: zerolog.Nop(), Build: api.Build{Version: "test"},
					Notify: Notify{Socket: socket, Watchdog: 60 * time.Millisecond}})
			}()
			eventually(t, "ready and alive", func() bool { return m.heard("READY=1") == 1 && m.heard("WATCHDOG=1") > 2 })
			if m.heard("STOPPING=1") > 0 {
				t.Error("stopping before it was asked to")
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			eventually(t, "stopping", func() bool { return m.heard("STOPPING=1") > 0 })
		})
	}
}

// TestWatchdogIsNotFedByAStuckDaemon: timers that run prove nothing.
func TestWatchdogIsNotFedByAStuckDaemon(t *testing.T) {
	m := startManager(t, filepath.Join(t.TempDir(), "notify"))
	stuck := make(chan struct{})
	checks := make(chan struct{}, 100)
	n := &notifier{n: Notify{Socket: m.path, Watchdog: 30 * time.Millisecond}, log: zerolog.Nop(), check: func(ctx context.Context) error {
		checks <- struct{}{}
		select {
		case <-stuck:
			return nil
		case <-ctx.Done():
			return errors.New("stuck")
		}
	}}
	n.feed()
	defer n.close()
	for range 3 {
		<-checks
	}
	if fed := m.heard("WATCHDOG"); fed > 0 {
		t.Errorf("fed %d times", fed)
	}
	close(stuck)
	eventually(t, "alive again", func() bool { return m.heard("WATCHDOG=1") > 0 })
}

func TestNobodyToTell(t *testing.T) {
	n := &notifier{n: Notify{Socket: filepath.Join(t.TempDir(), "nobody"), Watchdog: time.Millisecond}, log: zerolog.Nop(),
		check: func(context.Context) error { return nil }}
	n.feed()
	n.say("READY=1")
	n.close()
}
