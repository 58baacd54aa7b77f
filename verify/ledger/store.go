package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// keyValue is what the ledger needs of a bucket: a read from the leader and a compare-and-set; revision 0 means that the
// key must not exist.
type keyValue interface {
	Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
}

// store repeats calls of a bucket until they are decided.
type store struct {
	kv      keyValue
	group   *group // gathers first attempts; nil = each goes alone
	cache   *cache // rows and events in hand; nil = none
	js      jetstream.JetStream
	bucket  string
	timeout time.Duration // of one call
	idle    time.Duration // of a feed, before it checks
	log     zerolog.Logger
}

// payload is the largest value that the NATS server takes, 0 where that is not known.
func (s *store) payload() int64 {
	if s.js == nil || s.js.Conn() == nil {
		return 0
	}
	return s.js.Conn().MaxPayload()
}

// pause between tries that failed at once (no connection, no leader); a try that timed out has waited already, but a
// second clock reading is not worth it.
const pause = 50 * time.Millisecond

// stale is how often a read may contradict a compare-and-set before the read is believed: a deposed leader answers with
// old values for a moment.
const stale = 20

// fault is what an error of a store call means.
type fault uint8

const (
	lost     fault = iota // may have been stored: no answer, no connection, anything unknown
	silent                // nobody listens on the subject: no bucket, or no server yet
	conflict              // another revision than expected
	full                  // refused for lack of room
	large                 // refused for its size
	many                  // a batch of more keys than the server takes together
	spoilt                // a batch that the server gave up: nothing of it is stored
	disabled              // the server takes no batches for this stream
	removed               // somebody deleted the key by hand, as a batch has seen
	apart                 // as spoilt, for what may be another's fault
	gone                  // the server says that there is no such stream
	closed                // our connection is closed for good
)

// classify says what an error of the store means for the write.
func classify(err error) fault {
	switch {
	case errors.Is(err, errApart):
		return apart
	case errors.Is(err, errRemoved):
		return removed
	case errors.Is(err, ErrNoBatches):
		return disabled
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return conflict
	case errors.Is(err, nats.ErrMaxPayload):
		return large
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrBucketNotFound):
		return gone
	case errors.Is(err, nats.ErrConnectionClosed):
		return closed
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return silent
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return lost
	}
	switch api.ErrorCode {
	case CodeWrongSequence, CodeWrongSequenceAll:
		return conflict
	case CodeMessageTooLarge:
		return large
	case CodeBatchTooLarge:
		return many
	case CodeAccountStorage, CodeNoSpace, CodeMemoryExceeded, CodeStorageExceeded:
		return full
	case CodeBatchesOff:
		return disabled
	case CodeBatchNoSequence, CodeBatchIncomplete, CodeBatchBadID, CodeBatchBadCommit, CodeBatchIDUsed, CodeBatchTooManyTaken:
		return spoilt
	case CodeStoreFailed:
		if strings.Contains(api.Description, "too large") {
			return large
		}
		return full
	}
	return lost
}

// cas stores value if key still has the revision. It repeats the very same call until it is decided or ctx is over; the
// value must differ from every other ever stored under the key (a random token), since finding it proves that it is ours.
func (s *store) cas(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return s.commit(ctx, []put{{key, value, revision}})
}

// commit is cas for several keys, all of them or none: it gives the revision of the last one. Only the last key decides what
// became of an attempt without an answer, so nobody may write it who does not write all of them. A server that comes to a limit of
// its room in the middle of a batch leaves the first keys stored: that is an error, never a success.
func (s *store) commit(ctx context.Context, puts []put) (uint64, error) {
	life := s.cache.writing(puts)
	last, err := s.decide(ctx, puts)
	s.cache.stored(puts, last, life, err)
	return last, err
}

// decide repeats a write until it is known whether it was stored.
func (s *store) decide(ctx context.Context, puts []put) (uint64, error) {
	t := &try{store: s, puts: puts}
	for {
		if ctx.Err() != nil {
			return 0, t.undecided(ctx)
		}
		rev, err := t.attempt(ctx)
		if err == nil {
			return rev, nil
		}
		t.count, t.last = t.count+1, err
		f := classify(err)
		switch {
		case f == apart && !t.open:
			continue // at once, alone
		case f == lost && ctx.Err() != nil:
			return 0, t.undecided(ctx)
		}
		rev, done, err := t.judge(ctx, f)
		if done {
			return rev, err
		}
		wait(ctx, pause)
	}
}

func (s *store) update(ctx context.Context, p put) (uint64, error) {
	return s.kv.Update(ctx, p.key, p.value, p.revision)
}

// try is what is stored as a whole or not at all on its way to a decision.
type try struct {
	store  *store
	puts   []put // the first one decides
	count  int
	last   error
	open   bool // an earlier call may have been stored
	warned bool
	spoilt int // batches that the server gave up
	odd    int // reads that contradict the store
}

// attempt stores the puts once, the first time along with what others store.
func (t *try) attempt(ctx context.Context) (uint64, error) {
	g := t.store.group
	if g != nil && t.count == 0 {
		return g.store(ctx, t.puts)
	}
	ctx, cancel := context.WithTimeout(ctx, t.store.timeout)
	defer cancel()
	switch {
	case len(t.puts) == 1:
		return t.store.update(ctx, t.puts[0])
	case g == nil || g.noBatches():
		return 0, ErrNoBatches
	}
	return g.batch.Commit(ctx, t.puts)
}

