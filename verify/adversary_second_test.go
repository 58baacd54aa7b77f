package verify_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// deafMarks is a ledger that does not store marks for a while.
type deafMarks struct {
	verify.Ledger
	fail atomic.Bool
}

func (d *deafMarks) SetMarks(ctx context.Context, m ledger.Marks, revision uint64) error {
	if d.fail.Load() {
		return errors.New("no answer")
	}
	return d.Ledger.SetMarks(ctx, m, revision)
}

// TestMarksAreStoredLater: how far the books were seen is stored once the ledger takes it again, though nothing new was seen.
func TestMarksAreStoredLater(t *testing.T) {
	virtual(t, func(b *bench) {
		d := &deafMarks{}
		b.wrap = func(l verify.Ledger) verify.Ledger { d.Ledger = l; return d }
		b.start()
		r := b.created("A", invoice("A"))
		b.pass(10 * time.Minute)
		d.fail.Store(true)
		r = b.created("B", invoice("B"))
		b.pass(10 * time.Minute)
		d.fail.Store(false)
		b.pass(time.Minute)
		m, _, err := b.ledger.Marks(b.t.Context())
		must(b.t, err)
		if top := m.Tops["faktura-vydana"]; top != r.FlexiID {
			b.t.Errorf("the highest id stored is %q, not %s", top, r.FlexiID)
		}
	})
}

// TestRepeatedInAnotherCompany: while writes stand still because the company behind the address is another one, nobody is told
// that a document is there. After the acceptance it is made.
func TestRepeatedInAnotherCompany(t *testing.T) {
	for name, id := range map[string]string{"an event of its own": "second", "the same event again": "first"} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				empty := b.fake.Snapshot()
				b.accept(b.given("first", "A", flexi.Upsert, invoice("A")))
				b.becomes("A", time.Minute, ledger.Confirmed, "")
				b.pass(10 * time.Minute)
				b.fake.Restore(empty)
				b.eng.StopFor("company", "another company", "accept it")
				b.accept(b.given(id, "A", flexi.Upsert, invoice("A")))
				b.pass(time.Minute)
				if r := b.row("A"); r.State != ledger.Queued || r.Reason != ledger.Blocked {
					b.t.Errorf("before the acceptance it is %s(%s)", r.State, r.Reason)
				}
				b.acceptCompany("new")
				b.becomes("A", 10*time.Minute, ledger.Confirmed, "")
				b.wantRecords("A", 1)
			})
		})
	}
}

// TestGoneAfterClockSetBack: the clock was wrong when a document was confirmed, and its record is gone. That is said, and the
// next event does not wait for the wrong time.
func TestGoneAfterClockSetBack(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.setClock(48 * time.Hour)
		r := b.created("A", invoice("A"))
		b.setClock(0)
		b.fake.Remove("faktura-vydana", atoi(r.FlexiID))
		b.pass(30 * time.Minute)
		if r := b.row("A"); r.State != ledger.Parked || r.Cause != string(flexi.Gone) {
			b.t.Errorf("it is %s(%s)", r.State, r.Reason)
		}
	})
}

// TestMomentOfAnUnmarkedRecord: a moment in a date field is compared as a day also where the content alone says whose a
// record is.
func TestMomentOfAnUnmarkedRecord(t *testing.T) {
	virtual(t, func(b *bench) {
		zone, err := time.LoadLocation("Europe/Prague")
		must(b.t, err)
		b.set.Zone = zone
		b.start()
		b.created("X", invoice("X"))
		b.typed(invoice("A", "datVyst", "2026-03-01"))
		b.push(flexi.Create, "A", invoice("A", "datVyst", "2026-02-28T23:30:00Z"))
		b.becomes("A", time.Minute, ledger.Confirmed, ledger.Adopted)
		b.push(flexi.Update, "A", doc{"varSym": "5"})
		b.becomes("A", time.Minute, ledger.Confirmed, "")
	})
}

// TestVersionsOfWhatIsGone: a person knows that a record is gone. What the sender sends again from the beginning is made, and
// not outdated by what is not there any more.
func TestVersionsOfWhatIsGone(t *testing.T) {
	for _, what := range []verify.What{verify.DecideDrop, verify.DecideResend} {
		t.Run(string(what), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				b.accept(b.versioned(flexi.Create, "1", invoice("A")))
				b.becomes("A", time.Minute, ledger.Confirmed, "")
				b.accept(b.versioned(flexi.Update, "5", doc{"varSym": "5"}))
				b.until(time.Minute, "changed", func() bool { r := b.row("A"); return r.Head == 2 && r.State == ledger.Confirmed })
				b.pass(10 * time.Minute)
				b.fake.Remove("faktura-vydana", b.records("A")[0].ID)
				b.accept(b.versioned(flexi.Update, "6", doc{"varSym": "6"}))
				b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
				must(b.t, b.decide("A", what))
				b.pass(time.Minute)
				b.accept(b.versioned(flexi.Create, "1", invoice("A")))
				b.pass(time.Minute)
				b.accept(b.versioned(flexi.Update, "5", doc{"varSym": "5"}))
				b.pass(time.Minute)
				b.accept(b.versioned(flexi.Update, "6", doc{"varSym": "6"}))
				b.pass(10 * time.Minute)
				b.wantRecords("A", 1)
				if got := b.field("A", "varSym"); got != "6" {
					b.t.Errorf("varSym %s: %s", got, pretty(b.row("A")))
				}
			})
		})
	}
}

