package push_test

import (
	"fmt"
	"testing"

	"flexid/batch/stream"
	"flexid/cmd/internal/push"

	"github.com/rs/zerolog"
)

// BenchmarkPublish is one event into a stream that syncs every event, with nobody who takes them out.
func BenchmarkPublish(b *testing.B) {
	js := stand(b, stream.Options{})
	s := spoolOf(b, numbered(b.N)...)
	b.ResetTimer()
	if err := push.Run(b.Context(), push.Options{Spool: s, Run: "r1", JS: js, Log: zerolog.Nop()}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCheck is one line of a file that is read, judged and spooled.
func BenchmarkCheck(b *testing.B) {
	lines := make([]string, b.N)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"evidence":"faktura-vydana","document":{"kod":"NB-%07d","varSym":"%d","typDokl":"code:FAKTURA","popis":"delivery %d",`+
			`"firma":"code:NOVAK","datVyst":"2026-03-09","polozkyFaktury":[{"nazev":"work","mnozMj":"1","cenaMj":"850.00","typSzbDphK":"typSzbDph.dphZakl"}]}}`, i, i, i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	spoolOf(b, lines...)
}
