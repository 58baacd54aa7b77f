package verify

import (
	"testing"
	"time"

	"flexid/verify/ledger"
)

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
			m := &marks{}
			for _, r := range c.reads {
				m.version(r.got, r.known)
			}
			if got := m.restored(); got != c.fell {
				t.Errorf("restored: %v", got)
			}
			if m.restored() {
				t.Error("one read says it twice")
			}
		})
	}
}

// TestGlobalVersionAfterARestore: it is noticed until a person accepts; a read that began before that does not say it again.
func TestGlobalVersionAfterARestore(t *testing.T) {
	m := &marks{}
	m.version(9, 0)
	m.version(4, 9)
	m.version(4, 9) // side by side with the one that noticed
	if !m.restored() {
		t.Fatal("not noticed")
	}
	if m.version(4, m.known()); !m.restored() {
		t.Error("a person resumed the writes without an acceptance, and nothing stops them again")
	}
	m.set(ledger.Marks{Accepted: time.Now()})
	if m.version(4, 9); m.restored() {
		t.Error("noticed again by a read from before the acceptance")
	}
	if m.version(3, m.known()); !m.restored() {
		t.Error("a second restore is not noticed")
	}
}

// TestMarksMerge: what two replicas saw is joined; a later acceptance makes what was seen before it void.
func TestMarksMerge(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	ours := ledger.Marks{Version: 5, Tops: map[string]string{"a": "9", "b": "10"}, Accepted: early}
	for _, c := range []struct {
		name            string
		stored          ledger.Marks
		version         int64
		a               string
		accepted, store bool
	}{
		{"nothing stored", ledger.Marks{}, 5, "9", false, true},
		{"another saw more", ledger.Marks{Version: 7, Tops: map[string]string{"a": "10"}, Accepted: early}, 7, "10", false, true},
		{"accepted elsewhere", ledger.Marks{Version: 1, Accepted: late}, 1, "", true, false},
		{"another company elsewhere", ledger.Marks{Era: 1}, 0, "", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &marks{now: ours.Clone(), dirty: true}
			all, accepted, store := m.merge(c.stored)
			if all.Version != c.version || all.Tops["a"] != c.a || accepted != c.accepted || store != c.store {
				t.Errorf("%+v, accepted %v, store %v", all, accepted, store)
			}
		})
	}
}