// judge says whether a failed call is decided, and how.
func (t *try) judge(ctx context.Context, f fault) (rev uint64, done bool, err error) {
	s := t.store
	switch f {
	case conflict:
		return t.compare(ctx)
	case full, large, many:
		if t.open {
			if rev, done, err := t.compare(ctx); done {
				return rev, done, err
			}
		}
		return 0, true, t.refusal(f)
	case gone:
		return 0, true, &MissingError{Bucket: s.bucket}
	case spoilt: // nothing new is on its way
		t.warn()
		if t.spoilt++; t.spoilt >= stale && len(t.puts) > 1 && !t.open {
			return 0, true, fmt.Errorf("storing %d keys together: %w", len(t.puts), t.last) // whoever reads it again says so to people
		}
		return 0, false, nil
	case removed:
		p := t.puts[0]
		return 0, true, &ConflictError{Key: p.key, Expected: p.revision, Deleted: true}
	case disabled:
		if len(t.puts) > 1 && !t.open {
			return 0, true, ErrNoBatches
		}
	case closed:
		return 0, true, t.undecided(ctx)
	case silent:
		if s.missing(ctx) {
			return 0, true, &MissingError{Bucket: s.bucket}
		}
	}
	t.warn()
	t.open = true
	return 0, false, nil
}

// warn says once that a write is repeated.
func (t *try) warn() {
	if !t.warned {
		t.warned = true
		t.store.log.Warn().Str("key", t.puts[0].key).Err(t.last).Msg("ledger: store does not answer, or gives the write up (is its disk full?); the same write is repeated until it is decided")
	}
}

func (t *try) refusal(f fault) error {
	switch f {
	case many:
		return &TooManyError{Keys: len(t.puts), Err: t.last}
	case large:
		p := slices.MaxFunc(t.puts, func(a, b put) int { return cmp.Compare(len(a.value), len(b.value)) })
		return &TooLargeError{Key: p.key, Bytes: len(p.value)}
	}
	return &FullError{Bucket: t.store.bucket, Err: t.last}
}

// compare reads who wrote, the last key first. Not done means: the store moved on or will, ask it again.
func (t *try) compare(ctx context.Context) (uint64, bool, error) {
	many := len(t.puts) > 1
	odd := many // refused though nothing moved: a key may have been deleted by hand
	for i, p := range slices.Backward(t.puts) {
		e, err := t.store.read(ctx, p.key)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			if p.revision == 0 && many {
				continue // as it was
			}
			if t.odd++; t.odd < stale {
				return 0, false, nil
			}
			return 0, true, &ConflictError{Key: p.key, Expected: p.revision, Deleted: true}
		case err != nil:
			if classify(err) == gone {
				return 0, true, &MissingError{Bucket: t.store.bucket}
			}
			t.last = err
			return 0, false, nil
		case string(e.Value()) == string(p.value) && i < len(t.puts)-1:
			if t.odd++; t.odd < stale {
				return 0, false, nil // it may have been stored between the two reads
			}
			// The server came to a limit in the middle. What it stored is recognised when it is read again.
			return 0, true, fmt.Errorf("of %d keys that belong together only some are stored, up to %s: %w", len(t.puts), p.key, t.last)
		case string(e.Value()) == string(p.value):
			if err := t.store.sync(ctx); err != nil {
				t.last = err
				return 0, false, nil
			}
			return e.Revision(), true, nil
		case e.Revision() > p.revision:
			return 0, true, &ConflictError{Key: p.key, Expected: p.revision, Found: e.Revision()}
		}
		odd = odd || e.Revision() < p.revision
	}
	// The expected revision or an older one: a write, perhaps ours, is on its way through the replicas, or the read is old.
	if odd {
		if t.odd++; t.odd >= stale {
			if t.open && many {
				return 0, true, t.undecided(ctx)
			}
			p := t.puts[len(t.puts)-1]
			return 0, true, &ConflictError{Key: p.key, Expected: p.revision}
		}
	}
	return 0, false, nil
}

// sync makes sure that what was read is on the disk: a server that was killed and started again shows what its kernel still keeps
// in memory, and the next plain write takes that along.
func (s *store) sync(ctx context.Context) error {
	if s.js == nil || s.js.Conn() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return plainWrite(ctx, s.js.Conn(), s.bucket)
}

func (t *try) undecided(ctx context.Context) error {
	err, over := t.last, context.Cause(ctx)
	switch {
	case err == nil:
		err = over
	case over != nil && !errors.Is(err, over):
		err = fmt.Errorf("%w, %w", err, over)
	}
	return &UndecidedError{Subject: subject(t.store.bucket, t.puts[0].key), Tries: t.count, Err: err}
}

func subject(bucket, key string) string { return "$KV." + bucket + "." + key }

// missing asks whether the server knows for sure that the stream does not exist.
func (s *store) missing(ctx context.Context) bool {
	if s.js == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.js.Stream(ctx, "KV_"+s.bucket)
	return errors.Is(err, jetstream.ErrStreamNotFound)
}

// read asks the leader once.
func (s *store) read(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.kv.Get(ctx, key)
}

// get reads, for as long as two calls may take: a server that restarts is back within that. A key that does not exist is
// jetstream.ErrKeyNotFound.
func (s *store) get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.timeout)
	defer cancel()
	for {
		e, err := s.read(ctx, key)
		if err == nil {
			s.cache.shown(key, e.Revision())
			return e, nil
		}
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			s.cache.shown(key, 0)
			return nil, err
		}
		f := classify(err)
		if f == gone || f == silent && s.missing(ctx) {
			return nil, &MissingError{Bucket: s.bucket}
		}
		if f == closed || ctx.Err() != nil {
			return nil, fmt.Errorf("reading %s (NATS does not answer, or the permission for $JS.API.STREAM.MSG.GET.KV_%s is missing): %w",
				subject(s.bucket, key), s.bucket, err)
		}
		wait(ctx, pause)
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
