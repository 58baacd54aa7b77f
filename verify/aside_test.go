package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// aside gives the row in which an event was set aside.
func (b *bench) aside(eventID string) ledger.Row {
	b.t.Helper()
	ids, err := b.ledger.AsideEvent(b.t.Context(), eventID)
	must(b.t, err)
	if len(ids) == 0 {
		b.t.Fatalf("nothing was set aside of event %s", eventID)
	}
	row, err := b.ledger.Get(b.t.Context(), ids[len(ids)-1])
	must(b.t, err)
	return row
}

// kv is the ledger's bucket as a person with a command line has it.
func (b *bench) kv() jetstream.KeyValue {
	b.t.Helper()
	js, err := jetstream.New(b.nc)
	must(b.t, err)
	kv, err := js.KeyValue(b.t.Context(), "flexid_ledger")
	must(b.t, err)
	return kv
}

// TestWhatCanNeverBeStored: whatever keeps one event from ever being stored, it is parked where a person sees it, nothing is
// written for it, and the next event of another document is taken at once.
func TestWhatCanNeverBeStored(t *testing.T) {
	digest := func(id ledger.ID) string { return "d." + string(id) }
	id := func(key string) ledger.ID {
		return ledger.RowID("firma", "faktura-vydana", flexi.NewExternalID("FLEXID", "", key))
	}
	cases := map[string]struct {
		spoil func(b *bench) // after a document A was confirmed
		event func(b *bench) verify.Event
		words string
	}{
		"a row deleted by hand": {
			func(b *bench) { must(b.t, b.kv().Delete(b.t.Context(), digest(id("A")))) },
			func(b *bench) verify.Event { return b.event(flexi.Upsert, "A", doc{"popis": "Nový"}) },
			"deleted by hand",
		},
		"a row of a newer flexid": {
			func(b *bench) {
				_, err := b.kv().Put(b.t.Context(), digest(id("A")), []byte(`{"format":99,"id":"`+string(id("A"))+`"}`))
				must(b.t, err)
			},
			func(b *bench) verify.Event { return b.event(flexi.Upsert, "A", doc{"popis": "Nový"}) },
			"newer version",
		},
		"a row that cannot be read": {
			func(b *bench) {
				_, err := b.kv().Put(b.t.Context(), digest(id("A")), []byte(`{"format":1,`))
				must(b.t, err)
			},
			func(b *bench) verify.Event { return b.event(flexi.Upsert, "A", doc{"popis": "Nový"}) },
			"cannot be read",
		},
		"the next event's place deleted by hand": {
			func(b *bench) {
				key := "v." + string(id("A")) + ".2"
				_, err := b.kv().Put(b.t.Context(), key, []byte("x"))
				must(b.t, err)
				must(b.t, b.kv().Delete(b.t.Context(), key))
			},
			func(b *bench) verify.Event { return b.event(flexi.Upsert, "A", doc{"popis": "Nový"}) },
			"deleted by hand",
		},
		"larger than the store takes": {
			func(*bench) {},
			func(b *bench) verify.Event {
				ev := b.event(flexi.Create, "LARGE", nil)
				ev.Body, ev.Problem = nil, "the event has 1000000 bytes"
				ev.Raw = []byte(strings.Repeat("x", 1_000_000))
				return ev
			},
			"max_payload",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.push(flexi.Create, "A", invoice("A"))
				b.becomes("A", time.Minute, ledger.Confirmed, "")
				writes := b.writes()
				c.spoil(b)
				ev := c.event(b)
				begun := time.Now()
				_, err := b.eng.Accept(b.t.Context(), ev)
				must(b.t, err)
				b.push(flexi.Create, "B", invoice("B"))
				if took := time.Since(begun); took > 3*time.Second {
					b.t.Errorf("the next event was taken after %s", took)
				}
				again, err := b.eng.Accept(b.t.Context(), ev) // delivered again
				must(b.t, err)
				if !again.Known {
					b.t.Error("a message that is delivered again is set aside twice")
				}
				b.becomes("B", time.Minute, ledger.Confirmed, "")
				row := b.aside(ev.EventID)
				if row.State != ledger.Parked || row.Reason != ledger.Unreadable || row.Tail != 1 || row.Aside == nil || row.Aside.Key != ev.Key {
					b.t.Fatalf("it stands %s", pretty(row))
				}
				if text := row.Work.Story.Problem.Text; !strings.Contains(text, c.words) || !strings.Contains(text, "faktura-vydana/"+ev.Key) {
					b.t.Errorf("it says %q", text)
				}
				b.pass(time.Hour)
				b.wantWrites(writes + 1)
				told := 0
				for _, m := range b.notices.done() {
					if m.EventID == ev.EventID && m.State == ledger.Parked {
						told++
					}
				}
				if told != 1 {
					b.t.Errorf("told %d times", told)
				}
			})
		})
	}
}

