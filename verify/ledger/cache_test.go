package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// cachedLedger keeps documents over a store in memory, as if a watch told it of everything.
func cachedLedger(kv keyValue) *Ledger {
	l := memLedger(kv)
	l.cache = newCache()
	l.cache.open(0)
	return l
}

// inHand asks for a row and says whether the leader was asked.
func inHand(t *testing.T, l *Ledger, id ID) (Row, bool) {
	t.Helper()
	row, held, err := l.Cached(t.Context(), id, 0)
	noErr(t, err)
	return row, held
}

// TestWhatWasStoredIsInHand: a unit of event and row, and every change of the row after it, cost no read; nor does an event that
// was read once.
func TestWhatWasStoredIsInHand(t *testing.T) {
	kv := &counting{keyValue: newMemory()}
	l := cachedLedger(kv)
	g := newGrouped()
	g.mem = kv.keyValue.(*memory)
	l.group = &group{one: l.update, batch: g, timeout: l.timeout}
	row := sampleRow("x")
	row.Format, row.State, row.Tail = Format, Queued, 1
	ev := sampleEvent(1)
	ev.N, ev.Born = 1, IDReused
	value, err := ev.marshal()
	noErr(t, err)
	data, err := row.Marshal()
	noErr(t, err)
	_, err = l.commit(t.Context(), []put{{eventKey(row.ID, 1), value, 0}, {rowKey(row.ID), data, 0}})
	noErr(t, err)
	for range 3 {
		have, held := inHand(t, l, row.ID)
		got, err := l.CachedEvent(t.Context(), &have, 1)
		noErr(t, err)
		want(t, "event", got.EventID, ev.EventID)
		want(t, "in hand", held, true)
		have.Sends++
		noErr(t, l.Settle(t.Context(), []*Row{&have})[0])
		got.Story = &Story{Cut: have.Sends}
		noErr(t, l.PutEvent(t.Context(), row.ID, got))
	}
	want(t, "reads", kv.gets, 0)
	kept, _ := inHand(t, l, row.ID)
	stored, err := memLedger(kv).Get(t.Context(), row.ID)
	noErr(t, err)
	if !reflect.DeepEqual(kept, stored) {
		t.Errorf("in hand %+v, stored %+v", kept, stored)
	}
	inTheStore, err := memLedger(kv).Event(t.Context(), row.ID, 1)
	noErr(t, err)
	got, err := l.CachedEvent(t.Context(), &kept, 1)
	noErr(t, err)
	if !reflect.DeepEqual(got, inTheStore) || got.Story.Cut != 3 {
		t.Errorf("in hand %+v, stored %+v", got, inTheStore)
	}
}

// TestWhatIsInDoubtIsNotInHand: after any error of a write the leader is asked.
func TestWhatIsInDoubtIsNotInHand(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		stored bool
		moved  bool
	}{
		"conflict":              {moved: true},
		"undecided, stored":     {err: context.DeadlineExceeded, stored: true},
		"undecided, not stored": {err: context.DeadlineExceeded},
		"full":                  {err: fmt.Errorf("nats: %w", &jetstream.APIError{ErrorCode: 10047})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := newMemory()
				kv := &hook{keyValue: mem, update: mem.Update}
				l := cachedLedger(kv)
				row, err := l.Append(t.Context(), sampleRow("x"), sampleEvent(1), nil)
				noErr(t, err)
				if _, held := inHand(t, l, row.ID); !held {
					t.Fatal("what was stored is not in hand")
				}
				theirs := row.Clone()
				if c.moved {
					noErr(t, memLedger(mem).Settle(t.Context(), []*Row{&theirs})[0])
				}
				ctx, cancel := context.WithCancel(t.Context())
				kv.update = func(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
					if c.err == nil {
						return mem.Update(ctx, key, value, revision)
					}
					if c.stored {
						_, _ = mem.Update(ctx, key, value, revision)
					}
					cancel()
					return 0, c.err
				}
				if err := l.Settle(ctx, []*Row{&row})[0]; err == nil {
					t.Fatal("it was stored")
				}
				have, held := inHand(t, l, row.ID)
				want(t, "in hand", held, false)
				want(t, "revision", have.Revision, mem.keys[rowKey(row.ID)].revision)
			})
		})
	}
}

