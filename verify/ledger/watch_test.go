package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

// watched collects what a watch says until a condition holds.
type watched struct {
	t       *testing.T
	changes <-chan Change
	rows    map[ID]Row
	ready   int
	resyncs int
	errs    []error
	deleted []ID
}

func watchRows(t *testing.T, l *Ledger) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := l.Watch(ctx)
	noErr(t, err)
	t.Cleanup(func() {
		cancel()
		for range c { // the watch ends only when its goroutine has
		}
	})
	return &watched{t: t, changes: c, rows: map[ID]Row{}}
}

func (w *watched) until(what string, ok func() bool) {
	w.t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for !ok() {
		select {
		case c, open := <-w.changes:
			if !open {
				w.t.Fatalf("watch ended before %s", what)
			}
			w.note(c)
		case <-late.C:
			w.t.Fatalf("never: %s; %d rows, %d ready, %d resyncs, errors %v", what, len(w.rows), w.ready, w.resyncs, w.errs)
		}
	}
}

func (w *watched) note(c Change) {
	switch {
	case c.Ready:
		w.ready++
	case c.Resync:
		w.resyncs++
		w.rows = map[ID]Row{}
	case c.Deleted:
		w.deleted = append(w.deleted, c.ID)
		delete(w.rows, c.ID)
	case c.Err != nil:
		w.errs = append(w.errs, c.Err)
	default:
		row, err := c.Row()
		if err != nil {
			w.errs = append(w.errs, err)
		}
		if old, ok := w.rows[c.ID]; ok && old.Revision >= c.Revision {
			w.t.Fatalf("row %s came with revision %d after %d", c.ID, c.Revision, old.Revision)
		}
		want(w.t, "id of a row", row.ID, c.ID)
		want(w.t, "revision of a row", row.Revision, c.Revision)
		want(w.t, "evidence of a row", c.Evidence(), row.Evidence)
		w.rows[c.ID] = row
	}
}

func putRow(t *testing.T, l *Ledger, key string, s State) Row {
	t.Helper()
	row := sampleRow(key)
	row.ID, row.State = ID(key), s
	have, err := l.Get(t.Context(), row.ID)
	if err != nil && !errors.Is(err, ErrNoRow) {
		t.Fatal(err)
	}
	row.Revision = have.Revision
	noErr(t, l.Claim(t.Context(), []*Row{&row})[0])
	return row
}

func TestWatch(t *testing.T) {
	b := newBox(t)
	l, js := b.ledger()
	for i := range 300 { // more than one pull
		putRow(t, l, fmt.Sprint("a", i), Queued)
	}
	_, err := l.Append(t.Context(), Row{ID: "a0"}, sampleEvent(1), nil) // an event is no row
	noErr(t, err)
	w := watchRows(t, l)
	w.until("ready", func() bool { return w.ready == 1 })
	want(t, "rows", len(w.rows), 300)

	last := putRow(t, l, "a5", Sending)
	w.until("a change", func() bool { return w.rows["a5"].State == Sending })
	want(t, "revision", w.rows["a5"].Revision, last.Revision)
	want(t, "token", w.rows["a5"].Token, last.Token)
	putRow(t, l, "new", Queued)
	w.until("a new row", func() bool { return len(w.rows) == 301 })

	kv, err := js.KeyValue(t.Context(), l.Bucket())
	noErr(t, err)
	_, err = kv.Put(t.Context(), "d.a7", []byte(`{"format":9,"id":"a7","key":"k7"}`))
	noErr(t, err)
	w.until("a newer row", func() bool { return w.rows["a7"].Format == 9 })
	want(t, "key", w.rows["a7"].Key, "k7")
	if len(w.errs) != 1 || !errors.Is(w.errs[0], ErrNewer) {
		t.Fatalf("errors %v", w.errs)
	}
	_, err = kv.Put(t.Context(), "d.a8", []byte(`nonsense`))
	noErr(t, err)
	w.until("a damaged row", func() bool { return len(w.errs) == 2 })
	noErr(t, kv.Delete(t.Context(), "d.a9"))
	w.until("a deletion", func() bool { return slices.Equal(w.deleted, []ID{"a9"}) })
	want(t, "ready once", w.ready, 1)
	want(t, "resyncs", w.resyncs, 0)
}

