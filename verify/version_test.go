package verify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// versioned is an event with a sender's version, "" = none.
func (b *bench) versioned(op flexi.Op, version string, body doc) verify.Event {
	e := b.event(op, "A", body)
	e.Version = version
	return e
}

func (b *bench) pushed(op flexi.Op, version string, body doc) {
	b.t.Helper()
	b.accept(b.versioned(op, version, body))
}

func text(s string) doc { return invoice("A", "popis", s) }

// TestCaseUpdateBeforeCreate: two events of one document overtake each other. Flexi ends with the newer one.
func TestCaseUpdateBeforeCreate(t *testing.T) {
	lines := caseFile(t, "update-before-create/events.ndjson")
	for _, way := range []string{"file", "signed webhook"} {
		t.Run(way, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				var e verify.Event
				for _, line := range lines {
					e = b.came(way, line)
					b.over(e)
				}
				r := b.over(e)
				rs := b.records("OOO-1")
				if r.State != ledger.Confirmed || len(rs) != 1 || !strings.HasPrefix(fmt.Sprint(rs[0].Fields["sumOsv"]), "200") {
					b.t.Fatalf("%s(%s), records %v\n%s", r.State, r.Reason, rs, pretty(r))
				}
				b.wantWrites(2)
				told := b.notices.done()
				if last := told[len(told)-1]; last.State != ledger.Confirmed || last.Op != flexi.Update {
					b.t.Errorf("told last: %+v", last)
				}
			})
		})
	}
}

