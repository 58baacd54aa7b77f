package ledger

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	l, _ := newBox(t).ledger()
	take := func(number string, who, holder ID) {
		t.Helper()
		got, err := l.TakeNumber(t.Context(), "faktura-vydana", number, who)
		noErr(t, err)
		want(t, number, got, holder)
	}
	take("FV-1", "a", "a")
	take("FV-1", "a", "a")
	take("FV-1", "b", "a")
	take("FV-2", "b", "b")
	got, err := l.TakeNumber(t.Context(), "faktura-prijata", "FV-1", "b")
	noErr(t, err)
	want(t, "the same number in another evidence", got, ID("b"))

	noErr(t, l.FreeNumber(t.Context(), "faktura-vydana", "FV-1", "b")) // not b's
	holder, ok, err := l.HolderOf(t.Context(), "faktura-vydana", "FV-1")
	noErr(t, err)
	want(t, "holder", fmt.Sprintf("%s %v", holder, ok), "a true")
	noErr(t, l.FreeNumber(t.Context(), "faktura-vydana", "FV-1", "a"))
	noErr(t, l.FreeNumber(t.Context(), "faktura-vydana", "FV-1", "a"))
	noErr(t, l.FreeNumber(t.Context(), "faktura-vydana", "never", "a"))
	_, ok, err = l.HolderOf(t.Context(), "faktura-vydana", "FV-1")
	noErr(t, err)
	want(t, "held after it was freed", ok, false)
	take("FV-1", "b", "b")
	take("FV-1", "a", "b")
}

// TestNumberRace: two senders use one number; exactly one of all documents owns it, and everyone is told the same.
func TestNumberRace(t *testing.T) {
	l, _ := newBox(t).ledger()
	for round := range 10 {
		number := fmt.Sprint("FV-", round)
		holders := make([]ID, 10)
		var wg sync.WaitGroup
		for i := range holders {
			wg.Go(func() {
				h, err := l.TakeNumber(t.Context(), "banka", number, ID(fmt.Sprint("doc", i)))
				if err != nil {
					t.Error(err)
				}
				holders[i] = h
			})
		}
		wg.Wait()
		for _, h := range holders {
			want(t, number, h, holders[0])
		}
	}
}

func TestEventIDs(t *testing.T) {
	l, _ := newBox(t).ledger()
	ref := StreamRef{Stream: "S", Seq: 7, Time: time.Unix(3, 4).In(time.FixedZone("X", 3600))}
	later := StreamRef{Stream: "S", Seq: 9, Time: time.Unix(5, 0).UTC()}
	cases := []struct {
		name, digest string
		row          ID
		ref          StreamRef
		want         EventClaim
	}{
		{"first", "d1", "a", ref, EventClaim{New: true, Ref: ref, Row: "a"}},
		{"delivered again", "d1", "a", ref, EventClaim{Same: true, Ref: ref, Row: "a"}},
		{"sent again", "d1", "a", later, EventClaim{Same: true, Ref: StreamRef{"S", 7, ref.Time}, Row: "a"}},
		{"other content", "d2", "a", later, EventClaim{Ref: ref, Row: "a"}},
		{"other document", "d1", "b", later, EventClaim{Ref: ref, Row: "a"}},
	}
	for _, c := range cases {
		got, err := l.TakeEventID(t.Context(), "id with spaces: ž", c.digest, c.row, c.ref)
		noErr(t, err)
		if c.ref == ref {
			want(t, c.name+": the caller's own reference", got.Ref, c.ref)
		}
		if !sameRef(got.Ref, c.want.Ref) {
			t.Fatalf("%s: reference %v", c.name, got.Ref)
		}
		got.Ref, c.want.Ref = StreamRef{}, StreamRef{}
		want(t, c.name, got, c.want)
	}
}

func TestEventIDRace(t *testing.T) {
	l, _ := newBox(t).ledger()
	var mu sync.Mutex
	firsts := 0
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			c, err := l.TakeEventID(t.Context(), "one", fmt.Sprint("d", i), "a", StreamRef{Seq: uint64(i)})
			if err != nil {
				t.Error(err)
			}
			if c.New {
				mu.Lock()
				firsts++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	want(t, "firsts", firsts, 1)
}
