package stream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch/stream"
	"flexid/verify/ledger"
)

// TestTrimLetsGoOfWhatWasTaken: at half full, and never what was not taken, nor the last one that was.
func TestTrimLetsGoOfWhatWasTaken(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	o := stream.Options{MaxBytes: 64 << 10}
	ensure(t, js, o)
	inbox := stream.NewInbox(js, o)
	store := func(n int) {
		t.Helper()
		if fresh, _, err := inbox.Store(t.Context(), "shop", fmt.Sprint("e", n), nil, []byte(fmt.Sprint(n, strings.Repeat("x", 1000)))); !fresh || err != nil {
			t.Fatalf("%d: %v, %v", n, fresh, err)
		}
	}
	for n := range 10 {
		store(n)
	}
	s := newShelf(t, js)
	s.set(stillAt(t, js, s, "FLEXID_INBOX", 6)) // 0 to 5 are taken
	trim := func(full bool, want uint64) {
		t.Helper()
		c, _ := s.Cursor(t.Context(), "FLEXID_INBOX")
		if n, err := stream.Trim(t.Context(), js, o, c, full); n != want || err != nil {
			t.Fatalf("%d went, want %d: %v", n, want, err)
		}
	}
	trim(false, 0) // a sixth of it is used
	trim(true, 5)
	if all := inInbox(t, js); len(all) != 5 || !strings.HasPrefix(all[0], "5x") {
		t.Fatalf("%d are left, the first is %.3s", len(all), all[0])
	}
	for n := 10; n < 40; n++ {
		store(n)
	}
	trim(false, 0) // it is more than half full, but nothing more was taken
	other := stillAt(t, js, s, "FLEXID_INBOX", 40)
	other.Digest = "of another message"
	if n, err := stream.Trim(t.Context(), js, o, other, true); n != 0 || err == nil {
		t.Errorf("%d went of a stream that is not the cursor's: %v", n, err)
	}
	s.set(stillAt(t, js, s, "FLEXID_INBOX", 40))
	trim(false, 34)
	for n := 5; n < 39; n++ { // what went may be stored again; the ledger knows it
		if has, err := inbox.Has(t.Context(), "shop", fmt.Sprint("e", n)); has || err != nil {
			t.Fatalf("%d is there: %v", n, err)
		}
	}
	if has, err := inbox.Has(t.Context(), "shop", "e39"); !has || err != nil {
		t.Errorf("the last one that was taken is gone: %v", err)
	}
}

// stillAt is the cursor of one who took the stream up to a message.
func stillAt(t *testing.T, js jetstream.JetStream, s *shelf, name string, seq uint64) ledger.Cursor {
	t.Helper()
	c, _ := s.Cursor(t.Context(), name)
	st, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := st.GetMsg(t.Context(), seq)
	if err != nil {
		t.Fatal(err)
	}
	c.Seq, c.Time, c.Digest = seq, m.Time, stream.Digest(m.Subject, m.Data)
	return c
}
