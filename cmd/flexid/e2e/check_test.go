//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexid/flexi/flexitest"
)

// check compares books, request log and streams with the script.
type check struct {
	t    *testing.T
	run  *run
	all  map[string][]written // by document
	rows map[string]row
	ours map[string][]flexitest.Record // by evidence/external id, and of what was typed by evidence/number
	bad  []span                        // while the role was stale

	duplicates, lost int
}

func (c *check) everything() {
	c.read()
	for _, d := range c.run.script.documents {
		c.standing(d)
		c.books(d)
		c.resends(d)
		c.order(d)
		c.heard(d)
	}
	c.strangers()
}

// read takes down what the books, the request log and flexid show now.
func (c *check) read() {
	c.bad, c.ours = c.run.staleTimes(), map[string][]flexitest.Record{}
	for _, evidence := range []string{issued, received, partners} {
		for _, r := range c.run.erp.Records(evidence) {
			for _, x := range append(slices.Clone(r.ExternalIDs), "number:"+r.Number) {
				c.ours[evidence+"/"+x] = append(c.ours[evidence+"/"+x], r)
			}
		}
	}
	c.all = writes(c.t, c.run.erp)
	c.rows = must(c.run.daemons[0].documents())(c.t, "reading the list of documents")
}

// standing: every document ended where the script says, a parked one with words and cause.
func (c *check) standing(d *document) {
	r, ok := c.rows[d.address()]
	if !ok {
		c.t.Errorf("%s (%s): flexid does not know it", d.address(), d.kind)
		c.lost++
		return
	}
	if !slices.Contains(d.want, r.standing()) {
		s, _ := c.run.daemons[0].story(d.evidence, d.key)
		c.t.Errorf("%s (%s): is %s, want %v; %s", d.address(), d.kind, r.standing(), d.want, s.text())
		return
	}
	if r.State != "parked" {
		return
	}
	s := must(c.run.daemons[0].story(d.evidence, d.key))(c.t, "reading the story of "+d.address())
	if r.Reason == "rejected" && (r.Cause != d.cause || s.Problem == nil || len(s.Problem.Errors) == 0 || s.Problem.Errors[0].Text == "") {
		c.t.Errorf("%s (%s): parked(rejected) with cause %q, want %q and the ERP's words; %s", d.address(), d.kind, r.Cause, d.cause, s.text())
	}
	if !strings.Contains(s.text(), d.words) {
		c.t.Errorf("%s (%s): the reason %q does not say %q", d.address(), d.kind, s.text(), d.words)
	}
}

func (s story) text() string {
	if s.Problem == nil {
		return "no problem is named"
	}
	words := s.Problem.Text
	for _, e := range s.Problem.Errors {
		words += "; " + e.Text
	}
	return words
}

// books: one record with the content of the last effective event, or none.
func (c *check) books(d *document) {
	found, want := c.ours[d.evidence+"/"+d.ext], 1
	if strings.HasPrefix(d.kind, "typed-") { // what a person typed carries the number only
		found = c.ours[d.evidence+"/number:"+d.key]
	}
	switch {
	case d.content == nil, d.kind == "shared" && c.rows[d.address()].State == "parked":
		want = 0
	}
	if len(found) > want {
		c.duplicates += len(found) - want
	}
	if len(found) < want {
		c.lost++
	}
	if len(found) != want {
		c.t.Errorf("%s (%s): %d records in Flexi, want %d", d.address(), d.kind, len(found), want)
		return
	}
	if want == 0 {
		return
	}
	if diff := differs(d.content, found[0].Fields); diff != "" {
		c.t.Errorf("%s (%s): Flexi shows other content than the last effective event: %s", d.address(), d.kind, diff)
	}
	if got := found[0].Fields["storno"] == "true"; got != d.storno {
		c.t.Errorf("%s (%s): storno is %v, want %v", d.address(), d.kind, got, d.storno)
	}
}

// differs names the first field that is not as wanted.
func differs(want, got map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if rows, ok := want[name].([]any); ok {
			shown, _ := got[name].([]map[string]any)
			if len(rows) != len(shown) {
				return fmt.Sprintf("%s has %d rows, want %d", name, len(shown), len(rows))
			}
			for i := range rows {
				if diff := differs(rows[i].(map[string]any), shown[i]); diff != "" {
					return fmt.Sprintf("%s[%d].%s", name, i, diff)
				}
			}
			continue
		}
		if !same(fmt.Sprint(want[name]), fmt.Sprint(got[name])) {
			return fmt.Sprintf("%s is %q, want %q", name, got[name], want[name])
		}
	}
	return ""
}

// same compares numbers as numbers, and dates without the zone that the server adds.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return x == y
	}
	_, err := time.Parse(time.DateOnly, a)
	return err == nil && strings.HasPrefix(b, a)
}

