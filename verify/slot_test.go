package verify_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// evidences is which evidence each write went to, in order.
func (b *bench) evidences() []string {
	var out []string
	for _, r := range b.fake.Requests() {
		if r.Kind == flexitest.Write {
			out = append(out, r.Docs[0].Evidence)
		}
	}
	return out
}

// TestFirstComeFirstServed: a document of another evidence gets its place when its turn comes, however many of the first
// evidence wait beside it and however many more come.
func TestFirstComeFirstServed(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.Pack, b.set.Concurrency = 1, 2
		b.start()
		b.created("X", invoice("X"))
		b.push(flexi.Create, "P0", doc{"@evidence": "adresar", "kod": "P0", "nazev": "Firma 0"})
		b.until(time.Minute, "the first partner is confirmed", func() bool { return b.rowOf("adresar", "P0").State == ledger.Confirmed })
		b.fake.OnWrite(0, func(flexitest.Request) bool { return true }, flexitest.Fault{Kind: flexitest.ResponseDelay, Delay: 8 * time.Second})
		const ahead, partners = 30, 6
		b.many("A", ahead)
		b.pass(time.Second)
		n := 0
		for i := 1; i <= partners; i++ {
			key := fmt.Sprint("P", i)
			before, waiting := b.writes(), b.in(ledger.Queued)+b.in(ledger.Sending)
			b.push(flexi.Create, key, doc{"@evidence": "adresar", "kod": key, "nazev": "Firma " + key})
			sent := func() int { return slices.Index(b.evidences()[before:], "adresar") }
			for sent() < 0 && b.writes()-before < 3*ahead {
				b.pass(4 * time.Second)
				b.push(flexi.Create, fmt.Sprint("N", n), invoice(fmt.Sprint("N", n))) // as many as are sent
				n++
			}
			// While it is looked at again, because it waited for long, others may go.
			if got := sent(); got < 0 || got > waiting+4 {
				t.Errorf("%s: %d writes went before it (-1 = it has not been sent), %d documents waited when it came", key, got, waiting)
			}
		}
	})
}

// TestDoorOfOneEvidenceAmongOthers: a lost right to one evidence heals while writes of another are always under way.
func TestDoorOfOneEvidenceAmongOthers(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.Pack = 1
		b.start()
		b.grown()
		refused := func(r flexitest.Request) bool { return r.Docs[0].Evidence == "adresar" }
		slow := flexitest.Fault{Kind: flexitest.ResponseDelay, Delay: 8 * time.Second}
		b.fake.OnWrite(0, refused, flexitest.Fault{Kind: flexitest.ServerError, Status: 403})
		b.fake.OnWrite(0, func(r flexitest.Request) bool { return !refused(r) }, slow)
		for i := range 3 {
			key := fmt.Sprint("P", i)
			b.push(flexi.Create, key, doc{"@evidence": "adresar", "kod": key, "nazev": "Firma " + key})
		}
		n := 0
		traffic := func() {
			for range 4 {
				b.many(fmt.Sprint("N", n, "-"), 1)
				n++
				b.pass(2 * time.Second)
			}
		}
		for range 20 {
			traffic()
		}
		g := b.eng.Status().Stops
		if !slices.ContainsFunc(g, func(s verify.Stop) bool { return s.Evidence == "adresar" && s.Reason == "right" && !s.Open }) {
			t.Fatalf("the breaker of adresar has not tripped: %+v", g)
		}
		b.fake.NoFaults()
		b.fake.OnWrite(0, func(r flexitest.Request) bool { return !refused(r) }, slow)
		for begun := time.Now(); time.Since(begun) < 20*time.Minute; {
			traffic()
		}
		for i := range 3 {
			if r := b.rowOf("adresar", fmt.Sprint("P", i)); r.State != ledger.Confirmed {
				t.Errorf("20 minutes after the right came back P%d is %s(%s)", i, r.State, r.Reason)
			}
		}
	})
}

// TestTrialComesBeforeOlderEvents: the trial of a breaker does not wait for a backlog that is older. The oldest event of
// all waits for that breaker, was its trial already, and would wait for the whole of the backlog too.
func TestTrialComesBeforeOlderEvents(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.Pack = 1
		b.start()
		b.grown()
		partner := func(i int) {
			key := fmt.Sprint("P", i)
			b.push(flexi.Create, key, doc{"@evidence": "adresar", "kod": key, "nazev": "Firma " + key})
		}
		refused := func(r flexitest.Request) bool { return r.Docs[0].Evidence == "adresar" }
		b.fake.OnWrite(0, refused, flexitest.Fault{Kind: flexitest.ServerError, Status: 403})
		partner(0)
		b.pass(3 * time.Second)
		b.fake.SetDown(true)
		b.many("A", 100)
		for i := range 60 {
			partner(1 + i)
		}
		b.pass(time.Minute) // all of them wait for the breaker of all evidences
		b.fake.NoFaults()
		b.fake.OnWrite(0, func(r flexitest.Request) bool { return !refused(r) }, flexitest.Fault{Kind: flexitest.ResponseDelay, Delay: 8 * time.Second})
		b.fake.SetDown(false)
		before := b.writes()
		b.until(20*time.Minute, "the oldest is confirmed", func() bool { return b.rowOf("adresar", "P0").State == ledger.Confirmed })
		if n := slices.Index(b.evidences()[before:], "adresar"); n > 10 {
			t.Errorf("%d writes went before the breaker of adresar was tried", n)
		}
	})
}

// TestWaitingKeepsItsTurn: a document that waits for so long that it has to be looked at again goes before those that come
// later, also where an answer takes longer than what was seen may be built upon. Requests of one moment come in any order.
func TestWaitingKeepsItsTurn(t *testing.T) {
	for _, c := range []struct{ places, seconds int }{{1, 20}, {1, 70}, {4, 100}} {
		t.Run(fmt.Sprintf("%d places, answers after %d s", c.places, c.seconds), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.Concurrency, b.set.Pack = c.places, 1
				b.start()
				b.grown()
				answer := time.Duration(c.seconds) * time.Second
				b.fake.OnWrite(0, func(flexitest.Request) bool { return true }, flexitest.Fault{Kind: flexitest.ResponseDelay, Delay: answer})
				const ahead = 6
				b.many("A", ahead)
				b.pass(answer / time.Duration(2*c.places))
				for i := range 2 * ahead { // as many as are sent
					b.many(fmt.Sprint("N", i, "-"), 1)
					b.pass(answer / time.Duration(c.places))
				}
				keys := b.order()
				for i := range ahead {
					key := fmt.Sprint("A", i)
					if at := slices.Index(keys, key); at < 0 || at >= (ahead+c.places-1)/c.places*c.places {
						t.Errorf("%s is not among the first to be sent: %v", key, keys)
					}
				}
			})
		})
	}
}
