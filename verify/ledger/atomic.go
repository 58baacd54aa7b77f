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
}

// Commit is a batcher's. The first message asks for an answer, so that a batch which cannot be begun costs no more than that.
func (w *wire) Commit(ctx context.Context, puts []put) (uint64, error) {
	id := fmt.Sprintf("%s.%d", w.name, w.count.Add(1))
	for i, p := range puts {
		m := nats.NewMsg(subject(w.bucket, p.key))
		m.Data = p.value
		m.Header.Set(batchID, id)
		m.Header.Set(batchSeq, strconv.Itoa(i+1))
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(p.revision, 10))
		switch {
		case i == len(puts)-1:
			m.Header.Set(batchCommit, "1")
			return w.commit(ctx, m)
		case i == 0:
			answer, err := w.nc.RequestMsgWithContext(ctx, m)
			if err != nil {
				return 0, fmt.Errorf("beginning a batch: %w", err)
			}
			if _, err := readAck(answer.Data); err != nil {
				return 0, fmt.Errorf("beginning a batch: %w", err)
			}
		default:
			if err := w.nc.PublishMsg(m); err != nil {
				return 0, fmt.Errorf("publishing a batch: %w", err)
			}
		}
	}
	return 0, nil
}

func (w *wire) commit(ctx context.Context, m *nats.Msg) (uint64, error) {
	answer, err := w.nc.RequestMsgWithContext(ctx, m)
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
