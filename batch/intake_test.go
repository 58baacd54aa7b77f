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
)

// store is an Acceptor that keeps events, or refuses to.
type store struct {
	events []verify.Event
	err    error
	again  bool
}

func (s *store) Accept(_ context.Context, e verify.Event) (verify.Receipt, error) {
	if s.err != nil {
		return verify.Receipt{}, s.err
	}
	s.events = append(s.events, e)
	return verify.Receipt{Evidence: e.Evidence, Key: e.Key, Again: s.again}, nil
}

func TestIntakeHandsEveryEventOver(t *testing.T) {
	var log bytes.Buffer
	s := &store{}
	in := &batch.Intake{Decoder: decoder, Acceptor: s, Log: zerolog.New(&log)}
	for _, m := range []batch.Message{message(invoice, `{"kod":"A"}`), message(invoice, `{`)} {
		if err := in.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.events) != 2 || s.events[0].Key != "A" || s.events[1].Problem == "" || string(s.events[1].Raw) != "{" {
		t.Errorf("accepted: %+v", s.events)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "not JSON") {
		t.Errorf("want one line about the unreadable event, got:\n%s", log.String())
	}
	s.again = true
	if err := in.Handle(t.Context(), message(invoice, `{`)); err != nil || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("a redelivery is told again: %v\n%s", err, log.String())
	}
}

func TestIntakeKeepsWhatIsNotDurable(t *testing.T) {
	full := errors.New("ledger is full")
	in := &batch.Intake{Decoder: decoder, Acceptor: &store{err: full}, Log: zerolog.Nop()}
	if err := in.Handle(t.Context(), message(invoice, `{"kod":"A"}`)); !errors.Is(err, full) || !strings.Contains(err.Error(), invoice) {
		t.Errorf("got %v: an event that is not durable must not be acknowledged", err)
	}
}
