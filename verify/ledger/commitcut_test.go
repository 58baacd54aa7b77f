//go:build linux

package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// commitCase is one way to store things.
type commitCase struct {
	name    string
	history int64 // revisions kept of a key
	streams int
	batch   bool
	authors int    // that write side by side
	keys    int    // of one author; each write takes a third of them
	size    int    // of a value: old blocks of 4 MiB must get full and emptied again while the test runs
	kills   bool   // the server is killed before each cut, which then falls into what is stored next
	barrier bool   // after that kill one plain put comes before anything else
	loses   string // why acknowledged keys are lost; then it runs only if it is asked for
}

func commitCases() []commitCase {
	plain := commitCase{history: 1, streams: 1, authors: 2, keys: 6, size: 500 << 10}
	batch := commitCase{history: 2, streams: 1, authors: 2, keys: 40, size: 100 << 10, batch: true}
	four, one, kill := plain, batch, batch
	plain.name = "plain puts"
	four.name, four.streams, four.authors = "plain puts over four streams", 4, 8
	batch.name = "batches, history 2"
	one.name, one.history = "batches, history 1", 1
	one.loses = "the old value goes for good, with the rest of its block, before the new one is synced"
	kill.name, kill.kills = "batches, history 2, killed before", true
	kill.loses = "what a killed server left unsynced counts as one of the two revisions that are kept"
	barrier := kill
	barrier.name, barrier.barrier, barrier.loses = "batches, history 2, killed before, a plain put first", true, ""
	return []commitCase{plain, four, batch, barrier, one, kill}
}

// TestCutInCommit cuts the power at many moments inside commits: what was acknowledged is there, no older revision comes
// back, and of what an atomic batch stores either all is there or nothing. FLEXID_CUTS says how many cuts (40); FLEXID_LOSES
// also runs what is known to lose.
func TestCutInCommit(t *testing.T) {
	slow(t)
	for _, c := range commitCases() {
		t.Run(c.name, func(t *testing.T) {
			if c.loses != "" && os.Getenv("FLEXID_LOSES") == "" {
				t.Skip("set FLEXID_LOSES=1 to see this lose: ", c.loses)
			}
			newCommitCut(t, c).run(t)
		})
	}
}

// cutsWanted is 40, or what FLEXID_CUTS says.
func cutsWanted(t *testing.T) int {
	n := 40
	if s := os.Getenv("FLEXID_CUTS"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		noErr(t, err)
	}
	return n
}

// commitCut is one case on its way.
type commitCut struct {
	commitCase
	disk    *slowDisk
	js      jetstream.JetStream
	writer  writer
	authors []*author
}

// newCommitCut fills a disk at full speed, until blocks have come and gone.
func newCommitCut(t *testing.T, c commitCase) *commitCut {
	r := &commitCut{commitCase: c, disk: newSlowDisk(t, "256M")}
	r.js = r.disk.connect()
	for i := range c.streams {
		_, err := r.js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: fmt.Sprint("S", i), Subjects: []string{fmt.Sprintf("s.%d.>", i)}, MaxMsgsPerSubject: c.history,
			Discard: jetstream.DiscardNew, AllowAtomicPublish: c.batch,
		})
		noErr(t, err)
	}
	r.writer = plain{r.js}
	if c.batch {
		r.writer = &batches{nc: r.js.Conn()}
	}
	for i := range c.authors {
		r.authors = append(r.authors, newAuthor(c, i))
	}
	for range 30 {
		for _, a := range r.authors {
			noErr(t, a.write(t.Context(), r.writer))
		}
	}
	return r
}

