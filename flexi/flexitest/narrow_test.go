package flexitest

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestTheIndexShowsWhatASearchShows: the shortcut changes how long an answer takes, never what it is.
func TestTheIndexShowsWhatASearchShows(t *testing.T) {
	c := pipe(t, Options{AllowUsedNumbers: true})
	for i := range 12 {
		c.must(c.post("faktura-vydana", fmt.Sprintf(`"typDokl":"code:FAKTURA","id":"ext:S:%d","kod":"N%d","varSym":"%d"`, i, i%9, i)))
	}
	ev := c.s.catalog.byPath["faktura-vydana"]
	filters := []string{
		"id=3", "id='ext:S:4'", "id in (1,2,'ext:S:7','code:n3')", "kod='n3'", "kod in ('N1',' N2')", "id=99 or kod='N0'",
		"(id=1 or (kod='N5' or id='ext:S:11'))", "kod='N3' and varSym='12'", "id=1 or varSym='5'", "not (id=1)", "",
	}
	for name, lie := range map[string]Lie{"honest": Honest, "lost rights": LostRights, "only some": OnlySome, "stale": Stale, "without control": LoseControl} {
		c.s.LookLies(lie, time.Hour)
		for _, filter := range filters {
			n, err := parseFilter(filter)
			if err != nil {
				t.Fatal(err)
			}
			c.s.mu.Lock()
			m := &matcher{s: c.s, blind: lie == LoseControl}
			match := func(r *record) bool { return !m.match(r, n) }
			all, some := slices.DeleteFunc(c.s.visible(ev), match), slices.DeleteFunc(c.s.asked(ev, n), match)
			c.s.mu.Unlock()
			if !slices.Equal(all, some) {
				t.Errorf("%s, %s: %d records by index, %d by search", name, filter, len(some), len(all))
			}
		}
	}
}