// TestDropLeavesWhatCameTooEarly: a person gives up the event that a row shows. Another refused one that only came too early,
// by the sender's versions, is still carried out once the document is made.
func TestDropLeavesWhatCameTooEarly(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.accept(b.versioned(flexi.Update, "3", doc{"varSym": "33"}))
		b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
		b.accept(b.versioned(flexi.Create, "1", invoice("A", "typDokl", "code:NENI")))
		b.until(time.Minute, "refused", func() bool { r := b.row("A"); return r.Head == 2 && r.State == ledger.Parked })
		must(b.t, b.decide("A", verify.DecideDrop))
		b.pass(time.Second)
		if r := b.row("A"); r.State != ledger.Parked {
			b.t.Errorf("the update that is still missing is not shown: %s(%s)", r.State, r.Reason)
		}
		b.accept(b.versioned(flexi.Create, "2", invoice("A")))
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		b.pass(time.Minute)
		if got := b.field("A", "varSym"); got != "33" {
			b.t.Errorf("varSym %s: %s", got, pretty(b.row("A")))
		}
	})
}

// TestAcceptanceRightAfterAStart: every document is to be looked at, also if the ledger has not been read yet.
func TestAcceptanceRightAfterAStart(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		snap := b.fake.Snapshot()
		b.created("A", invoice("A"))
		b.pass(10 * time.Minute)
		b.halt()
		b.fake.Restore(snap)
		b.start()
		b.acceptCompany("restored")
		if r := b.parkedFor("A", time.Hour); r.Cause != string(flexi.Gone) {
			b.t.Errorf("it is %s(%s), cause %q", r.State, r.Reason, r.Cause)
		}
	})
}

// TestAcceptanceGoesOnPastOneRow: one row that can never be stored again does not keep a person from accepting the company.
func TestAcceptanceGoesOnPastOneRow(t *testing.T) {
	virtual(t, func(b *bench) {
		h := &hook{}
		h.under(b)
		h.settle = func(ctx context.Context, rows []*ledger.Row) []error {
			if rows[0].Key == "B" && rows[0].LookOnce {
				return []error{fmt.Errorf("storing: %w", &ledger.TooLargeError{Key: "B"})}
			}
			return h.Ledger.Settle(ctx, rows)
		}
		b.start()
		b.created("X", invoice("X"))
		snap := b.fake.Snapshot()
		for _, key := range []string{"A", "B", "C"} {
			b.created(key, invoice(key))
		}
		b.pass(10 * time.Minute)
		b.fake.Restore(snap)
		b.acceptCompany("restored")
		for _, key := range []string{"A", "C"} {
			if r := b.parkedFor(key, time.Hour); r.Cause != string(flexi.Gone) {
				b.t.Errorf("%s is %s(%s), cause %q", key, r.State, r.Reason, r.Cause)
			}
		}
	})
}

// TestLooksIntoAnotherCompany: while another company is behind the address, its books say nothing about documents of ours.
// Nothing is parked or confirmed by them, and all is well once the address is corrected.
func TestLooksIntoAnotherCompany(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		other := b.fake.Snapshot()
		b.created("D", invoice("D"))
		b.pass(10 * time.Minute)
		b.fake.Script(flexitest.Fault{Kind: flexitest.ResetAnswer})
		b.push(flexi.Delete, "D", doc{})
		b.inMaybe("D")
		b.created("A", invoice("A"))
		ours := b.fake.Snapshot()
		b.fake.RestoreUnseen(other)
		b.eng.StopFor("company", "another company", "accept it")
		if err := b.decide("A", verify.DecideLook); err == nil {
			b.t.Error("a person was told what the other company shows")
		}
		b.pass(90 * time.Minute)
		if r := b.row("A"); r.State != ledger.Confirmed {
			b.t.Errorf("A is %s(%s)", r.State, r.Reason)
		}
		if r := b.row("D"); r.State != ledger.Maybe {
			b.t.Errorf("D is %s(%s)", r.State, r.Reason)
		}
		b.fake.RestoreUnseen(ours)
		b.eng.EndStop("company")
		b.until(time.Hour, "deleted", func() bool { return b.row("D").State == ledger.Confirmed })
		b.wantRecords("D", 0)
		b.pass(time.Hour)
		if r := b.row("A"); r.State != ledger.Confirmed {
			b.t.Errorf("A is %s(%s)", r.State, r.Reason)
		}
	})
}

