package verify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// blind is a process of its own that can be made blind to what others store: its watch stands still, so that what it has in hand
// grows old.
type blind struct {
	hook
	b     *bench
	own   *ledger.Ledger
	stops atomic.Pointer[chan struct{}]
}

// beBlind makes the bench's engine one that can be blinded; the bench itself looks at the ledger from outside.
func (b *bench) beBlind() *blind {
	l := &blind{b: b, own: b.anotherLedger()}
	b.wrap = func(verify.Ledger) verify.Ledger { l.Ledger = l.own; return l }
	l.watch = func(ctx context.Context) (<-chan ledger.Change, error) {
		in, err := l.own.Watch(ctx)
		if err != nil {
			return nil, err
		}
		out := make(chan ledger.Change)
		go func() {
			defer close(out)
			for c := range in {
				if stopped := l.stops.Load(); stopped != nil {
					select {
					case <-*stopped:
					case <-ctx.Done():
					}
				}
				select {
				case out <- c:
				case <-ctx.Done():
				}
			}
		}()
		return out, nil
	}
	return l
}

// shut makes the process blind. Two changes of another document fill what lies between its ledger and its engine.
func (l *blind) shut(other string) {
	l.b.t.Helper()
	stopped := make(chan struct{})
	l.stops.Store(&stopped)
	for range 2 {
		l.b.touch(other)
		synctest.Wait()
	}
}

// has is the row that the process has in hand; the test makes no sense if that is not older than the ledger's.
func (l *blind) hasOld(key string) ledger.Row {
	l.b.t.Helper()
	now := l.b.row(key)
	row, inHand, err := l.own.Cached(l.b.t.Context(), now.ID, 0)
	must(l.b.t, err)
	if !inHand || row.Revision >= now.Revision {
		l.b.t.Fatalf("in hand: %v, revision %d of %d", inHand, row.Revision, now.Revision)
	}
	return row
}

// touch is another process that stores a row as it is.
func (b *bench) touch(key string) {
	b.t.Helper()
	row := b.row(key)
	must(b.t, b.ledger.Settle(b.t.Context(), []*ledger.Row{&row})[0])
}

// second starts another process on the same ledger.
func (b *bench) second() (*verify.Engine, func() error) {
	b.t.Helper()
	set := b.set
	set.Instance = "i2"
	eng, stop := b.engine(set, func(verify.Ledger) verify.Ledger { return b.anotherLedger() })
	<-eng.Ready()
	return eng, stop
}

// TestTellsFromTheLeader: one process stored what became of an event and hears for long that it could not be told; the other one has
// told it meanwhile. The first one has a row in hand that does not know of that, and tells nothing a second time.
func TestTellsFromTheLeader(t *testing.T) {
	virtual(t, func(b *bench) {
		one, told := b.beBlind(), b.notices
		b.start()
		b.created("X", invoice("X"))
		b.notices = &notifiers{}
		_, stop := b.second()
		defer func() { _ = stop() }()
		b.pass(10 * time.Minute)
		asked, answer := make(chan struct{}), errors.New("no answer")
		told.fail = func() error {
			err := answer
			if answer = nil; err != nil {
				<-asked
			}
			return err
		}
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		one.shut("X")
		b.until(time.Minute, "told by the other one", func() bool { return len(b.notices.done()) == 1 })
		if old := one.hasOld("A"); len(old.ToNotify) != 1 {
			b.t.Fatalf("in hand is what was told: %s", pretty(old))
		}
		close(asked)
		before := one.gets.Load()
		b.pass(10 * time.Second)
		if one.gets.Load() == before {
			b.t.Fatal("the first process did not come back to it")
		}
		if n := len(told.done()) + len(b.notices.done()); n != 2 {
			b.t.Errorf("%d events told, of two", n)
		}
	})
}

// TestStoryFromTheLeader: while a process waits to begin the next event, a person notes something at the other one about the event that
// is over. The note is in its story, though the first process has a row in hand that lacks it.
func TestStoryFromTheLeader(t *testing.T) {
	virtual(t, func(b *bench) {
		one := b.beBlind()
		b.start()
		b.created("X", invoice("X"))
		r := b.created("A", invoice("A"))
		b.pass(10 * time.Minute) // read back
		two, stop := b.second()
		b.fake.Script(flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 10 * time.Minute})
		b.push(flexi.Update, "A", doc{"popis": "jedna"})
		b.inMaybe("A")
		b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"popis": "jedna"})
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		b.push(flexi.Update, "A", doc{"popis": "dvě"})
		b.until(time.Minute, "it waits", func() bool { r := b.row("A"); return r.Head == 2 && r.Reason == ledger.Waiting })
		b.pass(time.Second)
		one.shut("X")
		_, err := two.Decide(b.t.Context(), verify.Address{Evidence: "faktura-vydana", Key: "A"},
			verify.Decision{What: verify.DecideNote, By: "jana", Why: "viděla jsem to"})
		must(b.t, err)
		must(b.t, stop())
		if old := one.hasOld("A"); !old.More() || len(old.Work.Story.Decisions) > 0 {
			b.t.Fatalf("in hand is %s", pretty(old))
		}
		b.until(time.Hour, "the last event has its turn", func() bool { r := b.row("A"); return r.Head == 3 && r.State == ledger.Confirmed })
		ev, err := b.ledger.Event(b.t.Context(), r.ID, 2)
		must(b.t, err)
		if ev.Story == nil || len(ev.Story.Decisions) != 1 {
			b.t.Errorf("the note is gone: %s", asJSON(ev))
		}
	})
}

