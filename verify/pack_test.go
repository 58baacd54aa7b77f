package verify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// many hands in n invoices named by prefix and number.
func (b *bench) many(prefix string, n int, more ...any) {
	b.t.Helper()
	for i := range n {
		key := fmt.Sprintf("%s%d", prefix, i)
		b.push(flexi.Create, key, invoice(key, more...))
	}
}

// in counts documents in a state.
func (b *bench) in(s ledger.State) int { return b.eng.Status().Documents[string(s)] }

// sizes are the numbers of documents in the write requests that the server got, in order.
func (b *bench) sizes() []int {
	var n []int
	for _, r := range b.fake.Requests() {
		if r.Kind == flexitest.Write {
			n = append(n, len(r.Docs))
		}
	}
	return n
}

// kods counts the records in Flexi by document number.
func (b *bench) kods() map[string]int {
	n := map[string]int{}
	for _, r := range b.fake.Records("faktura-vydana") {
		n[fmt.Sprint(r.Fields["kod"])]++
	}
	return n
}

// grown lets enough documents through that requests carry as many as they may.
func (b *bench) grown() {
	b.t.Helper()
	b.many("G", 60)
	b.until(time.Minute, "confirmed", func() bool { return b.in(ledger.Confirmed) == 60 })
	b.fake.ResetLog()
}

func TestPack(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		const n = 500
		b.many("A", n)
		b.until(time.Minute, "all confirmed", func() bool { return b.in(ledger.Confirmed) == n })
		sizes := b.sizes()
		if sizes[0] != 1 || slices.Max(sizes) != 20 {
			t.Errorf("sizes of the requests: %v", sizes)
		}
		if len(sizes) > n/20+12 { // the first ones are small
			t.Errorf("%d write requests for %d documents: %v", len(sizes), n, sizes)
		}
		kods := b.kods()
		for i := range n {
			if r := b.row(fmt.Sprint("A", i)); kods[r.Key] != 1 || r.FlexiID == "" || r.Sends != 1 {
				t.Fatalf("A%d: %d records, %s", i, kods[r.Key], pretty(r))
			}
		}
		b.pass(10 * time.Minute)
		if n := b.in(ledger.Confirmed); n != 500 {
			t.Errorf("%d confirmed after the read-back", n)
		}
	})
}

// TestPackIsOneKind: documents of another evidence or operation never share a request.
func TestPackIsOneKind(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.grown()
		for i := range 20 {
			b.push(flexi.Update, fmt.Sprint("G", i), doc{"popis": "Oprava"})
			b.push(flexi.Storno, fmt.Sprint("G", 20+i), doc{})
			b.push(flexi.Delete, fmt.Sprint("G", 40+i), doc{})
			b.push(flexi.Create, fmt.Sprint("F", i), doc{"@evidence": "adresar", "kod": fmt.Sprint("F", i), "nazev": "Firma"})
		}
		b.until(30*time.Minute, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 80 })
		for _, r := range b.fake.Requests() {
			if r.Kind != flexitest.Write {
				continue
			}
			kinds := map[string]bool{}
			for _, m := range []string{`"@action":"storno"`, `"@action":"delete"`, `"popis":"Oprava"`, `"nazev"`} {
				if n := strings.Count(string(r.Body), m); n > 0 {
					kinds[m] = true
					if n != len(r.Docs) {
						t.Errorf("%d of %d documents have %s", n, len(r.Docs), m)
					}
				}
			}
			if len(kinds) != 1 {
				t.Errorf("one request has %v", kinds)
			}
		}
		if n := len(b.sizes()); n > 20 {
			t.Errorf("%d requests for 80 changes: %v", n, b.sizes())
		}
		if got := b.field("G0", "popis"); got != "Oprava" {
			t.Errorf("G0 has %q", got)
		}
	})
}

// TestPackRefused: a document that Flexi does not take is rejected alone, by its own answer; the others go through.
func TestPackRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		invalid []int
		numbers bool // Flexi can name the guilty one
		most    int  // write requests
	}{
		{"one, named", []int{7}, true, 3},
		{"two, named one after the other", []int{3, 11}, true, 6},
		{"one, not named", []int{7}, false, 14},
		{"all", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, true, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.fake.NamelessErrors(!c.numbers)
				b.start()
				b.grown()
				for i := range 20 {
					key := fmt.Sprint("A", i)
					d := invoice(key)
					if slices.Contains(c.invalid, i) {
						d["typDokl"] = "code:NENI"
					}
					b.push(flexi.Create, key, d)
				}
				b.until(time.Minute, "all judged", func() bool {
					return b.in(ledger.Confirmed) == 80-len(c.invalid) && b.in(ledger.Parked) == len(c.invalid)
				})
				for i := range 20 {
					r, bad := b.row(fmt.Sprint("A", i)), slices.Contains(c.invalid, i)
					if bad && (r.Reason != ledger.Rejected || r.Cause != string(flexi.TypeMissing) || r.Work.Story.Problem == nil) {
						t.Errorf("invalid A%d: %s(%s) %s", i, r.State, r.Reason, r.Cause)
					}
					if got := len(b.records(fmt.Sprint("A", i))); got != 0 == bad {
						t.Errorf("A%d: %d records", i, got)
					}
					alone := 0
					for _, w := range b.fake.Writes(fmt.Sprint("A", i)) {
						if len(w.Docs) == 1 {
							alone++
						}
					}
					if bad && alone != 1 {
						t.Errorf("invalid A%d was sent alone %d times", i, alone)
					}
				}
				if n := len(b.sizes()); n > c.most {
					t.Errorf("%d write requests, want at most %d: %v", n, c.most, b.sizes())
				}
			})
		})
	}
}