// TestAcceptedByAFastClock: the company was accepted while the clock was ahead. What is confirmed afterwards counts all the
// same: nobody else takes its record.
func TestAcceptedByAFastClock(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.setClock(48 * time.Hour)
		b.acceptCompany("restored")
		b.setClock(0)
		b.pass(10 * time.Minute)
		id := b.typed(invoice("A"))
		b.push(flexi.Create, "A", invoice("A"))
		b.becomes("A", time.Minute, ledger.Confirmed, ledger.Adopted)
		b.fake.Edit("faktura-vydana", id, map[string]any{"id": []string{fmt.Sprint(id), "ext:FLEXID:B"}})
		writes := b.writes()
		b.push(flexi.Create, "B", invoice("B"))
		b.becomes("B", time.Minute, ledger.Parked, ledger.Duplicate)
		b.wantWrites(writes)
	})
}

// TestConfirmedByAFastClock: a document was confirmed while the clock was ahead, then the ERP was set back and that was
// accepted. Its id is not taken for one that was given since.
func TestConfirmedByAFastClock(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		snap := b.fake.Snapshot()
		b.setClock(48 * time.Hour)
		b.created("A", invoice("A"))
		b.created("B", invoice("B"))
		b.setClock(0)
		b.pass(10 * time.Minute)
		b.fake.RestoreUnseen(snap)
		b.acceptCompany("restored")
		b.parkedFor("A", time.Hour)
		b.halt()
		b.start()
		b.push(flexi.Create, "N", invoice("N"))
		b.becomes("N", 10*time.Minute, ledger.Confirmed, "")
		b.pass(time.Minute)
		if b.heldFor("restored") {
			b.t.Errorf("held again: %+v", b.eng.Status().Stops)
		}
	})
}

// TestNewCompanyAtTwo: the company is accepted as a new one at one replica. What the other takes in right then is made too.
func TestNewCompanyAtTwo(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Second, 4 * time.Second, 10 * time.Second} {
		t.Run(fmt.Sprint(pause), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				set := b.set
				set.Instance = "i2"
				two, stop := b.engine(set, nil)
				defer func() { _ = stop() }()
				<-two.Ready()
				empty := b.fake.Snapshot()
				for i := range 6 {
					b.created(fmt.Sprint("A", i), invoice(fmt.Sprint("A", i)))
				}
				b.pass(10 * time.Minute)
				b.fake.Restore(empty)
				b.eng.StopFor("company", "another company", "accept it")
				b.pass(20 * time.Second)
				b.acceptCompany("new")
				b.pass(pause)
				for i := range 6 {
					eng := b.eng
					if i%2 == 0 {
						eng = two
					}
					_, err := eng.Accept(b.t.Context(), b.event(flexi.Upsert, fmt.Sprint("A", i), invoice(fmt.Sprint("A", i))))
					must(b.t, err)
				}
				b.pass(30 * time.Minute)
				for i := range 6 {
					b.wantRecords(fmt.Sprint("A", i), 1)
					if r := b.row(fmt.Sprint("A", i)); r.State != ledger.Confirmed {
						b.t.Errorf("A%d is %s(%s)", i, r.State, r.Reason)
					}
				}
			})
		})
	}
}

// TestPayablesOverNewYear: a supplier's number of last year is typed by hand; this year's comes as a moment that is New Year in
// Prague and still December in UTC, and its answer is lost. One new record, nothing of last year's is touched.
func TestPayablesOverNewYear(t *testing.T) {
	for _, noIDs := range []bool{false, true} {
		for _, fault := range []flexitest.FaultKind{flexitest.ResetAnswer, flexitest.ResetAfterCommit} {
			t.Run(fmt.Sprint(noIDs, fault), func(t *testing.T) {
				virtual(t, func(b *bench) {
					b.set.Zone = prague(t)
					b.fake.DropExternalIDs(noIDs)
					b.start()
					b.fake.Type("adresar", map[string]any{"kod": "D", "nazev": "Dodavatel"})
					b.typeReceived("7", "2025-02-03", "9", "100")
					b.accept(b.event(flexi.Create, "first", received("6", "code:D")))
					b.pass(10 * time.Minute)
					b.fake.Script(flexitest.Fault{Kind: fault})
					b.accept(b.event(flexi.Create, "P", received("7", "code:D", "datVyst", "2025-12-31T23:30:00Z")))
					b.pass(3 * time.Hour)
					n := 0
					for _, r := range b.fake.Records("faktura-prijata") {
						if fmt.Sprint(r.Fields["cisDosle"]) == "7" {
							n++
							b.t.Log(r.Fields["datVyst"], r.ExternalIDs)
						}
					}
					r := b.rowOf("faktura-prijata", "P")
					b.t.Log(r.State, r.Reason, r.Date, r.Numbers, r.Work.Story.Problem)
					if want := 2; n != want && r.State == ledger.Confirmed || n > want {
						b.t.Errorf("%d records", n)
					}
				})
			})
		}
	}
}
