package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"flexid/batch/stream"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// Pauses of the demo, and how long it may take before it reports what there is.
const (
	lookEvery = 200 * time.Millisecond
	sayEvery  = 2 * time.Second
	patience  = 5 * time.Minute
)

// evidences of the piece.
func (p *piece) evidences() []string {
	var all []string
	for _, d := range p.documents {
		if !slices.Contains(all, d.evidence) {
			all = append(all, d.evidence)
		}
	}
	return all
}

// play publishes the events and waits until nothing is open any more.
func (s *stage) play(ctx context.Context, p *piece, stderr io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("documents are still open after %s", patience))
	defer cancel()
	nc, err := nats.Connect(s.info.NATS, nats.Token(s.info.NATSToken), nats.Name("flexid demo"))
	if err != nil {
		return fmt.Errorf("connecting to NATS as a publisher: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("JetStream: %w", err)
	}
	w := &watch{stage: s, js: js, stderr: stderr, began: time.Now()}
	g, ctx := errgroup.WithContext(ctx)
	published := make(chan struct{})
	g.Go(func() error {
		defer close(published)
		return s.publish(ctx, stream.NewPublisher(js, stream.Options{}), p)
	})
	g.Go(func() error { return w.untilDone(ctx, published) })
	if err := g.Wait(); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

func (s *stage) publish(ctx context.Context, to *stream.Publisher, p *piece) error {
	for _, ev := range p.events {
		if err := ev.publish(ctx, to); err != nil {
			return err
		}
	}
	if err := s.edit(ctx, p.conflict.doc); err != nil {
		return err
	}
	return p.conflict.publish(ctx, to)
}

func (ev *event) publish(ctx context.Context, to *stream.Publisher) error {
	header := map[string][]string{"Flexid-Op": {string(ev.op)}, "Flexid-Event-Id": {ev.id}}
	if _, err := to.Push(ctx, ev.doc.evidence, ev.key, header, ev.body); err != nil {
		return fmt.Errorf("publishing %s of %s/%s: %w", ev.op, ev.doc.evidence, ev.doc.key, err)
	}
	return nil
}

// edit is the person: it waits until the document is in Flexi and confirmed, then changes its text by hand.
func (s *stage) edit(ctx context.Context, d *document) error {
	for {
		if story, err := s.api.story(ctx, d); err == nil && story.State == "confirmed" {
			break
		}
		if !pause(ctx, lookEvery) {
			return context.Cause(ctx)
		}
	}
	for _, r := range s.erp.Find(d.evidence, d.ext) {
		if s.erp.Edit(d.evidence, r.ID, map[string]any{"popis": personText}) {
			return nil
		}
	}
	return fmt.Errorf("the person could not edit %s/%s", d.evidence, d.key)
}

// watch follows the daemon and says now and then how far it is.
type watch struct {
	*stage
	js     jetstream.JetStream
	stderr io.Writer
	began  time.Time
	said   time.Time
}

func (w *watch) untilDone(ctx context.Context, published <-chan struct{}) error {
	for {
		all := false
		select {
		case <-published:
			all = true
		default:
		}
		open, err := w.look(ctx)
		if err != nil {
			return err
		}
		if all && open == 0 && w.erp.Pending() == 0 {
			return nil
		}
		if !pause(ctx, lookEvery) {
			return context.Cause(ctx)
		}
	}
}

// look counts what is still open: events that intake has not taken, and documents that wait, are being sent or are in
// doubt. The events are counted first: they become documents, never the other way round.
func (w *watch) look(ctx context.Context) (open int, err error) {
	waiting, err := stream.Waiting(ctx, w.js, stream.Options{})
	if err != nil {
		return 0, err
	}
	rows, err := w.api.rows(ctx)
	if err != nil {
		return 0, err
	}
	states := map[string]int{}
	for _, r := range rows {
		states[r.State]++
	}
	open = int(waiting) + states["queued"] + states["sending"] + states["maybe"]
	if time.Since(w.said) >= sayEvery {
		w.said = time.Now()
		w.say(ctx, int(waiting), states)
	}
	return open, nil
}

func (w *watch) say(ctx context.Context, waiting int, states map[string]int) {
	line := fmt.Sprintf("%5.0f s   in the stream %3d   queued %3d   sending %d   maybe %2d   confirmed %3d   parked %d   write requests %d",
		time.Since(w.began).Seconds(), waiting, states["queued"], states["sending"], states["maybe"], states["confirmed"],
		states["parked"], w.erp.Count("write"))
	if st, err := w.api.status(ctx); err == nil && st.Engine != nil {
		for _, g := range st.Engine.Stops {
			if !g.Open {
				line += "   writes paused: " + strings.TrimSpace(g.Reason+" "+g.Evidence)
			}
		}
	}
	fmt.Fprintln(w.stderr, line)
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
