//go:build linux

package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLedgerCutInCommit is TestCutInCommit with the ledger itself: many callers append, claim, settle, take messages in
// with their cursor and store keys that belong together, while the power is cut at many moments. FLEXID_CUTS says how many (40).
func TestLedgerCutInCommit(t *testing.T) {
	slow(t)
	d := newSlowDisk(t, "512M")
	c := newCrowd(mustOpen(t, d.connect(), Options{Create: true, Timeout: time.Minute}))
	// At full speed first, until blocks have come and gone: a cut can only lose what an old block holds.
	stop := c.begin(t)
	progress(t, c.told, 4000)
	stop()
	d.kill()
	d.under = stretch
	d.start()
	before, batches := c.told.acks.Load(), c.batches.Load()
	stop = c.begin(t)
	defer func() { stop() }()
	progress(t, c.told, 1)
	for n := range cutsWanted(t) {
		wait(t.Context(), rand.N(700*time.Millisecond))
		var then *promises
		var units []unitOf
		var taken tally
		file := d.cut(t, func() { then, units, taken = c.promised() })
		p, end := d.survivor(t, file)
		js := p.connect()
		after := mustOpen(t, js, Options{})
		then.kept(t, after)
		for _, u := range units {
			u.whole(t, after)
		}
		taken.whole(t, after)
		if t.Failed() {
			t.Fatalf("cut %d", n)
		}
		js.Conn().Close()
		end()
	}
	acks, batches := c.told.acks.Load()-before, c.batches.Load()-batches
	t.Logf("%d cuts, %d acknowledged meanwhile, %d batches", d.cuts, acks, batches)
	if acks < int64(2*d.cuts) || batches < int64(d.cuts)/8 {
		t.Error("too little was stored for this to prove anything")
	}
}

// crowd is many callers of one ledger.
type crowd struct {
	*Ledger
	told    *promises
	batches atomic.Int64
	members []*member

	mu    sync.Mutex
	units []unitOf
	taken tally
}

// tally is how far a stream was taken in.
type tally struct {
	told  int // message up to which that was acknowledged
	begun int // message up to which it is stored or on its way
}

// member has documents of its own, which it claims together.
type member struct {
	ids  []ID
	next map[ID]int // event that is appended next
}

// unitOf is what one caller stores together, again and again.
type unitOf struct {
	name  string
	keys  int
	told  int // round that was acknowledged
	begun int // round that was stored last or is on its way
}

func newCrowd(l *Ledger) *crowd {
	c := &crowd{Ledger: l, told: newPromises()}
	l.group.batch = counted{l.group.batch, &c.batches}
	for i := range 16 {
		m := &member{next: map[ID]int{}}
		for k := range 6 {
			id := ID(fmt.Sprintf("doc%d.%d", i, k))
			m.ids, m.next[id] = append(m.ids, id), 1
		}
		c.members = append(c.members, m)
	}
	for i := range 3 {
		c.units = append(c.units, unitOf{name: fmt.Sprintf("u.%d.", i), keys: 3 + 3*i})
	}
	return c
}

// counted counts batches.
type counted struct {
	batcher
	n *atomic.Int64
}

func (c counted) Commit(ctx context.Context, puts []put) (uint64, error) {
	c.n.Add(1)
	return c.batcher.Commit(ctx, puts)
}

