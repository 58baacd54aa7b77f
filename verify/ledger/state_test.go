package ledger

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
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

func TestStateWatch(t *testing.T) {
	b := newBox(t)
	s, err := OpenState(t.Context(), b.connect(), Options{})
	noErr(t, err)
	noErr(t, s.Put(t.Context(), "writes.a", []byte("1")))
	noErr(t, s.Put(t.Context(), "cursor.a", []byte("2")))
	if _, err := s.Watch(t.Context(), "writes"); err == nil {
		t.Fatal("a prefix without a dot would also show writesx")
	}
	c, err := s.Watch(t.Context(), "writes.")
	noErr(t, err)
	next := func() StateChange {
		t.Helper()
		select {
		case v := <-c:
			return v
		case <-time.After(20 * time.Second):
			t.Fatal("nothing came")
			panic("unreachable")
		}
	}
	first := next()
	want(t, "first", first.Key+"="+string(first.Value), "writes.a=1")
	want(t, "ready", next().Ready, true)
	noErr(t, s.Put(t.Context(), "cursor.a", []byte("3")))
	noErr(t, s.Put(t.Context(), "writes.b", []byte("4")))
	change := next()
	want(t, "change", change.Key+"="+string(change.Value), "writes.b=4")
	noErr(t, s.Delete(t.Context(), "writes.a"))
	change = next()
	want(t, "deleted", fmt.Sprint(change.Key, change.Deleted), "writes.atrue")
	b.stop()
	b.start()
	for change = next(); !change.Resync; change = next() {
	}
	for change = next(); !change.Ready; change = next() {
	}
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
