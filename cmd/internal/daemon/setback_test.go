package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"flexid/flexi/flexitest"
)

// TestSetBack: the stream, the ledger, or both are restored from a backup of an hour ago. It is a stop that counts what is missing;
// after a person's word what the stream holds is looked up, and nothing is sent that was deleted or done meanwhile.
func TestSetBack(t *testing.T) {
	const push, book = "FLEXID_PUSH", "KV_flexid_ledger"
	for _, c := range []struct {
		name     string
		restored []string
		says     string
		unknown  int // documents that a person has to look at
	}{
		{"the stream", []string{push}, "the last 5 are missing", 0},
		{"the ledger", []string{book}, "the 5 between", 1},
		{"both", []string{push, book}, "the 5 between", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			erp := startERP(t, flexitest.Options{})
			dir, store, backup := t.TempDir(), t.TempDir(), t.TempDir()
			port := 0
			start := func() *server.Server {
				return external(t, store, func(o *server.Options) {
					if port > 0 {
						o.Port = port
					}
				})
			}
			stop := func(s *server.Server) {
				s.Shutdown()
				s.WaitForShutdown()
			}
			ns := start()
			url := ns.ClientURL()
			port = portOf(t, url)
			begun := func() *running { return begin(t, settings(t, erp, dir, "FLEXID_NATS_URL="+url)) }
			r := begun()
			documents := func(from, to int) {
				for n := from; n < to; n++ {
					r.push(fmt.Sprint("FV-", n))
				}
				for n := from; n < to; n++ {
					r.becomes(fmt.Sprint("FV-", n), "confirmed")
				}
			}
			documents(0, 5)
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			stop(ns)
			if err := os.CopyFS(filepath.Join(backup, "js"), os.DirFS(store)); err != nil {
				t.Fatal(err)
			}
			ns = start()
			r = begun()
			documents(5, 10)
			gone := erp.Find("faktura-vydana", "code:FV-7")
			if len(gone) != 1 || !erp.Remove("faktura-vydana", gone[0].ID) {
				t.Fatalf("FV-7 cannot be deleted by hand: %+v", gone)
			}
			was := r.info
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			stop(ns)
			for _, name := range c.restored {
				part := filepath.Join("jetstream", "$G", "streams", name)
				if err := os.RemoveAll(filepath.Join(store, part)); err != nil {
					t.Fatal(err)
				}
				if err := os.CopyFS(filepath.Join(store, part), os.DirFS(filepath.Join(backup, "js", part))); err != nil {
					t.Fatal(err)
				}
			}
			start()
			writes := erp.Count("write")
			r = again(t, was, func(more ...string) *running {
				r, _ := launch(t, settings(t, erp, dir, append(more, "FLEXID_NATS_URL="+url)...))
				return r
			})
			r.notReady()
			if _, text := r.do("GET", "/readyz", ""); !strings.Contains(text, c.says) || !strings.Contains(text, "accept-empty") {
				t.Errorf("it says %s", text)
			}
			if n := erp.Count("write"); n != writes {
				t.Errorf("%d writes before a person said so", n-writes)
			}
			eventually(t, "it is accepted", func() bool {
				code, _ := r.do("POST", "/api/v1/ledger/accept-empty", `{"by":"jana","why":"restored on purpose"}`)
				return code == 200
			})
			waitFor(t, time.Minute, "ready", func() bool { code, _ := r.do("GET", "/readyz", ""); return code == 200 })
			r.push("FV-NEW") // what comes now is as ever, and behind all that is taken again
			r.becomes("FV-NEW", "confirmed")
			waitFor(t, time.Minute, "all looked up", func() bool {
				d := r.status().Engine.Documents
				return d["queued"]+d["sending"]+d["maybe"] == 0
			})
			if n := erp.Count("write"); n != writes+1 {
				t.Errorf("%d writes, want one", n-writes)
			}
			if len(erp.Find("faktura-vydana", "code:FV-7")) != 0 {
				t.Error("what was deleted by hand is there again")
			}
			if c.unknown > 0 {
				if s := r.becomes("FV-7", "parked"); s.Reason != "unknown" {
					t.Errorf("FV-7 is parked(%s)", s.Reason)
				}
			}
			for _, n := range []int{0, 4, 5, 9} {
				if len(erp.Find("faktura-vydana", fmt.Sprint("code:FV-", n))) != 1 {
					t.Errorf("FV-%d is there %d times", n, len(erp.Find("faktura-vydana", fmt.Sprint("code:FV-", n))))
				}
			}
		})
	}
}
