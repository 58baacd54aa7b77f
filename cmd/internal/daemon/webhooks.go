package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"flexid/batch"
	"flexid/batch/stream"
	"flexid/cmd/internal/api"
	"flexid/config"
	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
	"flexid/webhook"
	"flexid/webhook/changes"
)

// webhooks is the listener for deliveries and what stands behind it. It is up before NATS is, answering 503: a sender whose
// connection is refused learns less from it than one that is told when to come again.
type webhooks struct {
	cfg     config.Config
	decoder batch.Decoder
	streams stream.Options
	js      jetstream.JetStream // set before inbox is

	inbox  atomic.Pointer[stream.Inbox]  // nil until the ledger was opened: before, it may be another company's
	ledger atomic.Pointer[ledger.Ledger] // of the running core
	engine atomic.Pointer[verify.Engine] // of it too
	reader atomic.Pointer[changes.Reader]
	cursor prometheus.Gauge
}

// SourceSettings turns the settings of a source into what the listener takes.
func SourceSettings(s config.Source) webhook.Source {
	return webhook.Source{
		Kind: s.Kind, Secret: s.Secret.Reveal(), PreviousSecret: s.PreviousSecret.Reveal(),
		Networks: s.Networks, MaxBytes: int64(s.MaxBytes), Rate: s.Rate, Tolerance: s.Tolerance,
	}
}