// TestEventBeforeItsRow: an event that was stored before its row, which then was not, is replaced by another process. It must not
// be taken for the one that the row points at.
func TestEventBeforeItsRow(t *testing.T) {
	mem := newMemory()
	first := &hook{keyValue: mem, update: mem.Update}
	l := cachedLedger(first)
	row, err := l.Append(t.Context(), sampleRow("x"), sampleEvent(1), nil)
	noErr(t, err)
	_, err = l.CachedEvent(t.Context(), &row, 1)
	noErr(t, err)
	first.update = func(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
		if key == rowKey(row.ID) { // the other one is faster
			first.update = mem.Update
			want(t, "revision of the event in hand", l.cache.event(row.ID, 2, 0, 0).revision, 0)
			_, err := memLedger(mem).Append(ctx, row, sampleEvent(7), nil)
			noErr(t, err)
		}
		return mem.Update(ctx, key, value, revision)
	}
	_, err = l.Append(t.Context(), row, sampleEvent(2), nil)
	noErr(t, err)
	have, _ := inHand(t, l, row.ID)
	want(t, "events", have.Tail, 3)
	for n, id := range []string{"ev-1", "ev-7", "ev-2"} {
		ev, err := l.CachedEvent(t.Context(), &have, n+1)
		noErr(t, err)
		want(t, "event", ev.EventID, id)
	}
}

// TestEventReadBesideItsChange: while the leader's answer is on its way, somebody changes the event and its row, and the watch
// tells of the row. The answer is not of that row.
func TestEventReadBesideItsChange(t *testing.T) {
	mem := newMemory()
	kv := &slowReads{keyValue: mem}
	l := cachedLedger(kv)
	row, err := l.Append(t.Context(), sampleRow("x"), sampleEvent(1), nil)
	noErr(t, err)
	kv.before = func() {
		kv.before = nil
		ev, theirs := sampleEvent(1), row.Clone()
		ev.N, ev.Cause = 1, "changed"
		noErr(t, memLedger(mem).PutEvent(t.Context(), row.ID, ev))
		noErr(t, memLedger(mem).Settle(t.Context(), []*Row{&theirs})[0])
		l.cache.correct(record{key: rowKey(row.ID), value: mem.keys[rowKey(row.ID)].value, revision: theirs.Revision})
	}
	_, err = l.CachedEvent(t.Context(), &row, 1)
	noErr(t, err)
	have, _ := inHand(t, l, row.ID)
	ev, err := l.CachedEvent(t.Context(), &have, 1)
	noErr(t, err)
	want(t, "event", ev.Cause, "changed")
}

// slowReads does something between the leader's reading and its answer.
type slowReads struct {
	keyValue
	before func()
}

func (s *slowReads) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	e, err := s.keyValue.Get(ctx, key)
	if s.before != nil {
		s.before()
	}
	return e, err
}

// TestLeaderIsAsked: for what is newer than what is in hand, and where no watch corrects it.
func TestLeaderIsAsked(t *testing.T) {
	l := cachedLedger(newMemory())
	row, err := l.Append(t.Context(), sampleRow("x"), sampleEvent(1), nil)
	noErr(t, err)
	for least, held := range map[uint64]bool{0: true, row.Revision: true, row.Revision + 1: false} {
		_, is, err := l.Cached(t.Context(), row.ID, least)
		noErr(t, err)
		want(t, fmt.Sprint("in hand, asked for ", least), is, held)
	}
	l.cache.close()
	for range 2 {
		_, held := inHand(t, l, row.ID)
		want(t, "in hand without a watch", held, false)
		noErr(t, l.Settle(t.Context(), []*Row{&row})[0])
	}
}

// TestCacheIsBounded: by documents and by bytes, the ones that were used last stay, and the count of the bytes is right.
func TestCacheIsBounded(t *testing.T) {
	c := newCache()
	c.open(0)
	name := func(i int) ID { return ID(fmt.Sprint("row", i)) }
	store := func(i, bytes int) {
		c.stored([]put{{eventKey(name(i), 1), make([]byte, bytes), 0}, {rowKey(name(i)), make([]byte, 2000), 0}}, uint64(2*i+2), c.life, nil)
		c.row(name(0), 0, 0) // used all the time
	}
	check := func() {
		t.Helper()
		bytes := 0
		for at := c.recent.Front(); at != nil; at = at.Next() {
			d := at.Value.(*cachedDoc)
			for _, e := range d.events {
				bytes += cachedOverhead + len(e.value)
			}
			bytes += cachedOverhead + len(d.id) + len(d.row)
		}
		want(t, "bytes", c.bytes, bytes)
		want(t, "documents", c.recent.Len(), len(c.docs))
		if len(c.docs) > mostCached || c.bytes > mostCachedBytes {
			t.Fatalf("%d documents, %d bytes", len(c.docs), c.bytes)
		}
		if value, _ := c.row(name(0), 0, 0); value == nil {
			t.Fatal("the one that is used all the time is gone")
		}
	}
	for i := range 2 * mostCached {
		store(i, 100)
	}
	check()
	want(t, "documents", len(c.docs), mostCached)
	for i := range 400 {
		store(2*mostCached+i, 400<<10)
	}
	check()
	last := name(2*mostCached + 399)
	c.stored([]put{{eventKey(last, 1), make([]byte, 10), 0}}, 1<<40, c.life, nil)
	c.correct(record{key: rowKey(last), value: make([]byte, 5000), revision: 1 << 41})
	c.correct(record{key: rowKey(name(2*mostCached + 398)), deleted: true})
	check()
}

