package stream

import (
	"context"
	"errors"
	"flexid/verify/ledger"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ContradictionError is a stream or consumer that exists and is set up so that flexid would lose or disorder events. It is
// not repaired, because somebody else may rely on it; trying again does not help.
type ContradictionError struct {
	Name   string   // stream or stream/consumer
	Fields []string // "retention is limits, must be workqueue"
}

func (e *ContradictionError) Error() string {
	return fmt.Sprintf("%s exists and does not fit: %s; change it, remove it, or set FLEXID_NATS_PREFIX to another word",
		e.Name, strings.Join(e.Fields, "; "))
}

// LostError is a stream that is gone, or another one than before: what came in and was not taken is lost with it. Only a
// person knows whether it can be brought back, so it is not made anew.
type LostError struct {
	Stream string
	Made   time.Time // when the one of before was made
	Other  time.Time // when the one that is there was made; zero = none is there
	Ledger string    // that the other one names
}

// exactly shows a time so that two which are near each other differ.
const exactly = "2006-01-02T15:04:05.000Z07:00"

func (e *LostError) Error() string {
	switch {
	case e.Other.IsZero():
		return fmt.Sprintf("stream %s is gone, and with it what came in and was not taken yet", e.Stream)
	case e.Ledger != "":
		return fmt.Sprintf("stream %s is another one than before: it belongs to ledger %s", e.Stream, e.Ledger)
	}
	return fmt.Sprintf("stream %s is another one than before: it was made on %s, the one of before on %s; what came into that and was not taken is lost",
		e.Stream, e.Other.Format(exactly), e.Made.Format(exactly))
}

// UnavailableError is a request to JetStream that got no answer. It may have been carried out. Trying again may help.
type UnavailableError struct {
	Subject string
	Denied  bool // the server said that the permission is missing
	Err     error
}

func (e *UnavailableError) Error() string {
	switch {
	case e.Denied:
		return fmt.Sprintf("permission for %s is missing: %v", e.Subject, e.Err)
	case errors.Is(e.Err, nats.ErrNoResponders):
		return fmt.Sprintf("nobody answers %s: JetStream is off, still starting or without a leader, or the stream is gone: %v", e.Subject, e.Err)
	}
	return fmt.Sprintf("no answer to %s: NATS is slow or away, or permission for %s is missing: %v", e.Subject, e.Subject, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// FullError is a stream, an account or a disk without room: nothing was stored.
type FullError struct {
	Stream  string
	Reserve int64 // bytes that the server does not reserve for the stream, which is not made therefore; 0 = a message was not stored
	Err     error
}

func (e *FullError) Error() string {
	if e.Reserve > 0 {
		return fmt.Sprintf("stream %s cannot be set up: the NATS server has no room for its %d MiB; make room on the disk of its store "+
			"(inside flexid: that of FLEXID_STATE_DIR), or raise its limits (max_file_store, those of the account): %v", e.Stream, e.Reserve>>20, e.Err)
	}
	return fmt.Sprintf("stream %s is full, the message was not stored: %v", e.Stream, e.Err)
}

func (e *FullError) Unwrap() error { return e.Err }

// TooLargeError is a message that NATS never takes: nothing was stored.
type TooLargeError struct {
	Subject string
	Bytes   int   // of its body
	Most    int64 // that the server takes of a whole message (max_payload), or an event may have
	Err     error
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("publishing %s: %d bytes are too many: an event may have %d, and the NATS server takes messages of %d (max_payload): %v",
		e.Subject, e.Bytes, MaxEvent, e.Most, e.Err)
}

func (e *TooLargeError) Unwrap() error { return e.Err }

// TooLarge tells receivers of deliveries that sending it again is of no use.
func (e *TooLargeError) TooLarge() bool { return true }

// isTooLarge says that a message is refused for its size, by the client or by the stream.
func isTooLarge(err error) bool {
	return errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum)
}

// explain gives an error of a request on subject a name that a caller can decide on.
func explain(nc *nats.Conn, subject string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	unanswered := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse)
	if !unanswered {
		return err
	}
	unavailable := &UnavailableError{Subject: subject, Err: err}
	if last := nc.LastError(); errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), `"`+subject+`"`) {
		unavailable.Denied = true
	}
	return unavailable
}

// isFull says that a message was not stored for want of room.
func isFull(err error) bool {
	switch apiCode(err) {
	case ledger.CodeStoreFailed, ledger.CodeAccountStorage, ledger.CodeStorageExceeded, ledger.CodeNoSpace:
		return true
	}
	return false
}

// apiCode is the server's error code, 0 if the server did not say one.
func apiCode(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	var js jetstream.JetStreamError
	if errors.As(err, &js) && js.APIError() != nil {
		return js.APIError().ErrorCode
	}
	return 0
}