func TestWatchOfAnEmptyLedger(t *testing.T) {
	l, _ := newBox(t).ledger()
	w := watchRows(t, l)
	w.until("ready", func() bool { return w.ready == 1 })
	putRow(t, l, "a", Queued)
	w.until("row", func() bool { return len(w.rows) == 1 })
}

// TestWatchOverRestart: after the server came back everything is told again, also what changed while nobody listened.
func TestWatchOverRestart(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	l, _ := b.ledger()
	putRow(t, l, "a", Queued)
	putRow(t, l, "b", Queued)
	w := watchRows(t, l)
	w.until("ready", func() bool { return w.ready == 1 })
	b.stop()
	b.start()
	putRow(t, l, "b", Maybe) // perhaps before the watch is back
	w.until("resync", func() bool { return w.resyncs > 0 && w.ready > 1 && w.rows["b"].State == Maybe })
	want(t, "rows", len(w.rows), 2)
	putRow(t, l, "c", Queued)
	w.until("live again", func() bool { return len(w.rows) == 3 })
}

// TestWatchBroken: whatever takes the consumer away, the watch says so and mends itself.
func TestWatchBroken(t *testing.T) {
	t.Parallel()
	consumers := func(t *testing.T, js jetstream.JetStream) (names []string) {
		s, err := js.Stream(t.Context(), "KV_flexid_ledger")
		noErr(t, err)
		list := s.ConsumerNames(t.Context())
		for n := range list.Name() {
			names = append(names, n)
		}
		return names
	}
	cases := map[string]struct {
		damage func(t *testing.T, js jetstream.JetStream)
		lost   bool // the rows are gone
	}{
		"consumer deleted": {damage: func(t *testing.T, js jetstream.JetStream) {
			for _, n := range consumers(t, js) {
				noErr(t, js.DeleteConsumer(t.Context(), "KV_flexid_ledger", n))
			}
		}},
		"a change taken by somebody else": {damage: func(t *testing.T, js jetstream.JetStream) {
			c, err := js.Consumer(t.Context(), "KV_flexid_ledger", consumers(t, js)[0])
			noErr(t, err)
			for stolen := 0; stolen == 0; { // until one is delivered to us instead of the watch, which then never sees it
				batch, err := c.Fetch(1, jetstream.FetchMaxWait(500*time.Millisecond))
				noErr(t, err)
				for range 3 {
					_, err = js.Publish(t.Context(), "$KV.flexid_ledger.d.thief", []byte(`{"format":1}`))
					noErr(t, err)
				}
				for range batch.Messages() {
					stolen++
				}
			}
		}},
		"bucket deleted and made anew": {lost: true, damage: func(t *testing.T, js jetstream.JetStream) {
			noErr(t, js.DeleteStream(t.Context(), "KV_flexid_ledger"))
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			l, js := b.ledger()
			putRow(t, l, "a", Queued)
			w := watchRows(t, l)
			w.until("ready", func() bool { return w.ready == 1 })
			c.damage(t, js)
			if c.lost {
				w.until("missing", func() bool {
					var missing *MissingError
					return len(w.errs) > 0 && errors.As(w.errs[len(w.errs)-1], &missing)
				})
				mustOpen(t, js, Options{Create: true})
				putRow(t, l, "a", Queued)
			}
			w.until("resync", func() bool { return w.resyncs > 0 && w.ready >= 2 && w.rows["a"].ID == "a" })
			if len(w.errs) == 0 {
				t.Fatal("the break was not told")
			}
			putRow(t, l, "b", Queued)
			w.until("live again", func() bool { return w.rows["b"].ID == "b" })
		})
	}
}

