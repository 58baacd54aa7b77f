package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flexid/cmd/internal/api"
	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify/ledger"
)

// expected is what flexid must do before a server in some mode.
type expected struct {
	// stops are the reasons for which writes may be stopped after a minute; without one the run ends by itself within it.
	stops []string
	// later: the run ends by itself within twenty minutes. Else, with stops, a person or another server is needed.
	later bool
	// parks are the reasons, besides those of a healthy run, for which documents may be left to a person.
	parks []ledger.Reason
	// maybes: some may stay in doubt, which is shown: nothing tells that this server keeps external ids, or it never says what
	// became of a write.
	maybes bool
	// unlucky: the person never meets his document as he should, since it may not be confirmed.
	unlucky bool
	// session: flexid logs in once instead of with every request.
	session bool
}

// TestDemoInEveryMode is the demo's run before every server that the fake can be: it ends, or says why it stopped, within
// a minute; nothing is doubled, and every event is confirmed or shown to a person. A mode without an expectation fails.
func TestDemoInEveryMode(t *testing.T) {
	want := expectations()
	packs := []int{5}
	docs := 20
	if os.Getenv("FLEXID_SLOW") != "" {
		packs, docs = []int{1, 20}, 42
	}
	pick := testenv.OneOf(t, 4)
	for _, m := range append(flexitest.Modes(), flexitest.Mode{Name: "healthy", Does: "Nothing else.", On: func(*flexitest.Server) {}}) {
		e, known := want[m.Name]
		delete(want, m.Name)
		if !known {
			t.Errorf("nobody says what flexid must do in mode %q: %s", m.Name, m.Does)
			continue
		}
		if !pick.Take() {
			continue
		}
		for _, pack := range packs {
			t.Run(fmt.Sprint(m.Name, "/", pack), func(t *testing.T) {
				virtually(t, docs, pack, e.session, m.On, func(w *world) { w.judge(e) })
			})
		}
	}
	for name := range want {
		t.Errorf("an expectation of %q, which is no mode", name)
	}
}

func (w *world) judge(e expected) {
	took := w.play(time.Minute)
	w.told("after a minute", e, len(e.stops) > 0)
	w.count("after a minute", e, false)
	reads := w.erp.Count(flexitest.Read)
	// Read-backs and the pauses of a tripped breaker come later; nothing may be doubled by them.
	pass(20 * time.Minute)
	w.told("after twenty minutes", e, len(e.stops) > 0 && !e.later)
	if !w.edited && len(e.stops) == 0 && !e.later && !e.unlucky && len(e.parks) == 0 {
		w.t.Errorf("%s was never confirmed: %s", conflictKey, describe(w.row(w.piece.conflict.doc)))
	}
	w.count("after twenty minutes", e, true)
	if n := w.erp.Count(flexitest.Read) - reads; n > mostReads {
		w.t.Errorf("%d reads in twenty minutes", n)
	}
	if w.t.Failed() {
		w.t.Logf("it took %s; status %+v", took, w.engine.Status())
		for _, d := range w.piece.documents {
			if r := w.row(d); r.State != ledger.Confirmed {
				w.t.Log(describe(r), w.reason(d))
			}
		}
	}
}

// mostReads is how many reads of records the documents of one run may cost in twenty minutes: more is a loop.
const mostReads = 2000

