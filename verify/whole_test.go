package verify_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

// setBack lets a document come about, sets the ERP back to where it was after the first `kept` steps, and has a person accept
// that. The document is parked then.
func (b *bench) setBack(kept int, steps ...func(b *bench)) {
	b.t.Helper()
	b.start()
	b.created("X", invoice("X"))
	snap := b.fake.Snapshot()
	for i, step := range steps {
		step(b)
		b.pass(10 * time.Minute)
		if i+1 == kept {
			snap = b.fake.Snapshot()
		}
	}
	b.fake.Restore(snap)
	b.acceptCompany("restored")
	b.parkedFor("A", time.Hour)
}

func (b *bench) wantFields(want map[string]string) {
	b.t.Helper()
	for name, text := range want {
		if got := b.field("A", name); got != text {
			b.t.Errorf("%s is %q, want %q", name, got, text)
		}
	}
}

func creates(more ...any) func(b *bench) {
	return func(b *bench) { b.push(flexi.Create, "A", invoice("A", more...)) }
}

func updates(field, text string) func(b *bench) {
	return func(b *bench) { b.push(flexi.Update, "A", doc{field: text}) }
}

// twice hands in one update under one event id two times.
func twice(field, text string) func(b *bench) {
	return func(b *bench) {
		for range 2 {
			b.accept(b.given("e1", "A", flexi.Update, doc{field: text}))
			b.pass(10 * time.Minute)
		}
	}
}

// lateVersions hands in two updates, of which the second one is outdated.
func lateVersions(b *bench) {
	for _, v := range []struct{ version, field, text string }{{"3", "varSym", "5"}, {"2", "popis", "Zastaralý"}} {
		ev := b.event(flexi.Update, "A", doc{v.field: v.text})
		ev.Version = v.version
		b.accept(ev)
		b.pass(10 * time.Minute)
	}
}

// dropped hands in an update that Flexi refuses, and has a person give it up.
func droppedUpdate(b *bench) {
	b.push(flexi.Update, "A", doc{"firma": "code:NENI", "poznam": "zahozeno"})
	b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
	must(b.t, b.decide("A", verify.DecideDrop))
}

// TestResendOfAllThatARestoreLost: whatever the document's last event was, a person's resend puts what the document should be:
// what all events that took effect left. It is asked for with the record set back, and with the record gone.
func TestResendOfAllThatARestoreLost(t *testing.T) {
	lost := map[string]string{"popis": "Oprava", "varSym": "5"}
	pick := testenv.OneOf(t, 3)
	for _, c := range []struct {
		name  string
		steps []func(b *bench)
		want  map[string]string
	}{
		{"two updates", []func(b *bench){creates(), updates("popis", "Oprava"), updates("varSym", "5")}, lost},
		{"a repeated event after them", []func(b *bench){creates(), updates("popis", "Oprava"), twice("varSym", "5")}, lost},
		{"an outdated event after them", []func(b *bench){creates(), lateVersions}, map[string]string{"popis": "Služby", "varSym": "5"}},
		{"a dropped event after them", []func(b *bench){creates(), updates("popis", "Oprava"), updates("varSym", "5"), droppedUpdate},
			map[string]string{"popis": "Oprava", "varSym": "5", "poznam": "<nil>"}},
		{"a partial upsert after them", []func(b *bench){creates(), updates("popis", "Oprava"), func(b *bench) {
			b.push(flexi.Upsert, "A", doc{"kod": "A", "varSym": "5"})
		}}, lost},
	} {
		for _, gone := range []bool{false, true} {
			if !pick.Take() {
				continue
			}
			name := c.name + ", the record set back"
			kept := 1
			if gone {
				name, kept = c.name+", the record gone", 0
			}
			t.Run(name, func(t *testing.T) {
				virtual(t, func(b *bench) {
					b.setBack(kept, c.steps...)
					before := b.writes()
					must(b.t, b.decide("A", verify.DecideResend))
					b.until(time.Hour, "confirmed", func() bool { return b.row("A").State == ledger.Confirmed })
					b.wantRecords("A", 1)
					b.wantFields(c.want)
					if n := b.writes() - before; n != 1 {
						b.t.Errorf("%d writes", n)
					}
					b.pass(time.Hour)
					if r := b.row("A"); r.State != ledger.Confirmed {
						b.t.Errorf("an hour later it is %s(%s): %+v", r.State, r.Reason, r.Work.Story.Problem)
					}
					// What it was left as is known again: the next change is no conflict, and nothing of it is asked for twice.
					b.push(flexi.Update, "A", doc{"popis": "Další"})
					if r := b.becomes("A", time.Hour, ledger.Confirmed, ""); len(r.Base) > 4 {
						b.t.Errorf("base %v", r.Base)
					}
				})
			})
		}
	}
}

