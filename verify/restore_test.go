package verify_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

// strangers types one invoice for each Flexi id that a restore gave back, and says what they are.
func (b *bench) strangers(ids ...string) map[int64]flexitest.Record {
	b.t.Helper()
	all := map[int64]flexitest.Record{}
	for i, id := range ids {
		number := fmt.Sprint("CIZI-", i)
		if got := b.typed(invoice(number, "varSym", "777", "popis", "cizí")); got != atoi(id) {
			b.t.Fatalf("the restored ERP gave id %d, not %s", got, id)
		}
		all[atoi(id)] = b.records(number)[0]
	}
	return all
}

// untouched compares records with what they were, to the last byte.
func (b *bench) untouched(were map[int64]flexitest.Record) {
	b.t.Helper()
	for id, was := range were {
		now := b.fake.Find("faktura-vydana", fmt.Sprint(id))
		if len(now) != 1 || !reflect.DeepEqual(now[0], was) {
			b.t.Errorf("record %d was touched:\nwas %+v\nis  %+v", id, was, now)
		}
	}
}

func (b *bench) heldFor(reason string) bool {
	for _, g := range b.eng.Status().Stops {
		if g.NeedsYou && g.Reason == reason {
			return true
		}
	}
	return false
}

func (b *bench) acceptCompany(how string) {
	b.t.Helper()
	must(b.t, b.eng.AcceptCompany(b.t.Context(), how, "jana", "obnova ze zálohy"))
}

// TestIDOfAStranger: the ERP was set back and nobody noticed; our Flexi ids belong to invoices that somebody typed since. No
// operation touches one, under whatever number it stands.
func TestIDOfAStranger(t *testing.T) {
	pick := testenv.OneOf(t, 3)
	for _, op := range []flexi.Op{flexi.Update, flexi.Upsert, flexi.Storno, flexi.Delete} {
		for _, noIDs := range []bool{false, true} {
			for _, number := range []string{"another", "same"} {
				if !pick.Take() {
					continue
				}
				t.Run(fmt.Sprintf("%s/no external ids %v/%s number", op, noIDs, number), func(t *testing.T) {
					virtual(t, func(b *bench) {
						b.fake.DropExternalIDs(noIDs)
						b.start()
						b.created("X", invoice("X"))
						snap := b.fake.Snapshot()
						r := b.created("A", invoice("A"))
						b.pass(2 * time.Minute)
						b.fake.RestoreUnseen(snap)
						theirs := "CIZI"
						if number == "same" {
							theirs = "A"
						}
						if id := b.typed(invoice(theirs, "varSym", "777", "popis", "cizí")); id != atoi(r.FlexiID) {
							b.t.Fatalf("id %d", id)
						}
						was := map[int64]flexitest.Record{atoi(r.FlexiID): b.records(theirs)[0]}
						before := b.writes()
						body := doc{}
						switch op {
						case flexi.Update:
							body = doc{"popis": "Oprava"}
						case flexi.Upsert:
							body = invoice("A", "popis", "Oprava")
						}
						b.push(op, "A", body)
						b.pass(time.Hour)
						b.untouched(was)
						if n := b.writes() - before; n != 0 {
							b.t.Errorf("%d writes", n)
						}
						now := b.row("A")
						gone := op == flexi.Delete && number == "another" // it is not there: that is what was asked for
						switch {
						case gone && now.State != ledger.Confirmed:
							b.t.Errorf("a delete of what is gone is %s(%s)", now.State, now.Reason)
						case !gone && now.State != ledger.Parked:
							b.t.Errorf("it is %s(%s)", now.State, now.Reason)
						case !gone && number == "another" && now.Cause != string(flexi.Gone):
							b.t.Errorf("the cause is %q: %+v", now.Cause, now.Work.Story.Problem)
						}
					})
				})
			}
		}
	}
}

