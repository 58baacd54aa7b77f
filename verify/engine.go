package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// Workers of a lane. A look waits for the ERP, so many may wait at once: the looker packs them into few requests. Those that
// send are as many as fill two rounds of requests, within bounds, since each holds a document in memory.
const (
	leastSenders = 32
	mostSenders  = 256
	lookWorkers  = 128
)

func (s Settings) senders() int { return min(max(2*s.Concurrency*s.Pack, leastSenders), mostSenders) }

// Engine is the only way by which a document's write leaves. Make it with New, start it with Run.
type Engine struct {
	o         Options
	scheduler *scheduler
	looker    *looker
	admission *admission
	fence     *fence
	marks     *marks
	metadata  *metadataCache
	packs     *packer

	evidences *evidences

	groups    atomic.Uint64 // requests of several documents, for their names
	ready     chan struct{} // closed when the first scan of the ledger is over
	readyOnce sync.Once
	begun     chan struct{}  // closed when the marks are read: which company the ledger is about is known
	sending   sync.WaitGroup // groups that are sent beside a worker whose document is not among them
}

// New checks the options; nothing is started.
func New(o Options) (*Engine, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	e := &Engine{o: o, ready: make(chan struct{}), begun: make(chan struct{})}
	e.evidences = newEvidences()
	e.fence = newFence(o.Settings.System)
	e.marks = &marks{}
	e.packs = newPacker(o.Settings.Pack)
	e.admission = newAdmission(o.Settings, o.Now, o.Rand, e.say)
	e.metadata = newMetadataCache(o.ERP, o.Now, e.admission.readEnded)
	e.scheduler = newScheduler(e.admission)
	e.admission.onReset = func() { e.scheduler.hurry(e.o.Now()) }
	e.admission.candidateWaits = e.scheduler.candidates
	e.admission.onOutcome = func(n int, r *flexi.Result, took time.Duration, done bool) {
		e.packs.learn(n, r, done, took, e.o.Settings.WriteTimeout)
	}
	e.looker = newLooker(o.ERP, e.fence, e.marks, o.Now, e.called, e.lookEnded)
	e.looker.lookable = e.lookable
	return e, nil
}

// Run schedules every document until ctx ends, then lets what is in flight finish or be recorded, within Settings.Drain.
// It returns nil after a clean stop. A ledger that went away is reported through StopFor and does not end Run.
func (e *Engine) Run(ctx context.Context) error {
	// Work in flight outlives ctx by the drain time: a stop must not turn a running write into a maybe without need.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if err := e.loadStops(ctx); err != nil {
		return fmt.Errorf("reading the stops of writes: %w", err)
	}
	if err := e.syncMarks(ctx); err != nil {
		return err
	}
	close(e.begun)
	changes, err := e.o.Ledger.Watch(ctx)
	if err != nil {
		return fmt.Errorf("watching the ledger: %w", err)
	}
	var owners sync.WaitGroup
	owners.Go(func() { e.looker.run(work) })
	owners.Go(func() { e.follow(changes) })
	owners.Go(func() { e.followStops(ctx) })
	owners.Go(func() { e.checkBooks(ctx) })
	var lanesDone sync.WaitGroup
	lanesDone.Go(func() { e.dispatch(ctx, work, laneSend, e.o.Settings.senders()) })
	lanesDone.Go(func() { e.dispatch(ctx, work, laneLook, lookWorkers) })
	drained := make(chan struct{})
	owners.Go(func() { lanesDone.Wait(); e.sending.Wait(); close(drained) })

	<-ctx.Done()
	timer := time.NewTimer(e.o.Settings.Drain)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		err = errors.New("stopped with writes in flight: they are recorded as maybe and looked up at the next start")
	}
	cancel()
	owners.Wait()
	last, end := context.WithTimeout(context.WithoutCancel(ctx), stopsEvery)
	defer end()
	if stored := e.syncMarks(last); stored != nil {
		e.o.Log.Warn().Err(stored).Msg("the last seconds of what was seen of the books are not stored")
	}
	return err
}

// lookEnded passes on how a look ended, and what it showed of the ERP as a whole.
func (e *Engine) lookEnded(evidence string, err error) {
	e.admission.recordsRead(evidence, err)
	e.noteVersion()
}

// afterOthers is how long another replica's rows are left to it.
const afterOthers = 2 * time.Second

