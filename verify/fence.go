package verify

import (
	"strings"
	"sync"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// fence remembers, since the start of the process, whether an evidence keeps our external ids. Only then can the server
// refuse a second create, and only then may an absence be followed by a resend.
type fence struct {
	prefix string // "ext:<system>"

	mu     sync.Mutex
	states map[string]fenceState
	claims map[ledger.ID]claims // creates of this process
	kept   map[string]time.Time // by evidence: a record made after this moment came back with its external id
	wanted map[string]bool      // by evidence: a document in doubt waits for a record made later
}

type fenceState uint8

const (
	fenceUnknown fenceState = iota
	fenceProved
	fenceDisproved
)

func (f fenceState) String() string { return [...]string{"unknown", "proved", "disproved"}[f] }

func newFence(system string) *fence {
	return &fence{
		prefix: "ext:" + system, states: map[string]fenceState{}, claims: map[ledger.ID]claims{}, kept: map[string]time.Time{}, wanted: map[string]bool{},
	}
}

// claims are the moments just before a create was claimed, on this process's own clock.
type claims struct {
	event       int
	first, last time.Time
}

// claiming notes that a create is about to be claimed.
func (f *fence) claiming(id ledger.ID, event int, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.claims[id]
	if c.event != event {
		c = claims{event: event, first: at}
	}
	c.last = at
	f.claims[id] = c
}

// came notes that the record of a document came back with the document's own external id. Where this process made it, that
// proves that Flexi kept external ids after the first attempt to make it began.
func (f *fence) came(evidence string, id ledger.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.claims[id]; ok && c.first.After(f.kept[evidence]) {
		f.kept[evidence] = c.first
		delete(f.wanted, evidence)
	}
}

// forget drops what is known of a document's claims. It must not be in doubt any more: a create without claims counts as one
// from before the start of the process, for which any record made since is proof.
func (f *fence) forget(id ledger.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.claims, id)
}

// stateFor says what is known of the fence for a document's create in doubt. Where Flexi draws the number the external id is all
// that a look can find the record by and all that refuses a second one, so that a record of ours from before proves nothing:
// Flexi may have stopped keeping external ids since. Only one that was made after the last attempt began does.
func (f *fence) stateFor(evidence string, id ledger.ID, drawn bool) fenceState {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.states[evidence]
	if s == fenceProved && drawn && !f.kept[evidence].After(f.claims[id].last) {
		f.wanted[evidence] = true
		return fenceUnknown
	}
	return s
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

// asked says whether a document waits for a record of the evidence to be read back.
func (f *fence) asked(evidence string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states[evidence] == fenceUnknown || f.wanted[evidence]
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

// reset forgets everything: the records that proved it are another company's.
func (f *fence) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.states)
	clear(f.claims)
	clear(f.kept)
	clear(f.wanted)
}
