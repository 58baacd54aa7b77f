//go:build linux

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

// write is one compare-and-set of a key.
type write struct {
	subject string
	value   []byte
	expect  uint64 // revision, 0 = the key must not exist
}

// writer stores keys together, each at the revision that is expected. It returns the new revision of each, 0 where the store
// acknowledged nothing; then it says why.
type writer interface {
	store(ctx context.Context, together []write) ([]uint64, error)
}

// plain stores keys one by one.
type plain struct{ js jetstream.JetStream }

func (w plain) store(ctx context.Context, together []write) ([]uint64, error) {
	revisions := make([]uint64, len(together))
	for i, p := range together {
		m := nats.NewMsg(p.subject)
		m.Data = p.value
		m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(p.expect, 10))
		seq, err := ask(ctx, w.js.Conn(), m)
		if err != nil {
			return revisions, err
		}
		revisions[i] = seq
	}
	return revisions, nil
}

// batches stores keys as one atomic batch.
type batches struct {
	nc    *nats.Conn
	count atomic.Int64
}

func (w *batches) store(ctx context.Context, together []write) ([]uint64, error) {
	revisions := make([]uint64, len(together))
	id := strconv.FormatInt(w.count.Add(1), 10)
	for i, p := range together {
		m := nats.NewMsg(p.subject)
		m.Data = p.value
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(p.expect, 10))
		switch i {
		case len(together) - 1:
			m.Header.Set("Nats-Batch-Commit", "1")
			seq, err := ask(ctx, w.nc, m)
			if err != nil {
				return revisions, err
			}
			for i := range revisions {
				revisions[i] = seq - uint64(len(together)-1-i)
			}
		case 0:
			// The first answer is empty: the batch is begun.
			if _, err := w.nc.RequestMsgWithContext(ctx, m); err != nil {
				return revisions, err
			}
		default:
			if err := w.nc.PublishMsg(m); err != nil {
				return revisions, err
			}
		}
	}
	return revisions, nil
}

// ask sends a message and returns the sequence that it was acknowledged with.
func ask(ctx context.Context, nc *nats.Conn, m *nats.Msg) (uint64, error) {
	answer, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, err
	}
	var ack struct{ Seq uint64 }
	if err := json.Unmarshal(answer.Data, &ack); err != nil || ack.Seq == 0 {
		return 0, fmt.Errorf("%s: %s %w", m.Subject, answer.Data, err)
	}
	return ack.Seq, nil
}