func TestEventCloneSharesNothing(t *testing.T) {
	full := func() (e Event) {
		n := 0
		fill(reflect.ValueOf(&e).Elem(), &n)
		return e
	}
	e := full()
	c := e.clone()
	if !reflect.DeepEqual(e, c) {
		t.Fatal("the copy differs")
	}
	n := 1000
	fillInPlace(reflect.ValueOf(&c).Elem(), &n)
	c.Body[0] = 'x'
	if !reflect.DeepEqual(e, full()) {
		t.Fatal("a change of the copy shows in the event")
	}
	var empty Event
	if !reflect.DeepEqual(empty.clone(), empty) {
		t.Fatal("the copy of an empty event differs")
	}
}

// TestCacheFollowsTheWatch: what another process, or a person, does to a row shows when the watch has told of it. Without its bucket
// no row is in hand.
func TestCacheFollowsTheWatch(t *testing.T) {
	b := newBox(t)
	l, js := b.ledger()
	theirs := mustOpen(t, b.connect(), Options{})
	w := watchRows(t, l)
	w.until("ready", func() bool { return w.ready == 1 })
	a, c := putRow(t, l, "a", Queued), putRow(t, l, "c", Queued)
	_, held := inHand(t, l, "a")
	want(t, "in hand", held, true)

	a.State = Maybe
	noErr(t, theirs.Settle(t.Context(), []*Row{&a})[0])
	w.until("their change", func() bool { return w.rows["a"].Revision == a.Revision })
	row, held := inHand(t, l, "a")
	want(t, "in hand", held, true)
	want(t, "state", row.State, Maybe)

	kv, err := js.KeyValue(t.Context(), l.Bucket())
	noErr(t, err)
	noErr(t, kv.Delete(t.Context(), "d.c"))
	w.until("a deletion", func() bool { return slices.Contains(w.deleted, "c") })
	if _, _, err := l.Cached(t.Context(), "c", 0); !errors.Is(err, ErrNoRow) {
		t.Fatalf("of a deleted row, last stored as %d: %v", c.Revision, err)
	}

	noErr(t, js.DeleteStream(t.Context(), "KV_"+l.Bucket()))
	var missing *MissingError
	w.until("the loss", func() bool { return len(w.errs) > 0 && errors.As(w.errs[len(w.errs)-1], &missing) })
	if _, held, err := l.Cached(t.Context(), "a", 0); held || !errors.As(err, &missing) {
		t.Fatalf("without a bucket: in hand %v, %v", held, err)
	}
	mustOpen(t, js, Options{Create: true})
	w.until("resync", func() bool { return w.resyncs > 0 && w.ready == 2 })
	if _, _, err := l.Cached(t.Context(), "a", 0); !errors.Is(err, ErrNoRow) {
		t.Fatalf("of a bucket that was made anew: %v", err)
	}
	putRow(t, l, "a", Queued)
	_, held = inHand(t, l, "a")
	want(t, "in hand again", held, true)
}

// TestServerWithOlderFiles: the server comes back with files from a backup, whose revisions are used again. From the first moment
// on nothing from before is in hand, also before the watch has noticed.
func TestServerWithOlderFiles(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	l, js := b.ledger()
	putRow(t, l, "a", Queued)
	b.stop()
	older := strings.TrimSuffix(b.opts.StoreDir, "/") + "-older"
	noErr(t, os.CopyFS(older, os.DirFS(b.opts.StoreDir)))
	t.Cleanup(func() { _ = os.RemoveAll(older) })
	b.start()
	w := watchRows(t, l)
	w.until("ready", func() bool { return w.ready > 0 && js.Conn().IsConnected() })
	a := putRow(t, l, "a", Maybe)
	row, held := inHand(t, l, "a")
	want(t, "in hand", held, true)
	want(t, "state", row.State, Maybe)

	b.stop()
	b.opts.StoreDir = older
	before := js.Conn().Stats().Reconnects
	b.start()
	for js.Conn().Stats().Reconnects == before || !js.Conn().IsConnected() {
		<-time.After(time.Millisecond)
	}
	row, held = inHand(t, l, "a")
	if held || row.State != Queued || row.Revision >= a.Revision {
		t.Fatalf("in hand %v: %s, revision %d", held, row.State, row.Revision)
	}
	w.until("resync", func() bool { return w.resyncs > 0 })
}
