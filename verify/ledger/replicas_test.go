package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go/jetstream"
)

// This file lets two replicas take the same stream into one store and visits every order in which their calls of the store can
// follow each other, up to a depth: a replica may die before or after any call, a commit without an answer may be stored later or
// never, a sender may write a row in between. model/intake visits the same rules with faults of stream and ledger beside.

// sent is a message of a script: its place is its index + 1.
type sent struct {
	doc, id, number string
}

// step is what the schedule decides about the next call of a replica.
type step uint8

const (
	goOn step = iota // the call is made
	die              // the replica dies before the call
	lose             // the commit is on its way, its replica gives it up and reads everything again
)

// actor is a replica between two calls of the store.
type actor struct {
	w      *arena
	asks   chan bool // it waits for leave to make a call; true = a commit
	leave  chan step
	ended  bool
	cancel context.CancelFunc
}

// arena is one run: the store, the script, two replicas, a commit on its way.
type arena struct {
	mem    *memory
	script []sent
	most   int // messages of a batch
	late   func()
}

func (a *actor) wait(commit bool) step {
	a.asks <- commit
	return <-a.leave
}

// Get and the others make the actor a store.
func (a *actor) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if a.wait(false) == die {
		a.cancel()
		return nil, errStoreGone
	}
	return a.w.mem.Get(ctx, key)
}

var errStoreGone = errors.New("the process died")

// Update: a batch that holds nothing but the cursor is one write.
func (a *actor) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return a.Commit(ctx, []put{{key, value, revision}})
}

func (a *actor) Commit(_ context.Context, puts []put) (uint64, error) {
	switch a.wait(true) {
	case die:
		a.cancel()
		return 0, errStoreGone
	case lose:
		a.w.late = func() { _, _ = a.w.mem.Commit(context.Background(), puts) }
		a.cancel()
		return 0, context.Canceled
	}
	return a.w.mem.Commit(context.Background(), puts)
}

// run takes until all is taken. A replica that died begins again as another one would.
func (a *actor) run() {
	defer close(a.asks)
	for known := unknown; ; {
		ctx, cancel := context.WithCancel(context.Background())
		a.cancel = cancel
		done, err := a.w.take(ctx, a, known)
		cancel()
		if done {
			return
		}
		if known = unknown; err != nil {
			known = nil // as after a refusal: with care
		}
	}
}

// take is one batch, as the engine takes it.
func (w *arena) take(ctx context.Context, store keyValue, known func(ID) bool) (done bool, err error) {
	l := memLedger(store)
	l.group = &group{batch: store.(batcher), timeout: l.timeout, one: l.update}
	c, err := l.Cursor(ctx, "FLEXID_PUSH")
	if err != nil {
		return false, err
	}
	if int(c.Seq) == len(w.script) {
		return true, nil
	}
	b := l.Begin(known)
	n := int(c.Seq)
	for ; n < min(int(c.Seq)+w.most, len(w.script)); n++ {
		m := w.script[n]
		if m.number != "" {
			if _, err := b.TakeNumber(ctx, "faktura-vydana", m.number, ID(m.doc)); err != nil {
				return false, err
			}
		}
		if _, _, err := b.event(ctx, m.doc, n+1, m.id); err != nil && !errors.Is(err, ErrHave) {
			return false, err
		}
	}
	_, err = b.Commit(ctx, cursorAt(c, uint64(n)))
	return false, err
}

