package stream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"flexid/verify/ledger"
)

// This file tells whether a stream is the one that a cursor speaks of. It is looked at after messages were read and before they are
// taken: what was read of a stream that was set back, made anew or emptied must not move the cursor.

// SetBackError is a stream that is not as its cursor says: it, or the ledger, was restored from a backup, or somebody removed
// messages. Only a person knows which.
type SetBackError struct {
	Stream  string
	Taken   uint64 // the cursor's sequence
	First   uint64 // in the stream
	Last    uint64 // in the stream
	Missing uint64 // messages that were taken or are to be taken, and are not there; 0 = the message at the cursor is another one
	Before  uint64 // up to which it had been taken, where the ledger says less now
}

func (e *SetBackError) Error() string {
	text := fmt.Sprintf("stream %s is not as it was: ", e.Stream)
	switch {
	case e.Before > e.Taken:
		return fmt.Sprintf("the ledger is not as it was: %s had been taken up to message %d, and it says %d now; what became of the %d between is not known "+
			"(the ledger was restored)", e.Stream, e.Before, e.Taken, e.Before-e.Taken)
	case e.Last < e.Taken:
		text += fmt.Sprintf("it was taken up to message %d and ends at %d, so that the last %d are missing", e.Taken, e.Last, e.Missing)
	case e.Missing > 0:
		text += fmt.Sprintf("behind message %d, up to which it was taken, %d are missing", e.Taken, e.Missing)
	default:
		text += fmt.Sprintf("message %d, up to which it was taken, is another one now", e.Taken)
	}
	return text + " (the stream or the ledger was restored, or messages were removed by hand)"
}

// Digest names a message: a cursor carries that of the last one taken.
func Digest(subject string, data []byte) string {
	h := sha256.New()
	h.Write([]byte(subject))
	h.Write([]byte{0})
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// surely looks whether the stream fits the cursor, and says how many messages a batch should have. Where it does not fit the
// cursor is read again: it is old if somebody moved it meanwhile, and then that is all.
func (r *Reader) surely(ctx context.Context, c ledger.Cursor) (most int, err error) {
	most, err = Fits(ctx, r.js, r.stream, c)
	if err == nil {
		return most, nil
	}
	return 0, r.confirm(ctx, c, err)
}

// confirm gives errMoved instead of what is wrong, where the cursor has moved.
func (r *Reader) confirm(ctx context.Context, c ledger.Cursor, wrong error) error {
	now, err := r.o.Taker.Cursor(ctx, r.stream)
	if err != nil {
		return err
	}
	if now.Revision != c.Revision {
		return errMoved
	}
	return wrong
}

// hole says what is missing behind the cursor, in a stream that goes on later; nil where the messages were lost on their way to us.
func (r *Reader) hole(ctx context.Context, c ledger.Cursor) error {
	info, err := r.info(ctx)
	if err != nil {
		return err
	}
	next, err := r.next(ctx, behind(c))
	if err != nil || next == behind(c) {
		return err
	}
	return r.confirm(ctx, c, &SetBackError{Stream: r.stream, Taken: c.Seq, First: info.State.FirstSeq, Last: info.State.LastSeq, Missing: next - behind(c)})
}

// next is the first sequence from one on that the stream holds.
func (r *Reader) next(ctx context.Context, from uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := r.js.Stream(ctx, r.stream)
	if err != nil {
		return 0, fmt.Errorf("looking at stream %s: %w", r.stream, explain(r.js.Conn(), "$JS.API.STREAM.INFO."+r.stream, err))
	}
	m, err := s.GetMsg(ctx, from, jetstream.WithGetMsgSubject(">"))
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", r.stream, explain(r.js.Conn(), "$JS.API.STREAM.MSG.GET."+r.stream, err))
	}
	return m.Sequence, nil
}

func (r *Reader) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := streamInfo(ctx, r.js, r.stream)
	if err == nil && info == nil {
		err = &LostError{Stream: r.stream}
	}
	return info, err
}

// Fits looks whether a stream is the one that a cursor speaks of; it says how many of its messages a batch should have. Errors:
// *LostError, *SetBackError, and those of requests.
func Fits(ctx context.Context, js jetstream.JetStream, name string, c ledger.Cursor) (most int, err error) {
	info, err := streamInfo(ctx, js, name)
	switch {
	case err != nil:
		return 0, err
	case info == nil:
		return 0, &LostError{Stream: name, Made: c.Made}
	case info.Created.Sub(c.Made).Abs() > time.Millisecond:
		return 0, &LostError{Stream: name, Made: c.Made, Other: info.Created.UTC()}
	}
	state := info.State
	back := &SetBackError{Stream: name, Taken: c.Seq, First: state.FirstSeq, Last: state.LastSeq}
	switch {
	case state.LastSeq < c.Seq:
		back.Missing = c.Seq - state.LastSeq
		return 0, back
	case state.FirstSeq > behind(c) && state.LastSeq >= behind(c):
		back.Missing = state.FirstSeq - behind(c)
		return 0, back
	}
	if c.Seq > c.GivenUp {
		same, err := holds(ctx, js, name, c)
		if err != nil {
			return 0, err
		}
		if !same {
			return 0, back
		}
	}
	most = readMost
	if state.Msgs > 0 {
		most = int(min(max(readBytes/max(state.Bytes/state.Msgs, 1), 1), readMost))
	}
	return most, nil
}

// holds says whether the message at the cursor is the one that was taken. A stream that was emptied by hand up to its end lost
// nothing that is to be taken.
func holds(ctx context.Context, js jetstream.JetStream, name string, c ledger.Cursor) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := js.Stream(ctx, name)
	if err != nil {
		return false, fmt.Errorf("looking at stream %s: %w", name, explain(js.Conn(), "$JS.API.STREAM.INFO."+name, err))
	}
	m, err := s.GetMsg(ctx, c.Seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return s.CachedInfo().State.FirstSeq == c.Seq+1, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading message %d of %s: %w", c.Seq, name, explain(js.Conn(), "$JS.API.STREAM.MSG.GET."+name, err))
	}
	return m.Time.Equal(c.Time) && Digest(m.Subject, m.Data) == c.Digest, nil
}
