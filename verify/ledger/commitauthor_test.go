//go:build linux

package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// found is a value of a key; round 0 = none.
type found struct {
	round    int
	revision uint64
}

// known is what an author knows of a key.
type known struct {
	told found   // acknowledged
	seen []found // read since then, after writes that nothing was heard of
}

// revision is what the next write expects.
func (k known) revision() uint64 {
	if n := len(k.seen); n > 0 {
		return k.seen[n-1].revision
	}
	return k.told.revision
}

// author writes some of its own keys together, again and again.
type author struct {
	prefix string
	take   int // keys of a write
	size   int // of a value

	mu      sync.Mutex
	round   int
	keys    map[string]known
	names   []string
	pending []string // keys of the write of this round, as long as it is not acknowledged
}

func newAuthor(c commitCase, i int) *author {
	a := &author{prefix: fmt.Sprintf("s.%d.%d.", i%c.streams, i), take: max(c.keys/3, 1), size: c.size, keys: map[string]known{}}
	for k := range c.keys {
		a.names = append(a.names, a.prefix+strconv.Itoa(k))
		a.keys[a.names[k]] = known{}
	}
	return a
}

// write stores some keys. What is not acknowledged stays pending.
func (a *author) write(ctx context.Context, w writer) error {
	revisions, err := w.store(ctx, a.next())
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, key := range a.pending {
		if revisions[i] > 0 {
			a.keys[key] = known{told: found{a.round, revisions[i]}}
		}
	}
	if err == nil {
		a.pending = nil
	}
	return err
}

// next begins a write. The first one makes all keys, later ones change some at random, so that old blocks thin out.
func (a *author) next() []write {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.round++
	rand.Shuffle(len(a.names), func(i, k int) { a.names[i], a.names[k] = a.names[k], a.names[i] })
	a.pending = slices.Clone(a.names)
	if a.round > 1 {
		a.pending = a.pending[:a.take]
	}
	together := make([]write, len(a.pending))
	for i, key := range a.pending {
		value := make([]byte, a.size)
		copy(value, fmt.Sprintf("%s %d ", key, a.round))
		together[i] = write{key, value, a.keys[key].revision()}
	}
	return together
}

// resolve reads what became of a write that nothing was heard of.
func (a *author) resolve(ctx context.Context, js jetstream.JetStream) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range a.pending {
		is, err := lastOf(ctx, js, key)
		if err != nil {
			return err
		}
		if k := a.keys[key]; is.round == a.round && k.told.round < a.round {
			a.keys[key] = known{told: k.told, seen: append(slices.Clone(k.seen), is)}
		}
	}
	a.pending = nil
	return nil
}

// promised is what an author knows at some moment.
type promised struct {
	prefix  string
	writes  int // that were begun
	keys    map[string]known
	pending []string // keys of write number writes, not acknowledged
}

func (a *author) promised() promised {
	a.mu.Lock()
	defer a.mu.Unlock()
	return promised{prefix: a.prefix, writes: a.round, keys: maps.Clone(a.keys), pending: slices.Clone(a.pending)}
}

// judge compares what is there after a cut with what was promised. A key may be further only by what was read without an
// acknowledgement and by the write that was on its way; of that one there is all or nothing if it was atomic.
func (p promised) judge(now map[string]found, atomic bool) []string {
	var faults []string
	fresh := map[string]bool{}
	for _, key := range p.pending {
		if now[key].round == p.writes {
			fresh[key] = true
		}
	}
	if atomic && len(fresh) > 0 && len(fresh) < len(p.pending) {
		faults = append(faults, fmt.Sprintf("of write %d of %s %d keys of %d are there", p.writes, p.prefix, len(fresh), len(p.pending)))
	}
	for key, k := range p.keys {
		is := now[key]
		switch {
		case is == k.told, slices.Contains(k.seen, is), fresh[key]:
		case is.round == 0:
			faults = append(faults, fmt.Sprintf("%s of write %d is gone", key, k.told.round))
		case is.round < k.told.round:
			faults = append(faults, fmt.Sprintf("%s of write %d is back, it was %d", key, is.round, k.told.round))
		default:
			faults = append(faults, fmt.Sprintf("%s is write %d at %d, promised was %d at %d", key, is.round, is.revision, k.told.round, k.told.revision))
		}
	}
	return faults
}

// lastOf reads the last value of a key.
func lastOf(ctx context.Context, js jetstream.JetStream, subject string) (found, error) {
	s, err := js.Stream(ctx, streamOf(subject))
	if err != nil {
		return found{}, err
	}
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return found{}, nil
	}
	if err != nil {
		return found{}, err
	}
	var name string
	var round int
	if n, _ := fmt.Sscanf(string(m.Data[:min(len(m.Data), 100)]), "%s %d ", &name, &round); n != 2 || name != subject {
		return found{}, fmt.Errorf("%s holds %.60q", subject, m.Data)
	}
	return found{round, m.Sequence}, nil
}

func streamOf(subject string) string { return "S" + strings.Split(subject, ".")[1] }
