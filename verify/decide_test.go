package verify_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

func (b *bench) decide(key string, what verify.What) error {
	_, err := b.eng.Decide(b.t.Context(), verify.Address{Evidence: "faktura-vydana", Key: key},
		verify.Decision{What: what, By: "jana", Why: "zkontrolováno ve Flexi"})
	return err
}

// unknown leads a create to parked(unknown): no fence, and the answer was lost.
func (b *bench) unknown(key string) {
	b.t.Helper()
	b.fake.DropExternalIDs(true)
	b.created("X", invoice("X"))
	b.first(key, flexitest.Fault{Kind: flexitest.ResetAnswer})
	b.push(flexi.Create, key, invoice(key))
	b.becomes(key, 2*time.Hour, ledger.Parked, ledger.Unknown)
	b.fake.DropExternalIDs(false)
}

func TestDecisions(t *testing.T) {
	cases := []struct {
		name    string
		do      func(b *bench) error
		refused bool
		state   ledger.State
		reason  ledger.Reason
		records int
	}{
		{"resend what is not there", func(b *bench) error {
			b.unknown("A")
			return b.decide("A", verify.DecideResend)
		}, false, ledger.Confirmed, "", 1},
		{"drop what is not there", func(b *bench) error {
			b.unknown("A")
			return b.decide("A", verify.DecideDrop)
		}, false, ledger.Dropped, "", 0},
		{"confirm what is not there is refused", func(b *bench) error {
			b.unknown("A")
			return b.decide("A", verify.DecideConfirm)
		}, true, ledger.Parked, ledger.Unknown, 0},
		{"confirm what a person typed meanwhile", func(b *bench) error {
			b.unknown("A")
			b.fake.Type("faktura-vydana", map[string]any(invoice("A", "varSym", "5")))
			return b.decide("A", verify.DecideConfirm)
		}, false, ledger.Confirmed, ledger.Adopted, 1},
		{"a decision within the settle time is refused", func(b *bench) error {
			b.created("X", invoice("X"))
			b.first("A", flexitest.Fault{Kind: flexitest.ResetAnswer})
			b.push(flexi.Create, "A", invoice("A"))
			b.until(time.Minute, "maybe", func() bool { return b.row("A").State == ledger.Maybe })
			return b.decide("A", verify.DecideDrop)
		}, true, ledger.Confirmed, "", 1},
		{"a conflict sent over what a person changed", func(b *bench) error {
			r := b.created("A", invoice("A"))
			b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"popis": "ručně"})
			b.push(flexi.Update, "A", doc{"popis": "Oprava"})
			b.until(time.Minute, "parked", func() bool { return b.row("A").Reason == ledger.Conflict })
			return b.decide("A", verify.DecideResend)
		}, false, ledger.Confirmed, "", 1},
		{"a conflict left as the person made it", func(b *bench) error {
			r := b.created("A", invoice("A"))
			b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"popis": "ručně"})
			b.push(flexi.Update, "A", doc{"popis": "Oprava"})
			b.until(time.Minute, "parked", func() bool { return b.row("A").Reason == ledger.Conflict })
			return b.decide("A", verify.DecideDrop)
		}, false, ledger.Dropped, "", 1},
		{"a rejected one again, after the partner was made", func(b *bench) error {
			b.push(flexi.Create, "A", invoice("A", "firma", "code:NOVAK99"))
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			b.fake.Type("adresar", map[string]any{"kod": "NOVAK99", "nazev": "Novák"})
			return b.decide("A", verify.DecideResend)
		}, false, ledger.Confirmed, "", 1},
		{"a rejected one dropped", func(b *bench) error {
			b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			return b.decide("A", verify.DecideDrop)
		}, false, ledger.Dropped, "", 0},
		{"a rejected one noted", func(b *bench) error {
			b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			return b.decide("A", verify.DecideNote)
		}, false, ledger.Parked, ledger.Rejected, 0},
		{"a rejected one cannot be confirmed", func(b *bench) error {
			b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			return b.decide("A", verify.DecideConfirm)
		}, true, ledger.Parked, ledger.Rejected, 0},
		{"a rejected update dropped, its record stays", func(b *bench) error {
			b.created("A", invoice("A"))
			b.push(flexi.Update, "A", doc{"firma": "code:NENI"})
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			return b.decide("A", verify.DecideDrop)
		}, false, ledger.Dropped, "", 1},
		{"an unreadable one dropped", func(b *bench) error {
			parkings()[ledger.Unreadable](b)
			b.becomes("A", time.Minute, ledger.Parked, ledger.Unreadable)
			return b.decide("A", verify.DecideDrop)
		}, false, ledger.Dropped, "", 0},
		{"what is no document cannot be sent again", func(b *bench) error {
			parkings()[ledger.Unreadable](b)
			b.becomes("A", time.Minute, ledger.Parked, ledger.Unreadable)
			return b.decide("A", verify.DecideResend)
		}, true, ledger.Parked, ledger.Unreadable, 0},
		{"an id used twice, dropped", func(b *bench) error {
			parkings()[ledger.IDReused](b)
			b.becomes("A", time.Minute, ledger.Parked, ledger.IDReused)
			return b.decide("A", verify.DecideDrop)
		}, false, ledger.Dropped, "", 0},
		{"an id used twice, meant as another event", func(b *bench) error {
			parkings()[ledger.IDReused](b)
			b.becomes("A", time.Minute, ledger.Parked, ledger.IDReused)
			return b.decide("A", verify.DecideResend)
		}, false, ledger.Confirmed, "", 1},
		{"a dropped one is over", func(b *bench) error {
			b.push(flexi.Create, "A", invoice("A", "firma", "code:NENI"))
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			must(b.t, b.decide("A", verify.DecideDrop))
			return b.decide("A", verify.DecideDrop)
		}, true, ledger.Dropped, "", 0},
		{"nothing to decide on a confirmed one", func(b *bench) error {
			b.created("A", invoice("A"))
			return b.decide("A", verify.DecideResend)
		}, true, ledger.Confirmed, "", 1},
		{"a note changes nothing", func(b *bench) error {
			b.created("A", invoice("A"))
			return b.decide("A", verify.DecideNote)
		}, false, ledger.Confirmed, "", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				err := c.do(b)
				var refused *verify.DecisionError
				if errors.As(err, &refused) != c.refused || err != nil && !c.refused {
					b.t.Fatalf("the decision was answered %v", err)
				}
				b.until(2*time.Hour, fmt.Sprintf("%s(%s)", c.state, c.reason), func() bool {
					r := b.row("A")
					return r.State == c.state && r.Reason == c.reason && r.Work.Final == (c.reason != ledger.Unknown)
				})
				b.wantRecords("A", c.records)
				if !c.refused {
					ds := b.row("A").Work.Story.Decisions
					if len(ds) == 0 || ds[len(ds)-1].By != "jana" || ds[len(ds)-1].Why == "" {
						b.t.Fatalf("the history says %+v", ds)
					}
				}
			})
		})
	}
}

