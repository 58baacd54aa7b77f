package batch_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"flexid/batch"
	"flexid/verify"
	"flexid/verify/ledger"
)

// store is an Acceptor that keeps two events at a time, or refuses to.
type store struct {
	events  []verify.Event
	err     error
	again   bool
	careful bool
}

func (s *store) AcceptAll(_ context.Context, events []verify.Event, _ func(int) *ledger.Cursor, careful bool) (receipts []verify.Receipt, err error) {
	if s.err != nil {
		return nil, s.err
	}
	s.careful = careful
	for _, e := range events[:min(2, len(events))] {
		s.events = append(s.events, e)
		receipts = append(receipts, verify.Receipt{Evidence: e.Evidence, Key: e.Key, Known: s.again})
	}
	return receipts, nil
}

func TestIntakeHandsEveryEventOver(t *testing.T) {
	var log bytes.Buffer
	s := &store{}
	in := &batch.Intake{Decoder: decoder, Acceptor: s, Log: zerolog.New(&log)}
	again := message(invoice, `{"kod":"A"}`)
	again.Replayed = true
	n, err := in.Take(t.Context(), []batch.Message{again, message(invoice, `{`), message(invoice, `{`)}, nil, true)
	if n != 2 || err != nil || !s.careful {
		t.Fatalf("%d taken, careful %v: %v", n, s.careful, err)
	}
	if len(s.events) != 2 || !s.events[0].Replayed || s.events[1].Replayed || s.events[0].Key != "A" || s.events[1].Problem == "" || string(s.events[1].Raw) != "{" {
		t.Errorf("accepted: %+v", s.events)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "not JSON") {
		t.Errorf("want one line about the unreadable event, got:\n%s", log.String())
	}
	s.again = true
	if _, err := in.Take(t.Context(), []batch.Message{message(invoice, `{`)}, nil, false); err != nil || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("a redelivery is told again: %v\n%s", err, log.String())
	}
}

func TestIntakeKeepsWhatIsNotDurable(t *testing.T) {
	full := errors.New("ledger is full")
	in := &batch.Intake{Decoder: decoder, Acceptor: &store{err: full}, Log: zerolog.Nop()}
	m := message(invoice, `{"kod":"A"}`)
	m.Stream, m.Seq = "FLEXID_PUSH", 17
	if n, err := in.Take(t.Context(), []batch.Message{m}, nil, false); n != 0 || !errors.Is(err, full) || !strings.Contains(err.Error(), "message 17 of FLEXID_PUSH") {
		t.Errorf("%d taken, %v: an event that is not durable must not be passed", n, err)
	}
}
