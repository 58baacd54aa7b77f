package verify

import (
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// opening is when an attempt in doubt was seen to end, on our own monotonic clock.
type opening struct {
	event, opens, attach int // the last attempt if it attached an id: it opens anew, one that was refused does not
	at                   time.Time
	length               time.Duration // of its settle time
}

func (o opening) of(w *ledger.Work) bool {
	return o.event == w.N && o.opens == w.Opens && o.attach == attachedBy(w)
}

// attachedBy is the last attempt if it attached an external id and may still take effect: it opens the settle time anew.
func attachedBy(w *ledger.Work) int {
	if a := lastAttempt(w); a != nil && a.Op == flexi.Attach && a.Outcome == flexi.Maybe.String() {
		return a.N
	}
	return 0
}

// watchOpening takes note of an attempt in doubt that ended just now. One from before our start is judged by its row alone.
func (sc *scheduler) watchOpening(row *ledger.Row, now time.Time) {
	w := row.Work
	if w == nil || w.Opens == 0 {
		delete(sc.openings, row.ID)
		return
	}
	if o, ok := sc.openings[row.ID]; sc.scanned && (!ok || !o.of(w)) {
		sc.openings[row.ID] = opening{w.N, w.Opens, attachedBy(w), now, w.Settle.Sub(w.Ended)}
	}
}

// closesAt is when the settle time is over of an attempt in doubt that ended before our eyes.
func (sc *scheduler) closesAt(row *ledger.Row) (time.Time, bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	o, ok := sc.openings[row.ID]
	return o.at.Add(o.length), ok && o.of(row.Work)
}

// maybes counts maybes and documents parked as unknown by reason, and the oldest of them.
func (sc *scheduler) maybes() (map[string]int, time.Time) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	n := map[string]int{}
	var oldest time.Time
	for _, m := range sc.doubts {
		n[m.reason]++
		if oldest.IsZero() || m.since.Before(oldest) {
			oldest = m.since
		}
	}
	return n, oldest
}

// inDoubt counts those that are being settled; what is parked as unknown waits for a person.
func (sc *scheduler) inDoubt() (n int) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for _, d := range sc.doubts {
		if d.reason == settling {
			n++
		}
	}
	return n
}

const settling = "settling" // of a maybe

// doubt is a document whose outcome is not known.
type doubt struct {
	reason string
	since  time.Time
}

// doubted keeps the documents in doubt apart, so that metrics need no scan.
func (sc *scheduler) doubted(row *ledger.Row) {
	unknown := row.State == ledger.Parked && row.Reason == ledger.Unknown
	if row.State != ledger.Maybe && !unknown {
		delete(sc.doubts, row.ID)
		return
	}
	d := doubt{reason: settling, since: row.Updated}
	if unknown {
		d.reason = string(ledger.Unknown)
	}
	if row.Work != nil && !row.Work.Ended.IsZero() {
		d.since = row.Work.Ended
	}
	sc.doubts[row.ID] = d
}