// TestOneKeyForEverything: a sender that calls all its documents by one key does not outgrow its row, and nobody else notices.
func TestOneKeyForEverything(t *testing.T) {
	virtual(t, func(b *bench) {
		const events = 230
		b.start()
		for i := range events {
			b.push(flexi.Upsert, "VSE", invoice(fmt.Sprint("N", i)))
		}
		b.push(flexi.Create, "B", invoice("B"))
		b.becomes("B", time.Minute, ledger.Confirmed, "")
		row := b.becomes("VSE", 10*time.Minute, ledger.Confirmed, "")
		text, err := row.Marshal()
		if must(b.t, err); len(text) > 4<<10 || len(row.Numbers) > 20 {
			b.t.Errorf("after %d events its row has %d bytes and %d numbers", events, len(text), len(row.Numbers))
		}
	})
}

// TestResendOfWhatWasSetAside: a person sends it again once it can be stored; it goes to the document that it names.
func TestResendOfWhatWasSetAside(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		key := "d." + string(b.row("A").ID)
		kept, err := b.kv().Get(b.t.Context(), key)
		must(b.t, err)
		must(b.t, b.kv().Delete(b.t.Context(), key))
		ev := b.event(flexi.Update, "A", doc{"popis": "Nový"})
		ev.EventID, ev.Given = "e1", true
		_, err = b.eng.Accept(b.t.Context(), ev)
		must(b.t, err)
		b.until(time.Minute, "set aside", func() bool { return b.aside("e1").State == ledger.Parked })
		aside := b.aside("e1").Key
		var refused *verify.DecisionError
		if err := b.decide(aside, verify.DecideResend); !errors.As(err, &refused) {
			b.t.Fatalf("a resend that cannot be stored: %v", err)
		}
		_, err = b.kv().Put(b.t.Context(), key, kept.Value())
		must(b.t, err)
		must(b.t, b.decide(aside, verify.DecideResend))
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		if got := b.field("A", "popis"); got != "Nový" {
			b.t.Errorf("popis %q", got)
		}
		b.wantRecords("A", 1)
		b.becomes(aside, time.Minute, ledger.Dropped, "")
		b.until(time.Minute, "told that it is over", func() bool {
			return slices.ContainsFunc(b.notices.done(), func(m verify.Notice) bool {
				return m.Key == aside && m.EventID == "e1" && m.State == ledger.Dropped && m.SenderKey == "A"
			})
		})
	})
}

// TestTheSameIDAfterItWasSetAside: an event that had no effect is not taken for done when its sender sends it again.
func TestTheSameIDAfterItWasSetAside(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		key := "d." + string(b.row("A").ID)
		kept, err := b.kv().Get(b.t.Context(), key)
		must(b.t, err)
		must(b.t, b.kv().Delete(b.t.Context(), key))
		for n := range 2 {
			ev := b.event(flexi.Update, "A", doc{"popis": "Nový"})
			ev.EventID, ev.Given = "e1", true
			_, err = b.eng.Accept(b.t.Context(), ev)
			must(b.t, err)
			if n == 0 {
				_, err = b.kv().Put(b.t.Context(), key, kept.Value())
				must(b.t, err)
			}
		}
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		if got := b.field("A", "popis"); got != "Nový" {
			b.t.Errorf("popis %q", got)
		}
	})
}

