package verify_test

import (
	"slices"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

func (b *bench) typed(body doc) int64 { return b.fake.Type("faktura-vydana", map[string]any(body)) }

func (b *bench) hide(kod string) {
	if kod == "" {
		b.fake.HideWhen(nil)
		return
	}
	b.fake.HideWhen(func(r flexitest.Record) bool { return r.Fields["kod"] == kod })
}

func (b *bench) nth(n int, key string, f flexitest.Fault) {
	b.fake.OnWrite(n, func(r flexitest.Request) bool { return r.Has(key) }, f)
}

func (b *bench) inMaybe(key string) {
	b.t.Helper()
	b.until(time.Minute, "maybe", func() bool { return b.row(key).State == ledger.Maybe })
}

// TestReadBackSurvivesARepeat: an event that reads nothing must not take away the read-back that is due.
func TestReadBackSurvivesARepeat(t *testing.T) {
	virtual(t, func(b *bench) {
		b.fake.ReadOnlyColumns("faktura-vydana", "datSplat")
		b.start()
		b.created("X", invoice("X"))
		b.created("A", invoice("A", "datSplat", "2026-12-24"))
		b.push(flexi.Create, "A", invoice("A", "datSplat", "2026-12-24"))
		b.becomes("A", time.Minute, ledger.Confirmed, ledger.Repeated)
		b.becomes("A", 6*time.Minute, ledger.Parked, ledger.Conflict)
	})
}

// TestPersonsResendIsOne: a decision permits one more send, not as many as the ERP fails.
func TestPersonsResendIsOne(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.unknown("A")
		for n := 1; n <= 5; n++ {
			b.nth(n, "ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
		}
		must(b.t, b.decide("A", verify.DecideResend))
		b.until(time.Minute, "sent again", func() bool { return len(b.fake.Writes("ext:FLEXID:A")) == 2 })
		b.becomes("A", 3*time.Hour, ledger.Parked, ledger.Unknown)
		b.pass(6 * time.Hour)
		if n := len(b.fake.Writes("ext:FLEXID:A")); n != 2 {
			b.t.Fatalf("%d writes after one decision", n)
		}
	})
}

// TestExistsIsGivenItsSchedule: "exists" with an earlier attempt open, and a record that looks do not show yet: the whole
// schedule passes before a person is asked.
func TestExistsIsGivenItsSchedule(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
		b.push(flexi.Create, "A", invoice("A"))
		b.inMaybe("A")
		b.hide("A")
		b.typed(invoice("A", "id", "ext:FLEXID:A"))
		b.until(time.Hour, "sent again", func() bool { return len(b.fake.Writes("ext:FLEXID:A")) == 2 })
		b.pass(time.Minute)
		if r := b.row("A"); r.State != ledger.Maybe {
			b.t.Fatalf("a minute after \"exists\" it is %s(%s)", r.State, r.Reason)
		}
		b.hide("")
		b.becomes("A", 20*time.Minute, ledger.Confirmed, "")
		b.wantRecords("A", 1)
	})
}

// TestResendAfterExists: the record that Flexi spoke of is gone, the person's resend goes out after three looks.
func TestResendAfterExists(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.hide("A")
		id := b.typed(invoice("A", "id", "ext:FLEXID:A"))
		b.push(flexi.Create, "A", invoice("A"))
		took := b.until(time.Hour, "parked", func() bool { return b.row("A").Reason == ledger.Unknown })
		if took < 15*time.Minute {
			b.t.Fatalf("parked after %s", took)
		}
		b.fake.Remove("faktura-vydana", id)
		b.hide("")
		before := b.fake.Count("read")
		must(b.t, b.decide("A", verify.DecideResend))
		b.becomes("A", 10*time.Minute, ledger.Confirmed, "")
		if n := b.fake.Count("read") - before; n > 20 {
			b.t.Fatalf("%d reads for one resend", n)
		}
		b.wantRecords("A", 1)
		b.wantWrites(3)
	})
}

