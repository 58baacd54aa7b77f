package verify_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// given is an event whose id the sender gave, as the n-th message of the stream.
func (b *bench) given(id, key string, op flexi.Op, body doc) verify.Event {
	e := b.event(op, key, body)
	e.EventID, e.Given = id, true
	return e
}

func TestEventIDs(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.accept(b.given("e1", "A", flexi.Create, invoice("A")))
		b.becomes("A", time.Minute, ledger.Confirmed, "")

		b.accept(b.given("e1", "A", flexi.Create, invoice("A"))) // the same event sent again
		b.becomes("A", time.Minute, ledger.Confirmed, ledger.Repeated)

		b.accept(b.given("e1", "A", flexi.Create, invoice("A", "popis", "jiné"))) // the same id, another body
		r := b.becomes("A", time.Minute, ledger.Parked, ledger.IDReused)
		if !strings.Contains(r.Work.Story.Problem.Text, "e1") {
			b.t.Fatalf("the problem says %q", r.Work.Story.Problem.Text)
		}

		b.accept(b.given("e1", "C", flexi.Create, invoice("C"))) // the same id, another document
		b.becomes("C", time.Minute, ledger.Parked, ledger.IDReused)

		b.accept(b.given("e2", "A", flexi.Upsert, invoice("A", "popis", "jiné"))) // an id of its own: nothing is held back
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		b.wantWrites(2)
		b.until(time.Minute, "five told", func() bool { return len(b.notices.done()) >= 5 })
	})
}

// TestRedelivery: the same message again is the same event, whatever became of it meanwhile.
func TestRedelivery(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		for _, e := range []verify.Event{b.event(flexi.Create, "A", invoice("A")), b.given("e1", "B", flexi.Create, invoice("B"))} {
			b.accept(e)
			b.accept(e)
			b.becomes(e.Key, time.Minute, ledger.Confirmed, "")
			b.accept(e)
			b.pass(time.Minute)
			if r := b.row(e.Key); r.Tail != 1 || r.State != ledger.Confirmed || r.Reason != "" {
				b.t.Fatalf("%s: %d events, %s(%s)", e.Key, r.Tail, r.State, r.Reason)
			}
		}
		b.wantWrites(2)
	})
}

// TestUnreadable: what cannot be read stays visible with its bytes, at its document where the key is known.
func TestUnreadable(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		e := b.event(flexi.Create, "", doc{})
		e.Body, e.Problem, e.Raw = nil, "broken JSON at byte 7", []byte(`{"kod":`)
		b.accept(e)
		known := b.event(flexi.Create, "A", doc{})
		known.Body, known.Problem, known.Raw = nil, "two kod in one object", []byte(`{"kod":"A","kod":"B"}`)
		b.accept(known)
		b.becomes("A", time.Minute, ledger.Parked, ledger.Unreadable)
		b.until(time.Minute, "both told", func() bool { return len(b.notices.done()) == 2 })
		for _, m := range b.notices.done() {
			if m.Reason != ledger.Unreadable || len(m.Errors) != 1 || m.Errors[0].Text == "" || m.Key == "" {
				b.t.Fatalf("told %+v", m)
			}
		}
		ev, err := b.ledger.Event(b.t.Context(), b.row("A").ID, 1)
		must(b.t, err)
		if string(ev.Raw) != string(known.Raw) {
			b.t.Fatalf("raw is %q", ev.Raw)
		}
		b.push(flexi.Create, "A", invoice("A")) // it holds nothing back
		b.becomes("A", time.Minute, ledger.Confirmed, "")
	})
}

// TestToldUntilStored: what became of an event is told again until the stream has it, also over a restart.
func TestToldUntilStored(t *testing.T) {
	virtual(t, func(b *bench) {
		b.notices.fail = func() error { return errors.New("the stream is away") }
		b.start()
		b.push(flexi.Create, "A", invoice("A"))
		b.until(time.Minute, "confirmed", func() bool { return b.row("A").State == ledger.Confirmed })
		b.pass(time.Minute)
		b.halt()
		if n := len(b.row("A").ToNotify); n != 1 {
			b.t.Fatalf("%d notices missing", n)
		}
		b.notices.fail = nil
		b.start()
		b.until(time.Minute, "told, and the row says so", func() bool {
			return len(b.notices.done()) == 1 && len(b.row("A").ToNotify) == 0
		})
		b.wantWrites(1)
	})
}

