//go:build linux

package daemon

import (
	"syscall"
	"testing"

	"flexid/flexi/flexitest"
)

// TestStartsOnASmallDisk: a disk of which doctor says nothing bad is one on which the daemon starts. NATS reserves room for
// streams when it makes them, of three quarters of what is free.
func TestStartsOnASmallDisk(t *testing.T) {
	for _, size := range []string{"64m", "500m", "3g"} {
		t.Run(size, func(t *testing.T) {
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
				t.Skipf("a file system cannot be mounted here: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
			erp := startERP(t, flexitest.Options{})
			for _, key := range []string{"first", "again"} {
				r := begin(t, settings(t, erp, dir))
				r.push(key)
				r.becomes(key, "confirmed")
				if err := r.end(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
