package verify_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify"
	"flexid/verify/ledger"
)

// stops are the reasons for which writes were stopped so far, each as "evidence: reason".
func (b *bench) stops() []string {
	b.seen.mu.Lock()
	defer b.seen.mu.Unlock()
	return append([]string{}, b.seen.stops...)
}

func (b *bench) wantNoStop() {
	b.t.Helper()
	if got := b.stops(); len(got) > 0 {
		b.t.Errorf("writes were stopped: %v", got)
	}
}

// caseEvents reads the events of a case.
func caseEvents(t *testing.T, name string) []verify.Event {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "cases", filepath.FromSlash(name)))
	if err != nil {
		t.Skipf("the cases are not here: %v", err)
	}
	var out []verify.Event
	for line := range strings.Lines(string(raw)) {
		var in struct {
			Evidence, Key, Op string
			Document          json.RawMessage
		}
		must(t, json.Unmarshal([]byte(line), &in))
		op := flexi.Create
		if in.Op == "" {
			op = flexi.Upsert // as in files
		}
		if in.Key == "" {
			var d struct{ Kod string }
			must(t, json.Unmarshal(in.Document, &d))
			in.Key = d.Kod
		}
		out = append(out, verify.Event{Evidence: in.Evidence, Key: in.Key, Op: op, Body: in.Document})
	}
	return out
}

func (b *bench) take(ev verify.Event) {
	b.t.Helper()
	b.seq++
	ev.EventID, ev.Received, ev.Stream, ev.Seq, ev.StreamTime = fmt.Sprint("FLEXID_PUSH:", b.seq), time.Now(), "FLEXID_PUSH", b.seq, time.Now()
	_, err := b.eng.Accept(b.t.Context(), ev)
	must(b.t, err)
}

// TestEvidenceNotImportable: rows that a sender writes as documents of their own are rejected, with what to do, and stop
// nobody: not the invoices, not their own evidence.
func TestEvidenceNotImportable(t *testing.T) {
	events := caseEvents(t, "evidence-not-importable/rows.ndjson")
	for _, c := range []struct {
		name  string
		set   func(*flexitest.Server)
		sends int // most of one row
	}{
		{"the list says so", func(*flexitest.Server) {}, 0},
		{"the list says nothing", func(s *flexitest.Server) { s.SetImportStatus("faktura-vydana-polozka", "SUPPORTED") }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				c.set(b.fake)
				b.fake.Slow(100 * time.Millisecond)
				b.start()
				for _, ev := range events {
					b.take(ev)
				}
				took := b.until(5*time.Minute, "all over", func() bool { return b.in(ledger.Confirmed) == 20 && b.in(ledger.Parked) == 20 })
				if took > 30*time.Second {
					t.Errorf("all over after %s", took)
				}
				for _, ev := range events {
					r := b.rowOf(ev.Evidence, ev.Key)
					if ev.Evidence == "faktura-vydana" {
						continue
					}
					p := r.Work.Story.Problem
					if r.Reason != ledger.Rejected || r.Cause != string(flexi.NotImportable) || p == nil || r.Sends > c.sends {
						t.Fatalf("%s is %s(%s) for %s after %d sends: %+v", ev.Key, r.State, r.Reason, r.Cause, r.Sends, p)
					}
					if c.sends == 0 && !strings.Contains(p.Text, "polozkyFaktury") || c.sends > 0 && !strings.Contains(p.Text, "Import není povolen") {
						t.Fatalf("%s says %q", ev.Key, p.Text)
					}
				}
				b.wantNoStop()
				begun := time.Now()
				b.push(flexi.Create, "LATER", invoice("LATER"))
				b.becomes("LATER", time.Minute, ledger.Confirmed, "")
				if time.Since(begun) > 5*time.Second {
					t.Errorf("an invoice that comes later took %s", time.Since(begun))
				}
			})
		})
	}
}

// TestStaleRoleSaysNoImport: the same words for an evidence that can be written are a stale role. It is renewed, and nothing is
// parked.
func TestStaleRoleSaysNoImport(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.fake.StaleSays("Import není povolen.", "importNotAllowed")
		b.fake.MakeStale("flexid")
		b.many("A", 30)
		b.until(time.Minute, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 31 })
		b.wantNoStop()
	})
}

// TestSickEvidence: while the fields of one evidence cannot be read, documents of another take what they take alone.
func TestSickEvidence(t *testing.T) {
	const contacts, invoices = 50, 100
	run := func(t *testing.T, sick flexitest.Fault, contacts int) (took time.Duration) {
		virtual(t, func(b *bench) {
			b.set.Pack, b.set.Concurrency = 1, 2
			b.fake.Slow(500 * time.Millisecond)
			b.start()
			b.created("X", invoice("X"))
			b.fake.Sick("adresar", flexitest.Metadata, sick)
			for i := range max(contacts, invoices) {
				if i < contacts {
					key := fmt.Sprint("P", i)
					b.push(flexi.Create, key, doc{"@evidence": "adresar", "kod": key, "nazev": "Firma " + key})
				}
				b.many(fmt.Sprint("A", i, "-"), 1)
			}
			took = b.until(time.Hour, "all invoices confirmed", func() bool { return b.in(ledger.Confirmed) == invoices+1 })
			for _, stop := range b.stops() {
				if strings.HasPrefix(stop, "all evidences") {
					t.Errorf("writes to all evidences were stopped: %v", b.stops())
				}
			}
			if contacts == 0 {
				return
			}
			b.fake.Sick("adresar", flexitest.Metadata, flexitest.Fault{})
			b.until(30*time.Minute, "the contacts are confirmed", func() bool { return b.in(ledger.Confirmed) == invoices+1+contacts })
		})
		return took
	}
	alone := run(t, flexitest.Fault{}, 0)
	for name, f := range map[string]flexitest.Fault{
		"500":   {Kind: flexitest.ServerError, Status: 500},
		"404":   {Kind: flexitest.ServerError, Status: 404},
		"hangs": {Kind: flexitest.Silence},
	} {
		t.Run(name, func(t *testing.T) {
			took := run(t, f, contacts)
			t.Logf("%d invoices: %s alone, %s beside %d contacts", invoices, alone, took, contacts)
			if took > alone*11/10+2*time.Second {
				t.Errorf("%d invoices took %s, alone %s", invoices, took, alone)
			}
		})
	}
}
