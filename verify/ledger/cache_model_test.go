package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// caches is a process with documents in hand, beside another one that writes the same documents without, over a store whose
// changes are told by a watch that runs behind. What every key ever held is kept, and every answer is held against that.
type caches struct {
	t            *testing.T
	pick         func(n int) int // the source of all choices
	store        *past
	ours, theirs *Ledger
	seen         map[ID]uint64 // revisions that the watch told
	saved        *past         // to be restored
	giveUp       func()
	events       int
	at           ID   // of the document that we work on
	busy         bool // others go on
	left         int  // how often others may go on in the middle of a call of ours: one may be tried twenty times
}

// past is a bucket that remembers. It fails calls of our process when it is told to.
type past struct {
	keys    map[string]memEntry
	deleted map[string]bool
	seq     uint64
	was     map[string]map[uint64][]byte // everything that a key held, by revision
	unseen  []record
	changed map[ID][]change // whoever is done changing an event of a row has changed the row
	late    []put
}

type change struct {
	n          int
	row, event uint64
}

func newPast() *past {
	return &past{keys: map[string]memEntry{}, deleted: map[string]bool{}, was: map[string]map[uint64][]byte{}, changed: map[ID][]change{}}
}

func (p *past) Get(_ context.Context, key string) (jetstream.KeyValueEntry, error) {
	if e, ok := p.keys[key]; ok {
		return e, nil
	}
	return nil, jetstream.ErrKeyNotFound
}

func (p *past) Update(_ context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if p.keys[key].revision != revision || p.deleted[key] {
		return 0, wrongLast(10071)
	}
	p.seq++
	p.keys[key] = memEntry{value: bytes.Clone(value), revision: p.seq}
	p.note(key)
	return p.seq, nil
}

func (p *past) note(key string) {
	e := p.keys[key]
	if p.was[key] == nil {
		p.was[key] = map[uint64][]byte{}
	}
	p.was[key][e.revision] = e.value
	if _, ok := rowOfKey(key); ok {
		p.unseen = append(p.unseen, record{key: key, value: bytes.Clone(e.value), revision: e.revision})
	}
}

func (p *past) delete(key string) {
	p.seq++
	delete(p.keys, key)
	p.deleted[key] = true
	p.unseen = append(p.unseen, record{key: key, revision: p.seq, deleted: true})
}

// copyNow is a backup: it knows nothing of what came before.
func (p *past) copyNow() *past {
	c := newPast()
	c.seq = p.seq
	for key, e := range p.keys {
		c.keys[key] = e
		c.note(key)
	}
	for key := range p.deleted {
		c.deleted[key] = true
	}
	return c
}

// disturbedPast is the store as our process sees it.
type disturbedPast struct{ c *caches }

var errSilent = errors.New("no answer")

func (d disturbedPast) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	e, err := d.c.store.Get(ctx, key)
	d.c.meanwhile() // after the leader has read, before we hear of it
	return e, err
}

func (d disturbedPast) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	c := d.c
	switch c.pick(12) {
	case 0: // lost, and stored some time later
		c.store.late = append(c.store.late, put{key, bytes.Clone(value), revision})
		c.giveUp()
		return 0, errSilent
	case 1: // lost
		c.giveUp()
		return 0, errSilent
	case 2: // stored, and the answer is lost
		_, _ = c.store.Update(ctx, key, value, revision)
		c.giveUp()
		return 0, errSilent
	}
	rev, err := c.store.Update(ctx, key, value, revision)
	c.meanwhile()
	return rev, err
}

func (d disturbedPast) Commit(ctx context.Context, puts []put) (last uint64, err error) {
	for _, p := range puts {
		if d.c.store.keys[p.key].revision != p.revision || d.c.store.deleted[p.key] {
			return 0, wrongLast(10071)
		}
	}
	for _, p := range puts {
		last, err = d.c.store.Update(ctx, p.key, p.value, p.revision)
		noErr(d.c.t, err)
	}
	d.c.meanwhile()
	return last, nil
}

// call is a context for one call of ours, which giveUp ends: then the call is undecided.
func (c *caches) call() (ctx context.Context) {
	ctx, c.giveUp = context.WithTimeout(c.t.Context(), 10*time.Second)
	return ctx
}

func newCaches(t *testing.T, pick func(int) int) *caches {
	c := &caches{t: t, pick: pick, store: newPast(), seen: map[ID]uint64{}}
	c.ours, c.theirs = memLedger(disturbedPast{c}), memLedger(c)
	c.ours.cache = newCache()
	c.ours.cache.open(0)
	count := 0
	c.theirs.token = func() string { count++; return fmt.Sprint("theirs-", count) }
	return c
}

// Get and Update are the store as the other process sees it.
func (c *caches) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	return c.store.Get(ctx, key)
}

func (c *caches) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return c.store.Update(ctx, key, value, revision)
}