// TestIDGivenWhileInDoubt: the answer to a change is lost, then the ERP is set back and the id goes to somebody else's
// record. What was in doubt is not sent to it.
func TestIDGivenWhileInDoubt(t *testing.T) {
	for _, op := range []flexi.Op{flexi.Update, flexi.Storno, flexi.Delete} {
		t.Run(string(op), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				snap := b.fake.Snapshot()
				r := b.created("A", invoice("A"))
				b.pass(2 * time.Minute)
				b.fake.Script(flexitest.Fault{Kind: flexitest.ResetAnswer})
				body := doc{}
				if op == flexi.Update {
					body = doc{"popis": "Oprava"}
				}
				b.push(op, "A", body)
				b.inMaybe("A")
				b.fake.RestoreUnseen(snap)
				was := b.strangers(r.FlexiID)
				before := b.writes()
				b.pass(2 * time.Hour)
				b.untouched(was)
				if n := b.writes() - before; n != 0 {
					b.t.Errorf("%d more writes", n)
				}
				if now := b.row("A"); op != flexi.Delete && (now.State != ledger.Parked || now.Cause != string(flexi.Gone)) {
					b.t.Errorf("it is %s(%s), cause %q", now.State, now.Reason, now.Cause)
				}
			})
		})
	}
}

// TestRestoredAnHourAgo: with the daemon running, stopped, and stopped while two documents are in doubt. Writes stop; after
// the acceptance everything that was lost is with a person, what was in doubt is made, and no stranger's record was touched.
func TestRestoredAnHourAgo(t *testing.T) {
	for _, how := range []string{"running", "stopped", "stopped, state lost", "stopped while two are maybe"} {
		t.Run(how, func(t *testing.T) {
			virtual(t, func(b *bench) {
				maybes := strings.Contains(how, "maybe")
				b.start()
				b.created("X", invoice("X"))
				snap := b.fake.Snapshot()
				var ids []string
				for i := range 4 {
					ids = append(ids, b.created(fmt.Sprint("A", i), invoice(fmt.Sprint("A", i))).FlexiID)
				}
				b.pass(time.Hour)
				if maybes {
					for _, key := range []string{"M1", "M2"} {
						b.first("ext:FLEXID:"+key, flexitest.Fault{Kind: flexitest.ResetAfterCommit})
						b.hideAll("M1", "M2")
						b.push(flexi.Create, key, invoice(key))
						b.inMaybe(key)
					}
				}
				if how != "running" {
					b.halt()
				}
				if how == "stopped, state lost" {
					must(b.t, b.state.Delete(b.t.Context(), "writes.stops"))
				}
				b.fake.HideWhen(nil)
				b.fake.Restore(snap)
				was := b.strangers(ids[0], ids[1])
				if how != "running" {
					b.start()
				}
				b.until(10*time.Minute, "stopped", func() bool {
					if how == "running" {
						b.push(flexi.Storno, "A0", doc{})
					}
					return b.heldFor("restored")
				})
				before := b.writes()
				b.push(flexi.Storno, "A0", doc{})
				b.push(flexi.Update, "A1", doc{"popis": "nové"})
				b.push(flexi.Create, "A2", invoice("A2")) // the same again: it is not there any more
				b.pass(30 * time.Minute)
				if n := b.writes() - before; n != 0 {
					b.t.Fatalf("%d writes before anybody accepted", n)
				}
				b.acceptCompany("restored")
				for i := range 4 {
					r := b.parkedFor(fmt.Sprint("A", i), time.Hour)
					if r.Reason != ledger.Conflict || r.Cause != string(flexi.Gone) {
						b.t.Errorf("A%d is %s(%s), cause %q: %+v", i, r.State, r.Reason, r.Cause, r.Work.Story.Problem)
					}
				}
				b.push(flexi.Create, "N", invoice("N"))
				b.becomes("N", time.Hour, ledger.Confirmed, "")
				if maybes {
					b.becomes("M1", 2*time.Hour, ledger.Confirmed, "")
					b.becomes("M2", 2*time.Hour, ledger.Confirmed, "")
					b.wantRecords("M1", 1)
					b.wantRecords("M2", 1)
				}
				if b.heldFor("restored") {
					b.t.Error("held again, though the restore was accepted")
				}
				b.untouched(was)
				b.halt()
				b.start()
				b.pass(10 * time.Minute)
				if b.heldFor("restored") {
					b.t.Error("held again after a restart")
				}
			})
		})
	}
}

func (b *bench) hideAll(numbers ...string) {
	b.fake.HideWhen(func(r flexitest.Record) bool {
		for _, n := range numbers {
			if r.Number == n {
				return true
			}
		}
		return false
	})
}

