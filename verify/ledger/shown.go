package ledger

import "slices"

// More says whether events wait behind the current one.
func (r *Row) More() bool { return r.Head < r.Tail || len(r.Redo) > 0 }

// Next is the ordinal of the event that has its turn after the current one.
func (r *Row) Next() int {
	if len(r.Redo) > 0 {
		return r.Redo[0]
	}
	return r.Head + 1
}

// Turn gives the next event its turn and returns its ordinal.
func (r *Row) Turn() int {
	n := r.Next()
	if len(r.Redo) > 0 {
		r.Redo = slices.Clone(r.Redo[1:])
	} else {
		r.Head++
	}
	return n
}

// Missing is the oldest refused event that the row shows although a later one took effect; nil if it shows none.
func (r *Row) Missing() *Refused {
	w := r.Work
	if w == nil || !w.Final || w.End == nil || r.State != Parked || w.End.State == Parked || r.More() || len(r.Refused) == 0 {
		return nil
	}
	return &r.Refused[0]
}

// Shown is the ordinal of the event that the row shows: the oldest that is not final, else one that was refused and is
// missing in Flexi, else the last.
func (r *Row) Shown() int {
	switch m := r.Missing(); {
	case r.Work == nil:
		return min(r.Next(), r.Tail)
	case r.Work.Final && r.More():
		return r.Next()
	case m != nil:
		return m.N
	}
	return r.Work.N
}

// Problem says why the row stands where it does, nil if nothing is wrong.
func (r *Row) Problem() *Problem {
	if m := r.Missing(); m != nil {
		return &Problem{Text: "an event that is not in Flexi was refused: " + m.Text}
	}
	if r.Work == nil || r.Work.Final && r.More() {
		return nil
	}
	return r.Work.Story.Problem
}

// Standing says where one event of the document stands. The row knows it of the current event, the event's own key of those
// before; what comes after is held back.
func (r *Row) Standing(ev *Event) End {
	w := r.Work
	current := w != nil && w.N == ev.N
	switch {
	case current && w.Final && w.End != nil:
		return *w.End
	case current, ev.N == r.Shown() && ev.State == "":
		return End{State: r.State, Reason: r.Reason, Cause: r.Cause, Sends: r.Sends}
	case ev.State == "", slices.Contains(r.Redo, ev.N):
		return End{State: Queued, Reason: Behind}
	}
	return End{State: ev.State, Reason: ev.Reason, Cause: ev.Cause, Sends: ev.Sends, At: ev.Done}
}
