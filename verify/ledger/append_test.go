package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go/jetstream"
)

func TestAppend(t *testing.T) {
	b := newBox(t)
	l, _ := b.ledger()
	tmpl := sampleRow("x")
	_, err := l.Get(t.Context(), tmpl.ID)
	if !errors.Is(err, ErrNoRow) {
		t.Fatalf("got %v", err)
	}
	for n := 1; n <= 3; n++ {
		row, err := l.Append(t.Context(), tmpl, sampleEvent(n), func(r *Row) { r.Number = fmt.Sprint("FV-", r.Tail) })
		noErr(t, err)
		want(t, "tail", row.Tail, n)
		stored, err := l.Get(t.Context(), tmpl.ID)
		noErr(t, err)
		want(t, "number", stored.Number, fmt.Sprint("FV-", n))
		want(t, "revision", stored.Revision, row.Revision)
		want(t, "state", stored.State, Queued)
		ev, err := l.Event(t.Context(), tmpl.ID, n)
		noErr(t, err)
		want(t, "event", ev.EventID, fmt.Sprint("ev-", n))
	}
	row, err := l.Append(t.Context(), tmpl, sampleEvent(2), func(*Row) { t.Error("a repeated event changed the row") })
	if !errors.Is(err, ErrHave) || row.Tail != 3 {
		t.Fatalf("got %v, tail %d", err, row.Tail)
	}
	if _, err := l.Event(t.Context(), tmpl.ID, 4); !errors.Is(err, ErrNoEvent) {
		t.Fatalf("got %v", err)
	}
}

// TestSameEventOrNot: only the same id from the same place is the same event.
func TestSameEventOrNot(t *testing.T) {
	first := sampleEvent(5)
	cases := map[string]struct {
		change func(*Event)
		have   bool
	}{
		"delivered again":                   {func(*Event) {}, true},
		"delivered again, mapped otherwise": {func(e *Event) { e.Digest = "other" }, true},
		"same id, later message":            {func(e *Event) { e.Stream.Seq, e.Stream.Time = 6, e.Stream.Time.Add(1) }, false},
		"same id, earlier message":          {func(e *Event) { e.Stream.Seq = 4 }, false},
		"sequence used again":               {func(e *Event) { e.Stream.Time = e.Stream.Time.Add(3600e9) }, false},
		"another stream":                    {func(e *Event) { e.Stream.Stream = "OLD" }, false},
		"another id":                        {func(e *Event) { e.EventID = "other" }, false},
		"no place, same id":                 {func(e *Event) { e.Stream = StreamRef{} }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := memLedger(newMemory())
			_, err := l.Append(t.Context(), sampleRow("x"), first, nil)
			noErr(t, err)
			ev := first
			c.change(&ev)
			_, err = l.Append(t.Context(), sampleRow("x"), ev, nil)
			want(t, "have", errors.Is(err, ErrHave), c.have)
			_, err = l.Append(t.Context(), sampleRow("x"), ev, nil)
			want(t, "have at the second try", errors.Is(err, ErrHave), true)
		})
	}
}

// TestUsualAppendReadsOneKey: a long history must not make appends slower.
func TestUsualAppendReadsOneKey(t *testing.T) {
	kv := &counting{keyValue: newMemory()}
	l := memLedger(kv)
	for n := 1; n <= 50; n++ {
		kv.gets = 0
		_, err := l.Append(t.Context(), sampleRow("x"), sampleEvent(n), nil)
		noErr(t, err)
		want(t, "reads", kv.gets, 1)
	}
}

type counting struct {
	keyValue
	gets int
}

func (c *counting) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	c.gets++
	return c.keyValue.Get(ctx, key)
}

// TestAppendCutShort: the process dies after the event, before the row. The next append takes the place, whether it
// brings the same event or another one; the first one, delivered again, is then appended behind it.
func TestAppendCutShort(t *testing.T) {
	for _, next := range []int{1, 2} {
		t.Run(fmt.Sprintf("then event %d", next), func(t *testing.T) {
			mem := newMemory()
			ctx, cancel := context.WithCancel(t.Context())
			dying := &hook{keyValue: mem, update: func(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
				if key[0] == 'd' {
					cancel()
					return 0, ctx.Err()
				}
				return mem.Update(ctx, key, value, revision)
			}}
			_, err := memLedger(dying).Append(ctx, sampleRow("x"), sampleEvent(1), nil)
			var u *UndecidedError
			if !errors.As(err, &u) {
				t.Fatalf("got %v", err)
			}
			l := memLedger(mem)
			row, err := l.Append(t.Context(), sampleRow("x"), sampleEvent(next), nil)
			noErr(t, err)
			want(t, "tail", row.Tail, 1)
			_, err = l.Append(t.Context(), sampleRow("x"), sampleEvent(1), nil)
			want(t, "first event again", errors.Is(err, ErrHave), next == 1)
			history(t, l, row.ID, next)
		})
	}
}

// history checks that the stored events are unique and returns them; the first one must be as given.
func history(t *testing.T, l *Ledger, id ID, first int) []Event {
	t.Helper()
	row, err := l.Get(t.Context(), id)
	noErr(t, err)
	var all []Event
	seen := map[string]bool{}
	for n := 1; n <= row.Tail; n++ {
		ev, err := l.Event(t.Context(), id, n)
		noErr(t, err)
		want(t, "ordinal", ev.N, n)
		if seen[ev.EventID] {
			t.Fatalf("event %s is there twice", ev.EventID)
		}
		seen[ev.EventID] = true
		all = append(all, ev)
	}
	if first > 0 {
		want(t, "first event", all[0].EventID, fmt.Sprint("ev-", first))
	}
	return all
}

