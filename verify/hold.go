package verify

// hold closes for a reason that only a person removes. It reports whether that is news.
func (g *gate) hold(st GateStatus) bool {
	g.mu.Lock()
	was, have := g.holds[hold{st.Evidence, st.Reason}]
	st.NeedsYou, st.Since = true, g.now()
	if have {
		st.Since = was.Since
	}
	g.holds[hold{st.Evidence, st.Reason}] = st
	g.mu.Unlock()
	if have && was.Text == st.Text {
		return false
	}
	g.say("writes stopped", st.fields()...)
	return true
}

// release removes holds: all reasons when reason is "". Automatic doors of the evidence are tried at once.
func (g *gate) release(evidence, reason string) (released []GateStatus) {
	g.mu.Lock()
	for h, st := range g.holds {
		if h.evidence == evidence && (reason == "" || h.reason == reason) {
			released = append(released, st)
			delete(g.holds, h)
		}
	}
	for name, d := range g.doors {
		if evidence == "" || name == evidence {
			d.NextTry = g.now()
			released = append(released, d.GateStatus)
		}
	}
	g.unlock()
	for _, st := range released {
		g.say("writes released", st.fields()...)
	}
	g.opened()
	return released
}

func (g *gate) status() (doors []GateStatus, flying, limit int) {
	g.mu.Lock()
	defer g.unlock()
	g.overdue()
	for _, st := range g.holds {
		doors = append(doors, st)
	}
	for _, d := range g.doors {
		doors = append(doors, d.GateStatus)
	}
	return doors, g.flying, int(g.limit)
}

func (s GateStatus) fields() [][2]string {
	what := s.Evidence
	if what == "" {
		what = "all evidences"
	}
	return [][2]string{{"evidence", what}, {"reason", s.Reason}, {"text", s.Text}, {"remedy", s.Remedy}, {"by", s.By}}
}
