package stream

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"flexid/verify/ledger"
)

// Trim lets go of messages that were taken, once their stream is half full, or at once if it is known to be full. What was not
// taken stays, and so does the last one that was: by it the stream is known again. It returns how many went. Nothing goes from
// a stream that is not as the cursor says.
func Trim(ctx context.Context, js jetstream.JetStream, o Options, c ledger.Cursor, full bool) (gone uint64, err error) {
	name := c.Stream
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
	if c.Seq <= info.State.FirstSeq {
		return 0, nil
	}
	if _, err := Fits(ctx, js, name, c); err != nil {
		return 0, err
	}
	if err := s.Purge(ctx, jetstream.WithPurgeSequence(c.Seq)); err != nil {
		return 0, fmt.Errorf("letting go of taken messages in %s: %w", name, explain(js.Conn(), "$JS.API.STREAM.PURGE."+name, err))
	}
	o.Log.Info().Str("stream", name).Uint64("below", c.Seq).Msg("messages that were taken have been let go, to make room")
	return c.Seq - info.State.FirstSeq, nil
}