// TestLateCommitOfARejected: the first attempt was lost, the second one rejected; then the first takes effect. The late look
// tells a person.
func TestLateCommitOfARejected(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 30 * time.Minute})
		b.push(flexi.Create, "A", invoice("A"))
		b.inMaybe("A")
		b.fake.LockPeriod("2026-11-01", "2026-11-30")
		b.becomes("A", 20*time.Minute, ledger.Parked, ledger.Rejected)
		b.fake.UnlockPeriods()
		b.pass(15 * time.Minute)
		b.wantRecords("A", 1)
		b.becomes("A", 2*time.Hour, ledger.Parked, ledger.Duplicate)
		b.until(time.Minute, "each parking alerted once", func() bool { return slices.Equal(b.notices.alerts(), []string{"rejected", "duplicate"}) })
		b.pass(time.Hour)
		if a := b.notices.alerts(); len(a) != 2 {
			b.t.Fatalf("alerts %v", a)
		}
	})
}

// TestFlexiIDOfAnother: after a restore a Flexi id may name another document of ours; it is not ours to change.
func TestFlexiIDOfAnother(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		snap := b.fake.Snapshot()
		r := b.created("A", invoice("A"))
		b.pass(2 * time.Minute)
		b.fake.Restore(snap)
		if id := b.typed(invoice("B", "id", "ext:FLEXID:B")); id != atoi(r.FlexiID) {
			b.t.Skipf("the fake gave id %d, not %s again", id, r.FlexiID)
		}
		b.push(flexi.Update, "A", doc{"popis": "pro A"})
		b.pass(10 * time.Minute)
		if got := b.field("B", "popis"); got != "Služby" {
			b.t.Fatalf("the update of A went to record B: popis %q", got)
		}
	})
}

// TestAdoptionRefused: a refusal of the request that attaches our id says nothing about the fence.
func TestAdoption(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault flexitest.Fault
	}{
		{"refused", flexitest.Fault{Kind: flexitest.TooMany, RetryAfter: "5"}},
		{"answer lost and done later", flexitest.Fault{Kind: flexitest.LateCommit, Delay: 20 * time.Second}},
		{"answer lost and done", flexitest.Fault{Kind: flexitest.ResetAfterCommit}},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
				b.nth(2, "ext:FLEXID:A", c.fault)
				b.push(flexi.Create, "A", invoice("A"))
				b.inMaybe("A")
				b.typed(invoice("A"))
				b.becomes("A", time.Hour, ledger.Confirmed, ledger.Adopted)
				b.pass(2 * time.Hour)
				if s := b.eng.Status().Fence["faktura-vydana"]; s != "proved" {
					b.t.Fatalf("the fence is %s", s)
				}
				if n := len(b.fake.Find("faktura-vydana", "ext:FLEXID:A")); n != 1 {
					b.t.Fatalf("%d records carry our id", n)
				}
				b.wantRecords("A", 1)
			})
		})
	}
}

// TestAdoptedRecordDeleted: the record that was to be adopted is gone; a resend makes the document and does not run after
// the old id.
func TestAdoptedRecordDeleted(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
		b.push(flexi.Create, "A", invoice("A"))
		b.inMaybe("A")
		b.fake.DropExternalIDs(true)
		id := b.typed(invoice("A"))
		b.pass(5 * time.Minute)
		b.fake.Remove("faktura-vydana", id)
		b.becomes("A", time.Hour, ledger.Parked, ledger.Unknown)
		b.fake.DropExternalIDs(false)
		must(b.t, b.decide("A", verify.DecideResend))
		b.pass(30 * time.Second)
		if n := len(b.fake.Writes("ext:FLEXID:A")); n > 4 {
			b.t.Fatalf("%d writes", n)
		}
		b.becomes("A", time.Hour, ledger.Confirmed, "")
		b.wantRecords("A", 1)
	})
}

