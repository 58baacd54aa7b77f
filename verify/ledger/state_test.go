package ledger

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestState(t *testing.T) {
	b := newBox(t)
	s, err := OpenState(t.Context(), b.connect(), Options{})
	noErr(t, err)
	_, rev, err := s.Get(t.Context(), "writes.all")
	noErr(t, err)
	want(t, "revision of nothing", rev, 0)
	noErr(t, s.Put(t.Context(), "writes.all", []byte("stop")))
	value, rev, err := s.Get(t.Context(), "writes.all")
	noErr(t, err)
	want(t, "value", string(value), "stop")
	next, err := s.Update(t.Context(), "writes.all", []byte("go"), rev)
	noErr(t, err)
	var conflict *ConflictError
	if _, err := s.Update(t.Context(), "writes.all", []byte("other"), rev); !errors.As(err, &conflict) || conflict.Found != next {
		t.Fatalf("got %v", err)
	}
	if _, err := s.Update(t.Context(), "writes.all", []byte("other"), 0); !errors.As(err, &conflict) {
		t.Fatalf("made a key that exists: %v", err)
	}
	for range 2 {
		noErr(t, s.Delete(t.Context(), "writes.all"))
		_, rev, err = s.Get(t.Context(), "writes.all")
		noErr(t, err)
		want(t, "revision after delete", rev, 0)
	}
	_, err = s.Update(t.Context(), "writes.all", []byte("again"), 0)
	noErr(t, err)
	noErr(t, s.Delete(t.Context(), "writes.all"))
	noErr(t, s.Put(t.Context(), "writes.all", []byte("again")))
	again, err := OpenState(t.Context(), b.connect(), Options{})
	noErr(t, err)
	value, _, err = again.Get(t.Context(), "writes.all")
	noErr(t, err)
	want(t, "value", string(value), "again")
}

func TestStateCounter(t *testing.T) {
	b := newBox(t)
	s, err := OpenState(t.Context(), b.connect(), Options{})
	noErr(t, err)
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for i := range 10 {
				for {
					old, rev, err := s.Get(t.Context(), "n")
					if err != nil {
						t.Error(err)
						return
					}
					var n int
					_, _ = fmt.Sscanf(string(old), "%d", &n)
					// who and i make the bytes of each writer its own, as Update asks for
					_, err = s.Update(t.Context(), "n", fmt.Appendf(nil, "%d by %d.%d", n+1, w, i), rev)
					if err == nil {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	value, _, err := s.Get(t.Context(), "n")
	noErr(t, err)
	want(t, "count", strings.HasPrefix(string(value), "60 by "), true)
}

// TestMissingSaysWhatIsLost: only the ledger's loss asks for a person.
func TestMissingSaysWhatIsLost(t *testing.T) {
	for bucket, person := range map[string]bool{"flexid_ledger": true, "flexid_ledger_acme": true, "flexid_state": false, "flexid_state_acme": false} {
		text := (&MissingError{Bucket: bucket}).Error()
		if strings.Contains(text, "accept-empty") != person || !strings.Contains(text, bucket) {
			t.Errorf("%s: %s", bucket, text)
		}
	}
}