// TestDropIsOfferedAsItIsCarriedOut: whatever a document went through, a decision that is offered is carried out, and a drop
// that is not offered is refused, as long as Flexi shows what the last look showed.
func TestDropIsOfferedAsItIsCarriedOut(t *testing.T) {
	cases := map[string]func(b *bench){
		"not there":              func(b *bench) { b.unknown("A") },
		"there under our id":     func(b *bench) { b.unknown("A"); b.typed(invoice("A", "id", "ext:FLEXID:A", "varSym", "9")) },
		"there under the number": func(b *bench) { b.unknown("A"); b.typed(invoice("A", "varSym", "9")) },
		"confirmed":              func(b *bench) { b.created("A", invoice("A")) },
		"a second create":        parkings()[ledger.Conflict],
		"another key's number":   parkings()[ledger.Duplicate],
		"rejected":               parkings()[ledger.Rejected],
		"an id used twice":       parkings()[ledger.IDReused],
		"within the settle time": func(b *bench) {
			b.created("X", invoice("X"))
			b.first("A", flexitest.Fault{Kind: flexitest.ResetAnswer})
			b.push(flexi.Create, "A", invoice("A"))
			b.inMaybe("A")
		},
		"stopped before it went": func(b *bench) {
			must(b.t, b.eng.StopWrites(b.t.Context(), "", "j", "w"))
			b.push(flexi.Create, "A", invoice("A"))
		},
		"a change that is not his": func(b *bench) {
			r := b.created("A", invoice("A"))
			b.fake.Edit("faktura-vydana", atoi(r.FlexiID), map[string]any{"popis": "ručně"})
			b.push(flexi.Update, "A", doc{"popis": "Oprava"})
		},
	}
	for name, lead := range cases {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				<-b.eng.Ready()
				lead(b)
				b.pass(10 * time.Second)
				if w := b.row("A").Work; w != nil && !w.Final && b.row("A").State == ledger.Parked {
					must(b.t, b.decide("A", verify.DecideLook))
				}
				row := b.row("A")
				offered := slices.Contains(b.eng.Choices(&row), verify.DecideDrop)
				var refused *verify.DecisionError
				switch err := b.decide("A", verify.DecideDrop); {
				case err != nil && !errors.As(err, &refused):
					b.t.Fatal(err)
				case offered != (err == nil):
					b.t.Fatalf("offered %v, answered %v\n%s", offered, err, pretty(row))
				}
			})
		})
	}
}