// TestPackExists: where Flexi says that a record exists, the whole group is looked up before it is split.
func TestPackExists(t *testing.T) {
	virtual(t, func(b *bench) {
		b.set.LookFirst = false
		b.start()
		b.grown()
		// As an earlier installation left it: our external id, not in our ledger.
		b.fake.Type("faktura-vydana", map[string]any{"kod": "A3", "id": "ext:FLEXID:A3", "typDokl": "code:FAKTURA", "varSym": "20260001", "datVyst": "2026-11-30", "popis": "Služby"})
		b.many("A", 10)
		b.until(10*time.Minute, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 70 })
		for i := range 10 {
			b.wantRecords(fmt.Sprint("A", i), 1)
		}
		refused := false
		for _, r := range b.fake.Requests() {
			switch {
			case r.Kind == flexitest.Write && len(r.Docs) > 1 && r.Has("A3"):
				refused = true
			case r.Kind == flexitest.Write && refused && r.Has("A3"):
				t.Error("A3 was sent again though Flexi had said that it exists")
			}
		}
		if !refused {
			t.Fatal("A3 shared no request")
		}
	})
}

// TestPackUnknown: an unknown outcome makes a maybe of every document in the request; they are looked up together, and
// what is not there goes alone.
func TestPackUnknown(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  flexitest.Fault
		writes int
	}{
		{"done", flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500}, 1},
		{"not done", flexitest.Fault{Kind: flexitest.ServerError, Status: 500}, 11},
		{"no answer, done", flexitest.Fault{Kind: flexitest.ResetAfterCommit}, 1},
		{"no answer, not done", flexitest.Fault{Kind: flexitest.ResetAnswer}, 11},
		{"committed two minutes later", flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: 2 * time.Minute}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				b.grown()
				b.first("A4", c.fault)
				b.many("A", 10)
				b.until(time.Hour, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 70 })
				sizes := b.sizes()
				if len(sizes) != c.writes || sizes[0] != 10 {
					t.Errorf("write requests of %v documents, want %d, the first of 10", sizes, c.writes)
				}
				if len(sizes) > 1 && slices.Max(sizes[1:]) > 1 {
					t.Errorf("sent again together: %v", sizes)
				}
				looks := 0
				for _, r := range b.fake.Requests() {
					if r.Kind != flexitest.Write {
						looks++
					}
				}
				if looks > 40 {
					t.Errorf("%d reads: the look-ups of one request do not stay together", looks)
				}
				for i := range 10 {
					b.wantRecords(fmt.Sprint("A", i), 1)
				}
			})
		})
	}
}

// TestPackTorn: a transaction of which only a part shows is a person's.
func TestPackTorn(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.grown()
		b.first("A4", flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500})
		b.hide("A7")
		b.many("A", 10)
		b.until(time.Hour, "the rest confirmed", func() bool { return b.in(ledger.Confirmed) == 69 })
		r := b.becomes("A7", time.Hour, ledger.Parked, ledger.Unknown)
		if r.Work.Story.Problem == nil || !strings.Contains(r.Work.Story.Problem.Text, "faktura-vydana/A") {
			t.Errorf("the problem is %+v", r.Work.Story.Problem)
		}
		if n := len(b.fake.Writes("A7")); n != 1 {
			t.Errorf("%d writes of A7", n)
		}
		if !slices.Contains(b.notices.alerts(), "unknown") {
			t.Errorf("alerts: %v", b.notices.alerts())
		}
		b.fake.HideWhen(nil)
		b.becomes("A7", 2*time.Hour, ledger.Confirmed, "") // it turns up, and nobody has to do anything
		b.wantRecords("A7", 1)
	})
}