func (r *commitCut) run(t *testing.T) {
	bad, inside, before := 0, 0, r.begun()
	r.restart(t)
	stop := r.begin(t)
	defer func() { stop() }()
	for n := range cutsWanted(t) {
		longest := 700 * time.Millisecond
		if r.kills {
			wait(t.Context(), rand.N(2*time.Second))
			r.disk.kill()
			stop()
			r.restart(t)
			stop = r.begin(t)
			longest = 2 * time.Second
		}
		wait(t.Context(), rand.N(longest))
		var then []promised
		file := r.disk.cut(t, func() { then = r.promised() })
		if slices.ContainsFunc(then, func(p promised) bool { return len(p.pending) > 0 }) {
			inside++
		}
		if faults := r.after(t, file, then); len(faults) > 0 {
			bad++
			t.Errorf("cut %d: %d faults, such as\n%s", n, len(faults), strings.Join(faults[:min(len(faults), 8)], "\n"))
		}
	}
	stored := r.begun() - before
	t.Logf("%d cuts, %d of them while something was being stored, %d writes, %d cuts with faults", r.disk.cuts, inside, stored, bad)
	if inside < r.disk.cuts/2 || stored < r.disk.cuts/4 {
		t.Error("too little was stored for this to prove anything")
	}
}

// begin lets all authors write until the function that it returns is called.
func (r *commitCut) begin(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, a := range r.authors {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := a.write(ctx, r.writer); err != nil {
					if ctx.Err() == nil && !r.kills {
						t.Errorf("nobody disturbs the store: %v", err)
					}
					return
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// restart starts the server again, with its syncs stretched, and reads what became of writes that were on their way.
func (r *commitCut) restart(t *testing.T) {
	t.Helper()
	r.disk.kill()
	r.disk.under = stretch
	r.disk.start()
	for !r.js.Conn().IsConnected() {
		wait(t.Context(), 10*time.Millisecond)
	}
	for _, a := range r.authors {
		noErr(t, a.resolve(t.Context(), r.js))
		if r.barrier {
			_, err := r.js.Publish(t.Context(), a.prefix+"barrier", nil)
			noErr(t, err)
		}
	}
}

func (r *commitCut) promised() []promised {
	var all []promised
	for _, a := range r.authors {
		all = append(all, a.promised())
	}
	return all
}

func (r *commitCut) begun() int {
	n := 0
	for _, p := range r.promised() {
		n += p.writes
	}
	return n
}

// after starts a server on what a cut left and says what is wrong with it.
func (r *commitCut) after(t *testing.T, file string, then []promised) []string {
	t.Helper()
	p, end := r.disk.survivor(t, file)
	defer end()
	js := p.connect()
	defer js.Conn().Close()
	var faults []string
	for _, p := range then {
		now := map[string]found{}
		for key := range p.keys {
			var err error
			now[key], err = lastOf(t.Context(), js, key)
			noErr(t, err)
		}
		faults = append(faults, p.judge(now, r.batch)...)
		faults = append(faults, listed(t, js, p, now)...)
	}
	return faults
}

// listed compares what a list of last values shows with what the keys are.
func listed(t *testing.T, js jetstream.JetStream, p promised, now map[string]found) []string {
	t.Helper()
	cons, err := js.CreateConsumer(t.Context(), streamOf(p.prefix), jetstream.ConsumerConfig{
		FilterSubject: p.prefix + ">", DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true,
	})
	noErr(t, err)
	shown := map[string]bool{}
	var faults []string
	for pending := cons.CachedInfo().NumPending; pending > 0; {
		batch, err := cons.Fetch(1, jetstream.FetchMaxWait(5*time.Second))
		noErr(t, err)
		m, ok := <-batch.Messages()
		if !ok {
			return append(faults, fmt.Sprintf("a list of %s promises %d more and does not deliver them", p.prefix, pending))
		}
		meta, err := m.Metadata()
		noErr(t, err)
		pending = meta.NumPending
		if is, ours := now[m.Subject()]; ours && meta.Sequence.Stream != is.revision {
			faults = append(faults, fmt.Sprintf("a list shows %s at %d, it is at %d", m.Subject(), meta.Sequence.Stream, is.revision))
		}
		shown[m.Subject()] = true
	}
	for key, is := range now {
		if is.round > 0 && !shown[key] {
			faults = append(faults, fmt.Sprintf("a list does not show %s, it is at %d", key, is.revision))
		}
	}
	return faults
}