// told: what is not over must be held by something that is said, with what to do.
func (w *world) told(when string, e expected, mayStop bool) {
	open := w.unexplained(e)
	if len(open) > 0 && !mayStop {
		w.t.Errorf("%s %d documents are open, e.g. %s; status %+v", when, len(open), describe(open[0]), w.engine.Status())
	}
	held := map[string]bool{}
	for _, g := range w.engine.Status().Stops {
		if g.Open {
			continue
		}
		held[g.Evidence] = true
		if g.Text == "" || g.Remedy == "" || g.Reason == "" {
			w.t.Errorf("a stop that does not say why, or what to do: %+v", g)
		}
		if len(open) > 0 && !slices.Contains(e.stops, g.Reason) {
			w.t.Errorf("%s writes are stopped for %q (%s), want %q", when, g.Reason, g.Text, e.stops)
		}
	}
	if mayStop && !e.later && len(held) == 0 {
		w.t.Errorf("%s writes go on, want them stopped for %q", when, e.stops)
	}
	for _, r := range open {
		if !held[""] && !held[r.Evidence] && !said(r) && !w.movesOn(e, len(open)) {
			w.t.Errorf("%s nothing says why %s is open", when, describe(r))
			return
		}
	}
}

// unexplained are the rows that are open, without those in doubt where the mode allows them, and what waits behind such.
func (w *world) unexplained(e expected) []ledger.Row {
	return slices.DeleteFunc(w.open(), func(r ledger.Row) bool {
		return e.maybes && (r.State == ledger.Maybe || r.Reason == ledger.Behind)
	})
}

// movesOn waits for half a minute for one document fewer to be open: what is at work need not say why it is not over.
func (w *world) movesOn(e expected, open int) bool {
	for range 60 {
		pass(500 * time.Millisecond)
		if len(w.unexplained(e)) < open {
			return true
		}
	}
	return false
}

// said: a row that is open and says so itself, in the lists. Sending says it only as long as a write may take: after that
// nobody is at work on it.
func said(r ledger.Row) bool {
	switch r.Reason {
	case ledger.Waiting, ledger.Behind, ledger.WaitsFor:
		return true
	}
	return r.State == ledger.Maybe || r.State == ledger.Sending && time.Since(r.Updated) <= writeTimeout
}

// count compares the books with the ledger. Contents are judged at the end, when all is read back.
func (w *world) count(when string, e expected, contents bool) {
	t, b := w.t, newBooks(w.erp, w.piece.evidences())
	found := 0
	for _, d := range w.piece.documents {
		r, records := w.row(d), b.of(d)
		found += min(1, len(records))
		if n := w.erp.Commits(d.evidence + "/" + d.ext); n > 1 || len(records) > 1 {
			t.Errorf("%s: %s is there %d times, made %d times", when, describe(r), len(records), n)
		}
		switch r.State {
		case ledger.Confirmed:
			if len(records) == 0 {
				t.Errorf("%s: %s is confirmed and not in Flexi", when, describe(r))
			} else if why := d.compare(records[0]); contents && why != "" && (w.edited && !e.unlucky || d.key != conflictKey) {
				t.Errorf("%s: %s is confirmed, and %s", when, describe(r), why)
			}
		case ledger.Parked:
			healthy := d.refused && r.Reason == ledger.Rejected || d.key == conflictKey && r.Reason == ledger.Conflict
			if !healthy && !slices.Contains(e.parks, r.Reason) {
				t.Errorf("%s: %s: %s", when, describe(r), w.reason(d))
			}
			if w.reason(d) == "" {
				t.Errorf("%s: %s without a word", when, describe(r))
			}
		}
	}
	if extra := b.total - w.before - found; extra > 0 {
		t.Errorf("%s: %d records that belong to no document", when, extra)
	}
}

// reason is what people are told about a document that was left to them.
func (w *world) reason(d *document) string {
	w.t.Helper()
	s, err := api.ReadStory(w.t.Context(), w.ledger, ledger.RowID("firma", d.evidence, flexi.ExternalID(d.ext)))
	must(w.t, err)
	if s.Problem == nil {
		return ""
	}
	words := []string{s.Problem.Text}
	for _, m := range s.Problem.Errors {
		words = append(words, m.Text)
	}
	for _, f := range s.Problem.Differ {
		words = append(words, fmt.Sprintf("%s: %q, %q", f.Field, f.Sent, f.Found))
	}
	return strings.Join(words, "; ")
}