// TestResendBesideAnEventThatWaits: an event came while the writes stood still after the restore. The look that the acceptance
// owes parks the document; a resend puts what was lost together with that event, in the order of the events.
func TestResendBesideAnEventThatWaits(t *testing.T) {
	for _, c := range []struct {
		name    string
		kept    int
		version string
		varSym  string
		ends    ledger.Reason
	}{
		{"set back", 1, "", "7", ""},
		{"gone", 0, "", "7", ""},
		{"set back, the event outdated", 1, "2", "5", ""},
		{"gone, the event outdated", 0, "2", "5", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.created("X", invoice("X"))
				snap := b.fake.Snapshot()
				for i, body := range []doc{invoice("A"), {"varSym": "5"}, {"popis": "Oprava"}} {
					ev := b.event(flexi.Upsert, "A", body)
					if c.version != "" {
						ev.Version = "5"
					}
					b.accept(ev)
					b.pass(10 * time.Minute)
					if i+1 == c.kept {
						snap = b.fake.Snapshot()
					}
				}
				b.fake.Restore(snap)
				b.push(flexi.Create, "Y", invoice("Y")) // and so the restore is noticed
				b.until(time.Minute, "held", func() bool { return b.heldFor("restored") })
				ev := b.event(flexi.Update, "A", doc{"varSym": "7"})
				ev.Version = c.version
				b.accept(ev)
				b.pass(time.Minute)
				b.acceptCompany("restored")
				b.parkedFor("A", time.Hour)
				must(b.t, b.decide("A", verify.DecideResend))
				b.until(time.Hour, "confirmed", func() bool { return b.row("A").State == ledger.Confirmed })
				b.pass(time.Hour)
				b.wantRecords("A", 1)
				b.wantFields(map[string]string{"popis": "Oprava", "varSym": c.varSym})
				if r := b.row("A"); r.State != ledger.Confirmed {
					b.t.Errorf("it is %s(%s): %+v", r.State, r.Reason, r.Work.Story.Problem)
				}
			})
		})
	}
}

// TestResendKeepsWhatWasRefused: beside what a restore lost, an event that Flexi refused stays where a person sees it.
func TestResendKeepsWhatWasRefused(t *testing.T) {
	for kept := range 2 {
		virtual(t, func(b *bench) {
			b.fake.Type("adresar", map[string]any{"kod": "PARTNER9", "nazev": "Partner"})
			b.setBack(kept, creates(), func(b *bench) {
				b.push(flexi.Update, "A", doc{"varSym": "5", "firma": "code:PARTNER9"})
			}, func(b *bench) {
				b.push(flexi.Update, "A", doc{"varSym": "6", "firma": "code:NENI"})
				b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			})
			b.until(time.Hour, "parked by the look", func() bool { return b.row("A").Reason == ledger.Conflict })
			must(b.t, b.decide("A", verify.DecideResend))
			b.until(time.Hour, "refused as before", func() bool { return b.row("A").Reason == ledger.Rejected })
			b.wantFields(map[string]string{"varSym": "5"})
			b.fake.Type("adresar", map[string]any{"kod": "NENI", "nazev": "Je"})
			must(b.t, b.decide("A", verify.DecideResend))
			b.becomes("A", time.Hour, ledger.Confirmed, "")
			b.wantFields(map[string]string{"varSym": "6"})
			b.wantRecords("A", 1)
		})
	}
}

// TestResendAfterItWasRefused: the restore took the partner along, so that Flexi refuses the document; once the partner is there
// a second resend still knows all of it, also where an event came in between that found nothing to change.
func TestResendAfterItWasRefused(t *testing.T) {
	for _, between := range []string{"", "nic"} {
		virtual(t, func(b *bench) {
			b.setBack(0, func(b *bench) {
				b.fake.Type("adresar", map[string]any{"kod": "PARTNER9", "nazev": "Partner"})
				b.push(flexi.Create, "A", invoice("A", "firma", "code:PARTNER9"))
			}, updates("varSym", "5"), updates("popis", "Oprava"))
			must(b.t, b.decide("A", verify.DecideResend))
			b.becomes("A", time.Hour, ledger.Parked, ledger.Rejected)
			want := map[string]string{"varSym": "5", "popis": "Oprava"}
			if between != "" {
				b.push(flexi.Update, "A", doc{"poznam": between})
				b.becomes("A", time.Hour, ledger.Parked, ledger.Rejected)
				want["poznam"] = between
			}
			b.fake.Type("adresar", map[string]any{"kod": "PARTNER9", "nazev": "Partner"})
			must(b.t, b.decide("A", verify.DecideResend))
			b.until(time.Hour, "confirmed", func() bool { return b.row("A").State == ledger.Confirmed })
			b.wantRecords("A", 1)
			b.wantFields(want)
		})
	}
}

