package verify_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// load is how many documents the stress tests push: the numbers of the promise with FLEXID_SLOW, a tenth otherwise.
func load(full int) int {
	if os.Getenv("FLEXID_SLOW") == "" {
		return full / 10
	}
	return full
}

// wire counts the requests that the server got, and those of them that were writes.
func (b *bench) wire() (all, writes int) {
	for _, r := range b.fake.Requests() {
		all++
		if r.Kind == flexitest.Write {
			writes++
		}
	}
	return all, writes
}

// TestStressPacked: with one document in two hundred invalid, packing costs at most 0.18 wire requests a document, and 0.12
// without the first look; every invalid one is named with Flexi's words, and its neighbours are there.
func TestStressPacked(t *testing.T) {
	for _, c := range []struct {
		name string
		look bool
		most float64
	}{{"with the first look", true, 0.18}, {"without the first look", false, 0.12}} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.LookFirst = c.look
				b.start()
				b.created("X", invoice("X"))
				b.fake.ResetLog()
				n, bad := load(10_000), 0
				for i := range n {
					key := fmt.Sprintf("A%05d", i)
					d := invoice(key)
					if i%200 == 77 {
						d["typDokl"] = "code:NENI"
						bad++
					}
					b.push(flexi.Create, key, d)
				}
				b.until(time.Hour, "all judged", func() bool { return b.in(ledger.Confirmed) == n+1-bad && b.in(ledger.Parked) == bad })
				b.pass(10 * time.Minute) // the read-backs
				all, writes := b.wire()
				per := float64(all) / float64(n)
				t.Logf("%d documents, %d of them invalid: %d wire requests, %d of them writes: %.3f a document", n, bad, all, writes, per)
				if per > c.most {
					t.Errorf("%.3f wire requests a document, want at most %.2f", per, c.most)
				}
				kods := b.kods()
				for i := range n {
					key := fmt.Sprintf("A%05d", i)
					if i%200 != 77 {
						if kods[key] != 1 {
							t.Fatalf("%s: %d records", key, kods[key])
						}
						continue
					}
					r := b.row(key)
					if r.Reason != ledger.Rejected || r.Cause != string(flexi.TypeMissing) || len(r.Work.Story.Problem.Errors) == 0 || kods[key] != 0 {
						t.Errorf("invalid %s: %s(%s) %s, %d records", key, r.State, r.Reason, r.Cause, kods[key])
					}
				}
			})
		})
	}
}

// TestStressPoisoned: documents that every write with them fails for stand at the head of the queue. The good ones behind
// them are confirmed within twenty minutes, though the poisoned take turns with them up to eight times, and each poisoned one is named.
func TestStressPoisoned(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		n, poisoned := load(10_000), load(200)
		poison := func(r flexitest.Request) bool {
			return slices.ContainsFunc(r.Docs[0].Keys, func(k string) bool { return strings.HasPrefix(k, "ext:FLEXID:P") })
		}
		b.fake.OnWrite(0, poison, flexitest.Fault{Kind: flexitest.ServerError, Status: 500})
		for i := range poisoned {
			key := fmt.Sprintf("P%05d", i)
			b.push(flexi.Create, key, invoice(key))
		}
		for i := range n - poisoned {
			key := fmt.Sprintf("A%05d", i)
			b.push(flexi.Create, key, invoice(key))
		}
		took := b.until(20*time.Minute, "every good one confirmed", func() bool { return b.in(ledger.Confirmed) == n-poisoned+1 })
		t.Logf("%d good documents behind %d poisoned ones: confirmed within %s", n-poisoned, poisoned, took.Round(time.Second))
		b.until(24*time.Hour, "every poisoned one named", func() bool { return b.in(ledger.Parked) == poisoned })
		for i := range poisoned {
			r := b.row(fmt.Sprintf("P%05d", i))
			if r.Reason != ledger.Unknown || r.Work.Story.Problem == nil || r.Work.Opens != 8 {
				t.Fatalf("poisoned %s: %s(%s) after %d sends", r.Key, r.State, r.Reason, r.Work.Opens)
			}
		}
		for kod, records := range b.kods() {
			if records != 1 {
				t.Errorf("%s: %d records", kod, records)
			}
		}
	})
}

// TestStressOutage: into ten minutes without Flexi go at most three writes, those in flight and one a probe interval; then
// everything is confirmed and no maybe is left.
func TestStressOutage(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(b *bench)
		end   func(b *bench)
	}{
		{"no connection", func(b *bench) { b.fake.SetDown(true) }, func(b *bench) { b.fake.SetDown(false) }},
		{"every write ends in 502", func(b *bench) { b.fake.Probability(1, flexitest.Fault{Kind: flexitest.ServerError, Status: 502}) },
			func(b *bench) { b.fake.NoFaults() }},
		{"every write is lost", func(b *bench) { b.fake.Probability(1, flexitest.Fault{Kind: flexitest.ResetAnswer}) },
			func(b *bench) { b.fake.NoFaults() }},
		{"nothing answers", func(b *bench) {
			b.fake.Probability(1, flexitest.Fault{Kind: flexitest.Silence})
			b.fake.Slow(time.Hour)
		}, func(b *bench) { b.fake.NoFaults(); b.fake.Slow(0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.grown()
				n := load(1000)
				c.begin(b)
				b.many("A", n)
				b.pass(10 * time.Minute)
				_, writes := b.wire()
				probes := 5 + int(10*time.Minute/(45*time.Second)) // the pauses grow from 5 s to a minute, of which three quarters are waited here
				t.Logf("%d writes into the outage", writes)
				if writes > 3+4+probes {
					t.Errorf("%d writes into the outage, want at most %d", writes, 3+4+probes)
				}
				c.end(b)
				b.until(3*time.Hour, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 60+n })
				if b.in(ledger.Maybe) > 0 {
					t.Errorf("%d maybes are left", b.in(ledger.Maybe))
				}
				for kod, records := range b.kods() {
					if records != 1 {
						t.Errorf("%s: %d records", kod, records)
					}
				}
			})
		})
	}
}
