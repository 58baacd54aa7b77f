package push_test

import (
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
