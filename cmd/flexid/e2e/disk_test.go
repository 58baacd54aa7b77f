//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"flexid/flexi/flexitest"
)

// disk is a file system whose size can be changed.
type disk struct {
	t         *testing.T
	top, used string // used is a directory on it
}

const roomy = "size=8g" // tmpfs takes memory for what is written only

// newDisk mounts a file system, where that is allowed.
func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, top: t.TempDir()}
	if err := syscall.Mount("tmpfs", d.top, "tmpfs", 0, roomy); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(d.top, syscall.MNT_DETACH) })
	d.used = filepath.Join(d.top, "store")
	return d
}

// fill makes the disk as small as what is on it.
func (d *disk) fill() {
	d.t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.top, &s); err != nil {
		d.t.Fatalf("asking for the room on the disk: %v", err)
	}
	d.resize(fmt.Sprintf("size=%d", int64(s.Blocks-s.Bfree)*s.Bsize))
}

// widen makes room again.
func (d *disk) widen() { d.resize(roomy) }

func (d *disk) resize(size string) {
	d.t.Helper()
	if err := syscall.Mount("tmpfs", d.top, "tmpfs", syscall.MS_REMOUNT, size); err != nil {
		d.t.Fatalf("changing the size of the disk: %v", err)
	}
}

// A full disk: what was acknowledged is put into Flexi once there is room again; of what was not, the sender knows. A stream
// of nats-server that failed to write stays shut until the server is started again; for the one inside the daemon, flexid
// says so.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("NATS of its own", func(t *testing.T) {
		t.Parallel()
		d := newDisk(t)
		b := newBench(t, flexitest.Options{}, nil)
		b.broker.proc.kill()
		b.broker = newBroker(t, d.used)
		b.daemon.set["FLEXID_NATS_URL"] = b.broker.url
		b.daemon.up()
		b.fullDisk(d, func() {
			if !strings.Contains(b.daemon.log(), "store does not answer") {
				t.Errorf("the log says nothing: %s", b.daemon.log())
			}
			b.broker.crash()
		})
	})
	t.Run("NATS in the daemon", func(t *testing.T) {
		t.Parallel()
		d := newDisk(t)
		b := newBench(t, flexitest.Options{}, nil)
		delete(b.daemon.set, "FLEXID_NATS_URL")
		b.daemon.dir, b.daemon.set["FLEXID_STATE_DIR"] = d.used, d.used
		b.daemon.set["FLEXID_NATS_LISTEN"] = fmt.Sprintf("127.0.0.1:%d", freePort(t))
		b.daemon.up()
		b.broker = embeddedBroker(b.daemon)
		b.fullDisk(d, func() {
			eventually(t, 30*time.Second, "health and log say what to do", func() (bool, string) {
				ready, code, _ := b.daemon.get("/readyz")
				says := strings.Contains(ready, "no space left") && strings.Contains(ready, "restart flexid") && strings.Contains(b.daemon.log(), "restart flexid")
				return says && code == 503, ready
			})
			b.daemon.proc.stop(30 * time.Second)
			b.daemon.up()
		})
	})
}

// fullDisk fills the disk under NATS while events are published; again starts the server anew once there is room.
func (b *bench) fullDisk(d *disk, again func()) {
	t := b.t
	t.Helper()
	b.sendFields("FIRST", fields(0, "FIRST"))
	b.daemon.settles(issued, "FIRST", "confirmed", time.Minute)
	d.fill()
	var stored, refused []int
	for i := 0; i < 200 && len(refused) < 3; i++ {
		key := fmt.Sprintf("DISK-%d", i)
		body := must(json.Marshal(fields(i, key)))(t, "writing a body")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := b.broker.js.Publish(ctx, "flexi.push.faktura-vydana."+key, body)
		cancel()
		if err == nil {
			stored = append(stored, i)
		} else {
			refused = append(refused, i)
		}
	}
	if len(refused) == 0 {
		t.Fatal("the disk was never full")
	}
	eventually(t, 30*time.Second, "the ledger has noticed", func() (bool, string) {
		return strings.Contains(b.daemon.log(), "store does not answer") || strings.Contains(b.daemon.log(), "no space left"), b.daemon.log()
	})
	d.widen()
	again()
	// The senders of the refused ones know that, and publish again.
	for _, i := range refused {
		key := fmt.Sprintf("DISK-%d", i)
		b.sendFields(key, fields(i, key))
	}
	for _, i := range append(stored, refused...) {
		key := fmt.Sprintf("DISK-%d", i)
		b.daemon.settles(issued, key, "confirmed", time.Minute)
		if n := len(b.erp.Find(issued, "code:"+key)); n != 1 {
			t.Errorf("%s: %d records, want 1", key, n)
		}
	}
	t.Logf("%d events were acknowledged on the full disk, %d were not", len(stored), len(refused))
}
