package verify

import (
	"encoding/json"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

func fields(t *testing.T, text string) flexi.Record {
	t.Helper()
	var r flexi.Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKinOf(t *testing.T) {
	const ours = `{"cisDosle":"a1","datVyst":"2026-01-14","varSym":"1","sumCelkem":"100.0"}`
	for name, c := range map[string]struct {
		ours, theirs string
		want         kin
	}{
		"the same":                            {ours, ours, kinSame},
		"same year, all else differs":         {ours, `{"cisDosle":"a1","datVyst":"2026-12-31","varSym":"9","sumCelkem":"7"}`, kinSame},
		"same year, other letters":            {ours, `{"cisDosle":"A1","datVyst":"2026-12-31","varSym":"9"}`, kinCase},
		"year before, same varSym":            {ours, `{"cisDosle":"a1","datVyst":"2025-02-01","varSym":"1","sumCelkem":"7"}`, kinNear},
		"year before, same amount":            {ours, `{"cisDosle":"a1","datVyst":"2025-02-01","varSym":"9","sumCelkem":100}`, kinNear},
		"year before, 60 days apart":          {ours, `{"cisDosle":"a1","datVyst":"2025-11-15","varSym":"9","sumCelkem":"7"}`, kinNear},
		"year before, 61 days apart":          {ours, `{"cisDosle":"a1","datVyst":"2025-11-14","varSym":"9","sumCelkem":"7"}`, kinFar},
		"year after, 60 days apart":           {`{"cisDosle":"a1","datVyst":"2025-11-15"}`, `{"cisDosle":"a1","datVyst":"2026-01-14"}`, kinNear},
		"year before, other letters":          {ours, `{"cisDosle":"A1","datVyst":"2025-12-31"}`, kinNear},
		"year before, no varSym on either":    {`{"cisDosle":"a1","datVyst":"2026-06-14"}`, `{"cisDosle":"a1","datVyst":"2025-06-14"}`, kinFar},
		"year before, both free of charge":    {`{"cisDosle":"a1","datVyst":"2026-06-14","sumCelkem":"0"}`, `{"cisDosle":"a1","datVyst":"2025-06-14","sumCelkem":"0.0"}`, kinFar},
		"year before, one sum of two differs": {`{"cisDosle":"a1","datVyst":"2026-06-14","sumOsv":"5","sumCelkem":"6"}`, `{"cisDosle":"a1","datVyst":"2025-06-14","sumOsv":"5","sumCelkem":"7"}`, kinFar},
		"two years before, all alike":         {ours, `{"cisDosle":"a1","datVyst":"2024-12-31","varSym":"1","sumCelkem":"100.0"}`, kinFar},
		"no day here":                         {`{"cisDosle":"a1"}`, ours, kinSame},
		"no day there":                        {ours, `{"cisDosle":"a1"}`, kinSame},
		"a sum that is no number":             {`{"cisDosle":"a1","datVyst":"2026-06-14","sumCelkem":"1e999999999"}`, `{"cisDosle":"a1","datVyst":"2025-06-14","sumCelkem":"1e999999999"}`, kinFar},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kinOf(factsOf(fields(t, c.ours), nil), factsOf(fields(t, c.theirs), nil)); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// TestExistsNamesTheOtherYear: where Flexi says that a payable exists, and only another year's is there, that one is shown as
// the reason, however little it is alike.
func TestExistsNamesTheOtherYear(t *testing.T) {
	body := json.RawMessage(`{"cisDosle":"1","firma":"code:D","datVyst":"2026-06-14"}`)
	other := fields(t, `{"id":"7","cisDosle":"1","firma":"code:D","datVyst":"2023-06-14"}`)
	for _, exists := range []bool{false, true} {
		row := ledger.Row{Evidence: "faktura-prijata", Work: &ledger.Work{Opens: 1, Exists: exists}}
		e := &Engine{}
		f, is := e.likeness(&task{row: &row, ev: &ledger.Event{Number: "1", Derived: true, Body: body}}, []flexi.Record{other}, nil, nil)
		if is != exists || is && (f.verdict != verdictConflict || f.target != "7" || len(f.problem.Differ) == 0) {
			t.Errorf("exists %v: %v, %+v", exists, is, f)
		}
	}
}

// TestUsesNumber: which numbers a document still holds.
func TestUsesNumber(t *testing.T) {
	idle := func(change func(r *ledger.Row)) *ledger.Row {
		r := &ledger.Row{Evidence: "faktura-vydana", Head: 2, Tail: 2, Work: &ledger.Work{N: 2, Final: true}, Last: &ledger.Effect{Number: "A"}}
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		row  *ledger.Row
		a, b bool // whether it holds A, its effective number, and B
	}{
		"idle":                     {idle(func(*ledger.Row) {}), true, false},
		"deleted":                  {idle(func(r *ledger.Row) { r.Last = nil }), false, false},
		"an event waits":           {idle(func(r *ledger.Row) { r.Tail = 3 }), true, true},
		"a refused one has a turn": {idle(func(r *ledger.Row) { r.Redo = []int{1} }), true, true},
		"an event is under way":    {idle(func(r *ledger.Row) { r.Work.Final = false }), true, true},
		"a late look is due":       {idle(func(r *ledger.Row) { r.Last, r.Late = nil, lateAt() }), true, true},
		"of an older edition":      {idle(func(r *ledger.Row) { r.Last.Number = "" }), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := usesNumber(c.row, "A"), usesNumber(c.row, "B"); a != c.a || b != c.b {
				t.Errorf("A %v, B %v", a, b)
			}
		})
	}
	payable := &ledger.Row{Evidence: "zavazek", Work: &ledger.Work{Final: true}, Last: &ledger.Effect{Number: "a1", Partner: "7", Year: "2026"}}
	if !usesNumber(payable, "7|2026|A1") || usesNumber(payable, "7|2025|A1") {
		t.Error("a payable's number holds within its year")
	}
}

func lateAt() []time.Time { return []time.Time{time.Unix(1, 0)} }

// TestOneName: who meets a number of another source is told how both come to name one document.
func TestOneName(t *testing.T) {
	for name, c := range map[string]struct{ source, holder, want string }{
		"same source":                 {"", "", "send both under one key"},
		"a file after a webhook":      {"", "eshop", "send both under one key and source: `flexid push --source eshop`, over NATS the header Flexid-Source: eshop"},
		"a webhook after a file":      {"eshop", "", "send both under one key and source: `flexid push --source eshop`, over NATS the header Flexid-Source: eshop"},
		"two webhooks, one key each":  {"eshop", "eshop", "send both under one key"},
		"two webhooks of two sources": {"eshop", "sklad", "let one source send it"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := oneName(&ledger.Row{Source: c.source}, &ledger.Row{Source: c.holder}); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
