package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Cursor is how far a stream was taken into the ledger. It moves in the batch that stores what was taken, so that a message is
// taken once, in order, whichever replica reads. Sequence alone would not do: a stream that is restored keeps its name and
// its time of making, and uses sequences again; so it also names the message that lies there.
type Cursor struct {
	Format int       `json:"format"`
	Stream string    `json:"stream"`
	Made   time.Time `json:"made,omitzero"`    // when the stream was made: another one has another time
	Seq    uint64    `json:"seq"`              // of the last message taken, 0 = none
	Time   time.Time `json:"time,omitzero"`    // of that message
	Digest string    `json:"digest,omitempty"` // of that message

	// GivenUp: what lies at or below it and is not in the stream was given up by a person.
	GivenUp uint64 `json:"given_up,omitempty"`
	// Replayed: messages up to it may have been taken before the ledger or the stream was set back. What they ask for is looked up
	// in Flexi and never sent by itself.
	Replayed uint64 `json:"again,omitempty"`

	Token    string `json:"token"` // as Row.Token; set when it is stored
	Revision uint64 `json:"-"`     // 0 = there is none
}

// Cursor reads how far a stream was taken; Revision 0 means that nothing is noted.
func (l *Ledger) Cursor(ctx context.Context, stream string) (Cursor, error) {
	c := Cursor{Stream: stream}
	rev, err := l.load(ctx, cursorKey(stream), &c)
	if err != nil {
		return Cursor{}, fmt.Errorf("reading how far %s was taken: %w", stream, err)
	}
	if c.Revision = rev; c.Stream != stream {
		return Cursor{}, fmt.Errorf("what was read is the cursor of %s, not of %s", c.Stream, stream)
	}
	return c, nil
}

// CursorOf reads the cursor of a stream without opening the ledger: for those who only want to know how much waits. The zero
// cursor where there is none.
func CursorOf(ctx context.Context, js jetstream.JetStream, prefix, stream string) (Cursor, error) {
	bucket, err := bucketName("flexid_ledger", prefix)
	if err != nil {
		return Cursor{}, err
	}
	kv, err := js.KeyValue(ctx, bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return Cursor{Stream: stream}, nil
	}
	if err != nil {
		return Cursor{}, fmt.Errorf("looking at bucket %s: %w", bucket, err)
	}
	l := &Ledger{store: &store{kv: kv, js: js, bucket: bucket, timeout: 5 * time.Second}}
	return l.Cursor(ctx, stream)
}

// BatchesAt says whether the bucket of a ledger can store several keys as a whole; true where there is no bucket yet.
func BatchesAt(ctx context.Context, js jetstream.JetStream, prefix string) (bool, error) {
	bucket, err := bucketName("flexid_ledger", prefix)
	if err != nil {
		return false, err
	}
	s, err := js.Stream(ctx, "KV_"+bucket)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at bucket %s: %w", bucket, err)
	}
	return s.CachedInfo().Config.AllowAtomicPublish, nil
}

// SetCursor stores a cursor by itself, for a stream that is new or that a person accepted; errors as Claim.
func (l *Ledger) SetCursor(ctx context.Context, c Cursor) error {
	value, err := l.cursorValue(c)
	if err != nil {
		return err
	}
	if _, err := l.cas(ctx, cursorKey(c.Stream), value, c.Revision); err != nil {
		return fmt.Errorf("noting how far %s was taken: %w", c.Stream, err)
	}
	return nil
}

// ReplaceCursor is SetCursor in place of one that was deleted by hand, which a person accepted.
func (l *Ledger) ReplaceCursor(ctx context.Context, c Cursor) error {
	s, err := l.js.Stream(ctx, "KV_"+l.bucket)
	if err != nil {
		return fmt.Errorf("looking at bucket %s: %w", l.bucket, err)
	}
	mark, err := s.GetLastMsgForSubject(ctx, subject(l.bucket, cursorKey(c.Stream)))
	if err != nil {
		return fmt.Errorf("looking for what is left of the cursor of %s: %w", c.Stream, err)
	}
	c.Revision = mark.Sequence
	if !removal(mark) {
		return &ConflictError{Key: cursorKey(c.Stream), Found: mark.Sequence}
	}
	return l.SetCursor(ctx, c)
}

func (l *Ledger) cursorValue(c Cursor) ([]byte, error) {
	c.Format, c.Token = Format, l.token()
	if c.Stream == "" {
		return nil, errors.New("a cursor without a stream cannot be stored")
	}
	return json.Marshal(c)
}