// resends: no request takes effect twice, and none that may have is followed by another before its settle time is over.
func (c *check) resends(d *document) {
	all := c.all[d.evidence+"/"+d.ext]
	committed := map[string]int{}
	for i, w := range all {
		if w.Committed {
			committed[string(w.Body)]++
			if committed[string(w.Body)] == 2 && w.op == "write" && w.record["@create"] != "fail" || committed[string(w.Body)] > 1 && w.op != "write" {
				c.t.Errorf("%s (%s): one and the same request took effect twice: %s", d.address(), d.kind, w.Body)
			}
		}
		if i == 0 {
			continue
		}
		before := all[i-1]
		settle, gap := c.run.pace.settle(before.Fault), w.Time.Sub(before.Time)
		if c.exempt(all, i-1, w) || before.refused() {
			continue
		}
		if gap < settle {
			c.t.Errorf("%s (%s): request %d came %v after request %d, which may have taken effect (%s): its settle time is %v;%s",
				d.address(), d.kind, w.N, gap.Round(time.Millisecond), before.N, before.Fault, settle, listed(all))
		}
	}
	if !d.clean() || c.run.crashes > 0 {
		return
	}
	// What failed because of another document in the same request is sent again; what took effect in spite of the fault is
	// not. The times of a stale role are known roughly only: what fell into them may have been refused or not.
	// On a busy machine one may end by its deadline before the fake has carried it out.
	listing := listed(all)
	all = slices.DeleteFunc(slices.Clone(all), func(w written) bool {
		return w.documents > 1 && !w.Committed && (w.Status >= 400 || w.Fault != "") || !w.Committed && w.Fault == "" && w.Status < 400
	})
	if n, want := len(c.unrefused(all)), len(d.events); n > want || len(all) < want {
		c.t.Errorf("%s (%s): sent %d times, and %d times while our role was stale; want %d;%s", d.address(), d.kind, n, len(all)-n, want, listing)
	}
}

// refused is a write that met our stale role before the fault that was drawn for it: the fake answered 400 at once, and the
// books show that nothing came of it later either. Sending it again is what a refusal asks for.
func (w written) refused() bool { return w.Status == 400 && !w.Committed }

// listed is the requests of one document, for a failure.
func listed(all []written) (text string) {
	for _, w := range all {
		text += fmt.Sprintf("\n    %d %s %s @create %v, version %d: status %d, fault %q, committed %v",
			w.N, w.Time.Format("15:04:05.000"), w.op, w.record["@create"], w.version(), w.Status, w.Fault, w.Committed)
	}
	return text
}

// exempt is a create that was found under our own external id and whose only attempt it was: nothing of it is still on its
// way, so the next event need not wait.
func (c *check) exempt(all []written, i int, next written) bool {
	w := all[i]
	first := i == 0 || all[i-1].Fault == "" && all[i-1].Committed
	return w.record["@update"] == "fail" && w.Committed && first && next.record["@create"] == "fail"
}

// unrefused leaves out what was refused because the user's context was stale: those are sent again in any case.
func (c *check) unrefused(all []written) (out []written) {
	for _, w := range all {
		if !slices.ContainsFunc(c.bad, func(s span) bool { return s.from.Before(w.Time.Add(w.Duration)) && w.Time.Before(s.to) }) {
			out = append(out, w)
		}
	}
	return out
}

// order: changes of one document take effect in the order of their events.
func (c *check) order(d *document) {
	all := slices.DeleteFunc(slices.Clone(c.all[d.evidence+"/"+d.ext]), func(w written) bool { return !w.Committed || w.version() == 0 })
	slices.SortStableFunc(all, func(a, b written) int {
		return a.Effective.Compare(b.Effective)
	})
	for i := 1; i < len(all); i++ {
		if all[i].version() < all[i-1].version() {
			c.t.Errorf("%s (%s): version %d took effect after version %d", d.address(), d.kind, all[i].version(), all[i-1].version())
		}
	}
}

// heard: what became of each event was told at least once.
func (c *check) heard(d *document) {
	for _, e := range d.events {
		if !c.run.broker.heard(d, e.id) {
			c.t.Errorf("%s (%s): flexi.done was never told about event %s", d.address(), d.kind, e.id)
		}
	}
}

// strangers: there is no record of ours that the script does not know, and what a person typed is all there.
func (c *check) strangers() {
	known := map[string]bool{}
	for _, d := range c.run.script.documents {
		known[d.evidence+"/"+d.ext] = true
	}
	for name := range c.ours {
		if strings.Contains(name, "/ext:") && !known[name] {
			c.t.Errorf("a record of ours that nobody asked for: %s", name)
		}
	}
	for _, id := range c.run.typed {
		if len(c.run.erp.Find(issued, strconv.FormatInt(id, 10))) != 1 {
			c.t.Errorf("record %d, which a person typed, is gone", id)
		}
	}
}

// summary is the line that a run prints.
func (c *check) summary(took time.Duration) string {
	states, faults, sent := map[string]int{}, map[string]int{}, 0
	for _, d := range c.run.script.documents {
		states[c.rows[d.address()].standing()]++
		for _, w := range c.all[d.evidence+"/"+d.ext] {
			sent++
			if w.Fault != "" {
				faults[w.Fault]++
			}
		}
	}
	return fmt.Sprintf("documents %d, events %d, writes %d, duplicates %d, lost %d, crashes of flexid %d, of NATS %d, %v; standings %v; faults %v",
		len(c.run.script.documents), c.run.script.events(), sent, c.duplicates, c.lost, c.run.crashes, c.run.natsCrashes,
		took.Round(time.Second), states, faults)
}
