package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"flexid/batch"
	"flexid/batch/stream"
	"flexid/cmd/internal/api"
	"flexid/cmd/internal/quota"
	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// core is intake, engine and company check on one ledger.
type core struct {
	d        *daemon
	ledger   *ledger.Ledger
	engine   *verify.Engine
	consumer *stream.Reader
	inbox    *stream.Reader
	client   *flexi.Client
	quota    *quota.Quota // nil = no budget
	who      *identity
	fail     context.CancelCauseFunc
	narrow   bool // intake is paused for lack of room; of watchStores alone
}

// runCore works until ctx ends or a part fails, and returns what failed. Intake stops first and the engine after it: an
// event that is taken while the engine goes down is stored and waits, one that is not taken stays in the stream.
func (d *daemon) runCore(ctx context.Context, l *ledger.Ledger, state *ledger.StateBucket) error {
	c, err := d.newCore(l, state)
	if err != nil {
		return err
	}
	run, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c.fail = fail
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()

	d.standing.setEngine(c.engine)
	d.standing.setQuota(c.quota)
	d.standing.setClient(c.client)
	d.http.Use(&api.Backend{Ledger: l, Decider: c.engine, Operator: c, Reporter: c.engine, Finder: c.engine, Company: l.RowsUnder()})
	d.standing.setPhase("running")

	if err := c.lookForRoom(ctx); err != nil && ctx.Err() == nil {
		d.log.Warn().Err(err).Msg("whether there is room is not known yet")
	}

	var engine, others sync.WaitGroup
	var engineErr, intakeErr, inboxErr error
	engine.Go(func() {
		engineErr = c.engine.Run(work)
		fail(errOr(engineErr, "the engine ended by itself"))
	})
	others.Go(func() {
		intakeErr = c.consumer.Run(run)
		c.lost(intakeErr)
		fail(errOr(intakeErr, "intake ended by itself"))
	})
	others.Go(func() {
		inboxErr = c.inbox.Run(run)
		c.lost(inboxErr)
		fail(errOr(inboxErr, "the inbox ended by itself"))
	})
	others.Go(func() { c.openWebhooks(run, state) })
	others.Go(func() { c.watchStores(run) })
	others.Go(func() { c.noteDocuments(run) })
	others.Go(func() { c.watchCompany(run) })
	others.Go(func() { c.announceReady(run) })
	others.Go(func() { c.client.KeepSession(run) })
	if c.quota != nil {
		others.Go(func() { c.quota.Run(run) })
	}

	<-run.Done()
	if ctx.Err() != nil {
		d.standing.setPhase("stopping")
		d.notify.say("STOPPING=1")
	}
	others.Wait()
	stopWork()
	engine.Wait()
	c.logout()
	d.http.Use(nil)
	d.standing.setEngine(nil)
	d.standing.setQuota(nil)
	d.standing.setClient(nil)
	d.standing.setIntake(nil)
	if ctx.Err() != nil {
		return errors.Join(intakeErr, inboxErr, engineErr)
	}
	return context.Cause(run)
}

func errOr(err error, text string) error {
	if err == nil {
		return errors.New(text)
	}
	return err
}

func (d *daemon) newCore(l *ledger.Ledger, state *ledger.StateBucket) (*core, error) {
	c := &core{d: d, ledger: l}
	c.who = &identity{pins: l, name: d.cfg.Flexi.Company, hold: c.stopForCompany}
	budget := flexi.NewBudget(d.cfg.Flexi.Pack)
	o := flexi.Options{
		Dial: d.o.Dial, Now: d.o.Now, Rand: d.o.Rand, Budget: budget, Observe: c.observe, Tripped: c.tripped, Log: d.log,
	}
	if c.quota = d.newQuota(state); c.quota != nil {
		o.Quota = c.quota
	}
	client, err := NewClient(d.cfg.Flexi, o)
	if err != nil {
		return nil, err
	}
	c.client = client
	c.who.erp = erp{Client: client, call: d.metrics.Call}
	c.engine, err = verify.New(verify.Options{
		ERP: erp{client, d.metrics.Call, c.who}, Ledger: l, State: state, Notifier: stream.NewPublisher(d.js, d.streams),
		Observer: observer{d.metrics, &d.standing}, Budget: budget, Settings: d.settings(l.RowsUnder()), Accepted: c.who.replace, Now: d.o.Now, Rand: d.o.Rand, Log: d.log,
	})
	if err != nil {
		return nil, err
	}
	in := stream.ReaderOptions{Options: d.streams, Taker: c.intake(), Drain: d.cfg.DrainTimeout / 4, Now: d.now, Log: d.log}
	c.consumer, c.inbox = stream.NewReader(d.js, in), stream.NewInboxReader(d.js, in)
	return c, nil
}

// observe counts a request on the wire, and hears in it whether the ERP is still there.
func (c *core) observe(r flexi.Request) {
	c.d.metrics.Request(r)
	c.who.heard(r.Status != 0 && r.Status < 500)
}

// logout ends the session at the ERP. An eighth of the time for a stop is set aside for it, see Run.
func (c *core) logout() {
	ctx, cancel := context.WithTimeout(context.Background(), c.d.cfg.DrainTimeout/8)
	defer cancel()
	if err := c.client.Logout(ctx); err != nil {
		c.d.log.Warn().Err(err).Msg("our session at Flexi was not ended; it ends by itself")
	}
}

