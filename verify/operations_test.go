package verify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// created puts one confirmed invoice into Flexi.
func (b *bench) created(key string, body doc) ledger.Row {
	b.t.Helper()
	b.push(flexi.Create, key, body)
	return b.becomes(key, 30*time.Second, ledger.Confirmed, "")
}

func (b *bench) field(kod, name string) string {
	b.t.Helper()
	rs := b.records(kod)
	if len(rs) != 1 {
		b.t.Fatalf("%d records of %s", len(rs), kod)
	}
	return fmt.Sprint(rs[0].Fields[name])
}

func TestOperations(t *testing.T) {
	cases := []struct {
		name   string
		do     func(b *bench)
		state  ledger.State
		reason ledger.Reason
		writes int
		check  func(b *bench, r ledger.Row)
	}{
		{"create again with equal content is repeated", func(b *bench) {
			b.created("A", invoice("A"))
			b.push(flexi.Create, "A", invoice("A"))
		}, ledger.Confirmed, ledger.Repeated, 1, nil},
		{"create again with other content is a conflict", func(b *bench) {
			b.created("A", invoice("A"))
			b.push(flexi.Create, "A", invoice("A", "popis", "Jiné"))
		}, ledger.Parked, ledger.Conflict, 1, nil},
		{"upsert creates, then changes", func(b *bench) {
			b.push(flexi.Upsert, "A", invoice("A"))
			b.becomes("A", 30*time.Second, ledger.Confirmed, "")
			b.push(flexi.Upsert, "A", invoice("A", "popis", "Nově"))
		}, ledger.Confirmed, "", 2, func(b *bench, _ ledger.Row) {
			if got := b.field("A", "popis"); got != "Nově" {
				b.t.Fatalf("popis is %q", got)
			}
		}},
		{"upsert there and back is three writes", func(b *bench) {
			for _, p := range []string{"jedna", "dvě", "jedna"} {
				b.push(flexi.Upsert, "A", invoice("A", "popis", p))
			}
		}, ledger.Confirmed, "", 3, func(b *bench, _ ledger.Row) {
			if got := b.field("A", "popis"); got != "jedna" {
				b.t.Fatalf("popis is %q", got)
			}
		}},
		{"update changes the record", func(b *bench) {
			b.created("A", invoice("A"))
			b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		}, ledger.Confirmed, "", 2, nil},
		{"update that is already there costs no write", func(b *bench) {
			b.created("A", invoice("A"))
			b.push(flexi.Update, "A", doc{"popis": "Služby"})
		}, ledger.Confirmed, ledger.Adopted, 1, nil},
		{"update of nothing is rejected", func(b *bench) {
			b.push(flexi.Update, "A", doc{"popis": "x"})
		}, ledger.Parked, ledger.Rejected, 0, nil},
		{"storno", func(b *bench) {
			b.created("A", invoice("A"))
			b.push(flexi.Storno, "A", doc{})
		}, ledger.Confirmed, "", 2, func(b *bench, _ ledger.Row) {
			if got := b.field("A", "storno"); got != "true" {
				b.t.Fatalf("storno is %q", got)
			}
		}},
		{"delete, and the key is unknown again", func(b *bench) {
			b.created("A", invoice("A"))
			b.push(flexi.Delete, "A", doc{})
			b.push(flexi.Create, "A", invoice("A"))
		}, ledger.Confirmed, "", 3, func(b *bench, _ ledger.Row) { b.wantRecords("A", 1) }},
		{"a newer version overtakes an older one", func(b *bench) {
			e := b.event(flexi.Upsert, "A", invoice("A", "popis", "verze 2"))
			e.Version = "2"
			old := b.event(flexi.Upsert, "A", invoice("A", "popis", "verze 1"))
			old.Version = "1"
			b.accept(e)
			b.accept(old)
		}, ledger.Confirmed, ledger.Superseded, 1, func(b *bench, _ ledger.Row) {
			if got := b.field("A", "popis"); got != "verze 2" {
				b.t.Fatalf("popis is %q", got)
			}
		}},
		{"typed by hand and equal is adopted", func(b *bench) {
			b.fake.Type("faktura-vydana", map[string]any(invoice("A")))
			b.push(flexi.Create, "A", invoice("A"))
		}, ledger.Confirmed, ledger.Adopted, 0, nil},
		{"typed by hand and different is a conflict", func(b *bench) {
			b.fake.Type("faktura-vydana", map[string]any(invoice("A", "varSym", "9")))
			b.push(flexi.Create, "A", invoice("A"))
		}, ledger.Parked, ledger.Conflict, 0, nil},
		{"typed by hand and different is changed by an upsert", func(b *bench) {
			b.fake.Type("faktura-vydana", map[string]any(invoice("A", "varSym", "9")))
			b.push(flexi.Upsert, "A", invoice("A"))
		}, ledger.Confirmed, "", 1, func(b *bench, _ ledger.Row) { b.wantRecords("A", 1) }},
		{"a person changed the record since", func(b *bench) {
			r := b.created("A", invoice("A"))
			b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"popis": "ručně"})
			b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		}, ledger.Parked, ledger.Conflict, 1, func(b *bench, r ledger.Row) {
			p := r.Work.Story.Problem
			if p == nil || len(p.Differ) != 1 || p.Differ[0].Field != "popis" || p.Differ[0].Found != "ručně" {
				b.t.Fatalf("the problem says %+v", p)
			}
		}},
		{"a person changed a field that the update does not carry", func(b *bench) {
			r := b.created("A", invoice("A"))
			b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"poznam": "ručně"})
			b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		}, ledger.Confirmed, "", 2, nil},
		{"the record was deleted by a person", func(b *bench) {
			r := b.created("A", invoice("A"))
			b.fake.Remove("faktura-vydana", atoi(r.FlexiID))
			b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		}, ledger.Parked, ledger.Conflict, 1, nil},
		{"an operation that is not allowed names the variable", func(b *bench) {
			b.created("A", invoice("A"))
			b.push(flexi.Delete, "A", doc{})
		}, ledger.Parked, ledger.Rejected, 1, func(b *bench, r ledger.Row) {
			if p := r.Work.Story.Problem; p == nil || !strings.Contains(p.Text, "FLEXID_FLEXI_ALLOW") {
				b.t.Fatalf("the problem says %+v", p)
			}
		}},
		{"rejected for its content, sent once", func(b *bench) {
			b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
		}, ledger.Parked, ledger.Rejected, 1, func(b *bench, r ledger.Row) {
			if r.Cause != "partner_missing" || len(r.Work.Story.Problem.Errors) == 0 {
				b.t.Fatalf("cause %q, problem %+v", r.Cause, r.Work.Story.Problem)
			}
		}},
		{"an unknown evidence", func(b *bench) {
			e := b.event(flexi.Create, "A", doc{"kod": "A"})
			e.Evidence = "faktura-nevydana"
			b.accept(e)
		}, ledger.Parked, ledger.Unreadable, 0, nil},
		{"after a rejection the next event is judged on its own", func(b *bench) {
			b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
			b.push(flexi.Create, "A", invoice("A"))
		}, ledger.Confirmed, "", 2, func(b *bench, _ ledger.Row) { b.wantRecords("A", 1) }},
		{"the series draws the number", func(b *bench) {
			b.push(flexi.Create, "A", invoice(""))
		}, ledger.Confirmed, "", 1, func(b *bench, r ledger.Row) {
			if r.Number == "" || len(b.records(r.Number)) != 1 {
				b.t.Fatalf("number %q", r.Number)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				if strings.Contains(c.name, "not allowed") {
					b.set.Allow = func(_ string, op flexi.Op) bool { return op != flexi.Delete }
				}
				b.start()
				c.do(b)
				evidence := "faktura-vydana"
				if strings.Contains(c.name, "unknown evidence") {
					evidence = "faktura-nevydana"
				}
				b.until(40*time.Minute, fmt.Sprintf("%s(%s)", c.state, c.reason), func() bool {
					r := b.rowOf(evidence, "A")
					return r.State == c.state && r.Reason == c.reason && r.Head == r.Tail
				})
				b.wantWrites(c.writes)
				if c.check != nil {
					c.check(b, b.rowOf(evidence, "A"))
				}
			})
		})
	}
}

func (b *bench) accept(e verify.Event) {
	b.t.Helper()
	if _, err := b.eng.Accept(b.t.Context(), e); err != nil {
		b.t.Fatal(err)
	}
}

func atoi(s string) int64 {
	var n int64
	if _, err := fmt.Sscan(s, &n); err != nil {
		return -1
	}
	return n
}
