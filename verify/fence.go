package verify

import (
	"strings"
	"sync"

	"flexid/flexi"
)

// fence remembers, since the start of the process, whether an evidence keeps our external ids. Only then can the server
// refuse a second create, and only then may an absence be followed by a resend.
type fence struct {
	prefix string // "ext:<system>"

	mu      sync.Mutex
	states  map[string]fenceState
	highest int64 // @globalVersion
	fell    bool
}

type fenceState uint8

const (
	fenceUnknown fenceState = iota
	fenceProved
	fenceDisproved
)

func (f fenceState) String() string { return [...]string{"unknown", "proved", "disproved"}[f] }

func newFence(system string) *fence {
	return &fence{prefix: "ext:" + system, states: map[string]fenceState{}}
}

// ours says whether an external id was given by this installation: ext:<system>:… or ext:<system>.<source>:…
func (f *fence) ours(id string) bool {
	rest, ok := strings.CutPrefix(id, f.prefix)
	return ok && (strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "."))
}

// saw takes note of a record that came back: one with an external id of ours proves the fence.
func (f *fence) saw(evidence string, r flexi.Record) {
	for _, id := range r.ExternalIDs() {
		if f.ours(id) {
			f.set(evidence, fenceProved)
			return
		}
	}
}

// set keeps "disproved": one record that lost its id is enough to distrust the evidence until the next start.
func (f *fence) set(evidence string, s fenceState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.states[evidence] != fenceDisproved {
		f.states[evidence] = s
	}
}

func (f *fence) of(evidence string) fenceState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states[evidence]
}

func (f *fence) all() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := map[string]string{}
	for e, s := range f.states {
		m[e] = s.String()
	}
	return m
}

// known is the highest @globalVersion seen so far.
func (f *fence) known() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.highest
}

// version takes note of a @globalVersion; it never falls at a server that was not restored. before is what was known when
// the read began: answers of reads that run side by side arrive in any order.
func (f *fence) version(v, before int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v > 0 && v < before && before <= f.highest {
		f.fell = true
	}
	f.highest = max(f.highest, v)
}

// restored reports once that the version fell.
func (f *fence) restored() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	fell := f.fell
	if fell {
		f.fell, f.highest = false, 0
	}
	return fell
}