func (b *bench) parkedFor(key string, limit time.Duration) ledger.Row {
	b.t.Helper()
	b.until(limit, key+" parked", func() bool { return b.row(key).State == ledger.Parked })
	return b.row(key)
}

// TestRestoredUnseen: nobody could notice by the version of changes; the first new document gets an id that a row of ours
// has, and that stops the writes. The row still says confirmed until the acceptance marks it for a look.
func TestRestoredUnseen(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("look first ", first), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.LookFirst = first
				b.start()
				b.created("X", invoice("X"))
				snap := b.fake.Snapshot()
				b.created("A", invoice("A"))
				b.created("B", invoice("B"))
				b.pass(2 * time.Minute)
				b.halt()
				b.fake.RestoreUnseen(snap)
				b.start()
				b.push(flexi.Create, "N", invoice("N"))
				b.push(flexi.Create, "N2", invoice("N2"))
				b.becomes("N", time.Minute, ledger.Confirmed, "")
				b.until(time.Minute, "stopped", func() bool { return b.heldFor("restored") })
				b.acceptCompany("restored")
				for _, key := range []string{"A", "B"} {
					if r := b.parkedFor(key, time.Hour); r.Cause != string(flexi.Gone) {
						b.t.Errorf("%s: cause %q", key, r.Cause)
					}
				}
				b.becomes("N2", time.Hour, ledger.Confirmed, "")
				b.pass(time.Hour)
				if b.heldFor("restored") {
					b.t.Error("held again")
				}
				for _, key := range []string{"N", "N2"} {
					if r := b.row(key); r.State != ledger.Confirmed {
						b.t.Errorf("%s is %s(%s): %+v", key, r.State, r.Reason, r.Work.Story.Problem)
					}
				}
			})
		})
	}
}

// TestRestoredDelete: a restore brings back what we had deleted; a person hears of it.
func TestRestoredDelete(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.created("A", invoice("A"))
		snap := b.fake.Snapshot()
		b.push(flexi.Delete, "A", doc{})
		b.becomes("A", time.Hour, ledger.Confirmed, "")
		b.created("Y", invoice("Y"))
		b.pass(2 * time.Minute)
		b.halt()
		b.fake.Restore(snap)
		b.start()
		b.until(10*time.Minute, "stopped", func() bool { return b.heldFor("restored") })
		b.acceptCompany("restored")
		if r := b.parkedFor("A", time.Hour); r.Reason != ledger.Duplicate {
			b.t.Errorf("%s(%s)", r.State, r.Reason)
		}
	})
}

// TestNewCompany: nothing of the old company counts: an upsert or create of an old key is made, whatever was confirmed; what
// nobody touches stays readable.
func TestNewCompany(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				empty := b.fake.Snapshot()
				for _, key := range []string{"A", "B", "C", "D", "E"} {
					b.created(key, invoice(key))
				}
				old := b.row("E")
				given := func(op flexi.Op, key, id string, body doc) {
					ev := b.event(op, key, body)
					ev.EventID, ev.Given = id, true
					_, err := b.eng.Accept(b.t.Context(), ev)
					must(b.t, err)
				}
				given(flexi.Create, "D", "noc-1", invoice("D"))
				b.pass(2 * time.Minute)
				b.fake.Restore(empty)
				was := b.strangers(b.row("A").FlexiID, b.row("B").FlexiID)
				b.acceptCompany("new")
				if restart {
					b.halt()
					b.start()
				}
				b.push(flexi.Upsert, "A", invoice("A"))
				b.push(flexi.Create, "B", invoice("B"))
				b.push(flexi.Storno, "C", doc{})
				given(flexi.Create, "D", "noc-1", invoice("D"))
				b.push(flexi.Create, "F", invoice("E")) // the number of an old document is free
				for _, key := range []string{"A", "B", "D", "F"} {
					b.becomes(key, 10*time.Minute, ledger.Confirmed, "")
				}
				for _, number := range []string{"A", "B", "D", "E"} {
					b.wantRecords(number, 1)
				}
				b.becomes("C", 10*time.Minute, ledger.Parked, ledger.Rejected) // nothing to change
				b.untouched(was)
				if now := b.row("E"); now.State != ledger.Confirmed || now.FlexiID != old.FlexiID {
					b.t.Errorf("an old row became %s, Flexi id %q", now.State, now.FlexiID)
				}
				if b.heldFor("restored") {
					b.t.Error("held again")
				}
				b.push(flexi.Upsert, "A", invoice("A"))
				b.becomes("A", time.Minute, ledger.Confirmed, ledger.Repeated)
			})
		})
	}
}

