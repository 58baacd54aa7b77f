package verify_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// TestResendWithoutExternalIDs: where nothing proves the record that a restore set back, a person who has seen it puts all that
// was lost; a record that became another one since is not touched, neither by the decision nor by what waited since it was taken.
func TestResendWithoutExternalIDs(t *testing.T) {
	for _, changed := range []string{"", "before the decision", "after it"} {
		t.Run("changed "+changed, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.fake.DropExternalIDs(true)
				b.setBack(1, creates(), updates("varSym", "5"), updates("popis", "Oprava"))
				id := b.records("A")[0].ID
				replaced := func() { b.fake.Edit("faktura-vydana", id, map[string]any{"varSym": "777"}) }
				if changed == "before the decision" {
					replaced()
					var refused *verify.DecisionError
					if err := b.decide("A", verify.DecideResend); !errors.As(err, &refused) || !refused.Changed {
						b.t.Fatalf("answered %v", err)
					}
					must(b.t, b.decide("A", verify.DecideLook))
					p := b.row("A").Work.Story.Problem
					if !strings.Contains(pretty(b.row("A")), `"found": "777"`) || !p.Whole {
						b.t.Errorf("a look does not show what it found: %+v", p)
					}
				}
				must(b.t, b.eng.StopWrites(b.t.Context(), "", "jana", "uzávěrka"))
				must(b.t, b.decide("A", verify.DecideResend))
				if changed == "after it" {
					replaced()
				}
				b.pass(10 * time.Minute)
				must(b.t, b.eng.ResumeWrites(b.t.Context(), "", "jana", "po uzávěrce"))
				if changed == "after it" {
					b.parkedFor("A", time.Hour)
					b.wantFields(map[string]string{"varSym": "777", "popis": "Služby"})
					return
				}
				b.becomes("A", time.Hour, ledger.Confirmed, "")
				b.wantFields(map[string]string{"varSym": "5", "popis": "Oprava"})
			})
		})
	}
}

// TestDecisionsWaitForTheAcceptance: while nobody has accepted the books that Flexi was set back to, nothing is decided by what
// they show, also if the look for the decision is the first to notice.
func TestDecisionsWaitForTheAcceptance(t *testing.T) {
	for _, noticed := range []bool{false, true} {
		for _, what := range []verify.What{verify.DecideConfirm, verify.DecideResend, verify.DecideDrop} {
			t.Run(fmt.Sprintf("%s, noticed %v", what, noticed), func(t *testing.T) {
				virtual(t, func(b *bench) {
					b.start()
					b.created("X", invoice("X"))
					r := b.created("A", invoice("A"))
					snap := b.fake.Snapshot()
					b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"varSym": "9"})
					b.push(flexi.Update, "A", doc{"varSym": "10"})
					b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
					b.pass(10 * time.Minute)
					b.fake.Restore(snap)
					if noticed {
						b.push(flexi.Create, "Y", invoice("Y"))
						b.until(time.Minute, "held", func() bool { return b.heldFor("restored") })
					}
					var refused *verify.DecisionError
					if err := b.decide("A", what); !errors.As(err, &refused) || !strings.Contains(err.Error(), "company accept") {
						b.t.Fatalf("answered %v", err)
					}
					if r := b.row("A"); r.State != ledger.Parked {
						b.t.Errorf("it is %s(%s)", r.State, r.Reason)
					}
					b.acceptCompany("restored")
					b.pass(time.Minute)
					must(b.t, b.decide("A", verify.DecideResend))
					b.becomes("A", time.Minute, ledger.Confirmed, "")
					b.wantFields(map[string]string{"varSym": "10"})
				})
			})
		}
	}
}