// TestOrderWithinADocument: events of one document take effect in stream order, other documents go on meanwhile.
func TestOrderWithinADocument(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.first("A", lostLate())
		b.push(flexi.Create, "A", invoice("A"))
		for _, p := range []string{"1", "2", "3"} {
			b.push(flexi.Update, "A", doc{"popis": p})
		}
		b.push(flexi.Create, "B", invoice("B"))
		b.becomes("B", time.Minute, ledger.Confirmed, "")
		if r := b.row("A"); r.Head != 1 || r.Tail != 4 {
			b.t.Fatalf("head %d tail %d while the first one is a maybe", r.Head, r.Tail)
		}
		b.becomes("A", time.Hour, ledger.Confirmed, "")
		var seen []string
		for _, w := range b.fake.Writes("ext:FLEXID:A") {
			seen = append(seen, string(w.Body))
		}
		if got := b.field("A", "popis"); got != "3" || len(seen) != 4 {
			b.t.Fatalf("popis %q after %d writes", got, len(seen))
		}
	})
}

// TestAppendedWhileSending: an event that comes while the one before is on the wire takes nothing from its outcome.
func TestAppendedWhileSending(t *testing.T) {
	for _, c := range []struct {
		name   string
		body   doc
		writes int
		state  ledger.State
	}{
		{"accepted", invoice("A"), 2, ledger.Confirmed},
		{"rejected", invoice("A", "firma", "code:NENI"), 1, ledger.Parked},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				b.fake.Slow(3 * time.Second)
				b.push(flexi.Create, "A", c.body)
				b.until(time.Minute, "sending", func() bool { return b.row("A").State == ledger.Sending })
				b.push(flexi.Update, "A", doc{"popis": "Oprava"})
				b.until(time.Hour, "both over", func() bool { r := b.row("A"); return r.Head == 2 && r.State == c.state })
				if n := len(b.fake.Writes("ext:FLEXID:A")); n != c.writes {
					b.t.Fatalf("%d writes", n)
				}
				ev, err := b.ledger.Event(b.t.Context(), b.row("A").ID, 1)
				must(b.t, err)
				if ev.Story == nil || len(ev.Story.Attempts) != 1 || ev.Story.Attempts[0].Outcome != c.name {
					b.t.Fatalf("the first event's story: %+v", ev.Story)
				}
			})
		})
	}
}

// TestARepetitionBehindALaterEvent: a sender that does not know whether its events were stored repeats all of them, so that an earlier
// one of a document comes again behind a later one. Whenever that is, it changes nothing.
func TestARepetitionBehindALaterEvent(t *testing.T) {
	for name, between := range map[string]time.Duration{"at once": 0, "when all is over": time.Hour} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				all := []verify.Event{
					b.given("e1", "A", flexi.Upsert, invoice("A", "popis", "one", "nazFirmy", "One")),
					b.given("e2", "A", flexi.Upsert, invoice("A", "popis", "two", "nazFirmy", "Two")),
				}
				b.accept(all[0])
				b.accept(all[1])
				b.pass(between)
				for _, e := range all {
					again := b.given(e.EventID, "A", e.Op, doc{})
					again.Body = e.Body
					b.accept(again)
				}
				b.until(time.Hour, "over", func() bool { r := b.row("A"); return r.State == ledger.Confirmed && !r.More() })
				b.pass(time.Hour)
				r := b.row("A")
				if got := b.field("A", "popis"); got != "two" || r.State != ledger.Confirmed || r.Partner != "Two" {
					t.Errorf("popis %q, row %s(%s) of %s", got, r.State, r.Reason, r.Partner)
				}
				b.wantWrites(2)
			})
		})
	}
}
