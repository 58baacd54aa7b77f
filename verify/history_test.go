package verify_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/testdata/testenv"
	"flexid/verify/ledger"
)

// This file visits short histories of one document against a small model of the rules on versions, refusals and repetition:
// what the row must say in the end, and what Flexi must show. The model knows nothing of requests, looks or the ledger.

// happening is one event of a history.
type happening struct {
	op      flexi.Op
	version int  // 0 = none
	refused bool // Flexi refuses its content
	value   string
}

func (h happening) String() string {
	s := string(h.op)[:2] + strconv.Itoa(h.version)
	if h.refused {
		s += "!"
	}
	return s
}

func (h happening) whole() bool { return h.op == flexi.Create || h.op == flexi.Upsert }

// digest stands for the content: what is equal has the same body.
func (h happening) digest() string {
	switch {
	case h.whole():
		return fmt.Sprint("whole ", h.value, h.refused)
	case h.op == flexi.Update:
		return fmt.Sprint("part ", h.value, h.refused)
	}
	return "empty"
}

// imagined is the model's document.
type imagined struct {
	exists, storno bool
	value          string
	last           string // digest of the last effective event
	lastStorno     bool
	known          int
	held           bool // a person has to decide
	missing        []miss
	green          bool
}

type miss struct {
	happening
	early bool // it came before the document was known
}

func precedes(a, b int) bool { return a > 0 && b > 0 && a < b }

func (m *imagined) take(h happening) {
	switch {
	case m.held:
		return
	case precedes(h.version, m.known):
		m.green = true
	case h.whole() && m.exists && m.last == h.digest() && !m.lastStorno:
		m.learn(h.version)
		m.green = true
	case h.op == flexi.Create && m.exists:
		m.held = true
	case !h.whole() && !m.exists:
		m.miss(miss{h, true})
	case h.refused:
		m.miss(miss{h, false})
	default:
		m.effect(h)
	}
}

func (m *imagined) learn(v int) {
	if v > 0 && !precedes(v, m.known) {
		m.known = v
	}
}

func (m *imagined) miss(x miss) {
	m.missing = append(m.missing, x)
	m.green = false
}

func (m *imagined) effect(h happening) {
	made := !m.exists
	m.learn(h.version)
	m.green, m.last, m.lastStorno = true, h.digest(), h.op == flexi.Storno
	switch h.op {
	case flexi.Delete:
		m.exists, m.storno, m.value, m.last = false, false, "", ""
		if h.version == 0 {
			m.known = 0
		}
	case flexi.Storno:
		m.storno = true
	default:
		m.exists, m.value = true, h.value
	}
	var still, early []miss
	for _, x := range m.missing {
		switch {
		case x.doneBy(h):
		case made && x.early && precedes(h.version, x.version):
			early = append(early, x)
		default:
			still = append(still, x)
		}
	}
	m.missing = still
	slices.SortStableFunc(early, func(a, b miss) int { return cmp.Compare(a.version, b.version) })
	for _, x := range early {
		m.take(x.happening)
	}
}

// doneBy says whether nothing of a refused event is missing once a later one took effect.
func (x miss) doneBy(h happening) bool {
	switch {
	case precedes(x.version, h.version):
		return true
	case precedes(h.version, x.version):
		return false
	case h.op == flexi.Delete:
		return true
	case x.op == flexi.Storno || x.op == flexi.Delete:
		return x.op == h.op
	case x.early:
		return h.op == flexi.Update && !x.refused
	}
	return x.whole() && h.whole()
}

// state is what the row must say.
func (m *imagined) state() ledger.State {
	if m.held || len(m.missing) > 0 || !m.green {
		return ledger.Parked
	}
	return ledger.Confirmed
}

// newest checks the model itself: where every event has a version of its own, a green row means that Flexi shows what the
// newest one wants; where none has, what the last one wants.
func (m *imagined) newest(hs []happening) string {
	top := hs[len(hs)-1]
	seen := map[int]bool{}
	for _, h := range hs {
		if h.version > 0 && seen[h.version] || (h.version == 0) != (hs[0].version == 0) {
			return "" // mixed: nobody can say which is the newest
		}
		seen[h.version] = true
		if h.version > top.version {
			top = h
		}
	}
	switch {
	case m.state() != ledger.Confirmed:
		return ""
	case top.op == flexi.Delete && m.exists, top.op == flexi.Storno && !m.storno, top.refused,
		(top.whole() || top.op == flexi.Update) && (!m.exists || m.value != top.value):
		return fmt.Sprintf("the newest is %s, and Flexi shows %+v", top, *m)
	}
	return ""
}

