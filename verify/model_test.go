package verify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

// This file runs the cases of ../shared/model against the engine: its sequences of events, every fate of a request, the
// process dying at every step, a second worker, and a person at the ERP. The model visits all states of small rules; here
// the real thing walks the same paths.

// move is one event of a document: what it asks for and the text it wants to see.
type move struct {
	op   flexi.Op
	text string
}

// sequences are those of the model.
func sequences() map[string][]move {
	c, u, d := flexi.Create, flexi.Update, flexi.Delete
	return map[string][]move{
		"C":   {{c, "1"}},
		"CUU": {{c, "1"}, {u, "2"}, {u, "3"}},
		"CUB": {{c, "1"}, {u, "2"}, {u, "1"}},
		"CUD": {{c, "1"}, {u, "2"}, {d, ""}},
		"CDC": {{c, "1"}, {d, ""}, {c, "1"}},
		"CDN": {{c, "1"}, {d, ""}, {c, "2"}},
		"U":   {{u, "2"}},
	}
}

// fates of the first or the second request of a document.
func fates() map[string]flexitest.Fault {
	return map[string]flexitest.Fault{
		"ok":      {},
		"died":    {Kind: flexitest.ResetAnswer},
		"done":    {Kind: flexitest.ResetAfterCommit},
		"late":    {Kind: flexitest.LateCommit, Delay: 40 * time.Second},
		"outlive": {Kind: flexitest.LateCommit, Delay: 5 * time.Minute}, // longer than the settle time: the model's assumption b
		"refused": {Kind: flexitest.TooMany, RetryAfter: "1"},
	}
}

// short makes a case last minutes: the rules are the same with shorter times.
func short(b *bench) {
	b.set.Looks = []time.Duration{0, time.Second, 5 * time.Second, 20 * time.Second, time.Minute}
	b.set.SettleNoAnswer, b.set.SettleServerError = time.Minute, 10*time.Second
	b.set.LateLooks = []time.Duration{10 * time.Minute, 20 * time.Minute}
	b.set.ReadBack, b.set.Sends, b.set.Drain = 20*time.Second, 40, time.Millisecond
	b.set.Concurrency, b.set.Pack = 16, 1 // each document has a fate of its own, which it must not share
}

// path is one document of a run.
type path struct {
	key   string
	moves []move
	fate  string
	nth   int
	hand  string // what a person does: "", type, type other, edit, delete
	when  time.Duration
}

func (p path) body(m move) doc {
	switch m.op {
	case flexi.Create:
		return invoice(p.key, "popis", m.text, "varSym", m.text+"00")
	case flexi.Update:
		return doc{"popis": m.text, "varSym": m.text + "00"}
	}
	return doc{}
}

// paths are all documents of a run: sequence x fate x request, without a person.
func paths() []path {
	var all []path
	for name, moves := range sequences() {
		for fate := range fates() {
			for nth := 1; nth <= min(2, len(moves)); nth++ {
				all = append(all, path{key: strings.ToUpper(fmt.Sprint(name, "-", fate, "-", nth)), moves: moves, fate: fate, nth: nth})
			}
		}
	}
	slices.SortFunc(all, func(a, b path) int { return strings.Compare(a.key, b.key) })
	return all
}

// mortal is the ledger of a process that dies at every n-th store call, before or after the store has it.
type mortal struct {
	verify.Ledger
	mu     sync.Mutex
	every  int
	stored bool
	calls  int
	deaths int
	dead   bool
}

var errDead = errors.New("the process is dead")

func (m *mortal) live(rows []*ledger.Row, do func([]*ledger.Row) []error) []error {
	m.mu.Lock()
	m.calls++
	dies := !m.dead && m.every > 0 && m.calls%m.every == 0
	m.dead = m.dead || dies
	dead := m.dead
	m.mu.Unlock()
	if !dead {
		return do(rows)
	}
	if dies && m.stored {
		c := rows[0].Clone()
		do([]*ledger.Row{&c})
	}
	return each(rows, &ledger.UndecidedError{Err: errDead})
}