// settings copies the fields across, so that the engine need not know where settings come from. company is the name under
// which the ledger keeps its rows.
func (d *daemon) settings(company string) verify.Settings {
	f, v := d.cfg.Flexi, d.cfg.Verify
	return verify.Settings{
		System: f.System, Company: company, Zone: d.cfg.Location,
		Looks: v.Looks, SettleServerError: v.SettleServerError, SettleNoAnswer: v.SettleNoAnswer, SettleProxy: v.SettleProxy,
		Sends: v.Sends, LookFirst: v.LookFirst, Overwrite: v.Overwrite,
		Allow:    func(evidence string, op flexi.Op) bool { return f.Allow.Allowed(evidence, string(op)) },
		ReadBack: d.o.ReadBack, Concurrency: f.Concurrency, Pack: f.Pack, Probe: f.Pause, WriteTimeout: f.WriteTimeout,
		Instance: d.instance, Run: newRun(), Drain: d.cfg.DrainTimeout / 2,
	}
}

// intake hands events to the engine and keeps an eye on what stands in the way.
func (c *core) intake() stream.Taker {
	decoder := batch.Decoder{Prefix: c.d.cfg.NATS.Prefix, System: c.d.cfg.Flexi.System, Zone: c.d.cfg.Location}
	return &watched{core: c, next: &batch.Intake{Decoder: decoder, Acceptor: c.engine, Log: c.d.log}}
}

// watched notes a ledger that is gone, and any other reason for which events cannot be stored.
type watched struct {
	core *core
	next *batch.Intake
}

// Cursor reads how far a stream was taken.
func (w *watched) Cursor(ctx context.Context, name string) (ledger.Cursor, error) {
	cursor, err := w.core.ledger.Cursor(ctx, name)
	return cursor, w.note(ctx, err)
}

// Take passes messages on.
func (w *watched) Take(ctx context.Context, ms []batch.Message, cursor func(n int) *ledger.Cursor, careful bool) (int, error) {
	var to *ledger.Cursor
	n, err := w.next.Take(ctx, ms, func(n int) *ledger.Cursor { to = cursor(n); return to }, careful)
	if err == nil {
		w.core.d.noteTaken(map[string]uint64{to.Stream: to.Seq})
	}
	var conflict *ledger.ConflictError
	switch {
	case err == nil:
		w.core.d.standing.setIntake(nil)
	case !errors.As(err, &conflict) && !errors.Is(err, ledger.ErrNoBatches): // those are tried again at once
		return n, w.note(ctx, err)
	}
	return n, err
}

func (w *watched) note(ctx context.Context, err error) error {
	switch {
	case err == nil, ctx.Err() != nil:
	case ledgerGone(err):
		w.core.gone(err)
	default:
		w.core.d.standing.setIntake(&api.Trouble{Part: api.PartIntake, Text: "events cannot be stored: " + err.Error(), Remedy: "they wait in the stream and are tried again"})
	}
	return err
}

// lost stops everything where a consumer ended because its stream is not the one of before.
func (c *core) lost(err error) {
	if ledgerGone(err) {
		c.gone(err)
	}
}

// gone stops everything that stands on the ledger: without it nobody knows what was sent.
func (c *core) gone(err error) {
	c.d.standing.setNoLedger(api.Trouble{Part: api.PartLedger, Text: goneText(err), Remedy: waysOut})
	c.consumer.Pause(goneText(err))
	c.inbox.Pause(goneText(err))
	c.engine.StopFor("ledger", goneText(err), waysOut)
	c.fail(err)
}

// logWaiting says how many documents wait while writes are stopped, and why: the stop may have come before the first of them.
func (c *core) logWaiting() int {
	st := c.engine.Status()
	for _, g := range st.Stops {
		if !g.Open && st.Waiting > 0 {
			c.d.log.Warn().Str("reason", g.Reason).Str("text", g.Text).Str("remedy", g.Remedy).
				Int("documents_waiting", st.Waiting).Msg("documents wait, nothing is sent")
		}
	}
	return st.Waiting
}

func (c *core) announceReady(ctx context.Context) {
	select {
	case <-c.engine.Ready():
	case <-ctx.Done():
		return
	}
	c.d.log.Info().Str("company", c.d.cfg.Flexi.Company).Str("ledger", c.ledger.LedgerID()).Msg("ready")
	c.d.info.FollowUps = c.followUps
	c.d.readyOnce.Do(func() {
		c.d.notify.say("READY=1\nSTATUS=" + c.d.statusText())
		if c.d.o.Ready != nil {
			c.d.o.Ready(c.d.info)
		}
	})
}

// followUps counts the documents that still have to be read back, or about which a notification is still to be published.
func (c *core) followUps(ctx context.Context) (n int, err error) {
	for _, err := range c.ledger.List(ctx, func(r *ledger.Row) bool { return !r.ReadBack.IsZero() || len(r.ToNotify) > 0 }) {
		if err != nil {
			return n, fmt.Errorf("counting documents to be read back: %w", err)
		}
		n++
	}
	return n, nil
}
