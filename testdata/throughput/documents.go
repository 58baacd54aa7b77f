package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// evidence is where all documents go.
const evidence = "faktura-vydana"

func number(i int) string { return fmt.Sprintf("T%07d", i) }

// document is the invoice with a number, as a sender publishes it.
func document(i int) []byte {
	return fmt.Appendf(nil, `{"kod":%q,"typDokl":"code:FAKTURA","varSym":"%d","datVyst":"2026-03-09","firma":"code:NOVAK",`+
		`"polozkyFaktury":[{"nazev":"Práce","mnozMj":"2","cenaMj":"850.00","typSzbDphK":"typSzbDph.dphZakl"}]}`, number(i), i)
}

// publish stores the documents from one number to another: in atomic batches where the stream takes them, so that the
// publishing is no part of what is measured, else one by one with many under way.
func publish(ctx context.Context, nc *nats.Conn, streamName, subject string, from, to int) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	s, err := js.Stream(ctx, streamName)
	if err != nil {
		return err
	}
	if !s.CachedInfo().Config.AllowAtomicPublish {
		return publishSingly(ctx, js, subject, from, to)
	}
	const together = 500
	for ; from <= to; from += together {
		var batch []*nats.Msg
		for i := from; i <= min(to, from+together-1); i++ {
			batch = append(batch, &nats.Msg{Subject: subject, Data: document(i)})
		}
		if _, err := atomically(ctx, nc, "documents-"+strconv.Itoa(from), batch); err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
	}
	return nil
}

func publishSingly(ctx context.Context, js jetstream.JetStream, subject string, from, to int) error {
	const underWay = 1000
	waiting := make([]jetstream.PubAckFuture, 0, underWay)
	answered := func(all []jetstream.PubAckFuture) error {
		for _, ack := range all {
			select {
			case <-ack.Ok():
			case err := <-ack.Err():
				return fmt.Errorf("publishing: %w", err)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	for i := from; i <= to; i++ {
		if len(waiting) == underWay {
			if err := answered(waiting[:underWay/2]); err != nil {
				return err
			}
			waiting = append(waiting[:0], waiting[underWay/2:]...)
		}
		ack, err := js.PublishAsync(subject, document(i))
		if err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
		waiting = append(waiting, ack)
	}
	return answered(waiting)
}

// atomically stores messages all or none (ADR-50) and gives the sequence of the last one. A single one is a batch too.
func atomically(ctx context.Context, nc *nats.Conn, id string, batch []*nats.Msg) (last uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for i, m := range batch {
		if m.Header == nil {
			m.Header = nats.Header{}
		}
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		switch i {
		case len(batch) - 1:
			m.Header.Set("Nats-Batch-Commit", "1")
			return committed(nc.RequestMsgWithContext(ctx, m))
		case 0: // the server says whether it takes batches at all
			answer, err := nc.RequestMsgWithContext(ctx, m)
			if err != nil {
				return 0, err
			}
			if len(answer.Data) > 0 {
				return 0, fmt.Errorf("a batch was not begun: %s", answer.Data)
			}
		default:
			if err := nc.PublishMsg(m); err != nil {
				return 0, err
			}
		}
	}
	return 0, errors.New("an empty batch")
}

func committed(answer *nats.Msg, err error) (last uint64, _ error) {
	if err != nil {
		return 0, err
	}
	var ack struct{ Seq uint64 }
	if err := json.Unmarshal(answer.Data, &ack); err != nil || ack.Seq == 0 {
		return 0, fmt.Errorf("a batch was not stored: %s", answer.Data)
	}
	return ack.Seq, nil
}
