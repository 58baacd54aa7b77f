package daemon

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexid/batch/stream/embedded"
	"flexid/flexi/flexitest"

	"github.com/rs/zerolog"
)

// TestStopWithAWriteInFlight: a stop does not wait for an ERP that does not answer, and what was in flight is looked up
// before anything is sent again.
func TestStopWithAWriteInFlight(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"not done": false, "done": true} {
		t.Run(name, func(t *testing.T) {
			erp := startERP(t, flexitest.Options{AllowUsedNumbers: true})
			dir := t.TempDir()
			cfg := settings(t, erp, dir, "FLEXID_DRAIN_TIMEOUT=2s")
			r := begin(t, cfg)
			erp.Script(flexitest.Fault{Kind: flexitest.Silence, Done: committed})
			r.push("FV-1")
			eventually(t, "the write is under way", func() bool { return erp.Count("write") == 1 })
			begun := time.Now()
			err := r.end()
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("the stop took %v", took)
			}
			if err != nil && !strings.Contains(err.Error(), "in flight") {
				t.Errorf("stop: %v", err)
			}
			again := begin(t, cfg)
			if !committed {
				// A create is sent again only where the fence is proved: by a record that came back with our external id.
				again.becomes("FV-1", "maybe")
				again.push("FV-2")
				again.becomes("FV-2", "confirmed")
			}
			s := again.becomes("FV-1", "confirmed")
			if n := len(erp.Find("faktura-vydana", "code:FV-1")); n != 1 {
				t.Errorf("%d records", n)
			}
			want := 2
			if committed {
				want = 1
			}
			if n := len(erp.Writes("ext:FLEXID:FV-1")); n != want || len(s.Looks) == 0 {
				t.Errorf("%d writes, want %d; looks %+v", n, want, s.Looks)
			}
		})
	}
}

func startNATS(t *testing.T, dir, listen string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(embedded.Options{Dir: dir, Listen: listen, InfoFile: filepath.Join(filepath.Dir(dir), "nats.json"), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stopNATS(t *testing.T, s *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestNATSGoesAndComesBack(t *testing.T) {
	t.Parallel()
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "nats")
	ns := startNATS(t, dir, "127.0.0.1:0")
	address := strings.TrimPrefix(ns.URL(), "nats://")
	r := begin(t, settings(t, erp, t.TempDir(), "FLEXID_NATS_URL=nats://"+address, "FLEXID_NATS_TOKEN="+ns.Token()))
	if r.log.line("sync_interval: always") == "" {
		t.Error("nothing is said about an external server's durability")
	}
	r.info.NATSToken = ns.Token()
	r.push("FV-1")
	r.becomes("FV-1", "confirmed")
	stopNATS(t, ns)
	eventually(t, "not ready", func() bool {
		code, text := r.do("GET", "/readyz", "")
		return code == 503 && strings.Contains(text, address)
	})
	ns = startNATS(t, dir, address)
	eventually(t, "ready again", func() bool { code, _ := r.do("GET", "/readyz", ""); return code == 200 })
	r.push("FV-2")
	r.becomes("FV-2", "confirmed")
	if n := erp.Count("write"); n != 2 {
		t.Errorf("%d writes", n)
	}
	if err := r.end(); err != nil {
		t.Errorf("stop: %v", err)
	}
	stopNATS(t, ns)
}