// play runs a schedule: a list of choices, each among those that there were; it gives how many there were at each.
func play(t *testing.T, script []sent, most int, choices []int) (counts []int) {
	w := &arena{mem: newMemory(), script: script, most: most}
	actors := []*actor{}
	for range 2 {
		a := &actor{w: w, asks: make(chan bool), leave: make(chan step)}
		go a.run()
		actors = append(actors, a)
	}
	asked := make([]bool, 2) // the call is a commit
	next := func(i int) {
		commit, ok := <-actors[i].asks
		asked[i], actors[i].ended = commit, !ok
	}
	next(0)
	next(1)
	deaths := 1
	for i := 0; ; i++ {
		var options []func()
		for j, a := range actors {
			if a.ended {
				continue
			}
			options = append(options, func() { a.leave <- goOn; next(j) })
			if asked[j] && i <= len(choices) && deaths > 0 { // a death between two reads is one before the commit
				options = append(options, func() { deaths--; a.leave <- die; next(j) })
				if w.late == nil {
					options = append(options, func() { deaths--; a.leave <- lose; next(j) })
				}
			}
		}
		if w.late != nil && i <= len(choices) {
			options = append(options, func() { w.late(); w.late = nil })
		}
		if key := rowKey("a"); i <= len(choices) && w.mem.keys[key].revision > 0 && len(w.mem.keys[key].value) > 0 {
			options = append(options, func() { w.write(t, "a") })
		}
		if len(options) == 0 {
			break
		}
		counts = append(counts, len(options))
		choice := 0
		if i < len(choices) {
			choice = choices[i]
		}
		options[choice]()
	}
	w.judge(t, choices)
	return counts
}

// write is a sender who writes the row of a document.
func (w *arena) write(t *testing.T, id ID) {
	l := memLedger(w.mem)
	row, err := l.Get(t.Context(), id)
	noErr(t, err)
	row.Sends++
	noErr(t, l.Settle(t.Context(), []*Row{&row})[0])
}

// judge: every event is there once, in the order of the stream, under the document that the first use of its id named; the number
// is the first one's; and what a sender wrote was not lost.
func (w *arena) judge(t *testing.T, choices []int) {
	t.Helper()
	l := memLedger(w.mem)
	docs, first := map[string][]string{}, map[string]bool{}
	for n, m := range w.script {
		if !first[m.id] {
			docs[m.doc] = append(docs[m.doc], fmt.Sprint(n+1))
		}
		first[m.id] = true
	}
	for doc, places := range docs {
		row, err := l.Get(t.Context(), ID(doc))
		noErr(t, err)
		var have []string
		for n := 1; n <= row.Tail; n++ {
			ev, err := l.Event(t.Context(), ID(doc), n)
			noErr(t, err)
			have = append(have, fmt.Sprint(ev.Stream.Seq))
		}
		if !slices.Equal(have, places) {
			t.Fatalf("document %s has events %v, want %v; schedule %v", doc, have, places, choices)
		}
	}
	for _, m := range w.script {
		if m.number == "" {
			continue
		}
		if owner, _, err := l.HolderOf(t.Context(), "faktura-vydana", m.number); err != nil || string(owner) != m.doc {
			t.Fatalf("the number is %s's, want %s's: %v; schedule %v", owner, m.doc, err, choices)
		}
		break
	}
}

func TestTwoReplicasTakeOneStream(t *testing.T) {
	scripts := map[string][]sent{
		"order":  {{"a", "1", ""}, {"b", "2", ""}, {"a", "3", ""}},
		"again":  {{"a", "1", ""}, {"a", "2", ""}, {"a", "1", ""}},
		"reused": {{"a", "1", ""}, {"b", "1", ""}, {"a", "3", ""}},
		"number": {{"a", "1", "FV-1"}, {"b", "2", "FV-1"}, {"a", "3", ""}},
	}
	depth := 5
	if os.Getenv("FLEXID_SLOW") != "" {
		depth = 7
	}
	for name, script := range scripts {
		for most := 1; most <= 3; most++ {
			t.Run(fmt.Sprint(name, "/", most), func(t *testing.T) {
				t.Parallel()
				runs := 0
				var visit func(choices []int)
				visit = func(choices []int) {
					var counts []int
					synctest.Test(t, func(t *testing.T) { counts = play(t, script, most, choices) })
					runs++
					if len(choices) == depth || len(counts) <= len(choices) {
						return
					}
					// play chose 0 after the given ones; the first of those was visited by this run.
					for c := range counts[len(choices)] {
						visit(append(slices.Clone(choices), c))
					}
				}
				visit(nil)
				t.Logf("%d schedules", runs)
			})
		}
	}
}
