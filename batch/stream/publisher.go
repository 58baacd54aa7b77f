package stream

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Publisher stores messages in our streams.
type Publisher struct {
	js       jetstream.JetStream
	o        Options
	names    Topology
	batch    batchName
	combiner combiner
}

// NewPublisher publishes to the streams of o.
func NewPublisher(js jetstream.JetStream, o Options) *Publisher {
	return &Publisher{js: js, o: o, names: o.Names(), batch: batchName{random: nuid.Next()}}
}

// Notify publishes to <prefix>.<kind>.<token> and returns nil only when the stream has stored the message. Kinds: done,
// change, alert. A token may have several parts between dots. id lets the server drop a repetition within 100 ms; a later
// one is stored twice.
func (p *Publisher) Notify(ctx context.Context, kind, token, id string, body []byte) error {
	switch kind {
	case "done", "change", "alert":
	default:
		return fmt.Errorf("telling %q: not one of done, change, alert", kind)
	}
	parts := strings.Split(token, ".")
	for i := range parts {
		parts[i] = plain(parts[i])
	}
	m := nats.NewMsg(p.o.prefix() + "." + kind + "." + strings.Join(parts, "."))
	m.Data = body
	if id != "" {
		m.Header.Set(nats.MsgIdHdr, id)
	}
	return p.store(ctx, m)
}

// Push publishes an event and gives its sequence in the intake stream. A key that is no plain token goes into the
// Flexid-Key header. Errors: *FullError (not stored), *UnavailableError (may have been stored).
func (p *Publisher) Push(ctx context.Context, evidence, key string, header map[string][]string, body []byte) (uint64, error) {
	return p.publish(ctx, p.names.Push, p.event(evidence, key, header, body))
}

// Sent is an event on its way to the intake stream.
type Sent struct {
	p   *Publisher
	ack jetstream.PubAckFuture
}

// Send publishes an event as Push does, and leaves the waiting to Sent.Wait. Over one connection events are stored in the
// order in which they were sent, except those that were not stored at all.
func (p *Publisher) Send(evidence, key string, header map[string][]string, body []byte) (*Sent, error) {
	m := p.event(evidence, key, header, body)
	// No repeats of the client's own: it would make them while the caller takes the event for given up.
	ack, err := p.js.PublishMsgAsync(m, jetstream.WithExpectStream(p.names.Push), jetstream.WithRetryAttempts(0))
	if err != nil {
		return nil, p.meaning(p.names.Push, m, err)
	}
	return &Sent{p, ack}, nil
}

// Wait returns nil once the stream has stored the event. Errors are those of Push; an end of ctx is one of them, after which
// the event may still be stored.
func (s *Sent) Wait(ctx context.Context) error {
	var err error
	select {
	case <-s.ack.Ok():
		return nil
	case err = <-s.ack.Err():
	case <-ctx.Done():
		// An acknowledgement that is here as well counts: which of two ready cases is taken is chance.
		select {
		case <-s.ack.Ok():
			return nil
		default:
			err = ctx.Err()
		}
	}
	return s.p.meaning(s.p.names.Push, s.ack.Msg(), err)
}

func (p *Publisher) event(evidence, key string, header map[string][]string, body []byte) *nats.Msg {
	m := nats.NewMsg(p.o.prefix() + ".push." + plain(evidence))
	for name, values := range header {
		m.Header[name] = append([]string(nil), values...)
	}
	switch {
	case key == "":
	case plain(key) == key:
		m.Subject += "." + key
	default:
		m.Header["Flexid-Key"] = []string{key}
	}
	m.Data = body
	return m
}

func (p *Publisher) publish(ctx context.Context, stream string, m *nats.Msg) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// The stream is named so that a foreign stream that catches our subjects does not confirm in its place.
	ack, err := p.js.PublishMsg(ctx, m, jetstream.WithExpectStream(stream))
	if err != nil {
		return 0, p.meaning(stream, m, err)
	}
	return ack.Sequence, nil
}

// meaning gives an error of a publish a name that a caller can decide on.
func (p *Publisher) meaning(stream string, m *nats.Msg, err error) error {
	switch {
	case isFull(err):
		return &FullError{Stream: stream, Err: err}
	case isTooLarge(err):
		return &TooLargeError{Subject: m.Subject, Bytes: len(m.Data), Most: p.js.Conn().MaxPayload(), Err: err}
	}
	return fmt.Errorf("publishing %s: %w", m.Subject, explain(p.js.Conn(), m.Subject, err))
}

// plain makes one token of a subject: what would separate, match or break a subject becomes _.
func plain(s string) string {
	if s == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
}
