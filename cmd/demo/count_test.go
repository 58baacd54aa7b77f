package main

import (
	"strings"
	"testing"

	"flexid/flexi/flexitest"
)

// auditCase is a small piece whose documents are typed into the books as flexid should have left them; then something is
// done to the books, and the audit has to see it.
func auditCase(t *testing.T, harm func(erp *flexitest.Server)) *tally {
	t.Helper()
	erp := flexitest.New(flexitest.Options{AllowUsedNumbers: true})
	t.Cleanup(erp.Close)
	p := &piece{documents: []*document{
		{evidence: "faktura-vydana", key: "A", number: "A-1", ext: "ext:FLEXID:A", rows: 1, want: map[string]string{"popis": "první", "sumCelkem": "121"}},
		{evidence: "faktura-vydana", key: "B", ext: "ext:FLEXID:B", want: map[string]string{"datVyst": "2026-03-02"}},
		{evidence: "faktura-prijata", key: "C", number: "77", ext: "ext:FLEXID:C", want: map[string]string{"storno": "false"}},
		{evidence: "faktura-vydana", key: "R", number: "R-1", ext: "ext:FLEXID:R", refused: true, want: map[string]string{}},
	}}
	before := len(erp.Records("faktura-vydana")) + len(erp.Records("faktura-prijata"))
	enter(t, erp, "faktura-vydana", map[string]any{"id": "ext:FLEXID:A", "kod": "A-1", "varSym": "1", "typDokl": "code:FAKTURA", "popis": "první",
		"polozkyFaktury": []any{map[string]any{"nazev": "práce", "cenaMj": "100"}}})
	enter(t, erp, "faktura-vydana", map[string]any{"id": "ext:FLEXID:B", "typDokl": "code:FAKTURA", "datVyst": "2026-03-02"})
	enter(t, erp, "faktura-prijata", map[string]any{"id": "ext:FLEXID:C", "typDokl": "code:FAKTURA", "cisDosle": "77", "firma": "code:PAPIR"})
	harm(erp)
	var got tally
	b := newBooks(erp, p.evidences())
	got.audit(p, erp, b, before, func(d *document) bool { return d.refused })
	return &got
}

func enter(t *testing.T, erp *flexitest.Server, evidence string, fields map[string]any) int64 {
	t.Helper()
	id := erp.Type(evidence, fields)
	if id == 0 {
		t.Fatalf("the fake refused %v", fields)
	}
	return id
}

func TestAuditSeesTheDamage(t *testing.T) {
	first := func(erp *flexitest.Server, ref string) int64 { return erp.Find("faktura-vydana", ref)[0].ID }
	tests := map[string]struct {
		harm             func(t *testing.T, erp *flexitest.Server)
		duplicates, lost int
		wrong            string
	}{
		"nothing": {func(*testing.T, *flexitest.Server) {}, 0, 0, ""},
		"a second record with the number": {func(t *testing.T, erp *flexitest.Server) {
			enter(t, erp, "faktura-vydana", map[string]any{"kod": "A-1", "varSym": "1", "typDokl": "code:FAKTURA"})
		}, 1, 0, ""},
		"a second record that nobody knows": {func(t *testing.T, erp *flexitest.Server) {
			enter(t, erp, "faktura-vydana", map[string]any{"typDokl": "code:FAKTURA"})
		}, 1, 0, ""},
		"made twice, one deleted since": {func(t *testing.T, erp *flexitest.Server) {
			erp.Remove("faktura-vydana", first(erp, "ext:FLEXID:B"))
			enter(t, erp, "faktura-vydana", map[string]any{"id": "ext:FLEXID:B", "typDokl": "code:FAKTURA", "datVyst": "2026-03-02"})
		}, 1, 0, ""},
		"a record is gone": {func(t *testing.T, erp *flexitest.Server) {
			erp.Remove("faktura-vydana", first(erp, "ext:FLEXID:B"))
		}, 0, 1, ""},
		"another text": {func(t *testing.T, erp *flexitest.Server) {
			erp.Edit("faktura-vydana", first(erp, "code:A-1"), map[string]any{"popis": "jiný"})
		}, 0, 0, `popis is "jiný", not "první"`},
		"rows doubled": {func(t *testing.T, erp *flexitest.Server) {
			erp.Edit("faktura-vydana", first(erp, "code:A-1"), map[string]any{"polozkyFaktury": []any{map[string]any{"nazev": "práce", "cenaMj": "100"}}})
		}, 0, 0, "2 rows, not 1"},
		"the refused one was written": {func(t *testing.T, erp *flexitest.Server) {
			enter(t, erp, "faktura-vydana", map[string]any{"id": "ext:FLEXID:R", "kod": "R-1", "varSym": "1", "typDokl": "code:FAKTURA"})
		}, 0, 0, "is in Flexi although it was to be refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := auditCase(t, func(erp *flexitest.Server) { tt.harm(t, erp) })
			if got.duplicates != tt.duplicates || got.lost != tt.lost {
				t.Errorf("duplicates %d, lost %d; want %d, %d", got.duplicates, got.lost, tt.duplicates, tt.lost)
			}
			if wrong := strings.Join(got.wrong, "\n"); !strings.Contains(wrong, tt.wrong) || (tt.wrong == "") != (wrong == "") {
				t.Errorf("wrong content %q, want %q", wrong, tt.wrong)
			}
			if good := tt.duplicates == 0 && tt.lost == 0 && tt.wrong == ""; got.good() != good {
				t.Errorf("good() = %v", got.good())
			}
		})
	}
}

func TestSame(t *testing.T) {
	tests := map[string]struct {
		want, shown string
		same        bool
	}{
		"text":             {"a", "a", true},
		"another text":     {"a", "b", false},
		"decimals":         {"121", "121.0", true},
		"other number":     {"121", "121.5", false},
		"date with zone":   {"2026-03-02", "2026-03-02+01:00", true},
		"another date":     {"2026-03-02", "2026-03-03+01:00", false},
		"absent":           {"a", "<nil>", false},
		"empty, not found": {"", "<nil>", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if same(tt.want, tt.shown) != tt.same {
				t.Errorf("same(%q, %q) = %v", tt.want, tt.shown, !tt.same)
			}
		})
	}
}