// TestRemadeByHand: an adopted record that a person deleted and typed again. With the same content it is the document; with
// another one it is not, and is left alone.
func TestRemadeByHand(t *testing.T) {
	for _, c := range []struct {
		name, text string
		ours       bool
	}{{"same content", "Služby", true}, {"other content", "Jiné služby", false}} {
		for _, op := range []flexi.Op{flexi.Update, flexi.Storno, flexi.Delete} {
			t.Run(c.name+"/"+string(op), func(t *testing.T) {
				virtual(t, func(b *bench) {
					b.start()
					b.created("X", invoice("X"))
					id := b.typed(invoice("A"))
					b.push(flexi.Create, "A", invoice("A"))
					b.becomes("A", time.Minute, ledger.Confirmed, ledger.Adopted)
					b.fake.Remove("faktura-vydana", id)
					again := b.typed(invoice("A", "popis", c.text, "varSym", map[bool]string{true: "20260001", false: "5"}[c.ours]))
					was := map[int64]flexitest.Record{again: b.records("A")[0]}
					body := doc{}
					if op == flexi.Update {
						body = doc{"datSplat": "2026-12-24"}
					}
					before := b.writes()
					b.push(op, "A", body)
					b.pass(time.Hour)
					r, n := b.row("A"), b.writes()-before
					if c.ours && (r.State != ledger.Confirmed || n != 1) {
						b.t.Errorf("%s(%s), %d writes: %+v", r.State, r.Reason, n, r.Work.Story.Problem)
					}
					if !c.ours {
						b.untouched(was)
					}
				})
			})
		}
	}
}

// TestEditedUnmarked: a person changed a record that never carried our external id. Nothing is sent over that; a person who
// says that it is ours has the change made, or the event closed.
func TestEditedUnmarked(t *testing.T) {
	for _, c := range []struct {
		what   verify.What
		writes int
		reason ledger.Reason
	}{{verify.DecideConfirm, 1, ledger.Adopted}, {verify.DecideResend, 2, ""}} {
		t.Run(string(c.what), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				id := b.typed(invoice("A"))
				b.push(flexi.Create, "A", invoice("A"))
				b.becomes("A", time.Minute, ledger.Confirmed, ledger.Adopted)
				b.fake.Edit("faktura-vydana", id, map[string]any{"varSym": "9"})
				b.push(flexi.Storno, "A", doc{})
				b.becomes("A", time.Hour, ledger.Parked, ledger.Conflict)
				b.wantWrites(1)
				must(b.t, b.decide("A", c.what))
				b.becomes("A", time.Minute, ledger.Confirmed, c.reason)
				b.wantWrites(c.writes)
			})
		})
	}
}

// TestConfirmedByHand: a person took a record as it stood for the document; that is what is known of it from then on.
func TestConfirmedByHand(t *testing.T) {
	for _, changed := range []bool{false, true} {
		t.Run(fmt.Sprint("changed since ", changed), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				id := b.typed(invoice("A", "varSym", "9"))
				b.push(flexi.Create, "A", invoice("A"))
				b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
				must(b.t, b.decide("A", verify.DecideConfirm))
				b.becomes("A", time.Minute, ledger.Confirmed, ledger.Adopted)
				if changed {
					b.fake.Edit("faktura-vydana", id, map[string]any{"varSym": "10"})
				}
				b.push(flexi.Storno, "A", doc{})
				if changed {
					b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
					return
				}
				b.becomes("A", time.Minute, ledger.Confirmed, "")
				if got := b.field("A", "storno"); got != "true" {
					b.t.Errorf("storno %q", got)
				}
			})
		})
	}
}

