package flexi

import (
	"strconv"
	"testing"
)

// BenchmarkPrepare is what the requests of twenty documents cost: each is prepared alone, and then all of them together.
func BenchmarkPrepare(b *testing.B) {
	var writes []Write
	for i := range 20 {
		n := strconv.Itoa(100_000 + i)
		writes = append(writes, Write{Evidence: "faktura-vydana", Op: Create, Docs: []Doc{{Ext: ExternalID("ext:FLEXID:T" + n), Number: "T" + n,
			Body: []byte(`{"kod":"T` + n + `","typDokl":"code:FAKTURA","varSym":"` + n + `","datVyst":"2026-03-09","firma":"code:NOVAK",` +
				`"polozkyFaktury":[{"nazev":"Práce","mnozMj":"2","cenaMj":"850.00","typSzbDphK":"typSzbDph.dphZakl"}]}`)}}})
	}
	b.ReportAllocs()
	for b.Loop() {
		var one []Prepared
		for _, w := range writes {
			p, err := Prepare(w)
			if err != nil {
				b.Fatal(err)
			}
			one = append(one, p)
		}
		if _, err := Join(one); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBody is what intake asks of a body.
func BenchmarkBody(b *testing.B) {
	body := []byte(`{"kod":"T100000","typDokl":"code:FAKTURA","varSym":"100000","datVyst":"2026-03-09","firma":"code:NOVAK",` +
		`"polozkyFaktury":[{"nazev":"Práce","mnozMj":"2","cenaMj":"850.00","typSzbDphK":"typSzbDph.dphZakl"}]}`)
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := CheckBody("faktura-vydana", "FLEXID", body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("number", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := NumberOf("faktura-vydana", body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("digest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Digest(body)
		}
	})
}