// TestVersions: what is only repeated is known, what ended is not, and what was refused is never hidden by an older one.
func TestVersions(t *testing.T) {
	refused := func(s string) doc { return invoice("A", "popis", s, "firma", "code:NENI") }
	cases := []struct {
		name   string
		do     func(b *bench)
		state  ledger.State
		reason ledger.Reason
		popis  string // in Flexi, "" = no record
		writes int
	}{
		{"a repeated version is known", func(b *bench) {
			b.pushed(flexi.Upsert, "5", text("X"))
			b.pushed(flexi.Upsert, "7", text("X"))
			b.pushed(flexi.Upsert, "6", text("Y"))
		}, ledger.Confirmed, ledger.Superseded, "X", 1},
		{"a repeated event id with a newer version", func(b *bench) {
			one := b.given("e1", "A", flexi.Upsert, text("X"))
			one.Version = "5"
			b.accept(one)
			b.becomes("A", time.Minute, ledger.Confirmed, "")
			again := b.given("e1", "A", flexi.Upsert, text("X"))
			again.Version = "7"
			b.accept(again)
			b.becomes("A", time.Minute, ledger.Confirmed, ledger.Repeated)
			b.pushed(flexi.Upsert, "6", text("Y"))
		}, ledger.Confirmed, ledger.Superseded, "X", 1},
		{"a delete without a version ends what was known", func(b *bench) {
			b.pushed(flexi.Create, "5", text("X"))
			b.pushed(flexi.Delete, "", doc{})
			b.pushed(flexi.Create, "1", text("Y"))
		}, ledger.Confirmed, "", "Y", 3},
		{"a delete with a version keeps it", func(b *bench) {
			b.pushed(flexi.Create, "5", text("X"))
			b.pushed(flexi.Delete, "6", doc{})
			b.pushed(flexi.Create, "1", text("Y"))
		}, ledger.Confirmed, ledger.Superseded, "", 2},
		{"an update, a later update, then the create", func(b *bench) {
			b.pushed(flexi.Update, "3", doc{"popis": "drei"})
			b.pushed(flexi.Update, "2", doc{"popis": "zwei"})
			b.pushed(flexi.Create, "1", text("eins"))
		}, ledger.Confirmed, "", "drei", 3},
		{"a delete before its create", func(b *bench) {
			b.pushed(flexi.Delete, "2", doc{})
			b.pushed(flexi.Create, "1", text("X"))
		}, ledger.Confirmed, "", "", 2},
		{"a storno before its create", func(b *bench) {
			b.pushed(flexi.Storno, "2", doc{})
			b.pushed(flexi.Create, "1", text("X"))
		}, ledger.Confirmed, "", "X", 2},
		{"its turn comes before what came meanwhile", func(b *bench) {
			b.pushed(flexi.Update, "2", doc{"popis": "zwei"})
			b.fake.Slow(2 * time.Second)
			b.pushed(flexi.Create, "1", text("eins"))
			b.pushed(flexi.Update, "", doc{"popis": "ohne"})
		}, ledger.Confirmed, "", "ohne", 3},
		{"a newer create leaves nothing missing", func(b *bench) {
			b.pushed(flexi.Update, "2", doc{"popis": "zwei"})
			b.pushed(flexi.Create, "3", text("drei"))
		}, ledger.Confirmed, "", "drei", 1},
		{"without versions it stays in sight", func(b *bench) {
			b.pushed(flexi.Update, "", doc{"popis": "zwei"})
			b.pushed(flexi.Create, "", text("eins"))
		}, ledger.Parked, ledger.Rejected, "eins", 1},
		{"a create without a version does not hide it", func(b *bench) {
			b.pushed(flexi.Update, "2", doc{"popis": "zwei"})
			b.pushed(flexi.Create, "", text("eins"))
		}, ledger.Parked, ledger.Rejected, "eins", 1},
		{"a refused newer one is not hidden by an older one", func(b *bench) {
			b.pushed(flexi.Upsert, "1", text("eins"))
			b.pushed(flexi.Upsert, "3", refused("drei"))
			b.pushed(flexi.Upsert, "2", text("zwei"))
		}, ledger.Parked, ledger.Rejected, "zwei", 3},
		{"a refused one that the next one replaces", func(b *bench) {
			b.pushed(flexi.Create, "", refused("eins"))
			b.pushed(flexi.Create, "", text("zwei"))
		}, ledger.Confirmed, "", "zwei", 2},
		{"a refused change of another field stays in sight", func(b *bench) {
			b.pushed(flexi.Create, "", text("eins"))
			b.pushed(flexi.Update, "", doc{"firma": "code:NENI"})
			b.pushed(flexi.Update, "", doc{"popis": "drei"})
		}, ledger.Parked, ledger.Rejected, "drei", 3},
		{"a refused change that the next one contains", func(b *bench) {
			b.pushed(flexi.Create, "", text("eins"))
			b.pushed(flexi.Update, "", doc{"firma": "code:NENI"})
			b.pushed(flexi.Update, "", doc{"firma": "code:JE", "popis": "drei"})
		}, ledger.Confirmed, "", "drei", 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.fake.Type("adresar", map[string]any{"kod": "JE", "nazev": "Je"})
				b.start()
				c.do(b)
				r := b.becomes("A", time.Hour, c.state, c.reason)
				b.pass(time.Minute)
				if r = b.becomes("A", time.Second, c.state, c.reason); r.Shown() == 0 || r.More() {
					b.t.Fatal(pretty(r))
				}
				got := ""
				if rs := b.records("A"); len(rs) == 1 {
					got = fmt.Sprint(rs[0].Fields["popis"])
				}
				if got != c.popis {
					b.t.Errorf("popis %q, want %q", got, c.popis)
				}
				b.wantWrites(c.writes)
				if m := r.Missing(); (m != nil) != (c.state == ledger.Parked) || m != nil && (r.Shown() != m.N || r.Problem() == nil) {
					b.t.Errorf("missing %+v, shown %d", m, r.Shown())
				}
			})
		})
	}
}

// TestCloseWhatWasRefused: a person closes a refused event that a later one has hidden, or has it sent again.
func TestCloseWhatWasRefused(t *testing.T) {
	for _, c := range []struct {
		what  verify.What
		popis string
	}{{verify.DecideDrop, "eins"}, {verify.DecideResend, "zwei"}} {
		t.Run(string(c.what), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.pushed(flexi.Update, "", doc{"popis": "zwei"})
				b.pushed(flexi.Create, "", text("eins"))
				b.becomes("A", time.Hour, ledger.Parked, ledger.Rejected)
				must(b.t, b.decide("A", c.what))
				r := b.becomes("A", time.Hour, ledger.Confirmed, "")
				if got := b.field("A", "popis"); got != c.popis || r.Missing() != nil || len(r.Refused) > 0 {
					b.t.Fatalf("popis %q\n%s", got, pretty(r))
				}
			})
		})
	}
}