// startWebhooks starts the listener, or nothing where none is set.
func (d *daemon) startWebhooks(ctx context.Context, reg prometheus.Registerer) error {
	w := d.cfg.Webhook
	d.webhooks = &webhooks{cfg: d.cfg, streams: d.streams, decoder: batch.Decoder{Prefix: d.cfg.NATS.Prefix, System: d.cfg.Flexi.System, Zone: d.cfg.Location},
		cursor: prometheus.NewGauge(prometheus.GaugeOpts{Name: "flexid_changes_cursor_version", Help: "Changes of Flexi below this version have been read."})}
	if w.Addr == "" {
		return nil
	}
	if err := CheckSources(w); err != nil {
		return err
	}
	sources := map[string]webhook.Source{}
	for name, s := range w.Source {
		sources[name] = SourceSettings(s)
		if len(s.Secret.Reveal()) < 16 {
			d.log.Warn().Str("source", name).Msg(variable(name, "SECRET") + " is short: a secret of 24 or more random characters cannot be guessed")
		}
	}
	s, err := webhook.New(webhook.Options{
		Addr: w.Addr, Sources: sources, Sink: d.webhooks, Reader: d.webhooks, Waiter: d.webhooks, Wake: d.webhooks.wake,
		Proxies: d.cfg.HTTP.TrustedProxies, Registry: reg, Now: d.o.Now, Log: d.log,
	})
	if err != nil {
		return err
	}
	if d.webhooks.hasChanges() {
		if err := reg.Register(d.webhooks.cursor); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	d.undo.push("webhook listener", s.Stop)
	d.info.Webhook = "http://" + s.Addr()
	d.log.Info().Str("address", d.info.Webhook).Strs("sources", w.Sources).Msg("webhook deliveries")
	return nil
}

// CheckSources says which settings of the sources cannot be used, all at once, each as a *SettingError; nothing where no
// listener is set.
func CheckSources(w config.Webhook) error {
	if w.Addr == "" {
		return nil
	}
	var all []error
	for _, name := range w.Sources {
		err := SourceSettings(w.Source[name]).Check()
		var setting *webhook.SettingError
		if errors.As(err, &setting) {
			err = &SettingError{variable(name, setting.Name), setting.Err}
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

func variable(source, name string) string {
	return config.Prefix + "WEBHOOK_" + strings.ToUpper(strings.ReplaceAll(source, "-", "_")) + "_" + name
}

// Store stores a delivery, once there is something to store it in.
func (h *webhooks) Store(ctx context.Context, source, id string, header map[string][]string, body []byte) (fresh, same bool, err error) {
	inbox := h.inbox.Load()
	if inbox == nil {
		return false, false, errors.New("NATS and the ledger are not there yet")
	}
	if known, same, err := h.knownOf(ctx, inbox, source, id, header, body); err != nil || known {
		return false, same, err
	}
	fresh, same, err = inbox.Store(ctx, source, id, header, body)
	var full *stream.FullError
	if errors.As(err, &full) {
		// What was taken may go at once; the half is looked after from time to time only.
		c, trimErr := ledger.CursorOf(ctx, h.js, h.streams.Prefix, h.streams.Names().Inbox)
		if trimErr == nil {
			_, trimErr = stream.Trim(ctx, h.js, h.streams, c, true)
		}
		if trimErr == nil {
			fresh, same, err = inbox.Store(ctx, source, id, header, body)
		}
	}
	return fresh, same, err
}

// knownOf asks the ledger about a delivery that the inbox has let go. One that is still there the inbox judges itself, by its
// bytes; one that could not be stored as an event may come again.
func (h *webhooks) knownOf(ctx context.Context, inbox *stream.Inbox, source, id string, header map[string][]string, body []byte) (known, same bool, err error) {
	engine := h.engine.Load()
	if engine == nil {
		return false, false, nil
	}
	e := h.decoder.Decode(batch.Message{Subject: h.streams.InboxSubject(source, id), Header: header, Data: body})
	known, same, err = engine.Knows(ctx, e)
	if ledger.Never(err) {
		return false, false, nil // intake sets it aside
	}
	if err != nil || !known {
		return false, false, err
	}
	there, err := inbox.Has(ctx, source, id)
	return !there && err == nil, same, err
}

// Read decodes a delivery as it will be decoded when it comes out of the inbox.
func (h *webhooks) Read(x *webhook.Delivery) (webhook.Document, error) {
	e := h.decoder.Decode(batch.Message{Subject: h.streams.InboxSubject(x.Source, x.ID), Header: x.Header(), Data: x.Body})
	if e.Problem != "" {
		return webhook.Document{}, errors.New(e.Problem)
	}
	a := verify.Address{Evidence: e.Evidence, Source: e.Source, Key: e.Key}
	return webhook.Document{
		Evidence: e.Evidence, Source: e.Source, Key: e.Key, EventID: e.EventID,
		Address: a.String(), Path: "/api/v1/documents/" + api.Path(a),
	}, nil
}

// hasChanges says that a source wakes the reader of changes.
func (h *webhooks) hasChanges() bool {
	for _, s := range h.cfg.Webhook.Source {
		if s.Kind == "flexi" {
			return h.cfg.Webhook.Addr != ""
		}
	}
	return false
}

func (h *webhooks) wake(string) {
	if r := h.reader.Load(); r != nil {
		r.Wake()
	}
	// Without a core the log is read when one begins.
}

// openWebhooks lets deliveries in and reads Flexi's changes, until ctx ends. Deliveries go on being stored after that.
func (c *core) openWebhooks(ctx context.Context, state *ledger.StateBucket) {
	h := c.d.webhooks
	h.ledger.Store(c.ledger)
	h.engine.Store(c.engine)
	defer h.engine.Store(nil)
	if h.inbox.Load() == nil {
		h.js = c.d.js
		h.inbox.Store(stream.NewInbox(c.d.js, c.d.streams))
	}
	defer h.ledger.Store(nil)
	if !h.hasChanges() {
		<-ctx.Done()
		return
	}
	var read time.Time // the reader's last, in this run
	reader := changes.New(changes.Options{
		Feed: erp{c.client, c.d.metrics.Call, c.who}, Store: state, Notifier: stream.NewPublisher(c.d.js, c.d.streams),
		Fell: func(known, now int64) { c.fell(read, known, now) },
		Read: func(next int64) { read = c.d.now(); h.cursor.Set(float64(next)) }, Now: c.d.now, Log: c.d.log,
	})
	h.reader.Store(reader)
	defer h.reader.Store(nil)
	reader.Run(ctx)
}

// fell stops the writes as the engine does when a look notices the same, unless a person has accepted it since the reader
// read last.
func (c *core) fell(since time.Time, known, now int64) {
	c.engine.Restored(since, fmt.Sprintf("Flexi's version of all changes fell from %d to %d: it was restored from a backup", known, now))
}

// Changes checks the company, counts and asks: the log of another company under the same name is not ours.
func (e erp) Changes(ctx context.Context, start int64, limit int) (flexi.Changes, error) {
	if err := e.who.ensure(ctx); err != nil {
		return flexi.Changes{}, err
	}
	e.call("read")
	return e.Client.Changes(ctx, start, limit)
}