// TestUpdateOfManyFields: thousands of fields neither outgrow the claim nor stay queued without a word.
func TestUpdateOfManyFields(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		many := doc{}
		for i := range 5000 {
			many[fmt.Sprint("pole", i)] = "x"
		}
		b.push(flexi.Update, "A", many)
		b.push(flexi.Create, "B", invoice("B"))
		b.becomes("B", time.Minute, ledger.Confirmed, "")
		b.until(10*time.Minute, "over", func() bool { return b.row("A").State == ledger.Parked })
	})
}

// TestClaimThatCannotBeStored: a document whose every claim is too large for its row is parked with the reason.
func TestClaimThatCannotBeStored(t *testing.T) {
	virtual(t, func(b *bench) {
		h := &hook{}
		h.claim = func(ctx context.Context, rows []*ledger.Row) []error {
			if rows[0].Key == "A" {
				return each(rows, &ledger.TooLargeError{Key: "d.x", Bytes: 40_000, Limit: 24_576})
			}
			return h.Ledger.Claim(ctx, rows)
		}
		h.under(b)
		b.start()
		b.push(flexi.Create, "A", invoice("A"))
		b.push(flexi.Create, "B", invoice("B"))
		b.becomes("B", time.Minute, ledger.Confirmed, "")
		row := b.becomes("A", time.Minute, ledger.Parked, ledger.Unreadable)
		if text := row.Work.Story.Problem.Text; !strings.Contains(text, "24576") {
			b.t.Errorf("it says %q", text)
		}
		b.wantRecords("A", 0)
	})
}

// TestClaimThatIsTooLargeInCompany: a claim names all that share its request; what does not fit with them goes alone.
func TestClaimThatIsTooLargeInCompany(t *testing.T) {
	virtual(t, func(b *bench) {
		h := &hook{}
		h.claim = func(ctx context.Context, rows []*ledger.Row) []error {
			if len(rows) > 1 {
				return each(rows, &ledger.TooLargeError{Key: "d.x", Bytes: 40_000, Limit: 24_576})
			}
			return h.Ledger.Claim(ctx, rows)
		}
		h.under(b)
		b.start()
		b.eng.StopFor("person", "test", "")
		for i := range 6 {
			b.push(flexi.Create, fmt.Sprint("D", i), invoice(fmt.Sprint("D", i)))
		}
		b.eng.EndStop("person")
		for i := range 6 {
			b.becomes(fmt.Sprint("D", i), time.Minute, ledger.Confirmed, "")
			b.wantRecords(fmt.Sprint("D", i), 1)
		}
	})
}

// TestEventDeletedByHand: an event whose own key is gone, and that this process does not have in hand, is parked, and what comes
// after it goes on.
func TestEventDeletedByHand(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		<-b.eng.Ready()
		b.eng.StopFor("person", "test", "")
		b.push(flexi.Create, "A", invoice("A"))
		row := b.row("A")
		must(b.t, b.kv().Delete(b.t.Context(), "v."+string(row.ID)+".1"))
		b.halt()
		b.start()
		b.push(flexi.Create, "A", invoice("A", "popis", "Druhý"))
		b.eng.EndStop("person")
		b.becomes("A", 10*time.Minute, ledger.Confirmed, "")
		var first *verify.Notice
		for _, m := range b.notices.done() {
			if m.State == ledger.Parked {
				first = &m
			}
		}
		if first == nil || first.Reason != ledger.Unreadable || !strings.Contains(string(asJSON(first)), "no such event") {
			b.t.Errorf("told %s", asJSON(first))
		}
	})
}

func asJSON(v any) []byte {
	text, _ := json.Marshal(v)
	return text
}
