package stream_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch/stream"
)

func last(t *testing.T, js jetstream.JetStream, name string) *jetstream.RawStreamMsg {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetMsg(t.Context(), s.CachedInfo().State.LastSeq)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTell(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	p := stream.NewPublisher(js, stream.Options{})
	for _, tc := range []struct{ kind, token, subject string }{
		{"done", "faktura-vydana", "flexi.done.faktura-vydana"},
		{"change", "faktura-vydana.update", "flexi.change.faktura-vydana.update"},
		{"alert", "second write>*", "flexi.alert.second_write__"},
		{"alert", "", "flexi.alert._"},
		{"alert", "a..b", "flexi.alert.a._.b"},
	} {
		if err := p.Notify(t.Context(), tc.kind, tc.token, "id-"+tc.subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if m := last(t, js, "FLEXID_OUT"); m.Subject != tc.subject || m.Header.Get("Nats-Msg-Id") != "id-"+tc.subject {
			t.Errorf("%s %v, want %s", m.Subject, m.Header, tc.subject)
		}
	}
	if err := p.Notify(t.Context(), "push", "faktura-vydana", "", nil); err == nil {
		t.Error("telling into the intake")
	}
}

func TestTellIsStoredOrFails(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	js := h.connect(zerolog.Nop())
	p := stream.NewPublisher(js, stream.Options{})
	var unavailable *stream.UnavailableError
	if err := p.Notify(t.Context(), "done", "banka", "1", nil); !errors.As(err, &unavailable) {
		t.Errorf("without the stream: %v", err)
	}
	ensure(t, js, stream.Options{})
	h.stop()
	if err := p.Notify(t.Context(), "done", "banka", "2", nil); err == nil {
		t.Error("told to nobody")
	}
	h.start()
}

func TestAForeignStreamDoesNotConfirm(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "FOREIGN", Subjects: []string{"flexi.done.>"}}); err != nil {
		t.Fatal(err)
	}
	if err := stream.NewPublisher(js, stream.Options{}).Notify(t.Context(), "done", "banka", "1", nil); err == nil {
		t.Error("a result was taken for stored in a stream that is not ours")
	}
}

