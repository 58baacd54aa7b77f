// Package testenv says where, how and how widely the tests of a package run.
//
// A NATS server that flushes every write to a disk spends most of a test waiting for that disk, and tests of several packages
// wait for the same one; what they prove does not hang on it. So temporary directories are in memory, and tests of power cuts
// ask for Disk.
package testenv

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
)

const (
	memory = "/dev/shm"
	// room is what must be free: a container's /dev/shm of 64 MiB is too small for several servers at a time.
	room = 1 << 30
	// onDisk keeps, for Disk, where temporary directories were before.
	onDisk = "FLEXID_TEST_DISK"
)

// InMemory makes os.TempDir, and so t.TempDir, a directory in memory, for this process and its children. It does nothing where
// TMPDIR is set, since whoever set it meant it, or where there is no such memory.
func InMemory() {
	if os.Getenv("TMPDIR") != "" || free(memory) < room {
		return
	}
	probe, err := os.MkdirTemp(memory, "flexid-test-")
	if err != nil {
		return
	}
	_ = os.Remove(probe)
	for name, value := range map[string]string{onDisk: os.TempDir(), "TMPDIR": memory} {
		if err := os.Setenv(name, value); err != nil {
			panic(fmt.Sprintf("setting %s: %v", name, err)) // only a name that is none can do this
		}
	}
}

// Disk is a temporary directory where they were before InMemory. It is removed with the test.
func Disk(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv(onDisk), "flexid-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing a temporary directory: %v", err)
		}
	})
	return dir
}

// Parallel lets n tests run at a time that say they may, whatever the number of processors: they wait for clocks and for
// other programs rather than compute. A number given on the command line wins.
func Parallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(fmt.Sprintf("setting -parallel: %v", err)) // the testing package always has it
	}
}

// SeldomCollect lets this process collect garbage a quarter as often, unless GOGC says how often: virtual time makes much
// garbage in a moment and needs little memory.
func SeldomCollect() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
