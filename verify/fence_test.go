package verify

import "testing"

// TestGlobalVersion: only a version below what was known when the read began means a restore.
func TestGlobalVersion(t *testing.T) {
	type read struct{ known, got int64 }
	for _, c := range []struct {
		name  string
		reads []read
		fell  bool
	}{
		{"it grows", []read{{0, 5}, {5, 5}, {5, 9}}, false},
		{"it falls", []read{{0, 9}, {9, 4}}, true},
		{"two reads side by side, the older answer last", []read{{0, 5}, {5, 9}, {5, 7}}, false},
		{"the first reads side by side", []read{{0, 9}, {0, 7}}, false},
		{"none is told", []read{{0, 9}, {9, 0}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFence("FLEXID")
			for _, r := range c.reads {
				f.version(r.got, r.known)
			}
			if got := f.restored(); got != c.fell {
				t.Errorf("restored: %v", got)
			}
			if f.restored() {
				t.Error("said twice")
			}
		})
	}
}

// TestGlobalVersionAfterARestore: a read that began before it was noticed does not say it again.
func TestGlobalVersionAfterARestore(t *testing.T) {
	f := newFence("FLEXID")
	f.version(9, 0)
	f.version(4, 9)
	f.version(4, 9) // side by side with the one that noticed
	if !f.restored() {
		t.Fatal("not noticed")
	}
	f.version(4, 9)
	if f.restored() {
		t.Error("noticed again by a read from before")
	}
	f.version(3, f.known())
	if !f.restored() {
		t.Error("a second restore is not noticed")
	}
}
