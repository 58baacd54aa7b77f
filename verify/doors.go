package verify

import (
	"time"

	"flexid/flexi"
)

// outage closes what fails. by is aboutNone where writes failed.
func (g *gate) outage(scope, what string, err error, by about) {
	if err != nil {
		what += ": " + err.Error()
	}
	g.close(GateStatus{Evidence: scope, Reason: "outage", Text: what, Remedy: "nothing to do: flexid tries again by itself"}, outageMost, by)
}

// close shuts a door, or lets the pause of a shut one grow.
func (g *gate) close(st GateStatus, most time.Duration, by about) {
	if d := g.doors[st.Evidence]; d != nil {
		d.Reason, d.Text, d.Remedy, d.most = st.Reason, st.Text, st.Remedy, most
		if d.by != by {
			d.by = aboutNone
		}
		g.grow(d)
		return
	}
	st.Since = g.now()
	d := &door{GateStatus: st, pause: g.s.Probe, most: most, by: by}
	d.NextTry = g.now().Add(d.pause)
	g.doors[st.Evidence] = d
	g.writes.stopped(st.Evidence)
	g.wake()
	g.tell(func() { g.say("writes stopped", st.fields()...) })
}

// quotaUsedUp shuts the door for all until the budget of requests has been filled again. Reads that its reserve still allows
// do not open it; the first document after the reset does.
func (g *gate) quotaUsedUp(quota *flexi.QuotaError) {
	g.closeUntil(quota.Until, aboutNone, GateStatus{Reason: "quota", Text: quota.Error(),
		Remedy: "nothing to do: the documents wait and go on by themselves; a higher budget is FLEXID_FLEXI_DAILY_REQUESTS, if the licence has it"})
}

// askedToWait shuts the door for all when Flexi wants no requests for a while (429). The client's own door tells everyone
// when to come; this one keeps the queue from asking it again and again.
func (g *gate) askedToWait(shut *flexi.ShutError) {
	if shut.Until.Sub(g.now()) <= g.s.Probe {
		return
	}
	g.closeUntil(shut.Until, aboutRecords, GateStatus{Reason: "patience", Text: shut.Error(),
		Remedy: "nothing to do: the documents wait and go on by themselves"})
}

func (g *gate) closeUntil(until time.Time, by about, st GateStatus) {
	until = g.now().Add(until.Sub(g.now())) // the end of a day is of the wall clock, which may be set
	if d := g.doors[""]; d != nil && d.Reason == st.Reason {
		d.NextTry = later(d.NextTry, until)
		return
	}
	g.close(st, outageMost, by)
	d := g.doors[""]
	d.pause, d.NextTry = g.s.Probe, until
}

// grow makes the pause longer, with full jitter on the upper half.
func (g *gate) grow(d *door) {
	d.pause = min(2*d.pause, d.most)
	d.NextTry = g.now().Add(d.pause/2 + time.Duration(g.rand()*float64(d.pause/2)))
}

// turned: what tried a door failed. The next one without a bad outcome of its own comes from the other end of the queue, and a
// document with one has its turn after one without: it may be the one that Flexi takes.
func (g *gate) turned(d *door, sullied bool) {
	if !sullied { // else those that take turns with it would turn it back, and it would never come from the other end
		d.fromEnd = !d.fromEnd
	}
	d.lost = !sullied
}

// open lets writes go on. Where none was under way, nobody knows what Flexi can take.
func (g *gate) open(evidence string) {
	d := g.doors[evidence]
	if d == nil {
		return
	}
	delete(g.doors, evidence)
	g.writes.good(evidence)
	g.unreachable = 0
	if evidence == "" || d.Reason == "outage" && g.flying == 0 {
		g.limit = 1
	}
	if evidence == "" {
		g.writes.stopped("")
		g.reads.stopped("")
	}
	for _, rest := range g.doors { // what is still shut may be tried at once
		rest.NextTry = g.now()
	}
	g.wake()
	g.tell(func() {
		g.say("writes go on", d.fields()...)
		g.opened()
	})
}