// meanwhile lets others go on in the middle of a call of ours.
func (c *caches) meanwhile() {
	if c.busy || c.left == 0 {
		return
	}
	c.busy, c.left = true, c.left-1
	defer func() { c.busy = false }()
	for range c.pick(3) {
		c.step(others)
	}
}

// others is how many kinds of steps are not ours.
const others = 6

// step does one of the first kinds of things.
func (c *caches) step(kinds int) {
	id := ID(fmt.Sprint("row", c.pick(3)))
	if c.busy && c.pick(3) > 0 {
		id = c.at
	}
	if kinds > others {
		c.at = id
	}
	kind := c.pick(kinds)
	if c.store.deleted[rowKey(id)] && (kind < 2 || c.pick(8) > 0) {
		return // each write would be tried twenty times
	}
	switch kind {
	case 0:
		c.theyWrite(id)
	case 1:
		c.theyChangeAnEvent(id)
	case 2:
		for range c.pick(6) {
			c.tell()
		}
		c.caughtUp()
	case 3:
		if n := len(c.store.late); n > 0 {
			p := c.store.late[n-1]
			c.store.late = c.store.late[:n-1]
			_, _ = c.store.Update(c.t.Context(), p.key, p.value, p.revision)
		}
	case 4:
		if c.pick(12) == 0 && !c.store.deleted[rowKey(id)] {
			c.store.delete(rowKey(id))
		}
	case 5:
		c.restore()
	case 6, 7:
		c.weRead(id, true)
	case 8:
		_, err := c.ours.Append(c.call(), Row{ID: id}, c.event(), nil)
		c.allow(err)
	case 9:
		c.weTake(id)
	case 10:
		if row, ok := c.weRead(id, false); ok && row.Tail > 0 {
			ev, err := c.ours.CachedEvent(c.call(), &row, 1+c.pick(row.Tail))
			if err == nil {
				ev.Sends++
				c.allow(c.ours.PutEvent(c.call(), id, ev))
			}
		}
	case 11:
		_, err := c.ours.Get(c.call(), id) // somebody looks
		c.allow(err)
	}
}

func (c *caches) event() Event {
	c.events++
	return Event{EventID: fmt.Sprint("ev", c.events), Body: fmt.Appendf(nil, `{"n":%d}`, c.events), Problem: &Problem{Text: "p"}}
}

// allow lets those errors pass that a caller has to live with.
func (c *caches) allow(err error) {
	c.t.Helper()
	var conflict *ConflictError
	var undecided *UndecidedError
	if err != nil && !errors.As(err, &conflict) && !errors.As(err, &undecided) && !errors.Is(err, ErrNoRow) && !errors.Is(err, ErrNoEvent) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		c.t.Fatal(err)
	}
}

func (c *caches) theyWrite(id ID) {
	if c.pick(2) == 0 {
		_, err := c.theirs.Append(c.t.Context(), Row{ID: id}, c.event(), nil)
		c.allow(err)
		return
	}
	if row, err := c.theirs.Get(c.t.Context(), id); err == nil {
		row.Sends++
		noErr(c.t, c.theirs.Settle(c.t.Context(), []*Row{&row})[0])
	}
}

// theyChangeAnEvent is what a decision, or the end of an event, does at another replica: the event first, then its row.
func (c *caches) theyChangeAnEvent(id ID) {
	row, err := c.theirs.Get(c.t.Context(), id)
	if err != nil || row.Tail == 0 {
		return
	}
	n := 1 + c.pick(row.Tail)
	ev, err := c.theirs.Event(c.t.Context(), id, n)
	noErr(c.t, err)
	ev.Cause += "."
	noErr(c.t, c.theirs.PutEvent(c.t.Context(), id, ev))
	at := c.store.keys[eventKey(id, n)].revision
	noErr(c.t, c.theirs.Settle(c.t.Context(), []*Row{&row})[0])
	c.store.changed[id] = append(c.store.changed[id], change{n, row.Revision, at})
}

// tell lets the watch tell of one change.
func (c *caches) tell() {
	if len(c.store.unseen) == 0 {
		return
	}
	r := c.store.unseen[0]
	c.store.unseen = c.store.unseen[1:]
	c.ours.cache.correct(r)
	id, _ := rowOfKey(r.key)
	if c.seen[id] = r.revision; r.deleted {
		c.seen[id] = 0
	}
}

// restore makes a backup, or brings one back: revisions are used again.
func (c *caches) restore() {
	switch c.pick(20) {
	case 0:
		c.saved = c.store.copyNow()
	case 1:
		if c.saved == nil {
			return
		}
		c.store, c.saved, c.seen = c.saved, nil, map[ID]uint64{}
		c.ours.cache.close()
		c.ours.cache.open(0)
	}
}

