package daemon

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

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
	others.Go(func() { c.tellReady(run) })
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
	c.who = &identity{pins: l, name: d.cfg.Flexi.Company, hold: c.holdCompany}
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

// Pauses of the company check: while Flexi does not answer, while all is well, and while all is well and requests are
// counted: each check takes two of them. After an outage it is asked at once (see identity).
const (
	companySoon    = 15 * time.Second
	companyLater   = 10 * time.Minute
	companyCounted = time.Hour
)

// watchCompany asks who the company is also while nothing is written, and again from time to time: it can be set up anew
// under a running daemon.
func (c *core) watchCompany(ctx context.Context) {
	said, waiting := "", 0
	select {
	case <-c.engine.Ready(): // the stored stops are read by then
	case <-ctx.Done():
	}
	for ctx.Err() == nil {
		err := c.who.ensure(ctx)
		c.noteCheck(ctx, err)
		pause := companyLater
		if c.quota != nil {
			pause = companyCounted
		}
		var pin *PinError
		if errors.As(err, &pin) {
			c.fail(err)
			return
		}
		if err != nil {
			pause = companySoon
			if aboutFlexi(err) { // nobody else asks while no document waits, and the status would call all well
				c.engine.ReadEnded(err)
			}
			if waiting == 0 {
				waiting = c.tellWaiting()
			}
			if err.Error() != said && ctx.Err() == nil {
				said = err.Error()
				c.d.log.Warn().Err(err).Msg("the company in Flexi is not checked yet; intake goes on, nothing is written: `flexid doctor` says what to do")
			}
		} else {
			if said != "" {
				said, waiting = "", 0
				c.engine.ReadEnded(nil)
				c.d.log.Info().Msg("the company in Flexi is checked")
			}
			if c.held("company", "") {
				// Stored by an earlier start, whose settings pointed to another company.
				c.engine.EndStop("company")
				pause = companySoon
			}
		}
		if !sleep(ctx, pause) {
			return
		}
		c.who.again()
	}
}

// noteCheck keeps how the check went for the status, except one that the end of the process broke off.
func (c *core) noteCheck(ctx context.Context, err error) {
	check := api.Check{Time: c.d.now().UTC()}
	if err != nil {
		check.Text = err.Error()
	}
	if ctx.Err() == nil {
		c.d.standing.setChecked(check)
	}
}

// tellWaiting says how many documents wait while writes are stopped, and why: the stop may have come before the first of them.
func (c *core) tellWaiting() int {
	st := c.engine.Status()
	for _, g := range st.Stops {
		if !g.Open && st.Waiting > 0 {
			c.d.log.Warn().Str("reason", g.Reason).Str("text", g.Text).Str("remedy", g.Remedy).
				Int("documents_waiting", st.Waiting).Msg("documents wait, nothing is sent")
		}
	}
	return st.Waiting
}

// aboutFlexi says whether a failed check of the company tells how Flexi is to all: not what only the company's own record
// refuses, what it shows, or what the ledger does not give.
func aboutFlexi(err error) bool {
	var answer *flexi.Error
	var cert *flexi.CertError
	if errors.As(err, &cert) {
		return true
	}
	return errors.As(err, &answer) && answer.Status != 403 && answer.Status != 404
}

// holdCompany says it once: each Hold is an alert.
func (c *core) holdCompany(text, remedy string) {
	if !c.held("company", text) {
		c.engine.StopFor("company", text, remedy)
	}
}

// held says whether writes are held for a reason, "" = with any text.
func (c *core) held(reason, text string) bool {
	for _, g := range c.engine.Status().Stops {
		if g.NeedsYou && g.Reason == reason && (text == "" || g.Text == text) {
			return true
		}
	}
	return false
}

func (c *core) tellReady(ctx context.Context) {
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

// tripped is the guard of the client: an attempt was about to be sent twice. It was not, and nothing is until a person
// has looked.
func (c *core) tripped(attempt string) {
	c.engine.StopFor("guard", "attempt "+attempt+" was about to be sent a second time; it was not",
		"this is a fault of flexid: report it with the log, look at the document, then `flexid writes resume`")
}

// StopWrites, ResumeWrites and AcceptCompany make core the API's operator.
func (c *core) StopWrites(ctx context.Context, evidence, by, why string) error {
	return c.engine.StopWrites(ctx, evidence, by, why)
}

// ResumeWrites opens what a person may open; a company that is not the ledger's is held again by the next check.
func (c *core) ResumeWrites(ctx context.Context, evidence, by, why string) error {
	c.who.again()
	return c.engine.ResumeWrites(ctx, evidence, by, why)
}

// AcceptCompany asks who the company is before anything changes. The engine then forgets or doubts what it knows, has the
// company noted (see replace), and lets writes go on, in this order: a crash in between leaves them stopped, or nothing
// known that is not so.
func (c *core) AcceptCompany(ctx context.Context, how, by, why string) error {
	if _, err := c.who.shown(ctx); err != nil {
		return err
	}
	if err := c.engine.AcceptCompany(ctx, how, by, why); err != nil {
		return fmt.Errorf("accepting the company: %w", err)
	}
	return nil
}

// observer adds to the line that writes have stopped how many documents wait for it. Of the engine's calls it counts writes
// only: reads and look-ups are counted where they are asked (see erp).
type observer struct {
	*api.Metrics
	standing *standing
}

// Call counts a write.
func (o observer) Call(kind string) {
	if kind == "write" {
		o.Metrics.Call(kind)
	}
}

// Log writes a line for the operator.
func (o observer) Log(event string, fields ...[2]string) {
	if event == "writes stopped" {
		fields = append(fields, [2]string{"documents_waiting", strconv.Itoa(o.standing.Status().Waiting)})
	}
	o.Metrics.Log(event, fields...)
}
