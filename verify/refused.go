package verify

import (
	"slices"
	"strings"
	"time"

	"flexid/flexi"
	"flexid/verify/compare"
	"flexid/verify/ledger"
)

// A refused event holds nothing back, so what comes after it may well take effect. Then the row looks settled, and what the
// refused one wanted is missing in Flexi: the row remembers it, shows it, and gives it its turn again where a sender's versions
// say that it only came too early. Everything here is a function of the row.

// What a row remembers of refused events is bounded, since they may be many and a row has little room: how many of them (the
// oldest go first), how many bytes the names of their fields may have, and how many characters of the reason are kept.
const (
	mostRefused = 8
	mostFields  = 300
	mostReason  = 120
)

// begun is the working state of an event that becomes current.
func begun(ev *ledger.Event, now time.Time) *ledger.Work {
	w := &ledger.Work{N: ev.N, Op: ev.Op, Begun: now, FirstTry: now, Version: ev.Version, Digest: ev.Digest}
	if names, err := compare.FieldNames(ev.Body); err == nil && ev.Body != nil && len(strings.Join(names, "")) <= mostFields {
		w.Fields = names
	}
	if ev.Story != nil && ev.State != "" { // refused before: its attempts must keep their numbers
		w.Redone, w.Story = true, *ev.Story
		w.Story.Problem = nil
		if n := len(w.Story.Attempts); n > 0 {
			w.Attempt = w.Story.Attempts[n-1].N
		}
	}
	return w
}

// refuse remembers the current event, which ended without effect.
func refuse(row *ledger.Row) {
	w := row.Work
	r := ledger.Refused{N: w.N, Op: w.Op, Version: w.Version, Digest: w.Digest, Fields: w.Fields, Unknown: w.Unknown, Reason: w.End.Reason, Cause: w.End.Cause}
	if w.Story.Problem != nil {
		r.Text = clip(w.Story.Problem.Text, mostReason)
	}
	forgive(row, w.N)
	if row.Refused = append(row.Refused, r); len(row.Refused) > mostRefused {
		row.Refused = row.Refused[1:]
	}
}

// forgive forgets that an event was refused.
func forgive(row *ledger.Row, n int) {
	row.Refused = slices.DeleteFunc(slices.Clone(row.Refused), func(r ledger.Refused) bool { return r.N == n })
}

// settleRefused goes through what was refused before, now that the current event took effect; made says that it made the
// document. What was refused may be done with it, or may have its turn now, in the order of the versions.
func settleRefused(row *ledger.Row, made bool) {
	w := row.Work
	var still, redo []ledger.Refused
	for _, r := range row.Refused {
		switch {
		case r.N == w.N || coveredBy(r, w):
		case made && r.Unknown && older(w.Version, r.Version):
			redo = append(redo, r)
		default:
			still = append(still, r)
		}
	}
	slices.SortStableFunc(redo, func(a, b ledger.Refused) int {
		switch {
		case older(a.Version, b.Version):
			return -1
		case older(b.Version, a.Version):
			return 1
		}
		return a.N - b.N
	})
	row.Refused = still
	for _, r := range redo {
		row.Redo = append(row.Redo, r.N)
	}
}

// coveredBy says whether what a refused event wanted is done with, now that a later one took effect.
func coveredBy(r ledger.Refused, w *ledger.Work) bool {
	switch {
	case older(r.Version, w.Version):
		return true // the sender himself holds it for outdated
	case older(w.Version, r.Version), w.Pass && r.N > w.N: // a person had the document put as it was before that one came
		return false
	case w.Op == flexi.Delete:
		return true
	case r.Op == flexi.Storno || r.Op == flexi.Delete:
		return r.Op == w.Op
	case r.Unknown:
		// It came before the document was made, and may be meant for after it.
		return w.Op == flexi.Update && fieldsWithin(r.Fields, w.Fields)
	case whole(r.Op) && whole(w.Op):
		return true
	}
	return w.Op != flexi.Storno && fieldsWithin(r.Fields, w.Fields)
}

// whole says that the event says the document as a whole, not a change of it.
func whole(op flexi.Op) bool { return op == flexi.Create || op == flexi.Upsert }

func fieldsWithin(some, all []string) bool {
	return some != nil && !slices.ContainsFunc(some, func(f string) bool { return !slices.Contains(all, f) })
}

// show sets what the row says once its current event is over: the next event of its queue, a refused one that is missing in
// Flexi, or what became of the current one.
func show(row *ledger.Row) {
	end := row.Work.End
	row.State, row.Reason, row.Cause = end.State, end.Reason, end.Cause
	switch {
	case row.More():
		row.State, row.Reason, row.Cause, row.Sends = ledger.Queued, ledger.Behind, "", 0
	case len(row.Refused) > 0 && end.State != ledger.Parked:
		r := row.Refused[0]
		row.State, row.Reason, row.Cause = ledger.Parked, r.Reason, r.Cause
	}
}

// droppedBefore says that a person has dropped this content, nothing else came since, and the sender does not say that it is newer.
func droppedBefore(row *ledger.Row, ev *ledger.Event) bool {
	d := row.Dropped
	if d == nil || row.Work.Pass || row.Work.Redone || d.Digest != ev.Digest || d.Op != ev.Op && !(whole(d.Op) && whole(ev.Op)) {
		return false
	}
	return ev.Version == nil || d.Version != nil && !older(d.Version, ev.Version)
}

// repeats says that the document is as this event wants it, because the last effective event wanted the same.
func repeats(row *ledger.Row, ev *ledger.Event) bool {
	last := row.Last
	return whole(ev.Op) && last != nil && last.Op != flexi.Storno && last.Digest != "" && last.Digest == ev.Digest
}

// learnVersion notes the sender's version as known, unless a newer one is.
func learnVersion(row *ledger.Row, v *ledger.Version) {
	if v != nil && !older(v, row.Known) {
		row.Known = v
	}
}

// drop remembers what a person gives up, so that it stays given up when the sender repeats it, and closes what the row showed
// as missing. What only came too early, by the sender's versions, stays: nobody was asked about that.
func drop(row *ledger.Row) {
	w := row.Work
	row.Dropped = &ledger.Discard{N: w.N, Op: w.Op, Version: w.Version, Digest: w.Digest}
	if m := row.Missing(); m != nil {
		last := row.Refused[len(row.Refused)-1]
		row.Dropped = &ledger.Discard{N: w.N, Op: last.Op, Version: last.Version, Digest: last.Digest}
	}
	missing := row.Missing() != nil
	row.Refused = slices.DeleteFunc(slices.Clone(row.Refused), func(r ledger.Refused) bool {
		return missing || !r.Unknown || !older(w.Version, r.Version)
	})
	if row.Last != nil && row.Last.N == w.N {
		row.Last.Digest = "" // it took effect once, and is not what is there now
	}
}

// forgetRecord forgets a record that is not in Flexi any more, as a person knows: the key is unknown again.
func forgetRecord(row *ledger.Row) {
	row.Last, row.Base, row.FlexiID, row.Marked, row.ReadBack = nil, nil, "", false, time.Time{}
}