// TestPackWithoutRequestIDs: where the answer does not say whose an id is, a look does.
func TestPackWithoutRequestIDs(t *testing.T) {
	virtual(t, func(b *bench) {
		b.fake.OmitRequestIDs(true)
		b.start()
		b.grown()
		for i := range 10 {
			b.push(flexi.Create, fmt.Sprint("K", i), invoice("", "varSym", fmt.Sprint(100+i)))
		}
		b.until(time.Minute, "all confirmed and told", func() bool {
			return b.in(ledger.Confirmed) == 70 && len(b.notices.done()) >= 80
		})
		for i := range 10 {
			r := b.row(fmt.Sprint("K", i))
			rec := b.fake.Find("faktura-vydana", fmt.Sprint("ext:FLEXID:K", i))
			if len(rec) != 1 || r.FlexiID != fmt.Sprint(rec[0].ID) || r.Number != fmt.Sprint(rec[0].Fields["kod"]) {
				t.Errorf("K%d: row %s number %s, records %+v", i, r.FlexiID, r.Number, rec)
			}
		}
		last := map[string]string{}
		for _, m := range b.notices.done() {
			last[m.Key] = m.FlexiID
		}
		for i := range 10 {
			if key := fmt.Sprint("K", i); last[key] != b.row(key).FlexiID {
				t.Errorf("flexi.done says id %q of %s", last[key], key)
			}
		}
	})
}

// TestPackSizeFollowsTheServer: after requests that ended without an answer in time the next ones carry fewer documents.
func TestPackSizeFollowsTheServer(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.grown()
		b.fake.Probability(1, flexitest.Fault{Kind: flexitest.SilenceAfterCommit})
		b.many("A", 60)
		b.until(15*time.Minute, "all confirmed by looks", func() bool { return b.in(ledger.Confirmed) == 120 })
		b.fake.NoFaults()
		if sizes := b.sizes(); slices.Max(sizes) != 20 {
			t.Errorf("sizes of the requests into the silence: %v", sizes)
		}
		b.fake.ResetLog()
		b.many("B", 60)
		b.until(time.Minute, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 180 })
		sizes := b.sizes()
		if sizes[0] > 5 || slices.Max(sizes) <= sizes[0] {
			t.Errorf("sizes of the requests after the silence: %v", sizes)
		}
		for i := range 60 {
			b.wantRecords(fmt.Sprint("A", i), 1)
		}
	})
}

// TestPackPartlyClaimed: a document whose claim is not stored, or not known to be, stays out of the request; the others go.
func TestPackPartlyClaimed(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		stored bool
	}{
		{"somebody else wrote", &ledger.ConflictError{}, false},
		{"not stored, not known", &ledger.UndecidedError{Err: errStore}, false},
		{"stored, not known", &ledger.UndecidedError{Err: errStore}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				h, once := &hook{}, sync.Once{}
				h.claim = func(ctx context.Context, rows []*ledger.Row) []error {
					errs := make([]error, len(rows))
					out := slices.IndexFunc(rows, func(r *ledger.Row) bool { return r.Key == "A4" })
					if len(rows) < 2 || out < 0 {
						return h.Ledger.Claim(ctx, rows)
					}
					once.Do(func() {
						errs[out] = c.err
						if lost := rows[out].Clone(); c.stored {
							h.Ledger.Claim(ctx, []*ledger.Row{&lost})
						}
					})
					for i, row := range rows {
						if errs[i] == nil {
							errs[i] = h.Ledger.Claim(ctx, []*ledger.Row{row})[0]
						}
					}
					return errs
				}
				h.under(b)
				b.start()
				b.grown()
				b.many("A", 10)
				b.until(time.Hour, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 70 })
				if sizes := b.sizes(); sizes[0] != 9 {
					t.Errorf("requests of %v documents", sizes)
				}
				for i := range 10 {
					key := fmt.Sprint("A", i)
					b.wantRecords(key, 1)
					if n := len(b.fake.Writes(key)); n != 1 {
						t.Errorf("%s was sent %d times", key, n)
					}
				}
			})
		})
	}
}

// TestPackDiesInFlight: the process ends while a request of several documents is under way, done and not done. The next one
// looks all of them up and sends none that is there.
func TestPackDiesInFlight(t *testing.T) {
	for _, done := range []bool{true, false} {
		t.Run(fmt.Sprint("done ", done), func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.Drain = time.Second
				b.start()
				b.grown()
				b.first("A4", flexitest.Fault{Kind: flexitest.Silence, Done: done, Delay: time.Minute})
				b.many("A", 10)
				b.until(time.Minute, "under way", func() bool { return b.in(ledger.Sending) == 10 })
				b.halt()
				b.start()
				b.until(time.Hour, "all confirmed", func() bool { return b.in(ledger.Confirmed) == 70 })
				want := 1
				if !done {
					want = 2
				}
				for i := range 10 {
					key := fmt.Sprint("A", i)
					b.wantRecords(key, 1)
					if n := len(b.fake.Writes(key)); n != want {
						t.Errorf("%s was sent %d times, want %d", key, n, want)
					}
				}
			})
		})
	}
}
