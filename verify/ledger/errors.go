package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Sentinels of reads and of Append.
var (
	// ErrNoRow: the ledger has no row with this id, so nothing of this document was ever sent.
	ErrNoRow = errors.New("no such row in the ledger")
	// ErrNoEvent: no event is stored under this ordinal.
	ErrNoEvent = errors.New("no such event in the ledger")
	// ErrNewer: the row was written by a newer flexid. It must be left alone.
	ErrNewer = errors.New("the row was written by a newer version of flexid")
	// ErrDamaged: what is stored cannot be read. It must be left alone.
	ErrDamaged = errors.New("what the ledger holds there cannot be read")
	// ErrNoBatches: the server stores one key at a time only, so several cannot be stored as a whole.
	ErrNoBatches = errors.New("the NATS server takes no atomic batches: it needs version 2.12 and allow_atomic on the ledger's stream")
	// ErrHave: Append found the same event of the same message stored already. The message is done.
	ErrHave = errors.New("the event is in the ledger already")
)

// ConflictError is a compare-and-set that lost: somebody else wrote since the caller read. Read again.
type ConflictError struct {
	Key      string
	Expected uint64 // revision the caller had
	Found    uint64 // revision at the leader, 0 = the key shows nothing
	Deleted  bool   // the key was deleted by hand: the ledger itself never deletes
}

func (e *ConflictError) Error() string {
	if e.Deleted {
		return fmt.Sprintf("ledger key %s was deleted by hand; what it said about sent documents is lost, so it is not made again", e.Key)
	}
	return fmt.Sprintf("ledger key %s was changed by somebody else (revision %d instead of %d)", e.Key, e.Found, e.Expected)
}

// OfCursor says that a cursor was moved by somebody else: what was read behind it is theirs.
func (e *ConflictError) OfCursor() bool { return strings.HasPrefix(e.Key, cursorPrefix) }

// UndecidedError is a write of which nobody knows whether it was or will be stored: the context ended while the store
// did not answer. Nothing may be sent on the strength of it.
type UndecidedError struct {
	Subject string // NATS subject of the key
	Tries   int    // how often the same write was sent
	Err     error  // of the last try, or of the context
}

func (e *UndecidedError) Error() string {
	return fmt.Sprintf("not known whether the ledger stored %s (%d tries: %v): NATS does not answer, its disk is full, "+
		"or the permission for subject %s is missing", e.Subject, e.Tries, e.Err, e.Subject)
}

func (e *UndecidedError) Unwrap() error { return e.Err }

// MissingError says that the bucket does not exist. Without it nobody knows what was sent, so intake and writes must stop.
type MissingError struct{ Bucket string }

func (e *MissingError) Error() string {
	if strings.HasPrefix(e.Bucket, stateBucket) {
		return fmt.Sprintf("the bucket %q is gone; it holds only what may be lost, and is made again", e.Bucket)
	}
	return fmt.Sprintf("the ledger bucket %q is gone, and with it the knowledge of what was sent: "+
		"restore NATS's files from a backup, or begin with an empty one by `flexid ledger accept-empty`", e.Bucket)
}

// OtherError says that the bucket is not the one of before. What it says about sent documents means nothing.
type OtherError struct{ Bucket, Before, Now string }

func (e *OtherError) Error() string {
	now := e.Now
	if now == "" {
		now = "nobody's"
	}
	return fmt.Sprintf("the ledger bucket %q is another one than before: it was %s, now it is %s", e.Bucket, e.Before, now)
}

// FullError says that the store refused a write for lack of room. Nothing was stored.
type FullError struct {
	Bucket string
	Err    error
}

func (e *FullError) Error() string {
	return fmt.Sprintf("no room in bucket %q: %v; raise the limit or free space for NATS", e.Bucket, e.Err)
}

func (e *FullError) Unwrap() error { return e.Err }

// TooLargeError is a value that the ledger must not or cannot hold. Nothing was stored.
type TooLargeError struct {
	Key   string
	Bytes int
	Limit int // 0 = the NATS server's own limit
}

func (e *TooLargeError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("ledger key %s has %d bytes, more than the NATS server takes (max_payload)", e.Key, e.Bytes)
	}
	return fmt.Sprintf("ledger key %s has %d bytes, limit %d", e.Key, e.Bytes, e.Limit)
}

// TooManyError says that the server takes fewer keys together than were to be stored as a whole. Nothing was stored; fewer may be.
type TooManyError struct {
	Keys int
	Err  error
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("the NATS server stores fewer than %d keys as a whole (max_batch_size): %v", e.Keys, e.Err)
}

func (e *TooManyError) Unwrap() error { return e.Err }

// Never says that a call which ended in err ends like that however often it is made: the value does not fit, or what lies
// under the key was deleted by hand, cannot be read, or belongs to a newer flexid. Whoever works through something in order
// must put such a piece aside, or everything behind it waits for ever.
func Never(err error) bool {
	var large *TooLargeError
	var conflict *ConflictError
	var marshal *json.MarshalerError
	return errors.As(err, &large) || errors.As(err, &conflict) && conflict.Deleted || errors.As(err, &marshal) ||
		errors.Is(err, ErrNewer) || errors.Is(err, ErrDamaged)
}

// ConfigError is an existing bucket that the ledger cannot trust, with everything that is wrong with it.
type ConfigError struct {
	Bucket string
	Faults []string
}

func (e *ConfigError) Error() string {
	text := fmt.Sprintf("bucket %q cannot be the ledger:", e.Bucket)
	for _, f := range e.Faults {
		text += "\n  " + f
	}
	return text
}