// TestRepeated: "repeated" is said only of content that is in Flexi as far as anybody knows, and what a person dropped stays so.
func TestRepeated(t *testing.T) {
	conflict := func(b *bench) { // a person changed the record, an upsert would change it back
		r := b.created("A", text("X"))
		b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"popis": "ručně"})
		b.push(flexi.Upsert, "A", text("Y"))
		b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
	}
	gone := func(b *bench) { // a person deleted the record, and the read-back tells
		r := b.created("A", text("X"))
		b.fake.Remove("faktura-vydana", atoi(r.FlexiID))
		b.becomes("A", 10*time.Minute, ledger.Parked, ledger.Conflict)
	}
	refused := func(b *bench) {
		b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
		b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
	}
	bad := invoice("A", "firma", "code:NENI")
	cases := []struct {
		name   string
		do     func(b *bench)
		state  ledger.State
		reason ledger.Reason
		popis  string
	}{
		{"kept in Flexi, the same again", func(b *bench) {
			conflict(b)
			must(b.t, b.decide("A", verify.DecideConfirm))
			b.push(flexi.Upsert, "A", text("Y"))
		}, ledger.Parked, ledger.Conflict, "ručně"},
		{"kept in Flexi, the same as a create", func(b *bench) {
			conflict(b)
			must(b.t, b.decide("A", verify.DecideConfirm))
			b.push(flexi.Create, "A", text("Y"))
		}, ledger.Parked, ledger.Conflict, "ručně"},
		{"kept in Flexi, then what is there", func(b *bench) {
			conflict(b)
			must(b.t, b.decide("A", verify.DecideConfirm))
			b.push(flexi.Create, "A", text("ručně"))
		}, ledger.Confirmed, ledger.Adopted, "ručně"},
		{"kept in Flexi, then something new", func(b *bench) {
			conflict(b)
			must(b.t, b.decide("A", verify.DecideConfirm))
			b.push(flexi.Upsert, "A", text("Z"))
		}, ledger.Confirmed, "", "Z"},
		{"deleted, dropped, the same again", func(b *bench) {
			gone(b)
			must(b.t, b.decide("A", verify.DecideDrop))
			b.push(flexi.Create, "A", text("X"))
		}, ledger.Dropped, ledger.Repeated, ""},
		{"deleted, dropped, another, the first again", func(b *bench) {
			gone(b)
			must(b.t, b.decide("A", verify.DecideDrop))
			b.push(flexi.Create, "A", invoice("A", "popis", "Z", "firma", "code:NENI"))
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			b.push(flexi.Create, "A", text("X"))
		}, ledger.Confirmed, "", "X"},
		{"deleted, sent again by a person", func(b *bench) {
			gone(b)
			must(b.t, b.decide("A", verify.DecideResend))
		}, ledger.Confirmed, "", "X"},
		{"an update of what was deleted is dropped, the create again", func(b *bench) {
			r := b.created("A", text("X"))
			b.fake.Remove("faktura-vydana", atoi(r.FlexiID))
			b.push(flexi.Update, "A", doc{"popis": "Y"})
			b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
			must(b.t, b.decide("A", verify.DecideDrop))
			b.push(flexi.Create, "A", text("X"))
		}, ledger.Confirmed, "", "X"},
		{"a dropped change comes with the next night's file", func(b *bench) {
			conflict(b)
			must(b.t, b.decide("A", verify.DecideDrop))
			b.push(flexi.Upsert, "A", text("Y"))
			b.push(flexi.Upsert, "A", text("Y"))
		}, ledger.Dropped, ledger.Repeated, "ručně"},
		{"a dropped rejected one comes again", func(b *bench) {
			refused(b)
			must(b.t, b.decide("A", verify.DecideDrop))
			b.push(flexi.Upsert, "A", bad)
		}, ledger.Dropped, ledger.Repeated, ""},
		{"a dropped one comes with a newer version", func(b *bench) {
			b.pushed(flexi.Upsert, "1", bad)
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			must(b.t, b.decide("A", verify.DecideDrop))
			b.pushed(flexi.Upsert, "2", bad)
		}, ledger.Parked, ledger.Rejected, ""},
		{"a dropped one comes with the same version", func(b *bench) {
			b.pushed(flexi.Upsert, "1", bad)
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			must(b.t, b.decide("A", verify.DecideDrop))
			b.pushed(flexi.Upsert, "1", bad)
		}, ledger.Dropped, ledger.Repeated, ""},
		{"a storno that carries the document does not make it repeated", func(b *bench) {
			b.created("A", text("X"))
			b.push(flexi.Storno, "A", text("Y"))
			b.becomes("A", time.Minute, ledger.Confirmed, "")
			b.push(flexi.Upsert, "A", text("Y"))
		}, ledger.Confirmed, "", "Y"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				c.do(b)
				b.becomes("A", 10*time.Minute, c.state, c.reason)
				got := ""
				if rs := b.records("A"); len(rs) == 1 {
					got = fmt.Sprint(rs[0].Fields["popis"])
				}
				if got != c.popis {
					b.t.Errorf("popis %q, want %q", got, c.popis)
				}
			})
		})
	}
}