// TestStornoCompares: what a person changed since is not cancelled over their head; a note is no such change.
func TestStornoCompares(t *testing.T) {
	for _, c := range []struct {
		field, value string
		state        ledger.State
	}{{"varSym", "9", ledger.Parked}, {"popis", "poznámka", ledger.Confirmed}} {
		t.Run(c.field, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				r := b.created("A", invoice("A"))
				b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{c.field: c.value})
				b.push(flexi.Storno, "A", doc{})
				b.until(time.Minute, "over", func() bool { n := b.row("A"); return n.Head == 2 && n.State == c.state })
			})
		})
	}
}

// TestSharedFlexiID: somebody gave a record of ours the external id of another document of ours. Neither takes the other's
// record for its own.
func TestSharedFlexiID(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		id := b.typed(invoice("A"))
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, ledger.Adopted)
		b.fake.Edit("faktura-vydana", id, map[string]any{"id": []string{fmt.Sprint(id), "ext:FLEXID:B"}})
		b.push(flexi.Create, "B", invoice("B"))
		r := b.becomes("B", time.Minute, ledger.Parked, ledger.Duplicate)
		if p := r.Work.Story.Problem; p.Link != "faktura-vydana/A" {
			b.t.Errorf("it says %+v", p)
		}
		b.wantWrites(1)
	})
}

// TestSwappedIDs: an answer about several documents tells each the id of another one. The looks put it right by the external
// ids, and a change goes to the right record.
func TestSwappedIDs(t *testing.T) {
	for _, drawn := range []bool{false, true} {
		t.Run(fmt.Sprint("numbers drawn ", drawn), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.grown()
				other := map[string]string{}
				for i := range 20 {
					other[fmt.Sprint("ext:FLEXID:P", i)] = fmt.Sprint("ext:FLEXID:P", (i+1)%20)
				}
				b.fake.SpellRequestIDs(func(id string) string {
					if x, ok := other[id]; ok {
						return x
					}
					return id
				})
				for i := range 20 {
					body := invoice(fmt.Sprint("P", i), "varSym", fmt.Sprint(100+i))
					if drawn {
						delete(body, "kod")
					}
					b.push(flexi.Create, fmt.Sprint("P", i), body)
				}
				b.until(time.Minute, "confirmed", func() bool { return b.in(ledger.Confirmed) == 80 })
				b.fake.SpellRequestIDs(nil)
				if slices.Max(b.sizes()) < 2 {
					b.t.Fatal("no request carried several documents")
				}
				b.pass(6 * time.Minute)
				for i := range 20 {
					key := fmt.Sprint("P", i)
					r, rec := b.row(key), b.fake.Find("faktura-vydana", "ext:FLEXID:"+key)
					if len(rec) != 1 || r.State != ledger.Confirmed || r.FlexiID != fmt.Sprint(rec[0].ID) || r.Number != rec[0].Number {
						b.t.Errorf("%s is %s(%s), id %s, number %s, not one record %v", key, r.State, r.Reason, r.FlexiID, r.Number, len(rec))
					}
				}
				b.push(flexi.Storno, "P3", doc{})
				b.until(time.Minute, "cancelled", func() bool { r := b.row("P3"); return r.Head == 2 && r.State == ledger.Confirmed })
				for _, rec := range b.fake.Records("faktura-vydana") {
					ours := slices.Contains(rec.ExternalIDs, "ext:FLEXID:P3")
					if cancelled := fmt.Sprint(rec.Fields["storno"]) == "true"; cancelled != ours {
						b.t.Errorf("record %d %v: cancelled %v", rec.ID, rec.ExternalIDs, cancelled)
					}
				}
			})
		})
	}
}

// TestDropOfWhatIsGone: a person gives up a document whose record is gone. The key is unknown then: the same content sent
// again is not taken for what stands in Flexi.
func TestDropOfWhatIsGone(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		r := b.created("A", invoice("A"))
		b.fake.Remove("faktura-vydana", atoi(r.FlexiID))
		b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		if r := b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict); r.Cause != string(flexi.Gone) {
			b.t.Errorf("cause %q", r.Cause)
		}
		must(b.t, b.decide("A", verify.DecideDrop))
		b.push(flexi.Upsert, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		b.wantRecords("A", 1)
	})
}