// noted updates scheduler and metrics with what a row says now, by the write of the worker that has it.
func (e *Engine) noted(row *ledger.Row) { e.updateScheduler(row, true) }

// arrived is noted for a write beside the worker, which may be about to put the document away: it must come back to it.
func (e *Engine) arrived(row *ledger.Row) { e.updateScheduler(row, false) }

// updateScheduler shows a stored row to the scheduler, and counts and logs what it has become.
func (e *Engine) updateScheduler(row *ledger.Row, worker bool) {
	e.scheduler.toMonotonic(row, walls(row), e.o.Settings.Fresh, e.o.Now())
	e.put(row, e.due(row), worker)
	// By what the writer read, not by the scheduler: the watch may have shown it this write already.
	if row.State != row.Was && e.o.Observer != nil {
		e.o.Observer.Entered(string(row.State))
	}
	row.Was = row.State
	e.logParkings(row)
}

// put takes over what a row says. Whatever revision the scheduler has, the evidence is met.
func (e *Engine) put(row *ledger.Row, due time.Time, own bool) {
	e.evidences.meet(row.Evidence)
	e.scheduler.put(row, due, e.o.Now(), own)
}

// due is when a row wants attention: its current event, a notification, or a follow-up.
func (e *Engine) due(row *ledger.Row) time.Time {
	if row.Format > ledger.Format {
		return time.Time{}
	}
	var due time.Time
	early := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	if len(row.ToNotify) > 0 || len(row.Parkings) > 0 {
		return e.o.Now()
	}
	if row.State == ledger.Sending {
		switch {
		case e.mine(row.Lease):
			// A worker of ours runs it, and the scheduler knows. Without one (an outcome that could not be stored) it is a maybe.
			return e.o.Now().Add(afterOthers)
		case row.Lease != nil && row.Lease.Instance != e.o.Settings.Instance:
			return e.o.Now().Add(row.Lease.For)
		}
		return e.o.Now()
	}
	if (row.Work == nil || row.Work.Final) && row.More() {
		early(later(e.settled(row), e.o.Now())) // the next event; its own due time is not known before it is begun
	}
	early(row.Due)
	early(row.ReadBack)
	for _, t := range row.Late {
		early(t)
	}
	return due
}

// dispatch hands due rows of one lane to workers until ctx ends, and waits for them.
func (e *Engine) dispatch(ctx, work context.Context, l lane, workers int) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, workers)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	select {
	case <-e.ready:
	case <-ctx.Done():
		return
	}
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		id, seen, ok := e.wait(ctx, l, timer)
		if !ok {
			return
		}
		running.Go(func() {
			defer func() { <-slots }()
			due := e.advance(ctx, work, id, seen)
			e.scheduler.end(id, due, e.o.Now())
		})
	}
}

// wait blocks until a row of the lane is due; false when ctx ended.
func (e *Engine) wait(ctx context.Context, l lane, timer *time.Timer) (ledger.ID, observation, bool) {
	for {
		id, seen, d, ok := e.scheduler.next(l, e.o.Now())
		if ok {
			return id, seen, ctx.Err() == nil
		}
		timer.Reset(d)
		select {
		case <-ctx.Done():
			return "", observation{}, false
		case <-timer.C:
		case <-e.scheduler.wakeOf(l):
		}
	}
}

// Ready is closed when the ledger has been read once: before that nothing is sent.
func (e *Engine) Ready() <-chan struct{} { return e.ready }

func (e *Engine) called(kind string) {
	if e.o.Observer != nil {
		e.o.Observer.Call(kind)
	}
}

// say writes a line for the operator.
func (e *Engine) say(event string, fields ...[2]string) {
	if e.o.Observer != nil {
		e.o.Observer.Log(event, fields...)
	}
}

// ledgerTrouble stops all writes when the ledger is gone; anything else is passing and only logged.
func (e *Engine) ledgerTrouble(err error) {
	var missing *ledger.MissingError
	if errors.As(err, &missing) {
		e.StopFor("ledger", err.Error(), "restore NATS's files from a backup, or start an empty one with `flexid ledger accept-empty`")
		return
	}
	e.o.Log.Warn().Err(err).Msg("ledger")
}

// allowed says whether the settings let an operation out.
func (e *Engine) allowed(evidence string, op flexi.Op) bool { return e.o.Settings.Allow(evidence, op) }
