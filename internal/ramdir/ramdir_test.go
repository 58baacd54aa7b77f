package ramdir

import (
	"os"
	"strings"
	"testing"
)

func TestUse(t *testing.T) {
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
			Use()
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
