package verify_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexid/batch"
	"flexid/flexi"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"
)

// caseFile reads a file of the shared case folders; the test is skipped where they are not there.
func caseFile(t *testing.T, name string) (lines []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "cases", name))
	if err != nil {
		t.Skipf("the shared cases are not here: %v", err)
	}
	s := bufio.NewScanner(bytes.NewReader(data))
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	return lines
}

// came hands in a line of a file by one of the ways in, as its message would come.
func (b *bench) came(way, line string) verify.Event {
	b.t.Helper()
	b.seq++
	m := batch.Message{Stream: "FLEXID_PUSH", Seq: b.seq, Time: time.Now(), Received: time.Now(), Data: []byte(line)}
	d := batch.Decoder{System: "FLEXID"}
	file := d.DecodeFileEvent([]byte(line), "")
	var e verify.Event
	switch way {
	case "file":
		m.Subject, m.Data = "flexi.push."+file.Evidence, file.Body
		m.Header = map[string][]string{"Flexid-Op": {string(file.Op)}, "Flexid-Version": {file.Version}}
		if !file.Derived {
			m.Header["Flexid-Key"] = []string{file.Key}
		}
		e = d.Decode(m)
	case "signed webhook":
		m.Stream, m.Subject = "FLEXID_INBOX", fmt.Sprint("flexi.in.shop.h", b.seq)
		e = d.Decode(m)
	}
	if e.Problem != "" {
		b.t.Fatalf("%s: %s", line, e.Problem)
	}
	b.accept(e)
	return e
}

func (b *bench) rowAt(e verify.Event) ledger.Row {
	b.t.Helper()
	r, err := b.ledger.Get(b.t.Context(), ledger.RowID("firma", e.Evidence, flexi.NewExternalID("FLEXID", e.Source, e.Key)))
	must(b.t, err)
	return r
}

// over waits until nothing is left to do for an event's document.
func (b *bench) over(e verify.Event) ledger.Row {
	b.t.Helper()
	b.until(time.Hour, e.Evidence+"/"+e.Key+" over", func() bool {
		r := b.rowAt(e)
		return r.Head == r.Tail && (r.State == ledger.Confirmed || r.State == ledger.Parked || r.State == ledger.Dropped)
	})
	return b.rowAt(e)
}

// TestCaseReceivedNumberRestarts: a supplier's number that begins anew in January never changes last year's record.
func TestCaseReceivedNumberRestarts(t *testing.T) {
	last, this := caseFile(t, "received-number-restarts/1-last-year.ndjson"), caseFile(t, "received-number-restarts/2-this-year.ndjson")
	for _, way := range []string{"file", "signed webhook"} {
		t.Run(way, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				for _, line := range last {
					if r := b.over(b.came(way, line)); r.State != ledger.Confirmed {
						b.t.Fatalf("last year's: %s", pretty(r))
					}
				}
				before := fmt.Sprint(b.fake.Records("faktura-prijata"))
				r := b.over(b.came(way, this[0]))
				if r.State != ledger.Parked || r.Reason != ledger.Conflict {
					b.t.Fatalf("this year's is %s(%s)", r.State, r.Reason)
				}
				said := fmt.Sprintf("%+v", r.Work.Story.Problem)
				for _, word := range []string{"2025-01-15", "2026-01-14", "1000", "2500", "key"} {
					if !strings.Contains(said, word) {
						b.t.Errorf("the problem lacks %s: %s", word, said)
					}
				}
				if after := fmt.Sprint(b.fake.Records("faktura-prijata")); after != before {
					b.t.Fatalf("last year's record was changed:\n%s\n%s", before, after)
				}
				// A person says that they are two, and the next correction of this year's finds its own record.
				b.decideAt(r, verify.DecideResend)
				e := b.came(way, strings.Replace(this[0], `"2500"`, `"2600"`, 1))
				if r := b.over(e); r.State != ledger.Confirmed {
					b.t.Fatalf("the correction: %s", pretty(r))
				}
				b.pass(65 * time.Minute)
				if r := b.rowAt(e); r.State != ledger.Confirmed {
					b.t.Fatalf("an hour later: %s", pretty(r))
				}
				sums := map[string]string{}
				for _, r := range b.fake.Records("faktura-prijata") {
					sums[fmt.Sprint(r.Fields["datVyst"])[:4]] = fmt.Sprint(r.Fields["sumOsv"])
				}
				if len(b.fake.Records("faktura-prijata")) != 2 || !strings.HasPrefix(sums["2025"], "1000") || !strings.HasPrefix(sums["2026"], "2600") {
					b.t.Fatalf("records: %v", sums)
				}
			})
		})
	}
}

