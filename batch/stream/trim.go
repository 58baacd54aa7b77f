package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Trim lets go of deliveries that intake has taken, once the inbox is half full, or at once if it is known to be full. What
// was not taken stays, and so does the last one that was. It returns how many went.
func Trim(ctx context.Context, js jetstream.JetStream, o Options, full bool) (gone uint64, err error) {
	name := o.Names().Inbox
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := js.Stream(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("looking at stream %s: %w", name, explain(js.Conn(), "$JS.API.STREAM.INFO."+name, err))
	}
	info := s.CachedInfo()
	if most := info.Config.MaxBytes; !full && (most <= 0 || info.State.Bytes < uint64(most)/2) {
		return 0, nil
	}
	taken, err := takenTo(ctx, js, name)
	if err != nil || taken <= info.State.FirstSeq || taken > info.State.LastSeq {
		return 0, err // beyond the end: consumer and stream are not of one piece
	}
	if err := s.Purge(ctx, jetstream.WithPurgeSequence(taken)); err != nil {
		return 0, fmt.Errorf("letting go of taken deliveries in %s: %w", name, explain(js.Conn(), "$JS.API.STREAM.PURGE."+name, err))
	}
	o.Log.Info().Str("stream", name).Uint64("below", taken).Msg("deliveries that were taken have been let go, to make room")
	return taken - info.State.FirstSeq, nil
}

// takenTo is the sequence up to which intake has taken every message; 0 where it has not begun.
func takenTo(ctx context.Context, js jetstream.JetStream, name string) (uint64, error) {
	consumer, err := js.Consumer(ctx, name, Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking at consumer %s of %s: %w", Durable, name, explain(js.Conn(), "$JS.API.CONSUMER.INFO."+name+"."+Durable, err))
	}
	return consumer.CachedInfo().AckFloor.Stream, nil
}