// TestResendOfTheWholeInDoubt: whatever happens to the request, and to the process while it is under way, the document is there
// once and as all its events left it.
func TestResendOfTheWholeInDoubt(t *testing.T) {
	for _, fault := range []flexitest.Fault{{Kind: flexitest.ResetAnswer}, {Kind: flexitest.ResetAfterCommit}, {Kind: flexitest.CommitThenStatus, Status: 500}} {
		for kept := range 2 {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, kept %d, restart %v", fault.Kind, kept, restart), func(t *testing.T) {
					virtual(t, func(b *bench) {
						b.setBack(kept, creates(), updates("varSym", "5"), updates("popis", "Oprava"))
						b.fake.Script(fault)
						must(b.t, b.decide("A", verify.DecideResend))
						if restart {
							b.pass(time.Second)
							b.halt()
							b.start()
						}
						b.until(2*time.Hour, "confirmed", func() bool { return b.row("A").State == ledger.Confirmed })
						b.wantRecords("A", 1)
						b.wantFields(map[string]string{"popis": "Oprava", "varSym": "5"})
					})
				})
			}
		}
	}
}

// TestResendOfWhatNobodyKnowsWhole: where a resend cannot bring the document back it is refused, in words that say what does, and
// nothing is changed.
func TestResendOfWhatNobodyKnowsWhole(t *testing.T) {
	typed := func(b *bench) { b.typed(invoice("A", "poznam", "ručně")) }
	for _, c := range []struct {
		name  string
		steps []func(b *bench)
		words string
	}{
		{"only changed by us", []func(b *bench){typed, func(b *bench) { b.push(flexi.Update, "A", doc{"kod": "A", "varSym": "5"}) }}, "sent as create or upsert"},
		{"taken as a person left it", []func(b *bench){creates(), func(b *bench) {
			b.fake.Edit("faktura-vydana", atoi(b.row("A").FlexiID), map[string]any{"varSym": "77"})
			b.push(flexi.Update, "A", doc{"varSym": "5"})
			b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
			must(b.t, b.decide("A", verify.DecideConfirm))
		}}, "sent as create or upsert"},
		{"cancelled", []func(b *bench){creates(), func(b *bench) { b.push(flexi.Storno, "A", doc{}) }}, "nothing to cancel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.setBack(0, c.steps...)
				before, row := b.writes(), b.row("A")
				var refused *verify.DecisionError
				if err := b.decide("A", verify.DecideResend); !errors.As(err, &refused) || refused.Retry || !strings.Contains(err.Error(), c.words) {
					b.t.Fatalf("answered %v", err)
				}
				b.pass(time.Hour)
				if now := b.row("A"); now.State != ledger.Parked || now.Reason != row.Reason || b.writes() != before {
					b.t.Errorf("it is %s(%s), %d writes", now.State, now.Reason, b.writes()-before)
				}
				// Both ways out that the words name are open.
				must(b.t, b.decide("A", verify.DecideDrop))
				b.push(flexi.Upsert, "A", invoice("A"))
				b.becomes("A", time.Hour, ledger.Confirmed, "")
				b.wantRecords("A", 1)
			})
		})
	}
}

// TestResendOfALostStorno: a restore took the storno back, and a change before it. The record is cancelled again; what else it
// lost is not sent to a cancelled document, but said.
func TestResendOfALostStorno(t *testing.T) {
	for _, change := range []bool{false, true} {
		virtual(t, func(b *bench) {
			steps := []func(b *bench){creates()}
			if change {
				steps = append(steps, updates("varSym", "5"))
			}
			b.setBack(1, append(steps, func(b *bench) { b.push(flexi.Storno, "A", doc{}) })...)
			must(b.t, b.decide("A", verify.DecideResend))
			b.becomes("A", time.Hour, ledger.Confirmed, "")
			b.wantFields(map[string]string{"storno": "true"})
			b.pass(time.Hour)
			if r := b.row("A"); r.State == ledger.Parked != change {
				b.t.Fatalf("it is %s(%s): %+v", r.State, r.Reason, r.Work.Story.Problem)
			}
			if !change {
				return
			}
			var refused *verify.DecisionError
			before := b.writes()
			if err := b.decide("A", verify.DecideResend); !errors.As(err, &refused) || b.writes() != before {
				b.t.Fatalf("answered %v, %d writes", err, b.writes()-before)
			}
			must(b.t, b.decide("A", verify.DecideConfirm))
			b.becomes("A", time.Hour, ledger.Confirmed, ledger.Adopted)
		})
	}
}

// TestResendOfADelete: what was to be deleted is not there any more. That is no "nothing to change".
func TestResendOfADelete(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		r := b.created("A", invoice("A"))
		b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"varSym": "77"})
		b.push(flexi.Delete, "A", doc{})
		b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
		b.fake.Remove("faktura-vydana", atoi(r.FlexiID))
		var refused *verify.DecisionError
		if err := b.decide("A", verify.DecideResend); !errors.As(err, &refused) || !strings.Contains(err.Error(), "confirm the delete") {
			b.t.Fatalf("answered %v", err)
		}
		must(b.t, b.decide("A", verify.DecideConfirm))
		b.becomes("A", time.Minute, ledger.Confirmed, "")
	})
}