func (b *bench) decideAt(r ledger.Row, what verify.What) ledger.Row {
	b.t.Helper()
	got, err := b.eng.Decide(b.t.Context(), verify.Address{Evidence: r.Evidence, Source: r.Source, Key: r.Key}, verify.Decision{What: what, By: "jana", Why: "zkontrolováno"})
	must(b.t, err)
	return got
}

// derived is an event whose key was made from the number, as package batch makes it.
func (b *bench) derived(op flexi.Op, body doc) verify.Event {
	e := b.event(op, "", body)
	got := batch.Decoder{System: "FLEXID"}.Decode(batch.Message{Subject: "flexi.push." + e.Evidence, Data: e.Body, Header: map[string][]string{"Flexid-Op": {string(op)}}})
	if got.Problem != "" || !got.Derived {
		b.t.Fatalf("no key from the number: %s", got.Problem)
	}
	e.Key, e.Derived = got.Key, true
	return e
}

// TestYears: an event without a given key never changes another year's document; what is alike over New Year or differs in
// letter case alone is a person's; a correction goes through.
func TestYears(t *testing.T) {
	given := func(b *bench, key string, op flexi.Op, body doc) verify.Event { return b.event(op, key, body) }
	cases := []struct {
		name    string
		first   func(b *bench) // what is there before
		then    func(b *bench) verify.Event
		state   ledger.State
		reason  ledger.Reason
		records int
		text    string // in the problem
	}{
		{"a correction in the same year", func(b *bench) {
			b.over(b.acc(b.derived(flexi.Upsert, received("1", "code:D", "sumOsv", "1000"))))
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Upsert, received("1", "code:D", "sumOsv", "1200"))
		}, ledger.Confirmed, "", 1, ""},
		{"a correction of a hand-typed one in the same year", func(b *bench) {
			b.typeReceived("1", "2026-11-30", "1", "1000")
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Upsert, received("1", "code:D", "sumOsv", "1200"))
		}, ledger.Confirmed, "", 1, ""},
		{"the year after, nothing alike", func(b *bench) {
			b.typeReceived("1", "2025-03-01", "7", "500")
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Upsert, received("1", "code:D", "sumOsv", "1200"))
		}, ledger.Confirmed, "", 2, ""},
		{"the year after, the same varSym", func(b *bench) {
			b.typeReceived("1", "2025-03-01", "1", "500")
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Upsert, received("1", "code:D", "sumOsv", "1200"))
		}, ledger.Parked, ledger.Conflict, 1, "another year"},
		{"the year after, the same amount", func(b *bench) {
			b.typeReceived("1", "2025-03-01", "7", "1200")
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Create, received("1", "code:D", "sumOsv", "1200.00"))
		}, ledger.Parked, ledger.Conflict, 1, "another year"},
		{"the year after, a month apart", func(b *bench) {
			b.typeReceived("1", "2025-12-20", "7", "500")
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Create, received("1", "code:D", "sumOsv", "1200", "datVyst", "2026-01-10"))
		}, ledger.Parked, ledger.Conflict, 1, "another year"},
		{"the year before, a month apart", func(b *bench) {
			b.typeReceived("1", "2026-01-10", "7", "500")
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Create, received("1", "code:D", "sumOsv", "1200", "datVyst", "2025-12-20"))
		}, ledger.Parked, ledger.Conflict, 1, "another year"},
		{"two years later, all alike", func(b *bench) {
			b.typeReceived("1", "2024-11-30", "1", "1200")
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Create, received("1", "code:D", "sumOsv", "1200"))
		}, ledger.Confirmed, "", 2, ""},
		{"the year after, of ours, under a key of its own", func(b *bench) {
			b.over(b.acc(given(b, "k25", flexi.Create, received("1", "code:D", "datVyst", "2025-11-30"))))
		}, func(b *bench) verify.Event {
			return given(b, "k26", flexi.Upsert, received("1", "code:D"))
		}, ledger.Confirmed, "", 2, ""},
		{"a given key without a day", func(b *bench) {
			b.typeReceived("1", "2025-03-01", "7", "500")
		}, func(b *bench) verify.Event {
			body := received("1", "code:D")
			delete(body, "datVyst")
			return given(b, "k", flexi.Upsert, body)
		}, ledger.Parked, ledger.Conflict, 1, "datVyst"},
		{"a storno of another year's", func(b *bench) {
			b.typeReceived("1", "2025-03-01", "1", "500")
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Storno, received("1", "code:D"))
		}, ledger.Parked, ledger.Conflict, 1, "another year"},
		{"other letters, of ours", func(b *bench) {
			b.over(b.acc(b.derived(flexi.Create, received("a/1", "code:D"))))
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Create, received("A/1", "code:D"))
		}, ledger.Parked, ledger.Conflict, 1, "written"},
		{"other letters, typed by hand", func(b *bench) {
			b.typeReceived("a/1", "2026-03-01", "9", "500")
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Upsert, received("A/1", "code:D"))
		}, ledger.Parked, ledger.Conflict, 1, "letters"},
		{"the same number under another key", func(b *bench) {
			b.over(b.acc(given(b, "k1", flexi.Create, received("1", "code:D"))))
		}, func(b *bench) verify.Event {
			return given(b, "k2", flexi.Create, received("1", "code:D"))
		}, ledger.Parked, ledger.Duplicate, 1, "k1"},
		{"an issued number of another year and partner", func(b *bench) {
			b.over(b.acc(b.derived(flexi.Upsert, invoice("FV-1", "firma", "code:D", "datVyst", "2025-01-15"))))
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Upsert, invoice("FV-1", "firma", "code:E", "datVyst", "2026-01-15"))
		}, ledger.Parked, ledger.Conflict, 1, "another year"},
		{"an update of an issued number of another year and partner", func(b *bench) {
			b.over(b.acc(b.derived(flexi.Upsert, invoice("FV-1", "firma", "code:D", "datVyst", "2025-01-15"))))
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Update, invoice("FV-1", "firma", "code:E", "datVyst", "2026-01-15"))
		}, ledger.Parked, ledger.Conflict, 1, "another year"},
		{"a storno of an issued number of another year and partner", func(b *bench) {
			b.over(b.acc(b.derived(flexi.Upsert, invoice("FV-1", "firma", "code:D", "datVyst", "2025-01-15"))))
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Storno, invoice("FV-1", "firma", "code:E", "datVyst", "2026-01-15"))
		}, ledger.Parked, ledger.Conflict, 1, "another year"},
		{"an issued number of another year, the same partner", func(b *bench) {
			b.over(b.acc(b.derived(flexi.Upsert, invoice("FV-1", "firma", "code:D", "datVyst", "2025-12-31"))))
		}, func(b *bench) verify.Event {
			return b.derived(flexi.Upsert, invoice("FV-1", "firma", "code:D", "datVyst", "2026-01-02"))
		}, ledger.Confirmed, "", 1, ""},
		{"an issued number of another year and partner under a given key", func(b *bench) {
			b.over(b.acc(given(b, "k", flexi.Upsert, invoice("FV-1", "firma", "code:D", "datVyst", "2025-01-15"))))
		}, func(b *bench) verify.Event {
			return given(b, "k", flexi.Upsert, invoice("FV-1", "firma", "code:E", "datVyst", "2026-01-15"))
		}, ledger.Confirmed, "", 1, ""},
	}
	for _, c := range testenv.Some(t, 3, cases) {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				for _, kod := range []string{"D", "E"} {
					b.fake.Type("adresar", map[string]any{"kod": kod, "nazev": "Dodavatel " + kod})
				}
				b.start()
				c.first(b)
				e := c.then(b)
				b.accept(e)
				r := b.over(e)
				if r.State != c.state || r.Reason != c.reason {
					b.t.Fatalf("%s(%s), want %s(%s)\n%s", r.State, r.Reason, c.state, c.reason, pretty(r))
				}
				if n := len(b.fake.Records(e.Evidence)); n != c.records {
					b.t.Errorf("%d records, want %d", n, c.records)
				}
				if p := r.Work.Story.Problem; c.text != "" && (p == nil || !strings.Contains(p.Text, c.text) || c.reason == ledger.Conflict && len(p.Differ) == 0) {
					b.t.Errorf("the problem lacks %q or both sides: %+v", c.text, p)
				}
				if c.state == ledger.Parked {
					b.pass(time.Hour)
					if n := len(b.fake.Writes("ext:FLEXID:" + e.Key)); n > 1 {
						b.t.Errorf("%d writes", n)
					}
				}
			})
		})
	}
}

func (b *bench) acc(e verify.Event) verify.Event {
	b.t.Helper()
	b.accept(e)
	return e
}

func (b *bench) typeReceived(cis, day, varSym, sum string) {
	body := received(cis, "code:D", "datVyst", day, "varSym", varSym, "sumOsv", sum)
	delete(body, "@evidence")
	b.fake.Type("faktura-prijata", map[string]any(body))
}