// TestDecisionOfAnOlderSight: a decision on what a person saw is not carried out on what the row became since.
func TestDecisionOfAnOlderSight(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		parkings()[ledger.Rejected](b)
		row := b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
		b.pass(time.Minute)
		row = b.row("A")
		must(b.t, b.decide("A", verify.DecideNote))
		_, err := b.eng.Decide(b.t.Context(), verify.Address{Evidence: "faktura-vydana", Key: "A"},
			verify.Decision{What: verify.DecideDrop, By: "jana", Why: "seznam", Revision: row.Revision})
		var refused *verify.DecisionError
		if !errors.As(err, &refused) || !refused.Changed || b.row("A").State != ledger.Parked {
			b.t.Fatalf("answered %v, it is %s", err, b.row("A").State)
		}
		_, err = b.eng.Decide(b.t.Context(), verify.Address{Evidence: "faktura-vydana", Key: "A"},
			verify.Decision{What: verify.DecideDrop, By: "jana", Why: "seznam", Revision: b.row("A").Revision})
		if must(b.t, err); b.row("A").State != ledger.Dropped {
			b.t.Fatalf("it is %s", b.row("A").State)
		}
	})
}

// TestDecisionOfAnOlderEvent: the sender sent another event after what a person saw. The decision is not carried out for that one.
func TestDecisionOfAnOlderEvent(t *testing.T) {
	for _, noIDs := range []bool{false, true} {
		virtual(t, func(b *bench) {
			b.fake.DropExternalIDs(noIDs)
			b.start()
			b.push(flexi.Create, "A", invoice("A", "firma", "code:PARTNER9"))
			seen := b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			b.pass(time.Minute)
			seen = b.row("A")
			b.push(flexi.Create, "A", invoice("A", "firma", "code:PARTNER9", "popis", "jiné"))
			b.becomes("A", time.Minute, ledger.Parked, ledger.Rejected)
			b.fake.Type("adresar", map[string]any{"kod": "PARTNER9", "nazev": "Partner"})
			_, err := b.eng.Decide(b.t.Context(), verify.Address{Evidence: "faktura-vydana", Key: "A"},
				verify.Decision{What: verify.DecideResend, By: "jana", Why: "partner je", Revision: seen.Revision})
			var refused *verify.DecisionError
			if !errors.As(err, &refused) || !refused.Changed {
				b.t.Fatalf("answered %v", err)
			}
			b.pass(time.Minute)
			b.wantRecords("A", 0)
		})
	}
}

func TestDecideUnknownDocument(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		var nf *verify.NotFoundError
		if err := b.decide("NENI", verify.DecideDrop); !errors.As(err, &nf) {
			b.t.Fatalf("got %v", err)
		}
	})
}