// weRead reads a row and, perhaps, an event of it, and may store the row. What it gets is scribbled over.
func (c *caches) weRead(id ID, write bool) (Row, bool) {
	c.t.Helper()
	store := c.store
	row, held, err := c.ours.Cached(c.call(), id, c.seen[id])
	if err != nil || c.store != store {
		c.allow(err)
		return row, false
	}
	value := c.store.was[rowKey(id)][row.Revision]
	want := Row{}
	if value != nil {
		want, _ = rowOf(value, row.Revision, id)
	}
	if !reflect.DeepEqual(row, want) {
		c.t.Fatalf("row %s (held %v): got %+v, but revision %d was %s", id, held, row, row.Revision, value)
	}
	if row.Tail > 0 {
		c.weReadEvent(&row, 1+c.pick(row.Tail))
	}
	if write && c.pick(2) == 0 {
		own := row.Clone()
		own.Sends += 100
		c.allow(c.ours.Settle(c.call(), []*Row{&own})[0])
	}
	return row, true
}

func (c *caches) weReadEvent(row *Row, n int) {
	c.t.Helper()
	store := c.store
	ev, err := c.ours.CachedEvent(c.call(), row, n)
	if err != nil || c.store != store {
		c.allow(err)
		return
	}
	var at uint64
	for revision, value := range c.store.was[eventKey(row.ID, n)] {
		if want, _ := unmarshalEvent(value); reflect.DeepEqual(ev, want) {
			at = revision
		}
	}
	if at == 0 {
		c.t.Fatalf("event %d of %s never was %+v", n, row.ID, ev)
	}
	for _, ch := range c.store.changed[row.ID] {
		if ch.n == n && ch.row <= row.Revision && ch.event > at {
			c.t.Fatalf("event %d of %s at row %d: got revision %d, but %d was there before row %d", n, row.ID, row.Revision, at, ch.event, ch.row)
		}
	}
	count := 7
	fillInPlace(reflect.ValueOf(&ev).Elem(), &count)
	for i := range ev.Body {
		ev.Body[i] = 'x'
	}
}

// weTake stores an event and its row as a whole, as intake does.
func (c *caches) weTake(id ID) {
	row, _, err := c.ours.Cached(c.call(), id, c.seen[id])
	if errors.Is(err, ErrNoRow) && !c.store.deleted[rowKey(id)] {
		row, err = Row{Format: Format, ID: id, State: Queued}, nil
	}
	if err != nil {
		c.allow(err)
		return
	}
	base := row.Revision
	row.Tail++
	ev := c.event()
	ev.N, ev.Token, row.Token = row.Tail, c.ours.token(), c.ours.token()
	value, err := ev.marshal()
	noErr(c.t, err)
	data, err := row.Marshal()
	noErr(c.t, err)
	c.ours.group = &group{one: c.ours.update, batch: disturbedPast{c}, timeout: c.ours.timeout}
	defer func() { c.ours.group = nil }()
	_, err = c.ours.commit(c.call(), []put{{eventKey(id, ev.N), value, c.store.keys[eventKey(id, ev.N)].revision}, {rowKey(id), data, base}})
	c.allow(err)
}

// run walks at random, and ends with a watch that has caught up.
func (c *caches) run(steps int) {
	for range steps {
		c.left = 3
		c.step(12)
	}
	for len(c.store.unseen) > 0 {
		c.tell()
	}
	c.caughtUp()
}

// caughtUp: when the watch has told everything, what is in hand is what the store has.
func (c *caches) caughtUp() {
	if c.busy || len(c.store.unseen) > 0 {
		return
	}
	c.busy = true
	defer func() { c.busy = false }()
	for i := range 3 {
		id := ID(fmt.Sprint("row", i))
		row, held, err := c.ours.Cached(c.call(), id, c.seen[id])
		e, there := c.store.keys[rowKey(id)]
		switch {
		case there != (err == nil):
			c.t.Fatalf("row %s is there: %v; got %v", id, there, err)
		case there && row.Revision != e.revision:
			c.t.Fatalf("the watch has told everything; row %s has revision %d, got %d (held %v)", id, e.revision, row.Revision, held)
		}
	}
}

// TestCacheAgainstItsModel: whatever two processes, a person and a lossy network do, what is in hand is something that the store
// had, and what it has once the watch has told everything; an event is as of its row; nobody's changes of what was given show.
func TestCacheAgainstItsModel(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Log("seed ", seed)
				}
			}()
			newCaches(t, rand.New(rand.NewPCG(seed, 3)).IntN).run(150)
		})
	}
}

func FuzzCache(f *testing.F) {
	f.Add([]byte("\x08\x00\x06\x00\x01\x02\x09\x00\x07\x01\x01\x01\x0a"))
	f.Fuzz(func(t *testing.T, in []byte) {
		steps := len(in)
		synctest.Test(t, func(t *testing.T) {
			newCaches(t, func(n int) int {
				if len(in) == 0 {
					return 0
				}
				b := in[0]
				in = in[1:]
				return int(b) % n
			}).run(min(steps, 300))
		})
	})
}
