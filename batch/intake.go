package batch

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"flexid/verify"
	"flexid/verify/ledger"
)

// Acceptor takes events over: what it tells of is durable, with the cursor, in whole, also events that cannot be read. It may be
// called again with the same events after an error.
type Acceptor interface {
	AcceptAll(ctx context.Context, events []verify.Event, cursor func(n int) *ledger.Cursor, careful bool) ([]verify.Receipt, error)
}

// Intake takes messages over for good. It is the taker of stream.Reader.
type Intake struct {
	Decoder  Decoder
	Acceptor Acceptor
	Log      zerolog.Logger
}

// Take decodes messages and has them accepted, as many as go together.
func (i *Intake) Take(ctx context.Context, ms []Message, cursor func(n int) *ledger.Cursor, careful bool) (int, error) {
	events := make([]verify.Event, len(ms))
	for n, m := range ms {
		events[n] = i.Decoder.Decode(m)
		events[n].Replayed = m.Replayed
	}
	receipts, err := i.Acceptor.AcceptAll(ctx, events, cursor, careful)
	if err != nil {
		return 0, fmt.Errorf("accepting events from message %d of %s on: %w", ms[0].Seq, ms[0].Stream, err)
	}
	for n, receipt := range receipts {
		// The line for people is written when it parks, as of every parking.
		if e := events[n]; e.Problem != "" && !receipt.Known {
			i.Log.Debug().Str("evidence", e.Evidence).Str("key", e.Key).Str("event_id", e.EventID).
				Uint64("seq", ms[n].Seq).Str("problem", e.Problem).Msg("event cannot be read; it is parked with its bytes")
		}
	}
	return len(receipts), nil
}