func (m *mortal) Claim(ctx context.Context, rows []*ledger.Row) []error {
	return m.live(rows, func(r []*ledger.Row) []error { return m.Ledger.Claim(ctx, r) })
}

func (m *mortal) Settle(ctx context.Context, rows []*ledger.Row) []error {
	return m.live(rows, func(r []*ledger.Row) []error { return m.Ledger.Settle(ctx, r) })
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// reborn restarts a dead process; after enough deaths it lives.
func (m *mortal) reborn(b *bench) {
	b.halt()
	m.mu.Lock()
	m.dead = false
	if m.deaths++; m.deaths >= 120 {
		m.every = 0
	}
	m.mu.Unlock()
	b.start()
	<-b.eng.Ready()
}

// walk hands in every document and waits until nothing moves any more, late looks included. It returns when a person did
// something to a document.
func walk(b *bench, all []path, m *mortal) (did map[string]time.Time) {
	b.t.Helper()
	did = map[string]time.Time{}
	for _, p := range all {
		b.nth(p.nth, "ext:FLEXID:"+p.key, fates()[p.fate])
		if p.hand == "type" || p.hand == "type other" {
			if p.when == 0 && b.person(p) {
				did[p.key] = time.Now()
			}
		}
	}
	for _, p := range all {
		for _, mv := range p.moves {
			b.push(mv.op, p.key, p.body(mv))
		}
	}
	acted := false
	for began := time.Now(); time.Since(began) < 32*time.Minute; {
		b.pass(time.Second)
		if when := all[0].when; when > 0 && !acted && time.Since(began) >= when {
			acted = true
			for _, p := range all {
				if b.person(p) {
					did[p.key] = time.Now()
				}
			}
		}
		if m != nil && m.isDead() {
			m.reborn(b)
			began = time.Now()
		}
	}
	return did
}

// person does one thing to the document of a path at the ERP, if it can be done.
func (b *bench) person(p path) bool {
	body := p.body(move{flexi.Create, p.moves[0].text})
	rs := b.records(p.key)
	switch {
	case p.hand == "type" && len(rs) == 0:
		b.typed(body)
	case p.hand == "type other" && len(rs) == 0:
		body["varSym"] = "999"
		b.typed(body)
	case p.hand == "edit" && len(rs) == 1:
		b.fake.Edit("faktura-vydana", rs[0].ID, map[string]any{"varSym": "999"})
	case p.hand == "delete" && len(rs) == 1:
		b.fake.Remove("faktura-vydana", rs[0].ID)
	default:
		return false
	}
	return true
}

// onItsWay says whether a request that left before a moment took effect after it: no look could have seen what happened then,
// and what a person changed meanwhile was overwritten by the ERP itself.
func (b *bench) onItsWay(p path, at time.Time) bool {
	for _, w := range b.fake.Writes("ext:FLEXID:" + p.key) {
		if w.Time.Before(at) && w.Effective.After(at) {
			return true
		}
	}
	return false
}

// judge holds a document against the model's list of faults; hand is when a person did something to it, zero = nothing.
func (b *bench) judge(p path, hand time.Time) {
	did := !hand.IsZero()
	r, rs := b.row(p.key), b.records(p.key)
	say := func(format string, a ...any) {
		b.t.Errorf("%s (person: %s at %s): %s; row %s(%s) head %d of %d, %d records", p.key, p.hand, p.when, fmt.Sprintf(format, a...),
			r.State, r.Reason, r.Head, r.Tail, len(rs))
	}
	hands := 0
	for _, x := range rs {
		if len(x.ExternalIDs) == 0 {
			hands++
		}
	}
	withPerson := r.State == ledger.Parked && r.Reason != ledger.Rejected
	over := r.Head == r.Tail && r.State == ledger.Confirmed || r.State == ledger.Parked && (withPerson || r.Head == r.Tail)
	last := p.moves[len(p.moves)-1]
	switch {
	case !over:
		say("LIVELOCK: it never ends")
	case len(rs)-hands > 1:
		say("DUP: two records of ours")
	case len(rs) > 1 && !withPerson:
		say("TWO: nobody was told")
	case did && p.hand == "edit" && last.op != flexi.Delete && p.moves[len(p.moves)/2].op != flexi.Delete && !withPerson:
		if (len(rs) != 1 || fmt.Sprint(rs[0].Fields["varSym"]) != "999") && !b.onItsWay(p, hand) {
			say("OVER PERSON: the edit is gone and nobody was told")
		}
	case did:
	case p.fate != "outlive" && withPerson:
		say("left to a person though it heals by a look: %+v", r.Work.Story.Problem)
	case len(p.moves) == 1 && last.op == flexi.Update:
		if len(rs) > 0 || r.Reason != ledger.Rejected {
			say("MADE BY UPDATE, or not rejected")
		}
	case withPerson: // a request that outlived its settle time was noticed
	case last.op == flexi.Delete && len(rs) > 0:
		say("MANY: it was deleted, and is there")
	case last.op != flexi.Delete && len(rs) == 0:
		say("LOST: it is not there")
	case last.op != flexi.Delete && (rs[0].Fields["popis"] != last.text || fmt.Sprint(rs[0].Fields["varSym"]) != last.text+"00"):
		say("BACK: it shows %v, %v", rs[0].Fields["popis"], rs[0].Fields["varSym"])
	}
}

// TestModelDeaths: the process dies at every n-th step, stored and not stored.
func TestModelDeaths(t *testing.T) {
	every := []int{0, 11}
	if os.Getenv("FLEXID_SLOW") != "" {
		every = []int{0, 2, 3, 5, 7, 11, 13, 17, 23, 31}
	}
	for _, n := range every {
		for _, stored := range []bool{false, true} {
			if n == 0 && stored {
				continue
			}
			t.Run(fmt.Sprintf("at every %d. step, stored %v", n, stored), func(t *testing.T) {
				virtual(t, func(b *bench) {
					short(b)
					m := &mortal{stored: stored}
					b.wrap = func(l verify.Ledger) verify.Ledger { m.Ledger = l; return m }
					b.start()
					b.created("X", invoice("X"))
					m.every = n
					all := testenv.Some(b.t, 3, paths())
					did := walk(b, all, m)
					for _, p := range all {
						b.judge(p, did[p.key])
					}
				})
			})
		}
	}
}

// TestModelSecondWorker: two replicas work on the same documents.
func TestModelSecondWorker(t *testing.T) {
	virtual(t, func(b *bench) {
		short(b)
		b.start()
		b.created("X", invoice("X"))
		_, stop := b.second()
		defer func() { _ = stop() }()
		all := testenv.Some(b.t, 3, paths())
		did := walk(b, all, nil)
		for _, p := range all {
			b.judge(p, did[p.key])
		}
	})
}

// TestModelPerson: a person types, edits or deletes at the ERP, before, while a request is in doubt, and afterwards.
func TestModelPerson(t *testing.T) {
	whens := []time.Duration{0, 30 * time.Second}
	if os.Getenv("FLEXID_SLOW") != "" {
		whens = append(whens, 3*time.Second, 2*time.Minute)
	}
	for _, when := range whens {
		t.Run(when.String(), func(t *testing.T) {
			virtual(t, func(b *bench) {
				short(b)
				b.start()
				b.created("X", invoice("X"))
				var all []path
				for i, hand := range []string{"type", "type other", "edit", "delete"} {
					for _, p := range testenv.Some(b.t, 3, paths()) {
						p.key, p.hand, p.when = fmt.Sprint(i, p.key), hand, when
						all = append(all, p)
					}
				}
				did := walk(b, all, nil)
				for _, p := range all {
					b.judge(p, did[p.key])
				}
			})
		})
	}
}
