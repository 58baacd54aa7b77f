//go:build linux

package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"flexid/testdata/testenv"
)

// run skips the test where the machine cannot do what the proof needs.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Skipf("this proof needs root and loop mounts: %s %s: %v %s", name, strings.Join(args, " "), err, out)
	}
}

func mount(t *testing.T, args ...string) {
	t.Helper()
	run(t, "mount", args...)
	dir := args[len(args)-1]
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			t.Logf("umount %s: %v %s", dir, err, out)
		}
	})
}

// TestPowerCut: the server works on an ext4 inside a file. While it is stopped the file is copied: the copy holds what
// had reached the disk and not what the kernel still kept in memory, as after a power cut. (Torn sectors are not
// simulated.) Whatever was acknowledged before the stop must be in the copy.
func TestPowerCut(t *testing.T) {
	slow(t)
	for round := range 5 {
		t.Run(fmt.Sprint(round), func(t *testing.T) { powerCut(t, 40*(round*round+1)) })
	}
}

func powerCut(t *testing.T, acks int) {
	base := testenv.Disk(t)
	disk, copied := filepath.Join(base, "disk"), filepath.Join(base, "copied")
	live, after := filepath.Join(base, "live"), filepath.Join(base, "after")
	for _, dir := range []string{live, after} {
		noErr(t, os.Mkdir(dir, 0o700))
	}
	run(t, "truncate", "-s", "96M", disk)
	run(t, "mkfs.ext4", "-q", "-F", disk)
	mount(t, "-o", "loop", disk, live)

	p := newProcess(t, filepath.Join(live, "js"))
	l := mustOpen(t, p.connect(), Options{Create: true, Timeout: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := newPromises()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { done.work(t, ctx, l, ID(fmt.Sprint("doc", i))) })
	}
	progress(t, done, int64(acks))
	// Nothing that is acknowledged after the stop may count, so the promises are frozen before the copy is made.
	p.signal(syscall.SIGSTOP)
	done.mu.Lock()
	frozen := newPromises()
	for id, row := range done.rows {
		frozen.rows[id] = row
	}
	for id, ids := range done.events {
		frozen.events[id] = append([]string(nil), ids...)
	}
	done.mu.Unlock()
	run(t, "cp", "--sparse=always", disk, copied)
	cancel()
	p.signal(syscall.SIGCONT)
	wg.Wait()
	p.kill()

	mount(t, "-o", "loop", copied, after)
	survivor := newProcess(t, filepath.Join(after, "js"))
	l = mustOpen(t, survivor.connect(), Options{})
	if len(frozen.rows) == 0 {
		t.Fatal("nothing was promised")
	}
	frozen.kept(t, l)
	survivor.kill()
}

// TestFullDisk: a server whose disk is full does not answer at all, so a write ends undecided; what was acknowledged is
// there when the disk has room again.
func TestFullDisk(t *testing.T) {
	slow(t)
	dir := filepath.Join(t.TempDir(), "small")
	noErr(t, os.Mkdir(dir, 0o700))
	mount(t, "-t", "tmpfs", "-o", "size=3m", "tmpfs", dir)
	p := newProcess(t, filepath.Join(dir, "js"))
	l := mustOpen(t, p.connect(), Options{Create: true, Timeout: time.Second})
	ev := sampleEvent(1)
	ev.Raw = make([]byte, 64<<10)
	done := newPromises()
	id := sampleRow("x").ID
	var err error
	for n := 1; n < 200; n++ {
		next := sampleEvent(n)
		next.Raw = ev.Raw
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err = l.Append(ctx, sampleRow("x"), next, nil)
		cancel()
		if err != nil {
			break
		}
		done.event(id, next.EventID)
	}
	var undecided *UndecidedError
	var full *FullError
	if !errors.As(err, &undecided) && !errors.As(err, &full) {
		t.Fatalf("after %d events: %v", done.acks.Load(), err)
	}
	if undecided != nil && !strings.Contains(err.Error(), "disk is full") {
		t.Fatalf("the text does not say what to look at: %v", err)
	}
	p.kill()
	run(t, "mount", "-o", "remount,size=64m", dir)
	p.start()
	l = mustOpen(t, p.connect(), Options{})
	done.kept(t, l)
	_, err = l.Append(t.Context(), sampleRow("x"), sampleEvent(500), nil)
	noErr(t, err)
}
