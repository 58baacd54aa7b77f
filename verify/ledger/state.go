package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// StateBucket keeps small values that all replicas share and that are not documents: stops of writes, cursors, quotas.
// It is safe for concurrent use.
type StateBucket struct {
	*store
	bare jetstream.KeyValue
}

// stateBucket is the name of the bucket of what all replicas share and may be lost, before the prefix of the settings.
const stateBucket = "flexid_state"

// OpenState binds the state bucket and makes it if there is none: unlike the ledger it holds nothing whose loss could
// send a document twice.
func OpenState(ctx context.Context, js jetstream.JetStream, o Options) (*StateBucket, error) {
	o.defaults()
	bucket, err := bucketName(stateBucket, o.Prefix)
	if err != nil {
		return nil, err
	}
	want := streamConfig(bucket, o, nil)
	want.Description = "flexid: stops of writes, cursors, quotas"
	have, err := ensure(ctx, js, want, o, true)
	if err != nil {
		return nil, fmt.Errorf("opening the state bucket: %w", err)
	}
	if faults := contradictions(have, want); len(faults) > 0 {
		return nil, &ConfigError{Bucket: bucket, Faults: faults}
	}
	s, err := bind(ctx, js, bucket, o)
	if err != nil {
		return nil, fmt.Errorf("opening the state bucket: %w", err)
	}
	bare := s.kv.(jetstream.KeyValue)
	s.kv = reborn{bare}
	return &StateBucket{store: s, bare: bare}, nil
}

// reborn makes deleted keys again; the ledger must not, its keys are never deleted.
type reborn struct{ jetstream.KeyValue }

func (r reborn) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 {
		return r.Create(ctx, key, value)
	}
	return r.KeyValue.Update(ctx, key, value, revision)
}

// Get reads a value and its revision from the leader; revision 0 = there is none.
func (b *StateBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	e, err := b.get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return e.Value(), e.Revision(), nil
}

// Put stores a value whatever is there; the last writer wins. It is durable when it returns nil; errors as Ledger.Claim.
func (b *StateBucket) Put(ctx context.Context, key string, value []byte) error {
	for {
		_, rev, err := b.Get(ctx, key)
		if err != nil {
			return err
		}
		if _, err = b.cas(ctx, key, value, rev); !lostRace(err) {
			return err
		}
	}
}

// Update stores a value if the key still has the revision (0 = must not exist) and returns the new one. Two writers with
// the same bytes at the same revision are both told that they won: put a name into a value whose owner matters.
func (b *StateBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return b.cas(ctx, key, value, revision)
}

// Delete removes a key; one that does not exist is no error.
func (b *StateBucket) Delete(ctx context.Context, key string) error {
	for {
		_, rev, err := b.Get(ctx, key)
		if err != nil || rev == 0 {
			return err
		}
		err = b.remove(ctx, key, rev)
		if err == nil || classify(err) == gone {
			return err
		}
		if ctx.Err() != nil || classify(err) == closed {
			return fmt.Errorf("deleting %s: %w", subject(b.bucket, key), err)
		}
		wait(ctx, pause)
	}
}

func (b *StateBucket) remove(ctx context.Context, key string, revision uint64) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	return b.bare.Delete(ctx, key, jetstream.LastRevision(revision))
}
