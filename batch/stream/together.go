package stream

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"flexid/verify/ledger"
)

// This file lets messages that are told at the same time go to the disk together: while a batch is on its way, what comes meanwhile
// waits for the next one. A handful is published side by side. A message whose batch was not stored, or of which nobody knows, is
// published by itself: it may then be there twice, which those who hear it have to bear anyway.

const (
	combineLeast = 8       // messages of a batch: fewer cost less by themselves, side by side
	combineMost  = 200     // messages of a batch
	combineBytes = 1 << 20 // of a batch
)

// combiner keeps messages that wait to be published together. One of the callers leads: it carries what waits, its own message
// among it, and hands the lead to one of those who came meanwhile.
type combiner struct {
	mu      sync.Mutex
	waiting []*pendingMessage
	led     bool // somebody leads
}

type pendingMessage struct {
	m    *nats.Msg
	news chan outcome // holds one
}

type outcome struct {
	lead   bool // the lead is handed over, nothing was published
	stored bool // else: whether it was; if not, it is published by its own caller
}

// store publishes a message, with others where others wait.
func (p *Publisher) store(ctx context.Context, m *nats.Msg) error {
	t := &p.combiner
	w := &pendingMessage{m, make(chan outcome, 1)}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	lead := !t.led
	t.led = true
	t.mu.Unlock()
	if !lead {
		n, err := t.wait(ctx, w)
		if err != nil {
			return err
		}
		if lead = n.lead; !lead {
			if n.stored {
				return nil
			}
			_, err := p.publish(ctx, p.names.Out, m)
			return err
		}
	}
	defer t.handOver()
	batch := t.take(w)
	stored := len(batch) >= combineLeast && p.publishAll(ctx, batch)
	for _, o := range batch[1:] {
		o.news <- outcome{stored: stored}
	}
	if stored {
		return nil
	}
	_, err := p.publish(ctx, p.names.Out, m)
	return err
}

// wait waits for what becomes of a message that somebody else carries.
func (t *combiner) wait(ctx context.Context, w *pendingMessage) (outcome, error) {
	select {
	case n := <-w.news:
		return n, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting, w)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // it is on its way, which takes no longer than a call, or the lead is
		n := <-w.news
		if n.stored {
			return n, nil
		}
		if n.lead {
			t.handOver()
		}
	}
	return outcome{}, fmt.Errorf("publishing %s: %w", w.m.Subject, context.Cause(ctx))
}

// take gives the messages of the next batch, the leader's first.
func (t *combiner) take(leader *pendingMessage) []*pendingMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	batch := []*pendingMessage{leader}
	bytes := len(leader.m.Data)
	rest := t.waiting[:0]
	for _, w := range t.waiting {
		switch {
		case w == leader:
		case len(batch) < combineMost && bytes+len(w.m.Data) <= combineBytes:
			batch, bytes = append(batch, w), bytes+len(w.m.Data)
		default:
			rest = append(rest, w)
		}
	}
	clear(t.waiting[len(rest):])
	t.waiting = rest
	return batch
}

// handOver gives the lead to the first who waits.
func (t *combiner) handOver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.led = false
		return
	}
	next := t.waiting[0]
	t.waiting = t.waiting[1:]
	next.news <- outcome{lead: true}
}

// publishAll stores all of a batch, or says that it did not, or that it is not known.
func (p *Publisher) publishAll(ctx context.Context, batch []*pendingMessage) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ms := make([]*nats.Msg, len(batch))
	for i, w := range batch {
		m := nats.NewMsg(w.m.Subject)
		m.Data = w.m.Data
		for key, values := range w.m.Header {
			m.Header[key] = values
		}
		m.Header.Set(jetstream.ExpectedStreamHeader, p.names.Out) // a foreign stream that catches our subjects must not confirm
		ms[i] = m
	}
	_, err := ledger.PublishAtomic(ctx, p.js.Conn(), p.batch.next(), ms)
	return err == nil
}