// begin lets all callers work until the function that it returns is called.
func (c *crowd) begin(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	again := func(do func() error) {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := do(); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for _, m := range c.members {
		again(func() error { return c.documents(ctx, m) })
	}
	for i := range c.units {
		again(func() error { return c.unit(ctx, i) })
	}
	again(func() error { return c.take(ctx) })
	return func() { cancel(); wg.Wait() }
}

// documents takes one event, then claims all rows of a member and settles them.
func (c *crowd) documents(ctx context.Context, m *member) error {
	id := m.ids[rand.IntN(len(m.ids))]
	tmpl := sampleRow(string(id))
	tmpl.ID = id
	ev := sampleEvent(m.next[id])
	if _, err := c.Append(ctx, tmpl, ev, nil); err != nil && !errors.Is(err, ErrHave) {
		return err
	}
	c.told.event(id, ev.EventID)
	m.next[id]++
	var rows []*Row
	for _, id := range m.ids {
		row, err := c.Get(ctx, id)
		if errors.Is(err, ErrNoRow) {
			continue
		}
		if err != nil {
			return err
		}
		// Large rows fill and empty blocks soon.
		row.Partner = strings.Repeat("x", 20<<10)
		row.Sends++
		rows = append(rows, &row)
	}
	for _, s := range []State{Sending, Confirmed} {
		store := c.Settle
		if s == Sending {
			store = c.Claim
		}
		for _, row := range rows {
			row.State = s
		}
		for i, err := range store(ctx, rows) {
			if err != nil {
				return err
			}
			c.told.row(rows[i].Clone())
		}
	}
	return nil
}

// unit stores the keys of a unit once.
func (c *crowd) unit(ctx context.Context, i int) error {
	c.mu.Lock()
	c.units[i].begun++
	u := c.units[i]
	c.mu.Unlock()
	puts := make([]put, u.keys)
	for k := range puts {
		puts[k].key = fmt.Sprint(u.name, k)
		puts[k].value = []byte(fmt.Sprintf("%d %s", u.begun, c.token()))
		if e, err := c.get(ctx, puts[k].key); err == nil {
			puts[k].revision = e.Revision()
		} else if u.begun > 1 {
			return err
		}
	}
	if _, err := c.commit(ctx, puts); err != nil {
		return err
	}
	c.mu.Lock()
	c.units[i].told = u.begun
	c.mu.Unlock()
	c.told.count()
	return nil
}

// takeAtOnce is how many messages go into one batch of what is taken in; takers is over how many documents they go.
const (
	takeAtOnce = 5
	takers     = 7
)

// take takes the next messages of a stream into the ledger, with the cursor.
func (c *crowd) take(ctx context.Context) error {
	cursor, err := c.Cursor(ctx, "STREAM")
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.taken.begun = max(c.taken.begun, int(cursor.Seq)+takeAtOnce)
	c.mu.Unlock()
	b := c.Begin(nil)
	for range takeAtOnce {
		cursor.Seq++
		tmpl := sampleRow(takerOf(int(cursor.Seq)))
		tmpl.ID = ID(tmpl.Key)
		if _, err := b.Append(ctx, tmpl, sampleEvent(int(cursor.Seq)), nil); err != nil {
			return err
		}
	}
	if _, err := b.Commit(ctx, &cursor); err != nil {
		return err
	}
	c.mu.Lock()
	c.taken.told = int(cursor.Seq)
	c.mu.Unlock()
	c.told.count()
	return nil
}

func takerOf(seq int) string { return fmt.Sprint("taker", seq%takers) }

// whole: what the cursor says was taken is there, once and in order, and nothing beyond it.
func (y tally) whole(t *testing.T, l *Ledger) {
	t.Helper()
	cursor, err := l.Cursor(t.Context(), "STREAM")
	noErr(t, err)
	if n := int(cursor.Seq); n < y.told || n > y.begun {
		t.Errorf("taken up to %d was acknowledged, up to %d begun, the cursor is at %d", y.told, y.begun, n)
	}
	for i := range takers {
		var want, have []uint64
		for seq := 1; seq <= int(cursor.Seq); seq++ {
			if takerOf(seq) == takerOf(i) {
				want = append(want, uint64(seq))
			}
		}
		if len(want) == 0 {
			continue
		}
		for _, ev := range history(t, l, ID(takerOf(i)), 0) {
			have = append(have, ev.Stream.Seq)
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s: the cursor is at %d, its events are %v", takerOf(i), cursor.Seq, have)
		}
	}
}

// promised is what all callers were told up to now.
func (c *crowd) promised() (*promises, []unitOf, tally) {
	p := newPromises()
	c.told.mu.Lock()
	p.rows = maps.Clone(c.told.rows)
	for id, ids := range c.told.events {
		p.events[id] = slices.Clone(ids)
	}
	c.told.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return p, slices.Clone(c.units), c.taken
}

// whole: all keys of a unit are of one round, the acknowledged one or one that was begun after it.
func (u unitOf) whole(t *testing.T, l *Ledger) {
	t.Helper()
	var rounds []int
	for k := range u.keys {
		round := 0
		if e, err := l.get(t.Context(), fmt.Sprint(u.name, k)); err == nil {
			_, err := fmt.Sscanf(string(e.Value()), "%d", &round)
			noErr(t, err)
		}
		rounds = append(rounds, round)
	}
	if slices.Min(rounds) != slices.Max(rounds) || rounds[0] < u.told || rounds[0] > u.begun {
		t.Errorf("unit %s: acknowledged %d, begun %d, its keys are at %v", u.name, u.told, u.begun, rounds)
	}
}
