package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of an atomic batch (NATS 2.12, ADR-50). The client library has no call for it.
const (
	batchID     = "Nats-Batch-Id"
	batchSeq    = "Nats-Batch-Sequence"
	batchCommit = "Nats-Batch-Commit"
)

// wire publishes atomic batches to the stream of a bucket.
type wire struct {
	nc     *nats.Conn
	bucket string
	name   string // random: no two processes may use one name for two batches
	count  atomic.Uint64
	synced atomic.Uint64 // how often the connection had been made when a plain write was last stored before a batch
}

// Commit is a batcher's. A server that was killed in the middle of a batch and started again counts what is only in its kernel's
// memory as one of the two revisions, and the next batch would remove the other one: so a plain write, which is synced, goes before
// the first batch of every connection.
func (w *wire) Commit(ctx context.Context, puts []put) (uint64, error) {
	if n := w.nc.Stats().Reconnects + 1; w.synced.Load() != n {
		if err := plainWrite(ctx, w.nc, w.bucket); err != nil {
			return 0, err
		}
		w.synced.Store(n)
	}
	ms := make([]*nats.Msg, len(puts))
	for i, p := range puts {
		m := nats.NewMsg(subject(w.bucket, p.key))
		m.Data = p.value
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(p.revision, 10))
		ms[i] = m
	}
	return PublishAtomic(ctx, w.nc, fmt.Sprintf("%s.%d", w.name, w.count.Add(1)), ms)
}

// plainWrite stores a key that means nothing, by itself.
func plainWrite(ctx context.Context, nc *nats.Conn, bucket string) error {
	answer, err := nc.RequestWithContext(ctx, subject(bucket, syncKey), nil)
	if err == nil {
		_, err = readAck(answer.Data)
	}
	if err != nil {
		return fmt.Errorf("a plain write, for the disk: %w", err)
	}
	return nil
}

// PublishAtomic publishes messages to one stream, all of them or none, and gives the sequence of the last one. id must not be
// used twice. Where several are sent the first one asks for an answer, so that a batch which cannot be begun costs no more than
// that. An error without an answer of the server may leave them stored. ErrNoBatches: the server does not know what a batch is and
// has stored the first one by itself; the others, sent like it, would be stored one by one, without a word about those it refuses.
func PublishAtomic(ctx context.Context, nc *nats.Conn, id string, ms []*nats.Msg) (uint64, error) {
	for i, m := range ms {
		m.Header.Set(batchID, id)
		m.Header.Set(batchSeq, strconv.Itoa(i+1))
		switch {
		case i == len(ms)-1:
			m.Header.Set(batchCommit, "1")
			return commitBatch(ctx, nc, m)
		case i == 0:
			answer, err := nc.RequestMsgWithContext(ctx, m)
			if err != nil {
				return 0, fmt.Errorf("beginning a batch: %w", err)
			}
			stored, err := readAck(answer.Data)
			if err == nil && stored != 0 {
				err = ErrNoBatches
			}
			if err != nil {
				return 0, fmt.Errorf("beginning a batch: %w", err)
			}
		default:
			if err := nc.PublishMsg(m); err != nil {
				return 0, fmt.Errorf("publishing a batch: %w", err)
			}
		}
	}
	return 0, nil
}

func commitBatch(ctx context.Context, nc *nats.Conn, m *nats.Msg) (uint64, error) {
	answer, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("committing a batch: %w", err)
	}
	last, err := readAck(answer.Data)
	if err != nil {
		return 0, fmt.Errorf("committing a batch: %w", err)
	}
	if last == 0 {
		return 0, fmt.Errorf("committing a batch: the answer %q gives no sequence", answer.Data)
	}
	return last, nil
}

// readAck reads what the server says to a message of a batch: nothing to those before the last one, unless it refuses.
func readAck(data []byte) (uint64, error) {
	if len(data) == 0 {
		return 0, nil
	}
	var ack struct {
		Seq   uint64              `json:"seq"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return 0, fmt.Errorf("the answer %q: %w", data, err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}