func TestPush(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	o := stream.Options{Prefix: "acme"}
	ensure(t, js, o)
	p := stream.NewPublisher(js, o)
	for _, tc := range []struct{ key, subject, header string }{
		{"", "acme.push.banka", ""},
		{"FV-1", "acme.push.banka.FV-1", ""},
		{"FV 1/2.3", "acme.push.banka", "FV 1/2.3"},
	} {
		seq, err := p.Push(t.Context(), "banka", tc.key, map[string][]string{"Flexid-Op": {"update"}}, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		m := last(t, js, "FLEXID_PUSH_acme")
		if m.Sequence != seq || m.Subject != tc.subject || m.Header.Get("Flexid-Key") != tc.header || m.Header.Get("Flexid-Op") != "update" {
			t.Errorf("%d %s %v", m.Sequence, m.Subject, m.Header)
		}
	}
}

func TestPushIntoAFullStreamLosesNothing(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	o := stream.Options{MaxBytes: 4 << 10}
	ensure(t, js, o)
	p := stream.NewPublisher(js, o)
	stored := 0
	var err error
	for err == nil && stored < 100 {
		if _, err = p.Push(t.Context(), "banka", "", nil, []byte(strings.Repeat("x", 500))); err == nil {
			stored++
		}
	}
	var full *stream.FullError
	if !errors.As(err, &full) || full.Stream != "FLEXID_PUSH" {
		t.Fatalf("got %v", err)
	}
	if n, err := stream.Waiting(t.Context(), js, o); err != nil || n != uint64(stored) {
		t.Errorf("%d of %d stored events are there, %v", n, stored, err)
	}
}

func TestPushTooLarge(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	p := stream.NewPublisher(js, stream.Options{})
	for _, size := range []int{2 << 20, 700 << 10} { // over the connection's limit, over the stream's
		if _, err := p.Push(t.Context(), "banka", "", nil, make([]byte, size)); err == nil || !strings.Contains(err.Error(), "524288") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := p.Push(t.Context(), "banka", "", nil, make([]byte, stream.MaxEvent)); err != nil {
		t.Errorf("the largest event: %v", err)
	}
}

// TestSend: many under way at once are stored in their order, each once.
func TestSend(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	p := stream.NewPublisher(js, stream.Options{})
	var sent []*stream.Sent
	for i := range 100 {
		s, err := p.Send("banka", fmt.Sprint("K", i), map[string][]string{"Flexid-Op": {"update"}}, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, s)
	}
	for _, s := range slices.Backward(sent) { // whoever waits in another order hears the same
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := js.Stream(t.Context(), "FLEXID_PUSH")
	if err != nil || stored.CachedInfo().State.Msgs != 100 {
		t.Fatalf("%+v, %v", stored.CachedInfo().State, err)
	}
	for i := range 100 {
		m, err := stored.GetMsg(t.Context(), uint64(i+1))
		if want := fmt.Sprint("flexi.push.banka.K", i); err != nil || m.Subject != want || m.Header.Get("Flexid-Op") != "update" {
			t.Fatalf("message %d is %s, %v", i+1, m.Subject, err)
		}
	}
}

func TestSendTellsWhatWentWrong(t *testing.T) {
	h := newHost(t)
	js := h.connect(zerolog.Nop())
	p := stream.NewPublisher(js, stream.Options{MaxBytes: 64 << 10})
	wait := func(size int) error {
		t.Helper()
		s, err := p.Send("banka", "", nil, make([]byte, size))
		if err != nil {
			return err
		}
		return s.Wait(t.Context())
	}
	var unavailable *stream.UnavailableError
	if err := wait(1); !errors.As(err, &unavailable) {
		t.Errorf("without the stream: %v", err)
	}
	ensure(t, js, stream.Options{MaxBytes: 64 << 10})
	var full *stream.FullError
	if err := wait(100 << 10); !errors.As(err, &full) || full.Stream != "FLEXID_PUSH" {
		t.Errorf("without room: %v", err)
	}
	for _, size := range []int{2 << 20, 700 << 10} { // over the connection's limit, over the stream's
		if err := wait(size); err == nil || !strings.Contains(err.Error(), "524288") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if n, err := stream.Waiting(t.Context(), js, stream.Options{}); err != nil || n != 0 {
		t.Errorf("%d were stored all the same, %v", n, err)
	}
	h.stop()
	if err := wait(1); err == nil {
		t.Error("stored without a server")
	}
}

// TestPushAll: all are stored in their order with nothing between them, as Push stores each; else none is.
func TestPushAll(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	o := stream.Options{Prefix: "acme", MaxBytes: 64 << 10}
	ensure(t, js, o)
	p := stream.NewPublisher(js, o)
	all := func(n, size int) (events []stream.Event) {
		for i := range n {
			events = append(events, stream.Event{Evidence: "banka", Key: []string{"", "FV-1", "FV 1/2.3"}[i%3],
				Header: map[string][]string{"Flexid-Op": {fmt.Sprint("op", i)}}, Body: make([]byte, size)})
		}
		return events
	}
	stored := func() uint64 {
		t.Helper()
		s, err := js.Stream(t.Context(), "FLEXID_PUSH_acme")
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State.LastSeq
	}
	if err := p.PushAll(t.Context(), all(30, 1)); err != nil || stored() != 30 {
		t.Fatalf("%d are stored, %v", stored(), err)
	}
	s, err := js.Stream(t.Context(), "FLEXID_PUSH_acme")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		m, err := s.GetMsg(t.Context(), uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		subject, key := []string{"acme.push.banka", "acme.push.banka.FV-1", "acme.push.banka"}[i%3], []string{"", "", "FV 1/2.3"}[i%3]
		if m.Subject != subject || m.Header.Get("Flexid-Key") != key || m.Header.Get("Flexid-Op") != fmt.Sprint("op", i) || len(m.Data) != 1 {
			t.Errorf("message %d: %s %v", i+1, m.Subject, m.Header)
		}
	}
	if err := p.PushAll(t.Context(), all(30, 4<<10)); err == nil {
		t.Error("stored without room")
	}
	if err := p.PushAll(t.Context(), all(1001, 1)); !errors.Is(err, stream.ErrTooMany) {
		t.Errorf("too many: %v", err)
	}
	c := config(t, js, "FLEXID_PUSH_acme")
	c.AllowAtomicPublish = false
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := p.PushAll(t.Context(), all(30, 1)); !errors.Is(err, stream.ErrNoBatches) {
		t.Errorf("switched off: %v", err)
	}
	if n := stored(); n != 30 {
		t.Errorf("%d are stored", n)
	}
}

// TestPushAllInAForeignStream: another stream that catches our subjects does not confirm in the place of ours.
func TestPushAllInAForeignStream(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "FOREIGN", Subjects: []string{"flexi.push.>"}, AllowAtomicPublish: true}); err != nil {
		t.Fatal(err)
	}
	if err := stream.NewPublisher(js, stream.Options{}).PushAll(t.Context(), []stream.Event{{Evidence: "banka"}, {Evidence: "banka"}}); err == nil {
		t.Error("events were taken for stored in a stream that is not ours")
	}
}
