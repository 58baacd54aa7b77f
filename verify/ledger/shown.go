package ledger

// Shown is the ordinal of the event that the row shows: the oldest that is not final, else the last.
func (r *Row) Shown() int {
	if r.Work != nil && r.Work.Final && r.Head < r.Tail || r.Head == 0 {
		return min(r.Head+1, r.Tail)
	}
	return min(r.Head, r.Tail)
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
	case ev.State == "":
		return End{State: Queued, Reason: Behind}
	}
	return End{State: ev.State, Reason: ev.Reason, Cause: ev.Cause, Sends: ev.Sends, At: ev.Done}
}