// TestOldSendingInHand: a process has in hand that the other one is sending a document. When the lease has run out, it finds that the
// attempt is over, and changes nothing.
func TestOldSendingInHand(t *testing.T) {
	virtual(t, func(b *bench) {
		one := b.beBlind()
		b.start()
		b.created("X", invoice("X"))
		_, stop := b.second()
		defer func() { _ = stop() }()
		b.pass(10 * time.Minute)
		b.eng.StopFor("start", "a test", "") // this process only
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResponseDelay, Delay: 30 * time.Second})
		b.push(flexi.Create, "A", invoice("A"))
		b.until(20*time.Second, "sending", func() bool { return b.row("A").State == ledger.Sending })
		b.pass(time.Second)
		one.shut("X")
		b.pass(40 * time.Second)
		if old := one.hasOld("A"); old.State != ledger.Sending || old.Lease.Instance != "i2" {
			b.t.Fatalf("in hand is %s", pretty(old))
		}
		before := one.gets.Load()
		b.pass(10 * time.Minute)
		if one.gets.Load() == before {
			b.t.Fatal("the first process did not come back to it")
		}
		r := b.row("A")
		a := r.Work.Story.Attempts
		if r.State != ledger.Confirmed || len(a) != 1 || a[0].Outcome != "accepted" || r.Work.Opens != 0 {
			b.t.Errorf("it is %s", pretty(r))
		}
		b.wantRecords("A", 1)
	})
}

// meddler is a process beside which another one changes each row just before it is stored, once for each time that it was.
type meddler struct {
	hook
	mu        sync.Mutex
	theirs    *ledger.Ledger
	done      map[ledger.ID]bool
	conflicts int
}

func (m *meddler) meddle(ctx context.Context, rows []*ledger.Row, do func(context.Context, []*ledger.Row) []error) []error {
	for _, r := range rows {
		m.mu.Lock()
		moves := !m.done[r.ID]
		m.done[r.ID] = !m.done[r.ID]
		m.mu.Unlock()
		if now, err := m.theirs.Get(ctx, r.ID); err == nil && moves {
			m.theirs.Settle(ctx, []*ledger.Row{&now})
		}
	}
	errs := do(ctx, rows)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, err := range errs {
		var conflict *ledger.ConflictError
		if errors.As(err, &conflict) {
			m.conflicts++
		}
	}
	return errs
}

// TestAnotherWriterBeforeEachStep: every step of a document conflicts once, and the next try is right.
func TestAnotherWriterBeforeEachStep(t *testing.T) {
	virtual(t, func(b *bench) {
		m := &meddler{theirs: b.anotherLedger(), done: map[ledger.ID]bool{}}
		m.claim = func(ctx context.Context, rows []*ledger.Row) []error { return m.meddle(ctx, rows, m.Ledger.Claim) }
		m.settle = func(ctx context.Context, rows []*ledger.Row) []error { return m.meddle(ctx, rows, m.Ledger.Settle) }
		b.wrap = func(l verify.Ledger) verify.Ledger { m.Ledger = l; return m }
		b.start()
		b.created("A", invoice("A"))
		b.pass(5 * time.Minute) // read back
		b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		b.push(flexi.Storno, "A", doc{})
		r := b.becomes("A", 10*time.Minute, ledger.Confirmed, "")
		b.pass(5 * time.Minute)
		b.wantRecords("A", 1)
		if b.writes() != 3 || r.Head != 3 || b.field("A", "popis") != "Oprava" {
			b.t.Errorf("%d writes, popis %s, %s", b.writes(), b.field("A", "popis"), pretty(r))
		}
		for n := 1; n <= 3; n++ {
			ev, err := b.ledger.Event(b.t.Context(), r.ID, n)
			must(b.t, err)
			if !slices.ContainsFunc(b.notices.done(), func(m verify.Notice) bool { return m.EventID == ev.EventID && m.State == ledger.Confirmed }) {
				b.t.Errorf("event %d was not told", n)
			}
		}
		if m.conflicts < 8 {
			b.t.Fatalf("%d conflicts", m.conflicts)
		}
	})
}

