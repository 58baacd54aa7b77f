package daemon

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"flexid/cmd/internal/api"
)

// TestStatusTextTellsTheTruth: never "running" while the daemon is not ready.
func TestStatusTextTellsTheTruth(t *testing.T) {
	d := &daemon{}
	d.standing.setPhase("waiting for NATS at nats://x")
	if got := d.statusText(); got != "not ready: waiting for NATS at nats://x" {
		t.Errorf("%q", got)
	}
	d.standing.connection(func() bool { return true })
	d.standing.setAPI("http://127.0.0.1:8480")
	d.standing.setNoLedger(api.Trouble{Part: api.PartLedger, Text: "the ledger\nis gone"})
	if got := d.statusText(); got != "not ready: the ledger is gone; API at http://127.0.0.1:8480" {
		t.Errorf("%q", got)
	}
	d.standing.setPhase("stopping")
	if got := d.statusText(); got != "stopping" {
		t.Errorf("%q", got)
	}
}

// TestStatusIsToldWhenItChanges: the service manager hears each change once.
func TestStatusIsToldWhenItChanges(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var mu sync.Mutex
	text := "one"
	n := &notifier{n: Notify{Socket: socket}, log: zerolog.Nop(), check: func(context.Context) error { return nil }, status: func() string {
		mu.Lock()
		defer mu.Unlock()
		return text
	}}
	n.feed()
	read := func(limit time.Duration) string {
		buf := make([]byte, 1000)
		_ = conn.SetReadDeadline(time.Now().Add(limit))
		k, err := conn.Read(buf)
		if err != nil {
			return ""
		}
		return string(buf[:k])
	}
	got := []string{read(10 * time.Second)}
	mu.Lock()
	text = "two"
	mu.Unlock()
	got = append(got, read(10*time.Second), read(3*time.Second))
	n.close()
	if !slices.Equal(got, []string{"STATUS=one", "STATUS=two", ""}) {
		t.Errorf("heard %q", strings.Join(got, ", "))
	}
}
