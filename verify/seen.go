package verify

import (
	"fmt"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// A decision is about what a person saw. Of a record that carries our external id that is the document, whatever it says by
// now. One that only has the number, or stands where ours stood, may have become somebody else's since: after a restore of
// Flexi number and id are given again. So a decision about such a record holds for the record as the last look showed it.

// shownAs is a digest of a record as it stands. Its fields are read with every look, whatever the event in hand says.
func (e *Engine) shownAs(t *task, r flexi.Record) string {
	return r.ID() + "." + e.picture(t, append(identityFields(t), "storno"), r)[:16] + "." + r.Text("lastUpdate")
}

// unproved is the one record of a look that may be the document, though nothing proves it; nil if there is none.
func (s matches) unproved() flexi.Record {
	if len(s.mine) > 0 || len(s.others) != 1 {
		return nil
	}
	return s.others[0]
}

// asSeen refuses a decision about a record that nothing proves to be the document, where the last look before showed another
// one, or this one otherwise. A document that never was in Flexi is excepted: there a person says what Flexi has for it.
func (e *Engine) asSeen(t *task, s matches) error {
	r := s.unproved()
	if r == nil || t.row.Last == nil {
		return nil
	}
	if l := lastLook(t.row); l != nil && l.Shown == e.shownAs(t, r) {
		return nil
	}
	what := "is not as our events left this document"
	if t.row.Marked {
		what = "does not carry the external id that this document had"
	}
	return &DecisionError{Changed: true, Text: fmt.Sprintf(
		"record %s has the number, but %s, and the last look did not show it so: `flexid maybe look`, see what it is (flexid docs show), then decide again", r.ID(), what)}
}

// bind lets what a person allowed to pass hold for the record that was there when he decided.
func (e *Engine) bind(t *task, s matches) {
	if r := s.unproved(); r != nil && t.row.Work.Pass {
		t.row.Work.PassFor = e.shownAs(t, r)
	}
}

// stillBound takes back what a person allowed to pass, where the record is another one by now.
func (e *Engine) stillBound(t *task, s matches) {
	w, r := t.row.Work, s.unproved()
	if r != nil && w.PassFor != "" && w.PassFor != e.shownAs(t, r) {
		w.Pass, w.PassFor = false, ""
	}
}

// sameBooks refuses what rests on a look while the books behind the address may not be those that the ledger knows.
func (e *Engine) sameBooks() error {
	if !e.admission.otherBooks() {
		return nil
	}
	return &DecisionError{Retry: true, Text: "Flexi was restored from a backup, or is another company, and nobody has accepted that yet: " +
		"`flexid status` says which; decide after `flexid company accept`"}
}

// refresh shows the person who looks what Flexi shows by now, where it parked the document.
func refresh(row *ledger.Row, p ledger.Problem) {
	if was := row.Work.Story.Problem; row.State == ledger.Parked && was != nil && p.Text != "" {
		p.Whole = p.Whole || was.Whole
		row.Work.Story.Problem, row.Cause = &p, p.Cause
	}
}
