package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// TestHalfABatch: a server stores a batch key by key, and leaves it half stored, without an answer, when a limit of the server
// or the account is reached on the way. That is not a success.
func TestHalfABatch(t *testing.T) {
	b := newBox(t, func(o *server.Options) { o.JetStreamMaxStore = 3 << 20 })
	js := b.connect()
	l := mustOpen(t, js, Options{Create: true, Timeout: time.Second})
	for n := 1; ; n++ {
		puts := make([]put, 10)
		for i := range puts {
			puts[i] = put{key: fmt.Sprintf("u.%d.%d", n, i), value: append(make([]byte, 100<<10), l.token()...)}
		}
		_, err := l.commit(t.Context(), puts)
		there := 0
		for _, p := range puts {
			if _, err := l.get(t.Context(), p.key); err == nil {
				there++
			}
		}
		if err == nil && there < len(puts) {
			t.Fatalf("unit %d: stored, says the ledger; %d keys of %d are there", n, there, len(puts))
		}
		if err != nil {
			var full *FullError
			t.Log(n, there, err, errors.As(err, &full))
			return
		}
	}
}