// TestSlowWatcher: while the reader does something else, rows change a thousand times; it ends with the last states.
func TestSlowWatcher(t *testing.T) {
	b := newBox(t)
	l, _ := b.ledger()
	w := watchRows(t, l)
	w.until("ready", func() bool { return w.ready == 1 })
	rows := map[string]*Row{}
	for i := range 1000 {
		key := fmt.Sprint("r", i%50)
		row := rows[key]
		if row == nil {
			r := sampleRow(key)
			r.ID = ID(key)
			row, rows[key] = &r, &r
		}
		row.Sends = i
		noErr(t, l.Settle(t.Context(), []*Row{row})[0])
	}
	w.until("last states", func() bool {
		for key, row := range rows {
			if w.rows[ID(key)].Revision != row.Revision {
				return false
			}
		}
		return true
	})
	want(t, "resyncs", w.resyncs, 0)
}

// TestWatchEndsWithItsContext runs in virtual time: a watch that nobody reads ends too, and leaves no goroutine.
func TestWatchEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		js := b.connect()
		l := mustOpen(t, js, Options{Create: true})
		for i := range 10 {
			putRow(t, l, fmt.Sprint("k", i), Queued)
		}
		ctx, cancel := context.WithCancel(t.Context())
		c, err := l.Watch(ctx)
		noErr(t, err)
		first, err := (<-c).Row()
		noErr(t, err)
		want(t, "first", first.State, Queued)
		<-time.After(time.Hour) // virtual: longer than any pull, heartbeat or idle limit
		n := 1
		for change := range c {
			noErr(t, change.Err)
			if change.ID != "" {
				n++
			}
			if change.Ready {
				break
			}
		}
		want(t, "rows after an hour of not reading", n, 10)
		cancel()
		synctest.Wait()
		if _, open := <-c; open {
			t.Fatal("the channel is open after the context ended")
		}
		if _, err := l.Watch(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		js.Conn().Close()
		b.stop()
	})
}

func TestList(t *testing.T) {
	b := newBox(t)
	l, js := b.ledger()
	count := func(from func(*Row) bool) (n int) {
		for _, err := range l.List(t.Context(), from) {
			noErr(t, err)
			n++
		}
		return n
	}
	want(t, "empty", count(nil), 0)
	for i := range 600 {
		putRow(t, l, fmt.Sprint("k", i), []State{Queued, Maybe, Confirmed}[i%3])
	}
	want(t, "all", count(nil), 600)
	want(t, "maybes", count(func(r *Row) bool { return r.State == Maybe }), 200)
	n := 0
	for range l.List(t.Context(), nil) {
		if n++; n == 10 {
			break
		}
	}
	want(t, "broken off", n, 10)
	kv, err := js.KeyValue(t.Context(), l.Bucket())
	noErr(t, err)
	_, err = kv.Put(t.Context(), "d.k0", []byte(`{"format":9,"id":"k0"}`))
	noErr(t, err)
	_, err = kv.Put(t.Context(), "d.k1", []byte(`{`))
	noErr(t, err)
	noErr(t, kv.Delete(t.Context(), "d.k2"))
	good, bad := 0, map[ID]error{}
	for row, err := range l.List(t.Context(), nil) {
		if err != nil {
			bad[row.ID] = err
			continue
		}
		good++
	}
	want(t, "readable", good, 597)
	if len(bad) != 2 || !errors.Is(bad["k0"], ErrNewer) || bad["k1"] == nil {
		t.Fatalf("unreadable %v", bad)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var last error
	for _, last = range l.List(ctx, nil) {
	}
	if !errors.Is(last, context.Canceled) {
		t.Fatalf("a list that was cut short says %v", last)
	}
}

// TestListWhileRowsChange: every row that exists all the time is listed, however often it moves to the end meanwhile.
func TestListWhileRowsChange(t *testing.T) {
	b := newBox(t)
	l, _ := b.ledger()
	const n = 400
	for i := range n {
		putRow(t, l, fmt.Sprint("k", i), Queued)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			row, err := l.Get(ctx, ID(fmt.Sprint("k", (i*7)%n)))
			if err == nil {
				l.Settle(ctx, []*Row{&row})
			}
		}
	})
	for range 5 {
		seen := map[ID]bool{}
		for row, err := range l.List(t.Context(), nil) {
			noErr(t, err)
			seen[row.ID] = true
		}
		want(t, "rows seen", len(seen), n)
	}
	cancel()
	wg.Wait()
}
