package testenv

import (
	"flag"
	"os"
	"strings"
	"testing"
)

func TestInMemory(t *testing.T) {
	for _, c := range []struct{ name, tmpdir string }{{"somebody chose a directory", t.TempDir()}, {"nobody chose one", ""}} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("TMPDIR", c.tmpdir)
			t.Setenv(onDisk, "")
			before, want := os.TempDir(), c.tmpdir
			if c.tmpdir == "" {
				if want = memory; free(memory) < room {
					want = before
				}
			}
			InMemory()
			if os.TempDir() != want {
				t.Errorf("temporary directories are in %s, want %s", os.TempDir(), want)
			}
			if dir := Disk(t); !strings.HasPrefix(dir, before) {
				t.Errorf("a disk's directory is %s, want one in %s", dir, before)
			}
		})
	}
}

func TestDiskEndsWithItsTest(t *testing.T) {
	var dir string
	t.Run("inner", func(t *testing.T) { dir = Disk(t) })
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

func TestParallel(t *testing.T) {
	before := flag.Lookup("test.parallel").Value.String()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	Parallel(7)
	if now := flag.Lookup("test.parallel").Value.String(); given && now != before || !given && now != "7" {
		t.Errorf("-parallel was %s (given: %v) and is %s", before, given, now)
	}
}