// oldHands is what the processes of a ledger store, and lets each of them have in hand what was true until a while ago.
type oldHands struct {
	mu   sync.Mutex
	was  map[ledger.ID][]version
	lag  time.Duration
	old  int // rows given that others had changed since
	gave int

	asked int           // how often a row was asked for
	takes time.Duration // to give one
}

type version struct {
	row   ledger.Row
	since time.Time
}

// process is one that has old rows in hand. Its watch is as late.
type process struct {
	hook
	all *oldHands
}

func (o *oldHands) process(l *ledger.Ledger) *process {
	p := &process{all: o}
	p.Ledger = l
	p.watch = func(ctx context.Context) (<-chan ledger.Change, error) { return delayed(ctx, l, o.lag) }
	p.claim = func(ctx context.Context, rows []*ledger.Row) []error { return o.note(rows, l.Claim(ctx, rows)) }
	p.settle = func(ctx context.Context, rows []*ledger.Row) []error { return o.note(rows, l.Settle(ctx, rows)) }
	return p
}

func (o *oldHands) note(rows []*ledger.Row, errs []error) []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, r := range rows {
		data, err := r.Marshal()
		if errs[i] != nil || err != nil {
			continue
		}
		row, _ := ledger.Unmarshal(data)
		row.Revision = r.Revision
		o.was[r.ID] = append(o.was[r.ID], version{row, time.Now()})
	}
	return errs
}

func (p *process) Commit(ctx context.Context, b *ledger.Batch, c *ledger.Cursor) ([]ledger.Row, error) {
	rows, err := p.Ledger.Commit(ctx, b, c)
	for i := range rows {
		p.all.note([]*ledger.Row{&rows[i]}, []error{nil})
	}
	return rows, err
}

func (p *process) Cached(ctx context.Context, id ledger.ID, least uint64) (ledger.Row, bool, error) {
	time.Sleep(p.all.takes)
	p.all.mu.Lock()
	p.all.asked++
	was := p.all.was[id]
	slices.SortFunc(was, func(a, b version) int { return int(a.row.Revision) - int(b.row.Revision) })
	for i, v := range was {
		if v.row.Revision < least || i+1 < len(was) && time.Since(was[i+1].since) > p.all.lag {
			continue
		}
		if p.all.gave++; i+1 < len(was) {
			p.all.old++
		}
		row := v.row.Clone()
		p.all.mu.Unlock()
		return row, true, nil
	}
	p.all.mu.Unlock()
	return p.hook.Cached(ctx, id, least)
}

// TestModelOldHands: two replicas work on the same documents, and what they have in hand is as old as their watches are late.
func TestModelOldHands(t *testing.T) {
	virtual(t, func(b *bench) {
		short(b)
		o := &oldHands{was: map[ledger.ID][]version{}, lag: 5 * time.Second}
		b.wrap = func(l verify.Ledger) verify.Ledger { return o.process(b.ledger) }
		b.start()
		b.created("X", invoice("X"))
		set := b.set
		set.Instance = "i2"
		two, stop := b.engine(set, func(verify.Ledger) verify.Ledger { return o.process(b.anotherLedger()) })
		defer func() { _ = stop() }()
		<-two.Ready()
		all := paths()
		did := walk(b, all, nil)
		for _, p := range all {
			b.judge(p, did[p.key])
		}
		t.Logf("of %d rows in hand %d were old", o.gave, o.old)
		if o.old < 50 {
			t.Error("that is no test")
		}
	})
}

// TestLateWatchDoesNotSpin: a replica whose watch is late does not work on a document again and again that another one has put
// away meanwhile. What the leader shows it counts at once.
func TestLateWatchDoesNotSpin(t *testing.T) {
	virtual(t, func(b *bench) {
		o := &oldHands{was: map[ledger.ID][]version{}, lag: 5 * time.Second, takes: time.Millisecond}
		b.wrap = func(l verify.Ledger) verify.Ledger { return o.process(b.ledger) }
		b.start()
		b.created("X", invoice("X"))
		set := b.set
		set.Instance = "i2"
		two, stop := b.engine(set, func(verify.Ledger) verify.Ledger { return o.process(b.anotherLedger()) })
		defer func() { _ = stop() }()
		<-two.Ready()
		b.pass(time.Minute)
		b.fake.SetDown(true)
		before := o.asked
		const n = 20
		b.many("A", n)
		b.pass(2 * time.Minute)

		blocked := 0
		for i := range n {
			if b.row(fmt.Sprint("A", i)).Reason == ledger.Blocked {
				blocked++
			}
		}
		if blocked < n/2 {
			t.Fatalf("%d of %d documents wait until Flexi is there again", blocked, n)
		}
		if got := o.asked - before; got > 20*n {
			t.Errorf("%d documents were worked on %d times in two minutes", n, got)
		}
	})
}