// TestNumbersWithoutEffect: a number that an event without effect asked for is free for its rightful document, and is no
// knowledge of the one that asked.
func TestNumbersWithoutEffect(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(b *bench)
	}{
		{"a rejected update", func(b *bench) {
			b.push(flexi.Update, "A", invoice("N", "firma", "code:NENI"))
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
		}},
		{"a dropped second create", func(b *bench) {
			b.push(flexi.Create, "A", invoice("N"))
			b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
			must(b.t, b.decide("A", verify.DecideDrop))
		}},
		{"a dropped renumbering", func(b *bench) {
			b.fake.Edit("faktura-vydana", atoi(b.row("A").FlexiID), map[string]any{"popis": "ručně"})
			b.push(flexi.Upsert, "A", invoice("N", "popis", "Y"))
			b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
			must(b.t, b.decide("A", verify.DecideDrop))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("A", invoice("A"))
				c.do(b)
				b.push(flexi.Create, "B", invoice("N"))
				b.becomes("B", time.Minute, ledger.Confirmed, "")
				b.wantRecords("N", 1)
				b.push(flexi.Update, "A", doc{"poznam": "dál"})
				b.until(time.Minute, "the next change goes through", func() bool {
					r := b.row("A")
					return !r.More() && r.Work.Final && r.Work.End.State == ledger.Confirmed
				})
				if r := b.row("A"); len(r.Numbers) != 1 || r.Numbers[0] != "A" || b.field("A", "poznam") != "dál" {
					b.t.Fatalf("numbers %v", r.Numbers)
				}
			})
		})
	}
	t.Run("what an update gave up", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("A", invoice("A"))
			b.push(flexi.Update, "A", doc{"kod": "NEW"})
			b.becomes("A", time.Minute, ledger.Confirmed, "")
			b.push(flexi.Create, "B", invoice("A"))
			b.becomes("B", time.Minute, ledger.Confirmed, "")
			b.push(flexi.Create, "C", invoice("NEW"))
			b.becomes("C", time.Minute, ledger.Parked, ledger.Duplicate)
		})
	})
	t.Run("not while a late look is due", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			b.created("X", invoice("X"))
			b.first("A", flexitest.Fault{Kind: flexitest.ResetAnswer})
			b.push(flexi.Create, "A", invoice("A"))
			b.until(time.Minute, "maybe", func() bool { return b.row("A").State == ledger.Maybe })
			b.until(2*time.Hour, "dropped", func() bool {
				_ = b.decide("A", verify.DecideDrop)
				return b.row("A").State == ledger.Dropped || b.row("A").State == ledger.Confirmed
			})
			if len(b.row("A").Late) == 0 {
				b.t.Skip("it was sent again before it could be dropped")
			}
			b.push(flexi.Create, "B", invoice("A"))
			b.becomes("B", time.Minute, ledger.Parked, ledger.Duplicate)
		})
	})
}

// TestShownWhileItWaits: a row shows its oldest event that is not over, also while the settle time of the one before holds
// that one back.
func TestShownWhileItWaits(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.created("A", invoice("A"))
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAfterCommit})
		b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		b.push(flexi.Update, "A", doc{"popis": "Druhá", "sumOsv": "77"})
		b.until(time.Minute, "found", func() bool { r := b.row("A"); return r.Work != nil && r.Work.Final && r.Head == 2 })
		for range 20 {
			r := b.row("A")
			if r.Head == 3 {
				break
			}
			if r.State == ledger.Confirmed || r.Shown() != 3 {
				b.t.Fatalf("it shows %s(%s), event %d of %d", r.State, r.Reason, r.Shown(), r.Tail)
			}
			b.pass(20 * time.Second)
		}
		if r := b.row("A"); r.Head == 2 && (r.Reason != ledger.Waiting || r.Amount != "77") {
			b.t.Errorf("reason %s, amount %s", r.Reason, r.Amount)
		}
		b.becomes("A", time.Hour, ledger.Confirmed, "")
	})
}
