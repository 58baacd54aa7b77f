package verify

import (
	"time"

	"flexid/flexi"
)

// tripForOutage trips the breaker of a scope that fails. by is aboutNone where writes failed.
func (a *admission) tripForOutage(scope, what string, err error, by about) {
	if err != nil {
		what += ": " + err.Error()
	}
	a.trip(Stop{Evidence: scope, Reason: "outage", Text: what, Remedy: "nothing to do: flexid tries again by itself"}, outageMost, by)
}

// trip trips a breaker, or prolongs the pause of a tripped one.
func (a *admission) trip(st Stop, most time.Duration, by about) {
	if b := a.breakers[st.Evidence]; b != nil {
		b.Reason, b.Text, b.Remedy, b.most = st.Reason, st.Text, st.Remedy, most
		if b.by != by {
			b.by = aboutNone
		}
		a.prolong(b)
		return
	}
	st.Since = a.now()
	b := &breaker{Stop: st, pause: a.s.Probe, most: most, by: by}
	b.NextTry = a.now().Add(b.pause)
	a.breakers[st.Evidence] = b
	a.writes.stopped(st.Evidence)
	a.wakeWaiters()
	a.onUnlock(func() { a.say("writes stopped", st.fields()...) })
}

// quotaUsedUp trips the breaker of all evidences until the budget of requests is filled again. Reads that its reserve still
// allows do not reset it; the first document after the budget was filled does.
func (a *admission) quotaUsedUp(quota *flexi.QuotaError) {
	a.tripUntil(quota.Until, aboutNone, Stop{Reason: "quota", Text: quota.Error(),
		Remedy: "nothing to do: the documents wait and go on by themselves; a higher budget is FLEXID_FLEXI_DAILY_REQUESTS, if the licence has it"})
}

// askedToWait trips the breaker of all evidences when Flexi wants no requests for a while (429). The client makes everyone wait
// by itself; the breaker keeps the queue from asking it again and again.
func (a *admission) askedToWait(shut *flexi.ThrottledError) {
	if shut.Until.Sub(a.now()) <= a.s.Probe {
		return
	}
	a.tripUntil(shut.Until, aboutRecords, Stop{Reason: "patience", Text: shut.Error(),
		Remedy: "nothing to do: the documents wait and go on by themselves"})
}

// tripUntil trips the breaker of all evidences until a moment that Flexi or the budget gave.
func (a *admission) tripUntil(until time.Time, by about, st Stop) {
	until = a.now().Add(until.Sub(a.now())) // the end of a day is of the wall clock, which may be set
	if b := a.breakers[""]; b != nil && b.Reason == st.Reason {
		b.NextTry = later(b.NextTry, until)
		return
	}
	a.trip(st, outageMost, by)
	b := a.breakers[""]
	b.pause, b.NextTry = a.s.Probe, until
}

// prolong makes the pause before the next trial longer, with full jitter on the upper half.
func (a *admission) prolong(b *breaker) {
	b.pause = min(2*b.pause, b.most)
	b.NextTry = a.now().Add(b.pause/2 + time.Duration(a.rand()*float64(b.pause/2)))
}

// trialFailed chooses who tries next. The next document without a bad outcome of its own comes from the other end of the queue. A
// suspect one has its turn after one that was not: it may be the one that Flexi takes.
func (a *admission) trialFailed(b *breaker, suspect bool) {
	if !suspect { // else suspects, which take turns with the others, would turn the end back each time
		b.fromEnd = !b.fromEnd
	}
	b.lost = !suspect
}

// reset lets writes go on. Where none was under way, nobody knows how many Flexi can take: the limit begins at one.
func (a *admission) reset(evidence string) {
	b := a.breakers[evidence]
	if b == nil {
		return
	}
	delete(a.breakers, evidence)
	a.writes.good(evidence)
	a.unreachable = 0
	if evidence == "" || b.Reason == "outage" && a.inFlight == 0 {
		a.limit = 1
	}
	if evidence == "" {
		a.writes.stopped("")
		a.reads.stopped("")
	}
	for _, other := range a.breakers { // what is still tripped may be tried at once
		other.NextTry = a.now()
	}
	a.wakeWaiters()
	a.onUnlock(func() {
		a.say("writes go on", b.fields()...)
		a.onReset()
	})
}