// letters are all events without a version.
func letters() []happening {
	return []happening{
		{op: flexi.Create}, {op: flexi.Update}, {op: flexi.Upsert}, {op: flexi.Delete}, {op: flexi.Storno},
		{op: flexi.Create, refused: true}, {op: flexi.Update, refused: true}, {op: flexi.Upsert, refused: true},
	}
}

// histories are all of up to two events with versions 0 to 2, and a sample of the longer ones: of three events with versions
// that come in every order or not at all, and of four.
func histories(longer int) [][]happening {
	var all, last [][]happening
	last = [][]happening{nil}
	for range 2 {
		var next [][]happening
		for _, h := range last {
			for _, l := range letters() {
				for v := range 3 {
					l.version = v
					next = append(next, append(slices.Clone(h), l))
				}
			}
		}
		all, last = append(all, next...), next
	}
	r := rand.New(rand.NewPCG(4, 17))
	for i := range longer {
		n := 3 + i%2
		versions := r.Perm(n)
		var h []happening
		for j := range n {
			l := letters()[r.IntN(8)]
			switch i % 4 {
			case 0, 1:
				l.version = versions[j] + 1
			case 2:
				l.version = r.IntN(3)
			}
			h = append(h, l)
		}
		all = append(all, h)
	}
	for _, h := range all {
		for i := range h {
			h[i].value = strconv.Itoa(100 * h[i].version)
			if h[i].version == 0 {
				h[i].value = strconv.Itoa(900 + i)
			}
		}
	}
	return all
}

func (h happening) body(key string) doc {
	var d doc
	switch {
	case h.whole():
		d = invoice(key, "varSym", h.value)
	case h.op == flexi.Update:
		d = doc{"varSym": h.value}
	default:
		return doc{}
	}
	if h.refused {
		d["firma"] = "code:NENI"
	}
	return d
}

// TestHistories walks every history at the wire, many documents beside each other, and compares row and record with the model.
func TestHistories(t *testing.T) {
	longer := 200
	if os.Getenv("FLEXID_SLOW") != "" {
		longer = 6000
	}
	all := testenv.Some(t, 4, histories(longer))
	for part := range slices.Chunk(all, 400) {
		t.Run(fmt.Sprint(len(part), " from ", part[0]), func(t *testing.T) {
			virtual(t, func(b *bench) { b.walkHistories(part) })
		})
	}
}

func (b *bench) walkHistories(part [][]happening) {
	b.set.Concurrency = 16
	b.start()
	b.created("X", invoice("X"))
	for i, h := range part {
		key := fmt.Sprint("H", i)
		for _, x := range h {
			e := b.event(x.op, key, x.body(key))
			if x.version > 0 {
				e.Version = strconv.Itoa(x.version)
			}
			b.accept(e)
		}
	}
	over := func(r ledger.Row) bool {
		return r.State == ledger.Parked || r.State == ledger.Confirmed && !r.More() && r.Work.Final
	}
	b.until(2*time.Hour, "all over", func() bool {
		for i := range part {
			if r := b.row(fmt.Sprint("H", i)); !over(r) {
				return false
			}
		}
		return true
	})
	b.pass(2 * time.Minute)
	bad := 0
	for i, h := range part {
		m := &imagined{}
		for _, x := range h {
			m.take(x)
		}
		if why := m.newest(h); why != "" {
			b.t.Errorf("the model hides the newest: %v: %s", h, why)
		}
		key := fmt.Sprint("H", i)
		r, rs := b.row(key), b.records(key)
		shows := imagined{exists: len(rs) == 1}
		if shows.exists {
			shows.value, shows.storno = fmt.Sprint(rs[0].Fields["varSym"]), fmt.Sprint(rs[0].Fields["storno"]) == "true"
		}
		if len(rs) > 1 || r.State != m.state() || shows.exists != m.exists || shows.value != m.value || shows.storno != m.storno {
			bad++
			b.t.Errorf("%v: the row is %s(%s), Flexi shows %v %q %v; the model says %s, %v %q %v", h, r.State, r.Reason,
				shows.exists, shows.value, shows.storno, m.state(), m.exists, m.value, m.storno)
		}
		if bad > 12 {
			b.t.FailNow()
		}
	}
}
