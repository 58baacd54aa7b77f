package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slow marks proofs that take long or need a machine of their own.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("FLEXID_SLOW") == "" {
		t.Skip("set FLEXID_SLOW=1 to run this proof")
	}
}

// promises is what the ledger acknowledged, document by document.
type promises struct {
	mu     sync.Mutex
	rows   map[ID]Row
	events map[ID][]string
	acks   atomic.Int64
	tick   chan struct{} // holds one token after an acknowledgement
}

func newPromises() *promises {
	return &promises{rows: map[ID]Row{}, events: map[ID][]string{}, tick: make(chan struct{}, 1)}
}

func (p *promises) count() {
	p.acks.Add(1)
	select {
	case p.tick <- struct{}{}:
	default:
	}
}

func (p *promises) row(r Row) {
	p.mu.Lock()
	p.rows[r.ID] = r
	p.mu.Unlock()
	p.count()
}

func (p *promises) event(id ID, eventID string) {
	p.mu.Lock()
	p.events[id] = append(p.events[id], eventID)
	p.mu.Unlock()
	p.count()
}

// work appends, claims and settles one document over and over until ctx ends; every call runs until it is decided.
func (p *promises) work(t *testing.T, ctx context.Context, l *Ledger, id ID) {
	tmpl := sampleRow(string(id))
	tmpl.ID = id
	for n := 1; ctx.Err() == nil; n++ {
		row, err := l.Append(ctx, tmpl, sampleEvent(n), nil)
		for err != nil && !errors.Is(err, ErrHave) && ctx.Err() == nil {
			refused(t, err) // its reads give up when the server stays away; the message is then delivered again
			row, err = l.Append(ctx, tmpl, sampleEvent(n), nil)
		}
		if ctx.Err() != nil {
			return
		}
		p.event(id, sampleEvent(n).EventID)
		for _, s := range []State{Sending, Confirmed} {
			row.State, row.Sends = s, n
			if err := l.Claim(ctx, []*Row{&row})[0]; err != nil {
				if ctx.Err() == nil {
					t.Errorf("while the context lives: %v", err)
				}
				return
			}
			p.row(row.Clone())
		}
	}
}

// refused: with one writer for each document no answer of the store may be a no.
func refused(t *testing.T, err error) {
	var conflict *ConflictError
	var missing *MissingError
	var full *FullError
	if errors.As(err, &conflict) || errors.As(err, &missing) || errors.As(err, &full) {
		t.Error(err)
	}
}

// kept checks a ledger against what was acknowledged. A document may be one write further: the one that was undecided.
func (p *promises) kept(t *testing.T, l *Ledger) {
	t.Helper()
	for id, promised := range p.rows {
		row, err := l.Get(t.Context(), id)
		noErr(t, err)
		if row.Revision < promised.Revision || row.Revision == promised.Revision && row.Token != promised.Token || row.Sends < promised.Sends {
			t.Fatalf("document %s: promised %s %d at revision %d, found %s %d at %d", id, promised.State, promised.Sends,
				promised.Revision, row.State, row.Sends, row.Revision)
		}
	}
	for id, ids := range p.events {
		all := history(t, l, id, 0)
		if len(all) < len(ids) || len(all) > len(ids)+1 {
			t.Fatalf("document %s: %d events acknowledged, %d stored", id, len(ids), len(all))
		}
		for i, want := range ids {
			if all[i].EventID != want {
				t.Fatalf("document %s: event %d is %s, not %s", id, i+1, all[i].EventID, want)
			}
		}
	}
}

// TestKillServer: kill -9 of the server under load, again and again. Every call ends decided, nothing that was
// acknowledged is lost, nothing is stored twice.
func TestKillServer(t *testing.T) {
	t.Parallel()
	p := newProcess(t, t.TempDir())
	l := mustOpen(t, p.connect(), Options{Create: true, Timeout: time.Second})
	kills := 4
	if os.Getenv("FLEXID_SLOW") != "" {
		kills = 25
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := newPromises()
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() { done.work(t, ctx, l, ID(fmt.Sprint("doc", i))) })
	}
	for range kills {
		progress(t, done, 60)
		p.kill()
		p.start()
	}
	progress(t, done, 60)
	cancel()
	wg.Wait()
	done.kept(t, l)
	p.kill()
	p.start()
	done.kept(t, mustOpen(t, p.connect(), Options{}))
}

// progress waits for n more acknowledgements.
func progress(t *testing.T, p *promises, n int64) {
	t.Helper()
	late := time.After(time.Minute)
	for goal := p.acks.Load() + n; p.acks.Load() < goal; {
		select {
		case <-p.tick:
		case <-late:
			t.Fatal("no progress within a minute")
		}
	}
}

// TestListIsFlat: 50,000 rows (10,000 in a quick run) stream by while the heap stays small. The server has its own process, so that its memory
// does not count.
func TestListIsFlat(t *testing.T) {
	t.Setenv(serveFast, "1")
	p := newProcess(t, t.TempDir())
	js := p.connect()
	l := mustOpen(t, js, Options{Create: true})
	n := 10_000
	if os.Getenv("FLEXID_SLOW") != "" {
		n = 50_000
	}
	row := storyRow(2, 4, 50)
	row.ID = "rowNNNNN"
	one, err := row.Marshal()
	noErr(t, err)
	for i := range n {
		row.ID = ID(fmt.Sprintf("row%05d", i))
		data := bytes.Replace(one, []byte("rowNNNNN"), []byte(row.ID), 1)
		for _, err = js.PublishAsync(subject(l.bucket, rowKey(row.ID)), data); err != nil; _, err = js.PublishAsync(subject(l.bucket, rowKey(row.ID)), data) {
			runtime.Gosched() // too many on the way
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(2 * time.Minute):
		t.Fatal("the rows are not stored")
	}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	count, most := 0, uint64(0)
	for _, err := range l.List(t.Context(), nil) {
		noErr(t, err)
		if count++; count%2500 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
	}
	want(t, "rows", count, n)
	if grown := int64(most) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Fatalf("the heap grew by %d KiB", grown>>10)
	}
}
