//go:build linux

package e2e

import "time"

// later are the documents that come when the rest of a run is over but for some in doubt, as the next day's documents do.
// One in doubt whose number Flexi draws may be sent again only once a record that was made after it came back with its
// external id (DESIGN 4.6): without another document it waits, and rightly.
type later struct {
	script script
	next   int
	last   time.Time
}

// laterEvery is more than the longest settle time: what is absent then waits for nothing but another document.
const laterEvery = 15 * time.Second

// another publishes one more document, for which no fault is drawn, when the last one is long enough ago; else nil.
func (r *run) another() (*document, error) {
	l := &r.later
	if time.Since(l.last) < laterEvery {
		return nil, nil
	}
	l.script.prefix, l.last = r.script.prefix+"-LATER", time.Now()
	for {
		l.next++
		l.script.invoice(l.next)
		if d := l.script.documents[len(l.script.documents)-1]; lot(d.evidence+"/"+d.ext) >= 40 {
			return d, r.broker.publish(d.events[0].msg)
		}
		l.script.documents = l.script.documents[:len(l.script.documents)-1]
	}
}

// inDoubt says whether nothing but documents in doubt is left of these events.
func inDoubt(rows map[string]row, events map[string]*document) bool {
	for _, d := range events {
		if rows[d.address()].State != "maybe" {
			return false
		}
	}
	return len(events) > 0
}