// jumpy lets other goroutines run between any two calls, and loses answers.
type jumpy struct {
	inner keyValue
	mu    sync.Mutex
	rnd   *rand.Rand
}

func (j *jumpy) roll() float64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rnd.Float64()
}

func (j *jumpy) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	runtime.Gosched()
	return j.inner.Get(ctx, key)
}

func (j *jumpy) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	for j.roll() < 0.5 {
		runtime.Gosched()
	}
	switch r := j.roll(); {
	case r < 0.05:
		return 0, context.DeadlineExceeded
	case r < 0.1:
		_, _ = j.inner.Update(ctx, key, value, revision)
		return 0, context.DeadlineExceeded
	}
	return j.inner.Update(ctx, key, value, revision)
}

// TestAppendRace: many writers append different events and the same events to one document, some die in between. Every
// event whose append returned is there exactly once, and what modify wrote into the row belongs to the event of that
// ordinal.
func TestAppendRace(t *testing.T) {
	for seed := range 40 {
		synctest.Test(t, func(t *testing.T) { appendRace(t, uint64(seed)) })
	}
}

func appendRace(t *testing.T, seed uint64) {
	mem := newMemory()
	l := memLedger(&jumpy{inner: mem, rnd: rand.New(rand.NewPCG(seed, 1))})
	const events, writers = 8, 3 // each event is delivered to three writers at once
	var wg sync.WaitGroup
	for n := 1; n <= events; n++ {
		for w := range writers {
			ctx, cancel := context.WithCancel(t.Context())
			if w == 0 && n%2 == 0 {
				wg.Go(func() { runtime.Gosched(); cancel() })
			}
			wg.Go(func() {
				defer cancel()
				ev := sampleEvent(n)
				_, err := l.Append(ctx, sampleRow("x"), ev, func(r *Row) { r.Numbers = append(r.Numbers[:r.Tail-1:r.Tail-1], ev.EventID) })
				if err != nil && !errors.Is(err, ErrHave) && ctx.Err() == nil {
					t.Errorf("event %d: %v", n, err)
				}
			})
		}
	}
	wg.Wait()
	clean := memLedger(mem)
	id := sampleRow("x").ID
	all := history(t, clean, id, 0)
	want(t, fmt.Sprintf("seed %d: events", seed), len(all), events)
	row, err := clean.Get(t.Context(), id)
	noErr(t, err)
	for i, ev := range all {
		want(t, fmt.Sprintf("seed %d: ordinal %d", seed, i+1), row.Numbers[i], ev.EventID)
	}
}

// TestForeignEventInTheWay plays the one dangerous schedule by hand: writer A has stored its event and stands before its
// row, writer B comes with another event. Whatever A does then, both events end in the row.
func TestForeignEventInTheWay(t *testing.T) {
	mem := newMemory()
	standing, resume := make(chan struct{}), make(chan struct{})
	slow := &hook{keyValue: mem}
	first := true
	slow.update = func(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
		if key[0] == 'd' && first {
			first = false
			close(standing)
			<-resume
		}
		return mem.Update(ctx, key, value, revision)
	}
	done := make(chan error, 1)
	go func() {
		_, err := memLedger(slow).Append(context.Background(), sampleRow("x"), sampleEvent(1), nil)
		done <- err
	}()
	<-standing
	l := memLedger(mem)
	l.token = func() string { return fmt.Sprint("b-", mem.n.Load()) }
	_, err := l.Append(t.Context(), sampleRow("x"), sampleEvent(2), nil)
	noErr(t, err)
	close(resume)
	noErr(t, <-done)
	all := history(t, l, sampleRow("x").ID, 2)
	want(t, "events", len(all), 2)
}

// TestPutEventKeepsTheLastStory: a call that timed out and lands late must not bring an older story back.
func TestPutEventKeepsTheLastStory(t *testing.T) {
	mem := newMemory()
	row := prepared(t, mem)
	var late func()
	kv := &hook{keyValue: mem}
	kv.update = func(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
		if late == nil {
			late = func() { _, _ = mem.Update(context.Background(), key, value, revision) }
			return 0, context.DeadlineExceeded
		}
		return mem.Update(ctx, key, value, revision)
	}
	l := memLedger(kv)
	ev := sampleEvent(1)
	ev.N, ev.State = 1, Parked
	noErr(t, l.PutEvent(t.Context(), row.ID, ev))
	ev.State = Confirmed
	noErr(t, l.PutEvent(t.Context(), row.ID, ev))
	late()
	got, err := l.Event(t.Context(), row.ID, 1)
	noErr(t, err)
	want(t, "state", got.State, Confirmed)
}

// TestPutEventRace: somebody else writes between the read and the write of PutEvent. Both succeed, the last one stays.
func TestPutEventRace(t *testing.T) {
	mem := newMemory()
	row := prepared(t, mem)
	other := memLedger(mem)
	other.token = func() string { return "other" }
	ev := sampleEvent(1)
	ev.N = 1
	first := true
	kv := &hook{keyValue: mem, update: func(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
		if first {
			first = false
			theirs := ev
			theirs.Cause = "theirs"
			noErr(t, other.PutEvent(ctx, row.ID, theirs))
		}
		return mem.Update(ctx, key, value, revision)
	}}
	mine := ev
	mine.Cause = "mine"
	noErr(t, memLedger(kv).PutEvent(t.Context(), row.ID, mine))
	got, err := other.Event(t.Context(), row.ID, 1)
	noErr(t, err)
	want(t, "cause", got.Cause, "mine")
}
