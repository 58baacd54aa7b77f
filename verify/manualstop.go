package verify

// stop stops writes for a reason that only a person removes. It reports whether that is news.
func (a *admission) stop(st Stop) bool {
	a.mu.Lock()
	was, have := a.manual[stopKey{st.Evidence, st.Reason}]
	st.NeedsYou, st.Since = true, a.now()
	if have {
		st.Since = was.Since
	}
	a.manual[stopKey{st.Evidence, st.Reason}] = st
	a.mu.Unlock()
	if have && was.Text == st.Text {
		return false
	}
	a.say("writes stopped", st.fields()...)
	return true
}

// resume ends manual stops of an evidence: all of them when reason is "". Its tripped breakers are tried at once.
func (a *admission) resume(evidence, reason string) (released []Stop) {
	a.mu.Lock()
	for h, st := range a.manual {
		if h.evidence == evidence && (reason == "" || h.reason == reason) {
			released = append(released, st)
			delete(a.manual, h)
		}
	}
	for name, b := range a.breakers {
		if evidence == "" || name == evidence {
			b.NextTry = a.now()
			released = append(released, b.Stop)
		}
	}
	a.unlock()
	for _, st := range released {
		a.say("writes released", st.fields()...)
	}
	a.onReset()
	return released
}

// status is all that stops writes, how many requests are in flight, and how many may be.
func (a *admission) status() (stops []Stop, inFlight, limit int) {
	a.mu.Lock()
	defer a.unlock()
	a.overdue()
	for _, st := range a.manual {
		stops = append(stops, st)
	}
	for _, b := range a.breakers {
		stops = append(stops, b.Stop)
	}
	return stops, a.inFlight, int(a.limit)
}

func (s Stop) fields() [][2]string {
	what := s.Evidence
	if what == "" {
		what = "all evidences"
	}
	return [][2]string{{"evidence", what}, {"reason", s.Reason}, {"text", s.Text}, {"remedy", s.Remedy}, {"by", s.By}}
}
