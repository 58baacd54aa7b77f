//go:build linux

package ledger

import (
	"bytes"
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
)

// stretch runs a program with every sync begun 0.3 s late. Without it a commit is over in a millisecond, and a cut meets the
// middle of one by luck only. Writes that are synced by themselves (O_SYNC) keep their speed.
var stretch = []string{"strace", "-f", "-q", "--seccomp-bpf", "-o", "/dev/null",
	"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_enter=300000"}

// slowDisk is a file system inside a file, with a server on it whose syncs can be made to take long. The file holds what has reached the
// disk, and not what the kernel still keeps in memory.
type slowDisk struct {
	*process
	dir  string // for files of the test
	file string
	loop string // name of the block device
	cuts int
}

func newSlowDisk(t *testing.T, size string) *slowDisk {
	t.Helper()
	run(t, stretch[0], append(stretch[1:len(stretch):len(stretch)], "true")...)
	dir := t.TempDir()
	d := &slowDisk{dir: dir, file: filepath.Join(dir, "disk")}
	run(t, "truncate", "-s", size, d.file)
	run(t, "mkfs.ext4", "-q", "-F", d.file)
	live := d.mount(t, d.file, "live")
	source, err := exec.Command("findmnt", "-n", "-o", "SOURCE", live).Output()
	noErr(t, err)
	d.loop = filepath.Base(strings.TrimSpace(string(source)))
	d.process = newProcess(t, filepath.Join(live, "js"))
	return d
}

func (d *slowDisk) mount(t *testing.T, file, name string) string {
	t.Helper()
	dir := filepath.Join(d.dir, name)
	noErr(t, os.Mkdir(dir, 0o700))
	mount(t, "-o", "loop", file, dir)
	return dir
}

// cut calls note while the server stands still, then copies the disk as it would be after a power cut at that moment; the
// server goes on afterwards. What note sees as acknowledged was acknowledged before.
func (d *slowDisk) cut(t *testing.T, note func()) string {
	t.Helper()
	d.freeze(t)
	defer d.thaw(t)
	note()
	d.cuts++
	file := fmt.Sprintf("%s-%d", d.file, d.cuts)
	for range 20 {
		// The kernel writes back when it wants, also while the file is read; such a copy is of no moment at all.
		before := d.written(t)
		run(t, "cp", "--sparse=always", d.file, file)
		if d.written(t) == before {
			return file
		}
	}
	t.Fatal("the kernel does not stop writing to the disk")
	return ""
}

// written is how many sectors were written to the disk and how many requests are on their way.
func (d *slowDisk) written(t *testing.T) string {
	t.Helper()
	stat, err := os.ReadFile("/sys/block/" + d.loop + "/stat")
	noErr(t, err)
	f := strings.Fields(string(stat))
	return f[6] + " " + f[8]
}

// freeze stops the server, then what stretches its syncs. The other way round a thread would wait for its tracer instead of
// standing still.
func (d *slowDisk) freeze(t *testing.T) {
	t.Helper()
	d.signal(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for d.moving(t) {
		wait(ctx, time.Millisecond)
		if ctx.Err() != nil {
			t.Fatal("the server does not stand still")
		}
	}
	noErr(t, d.cmd.Process.Signal(syscall.SIGSTOP))
}

func (d *slowDisk) thaw(t *testing.T) {
	noErr(t, d.cmd.Process.Signal(syscall.SIGCONT))
	d.signal(syscall.SIGCONT)
}

// moving: some thread of the server is neither stopped nor held back by its tracer.
func (d *slowDisk) moving(t *testing.T) bool {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", d.server.Pid))
	noErr(t, err)
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread ended
		}
		noErr(t, err)
		// The name in parentheses may hold anything; the state follows it.
		state := stat[bytes.LastIndexByte(stat, ')')+2]
		if state != 'T' && state != 't' {
			return true
		}
	}
	return false
}

// survivor mounts a copy and starts a server on it, with syncs as they are. end gives back what it took.
func (d *slowDisk) survivor(t *testing.T, file string) (p *process, end func()) {
	t.Helper()
	dir := file + "-after"
	noErr(t, os.Mkdir(dir, 0o700))
	run(t, "mount", "-o", "loop", file, dir)
	release := sync.OnceFunc(func() {
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			t.Logf("umount %s: %v %s", dir, err, out)
		}
	})
	t.Cleanup(release)
	p = newProcess(t, filepath.Join(dir, "js"))
	return p, func() {
		p.kill()
		release()
		noErr(t, os.Remove(dir))
		noErr(t, os.Remove(file))
	}
}
