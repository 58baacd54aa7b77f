package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

func (c *Consumer) config() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Name: Durable, Durable: Durable, Description: "flexid: intake, serial over all replicas",
		DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy, ReplayPolicy: jetstream.ReplayInstantPolicy,
		MaxAckPending: 1,           // order over replicas and redeliveries
		MaxDeliver:    -1,          // a message that ran out of deliveries would lie there undeliverable, unseen
		AckWait:       c.o.AckWait, // no BackOff: with one, a delayed refusal comes at another time than was asked for
	}
}

// bind ensures streams and consumer. It looks before it writes: a user without the right to create works as long as
// everything is there.
func (c *Consumer) bind(ctx context.Context) (jetstream.Consumer, error) {
	if _, err := Ensure(ctx, c.js, c.o.Options); err != nil {
		return nil, err
	}
	name := c.stream
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	consumer, err := c.js.Consumer(call, name, Durable)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, fmt.Errorf("looking at consumer %s of %s: %w", Durable, name, explain(c.js.Conn(), "$JS.API.CONSUMER.INFO."+name+"."+Durable, err))
	}
	want := c.config()
	if err == nil {
		have := consumer.CachedInfo().Config
		if fields := consumerContradictions(have, want); len(fields) > 0 {
			return nil, &ContradictionError{Name: "consumer " + Durable + " of stream " + name, Fields: fields}
		}
		if have.MaxAckPending == want.MaxAckPending && have.MaxDeliver == want.MaxDeliver && have.AckWait == want.AckWait && len(have.BackOff) == 0 {
			return consumer, nil
		}
		want.Replicas, want.Metadata = have.Replicas, have.Metadata
	}
	return c.create(ctx, want)
}

func (c *Consumer) create(ctx context.Context, want jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	name := c.stream
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	consumer, err := c.js.CreateOrUpdateConsumer(ctx, name, want)
	if err != nil {
		return nil, fmt.Errorf("setting up consumer %s of %s: %w", Durable, name, explain(c.js.Conn(), "$JS.API.CONSUMER.CREATE."+name+"."+Durable, err))
	}
	return consumer, nil
}

// consumerContradictions lists what cannot be changed on a consumer and would skip or disorder events.
func consumerContradictions(have, want jetstream.ConsumerConfig) []string {
	var fields []string
	differ := func(wrong bool, field string, is, must any) {
		if wrong {
			fields = append(fields, fmt.Sprintf("%s is %v, must be %v", field, is, must))
		}
	}
	differ(have.AckPolicy != want.AckPolicy, "ack policy", have.AckPolicy, want.AckPolicy)
	differ(have.DeliverPolicy != want.DeliverPolicy, "deliver policy", have.DeliverPolicy, want.DeliverPolicy)
	differ(have.FilterSubject != "" || len(have.FilterSubjects) > 0, "filter", "set", "unset")
	differ(have.InactiveThreshold > 0, "inactive threshold", have.InactiveThreshold, "unset")
	differ(have.PriorityPolicy != want.PriorityPolicy, "priority policy", "set", "unset")
	differ(have.HeadersOnly, "headers only", true, false)
	differ(have.MemoryStorage, "memory storage", true, false)
	return fields
}
