package batch

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"flexid/verify"
)

// Acceptor takes an event over: it returns nil only when the whole event is durable, also one that cannot be read. It may
// be called again with the same event after an error and after a redelivery.
type Acceptor interface {
	Accept(ctx context.Context, e verify.Event) (verify.Receipt, error)
}

// Intake takes messages over for good. It is the handler of stream.Consumer.
type Intake struct {
	Decoder  Decoder
	Acceptor Acceptor
	Log      zerolog.Logger
}

// Handle decodes one message and has it accepted. After nil the message may be acknowledged.
func (i *Intake) Handle(ctx context.Context, m Message) error {
	event := i.Decoder.Decode(m)
	receipt, err := i.Acceptor.Accept(ctx, event)
	if err != nil {
		return fmt.Errorf("accepting event %s of %s: %w", event.EventID, m.Subject, err)
	}
	// The line for people is written when it parks, as of every parking.
	if event.Problem != "" && !receipt.Again {
		i.Log.Debug().Str("evidence", event.Evidence).Str("key", event.Key).Str("event_id", event.EventID).
			Uint64("seq", m.Seq).Str("problem", event.Problem).Msg("event cannot be read; it is parked with its bytes")
	}
	return nil
}