// TestDeathWhileAdopting: after a restart in the middle of an adoption a create still needs the fence.
func TestDeathWhileAdopting(t *testing.T) {
	virtual(t, func(b *bench) {
		w := &world{b: b}
		w.begin()
		x := b.created("X", invoice("X"))
		b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
		b.nth(2, "ext:FLEXID:A", flexitest.Fault{Kind: flexitest.Silence})
		b.push(flexi.Create, "A", invoice("A"))
		b.inMaybe("A")
		id := b.typed(invoice("A"))
		b.until(2*time.Minute, "adopting", func() bool { r := b.row("A"); return r.State == ledger.Sending && r.Work.Write == flexi.Attach })
		w.die()
		b.typed(invoice("JINA"))
		b.fake.Remove("faktura-vydana", id)
		b.fake.Remove("faktura-vydana", atoi(x.FlexiID)) // nothing proves the fence now
		w.begin()
		b.pass(2 * time.Hour)
		if n := len(b.fake.Writes("ext:FLEXID:A")); n != 2 {
			b.t.Fatalf("%d writes without a fence", n)
		}
		if r := b.row("A"); r.State != ledger.Maybe {
			b.t.Fatalf("it is %s(%s)", r.State, r.Reason)
		}
	})
}

// TestUnknownHealsByItself: what is parked as unknown is confirmed by the hourly look, and says how.
func TestUnknownHealsByItself(t *testing.T) {
	t.Run("typed by a person", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.set.Sends = 1
			b.start()
			b.created("X", invoice("X"))
			b.first("ext:FLEXID:A", flexitest.Fault{Kind: flexitest.ResetAnswer})
			b.push(flexi.Create, "A", invoice("A"))
			b.becomes("A", time.Hour, ledger.Parked, ledger.Unknown)
			b.typed(invoice("A"))
			b.becomes("A", 2*time.Hour, ledger.Confirmed, ledger.Adopted)
			b.pass(70 * time.Minute)
			if s := b.eng.Status().Fence["faktura-vydana"]; s != "proved" {
				b.t.Fatalf("the fence is %s because a person typed a document", s)
			}
		})
	})
	t.Run("deleted by a person", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.set.Sends = 1
			b.start()
			b.created("X", invoice("X"))
			r := b.created("A", invoice("A"))
			b.nth(2, "faktura-vydana/"+r.FlexiID, flexitest.Fault{Kind: flexitest.ResetAnswer})
			b.fake.Script(flexitest.Fault{Kind: flexitest.ResetAnswer})
			b.push(flexi.Delete, "A", doc{})
			b.becomes("A", time.Hour, ledger.Parked, ledger.Unknown)
			b.fake.Remove("faktura-vydana", atoi(r.FlexiID))
			b.becomes("A", 5*time.Hour, ledger.Confirmed, "")
		})
	})
}

// TestLateUpdateOfFreeText: an update given up takes effect after a newer one; also a free text that went back is told.
func TestLateUpdateOfFreeText(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("A", invoice("A"))
		b.fake.Script(flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 30 * time.Minute})
		b.push(flexi.Update, "A", doc{"popis": "jedna"})
		b.inMaybe("A")
		b.push(flexi.Update, "A", doc{"popis": "dvě"})
		b.becomes("A", 25*time.Minute, ledger.Confirmed, "")
		b.pass(20 * time.Minute)
		if got := b.field("A", "popis"); got != "jedna" {
			b.t.Fatalf("popis %q", got)
		}
		b.becomes("A", 2*time.Hour, ledger.Parked, ledger.Conflict)
	})
}

// TestLateLookLeavesAPersonsEdit: what a person changed is theirs, also where older updates of ours still stand.
func TestLateLookLeavesAPersonsEdit(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		r := b.created("A", invoice("A"))
		b.push(flexi.Update, "A", doc{"varSym": "22"})
		b.becomes("A", time.Minute, ledger.Confirmed, "")
		b.fake.Script(flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500})
		b.push(flexi.Update, "A", doc{"popis": "nově"})
		b.becomes("A", 25*time.Minute, ledger.Confirmed, "")
		b.pass(10 * time.Minute)
		b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"datVyst": "2026-12-01"})
		b.pass(70 * time.Minute)
		if r := b.row("A"); r.State != ledger.Confirmed {
			b.t.Fatalf("it is %s(%s): %+v", r.State, r.Reason, r.Work.Story.Problem)
		}
	})
}
