package verify_test

import (
	"strings"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// TestStaleRoleThatComesAs403: it looks like a right that is missing, so what is to be done names both. Done, it goes on.
func TestStaleRoleThatComesAs403(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("X", invoice("X"))
		b.fake.Turn(flexitest.StaleIs403, true)
		b.fake.MakeStale("flexid")
		b.push(flexi.Create, "A", invoice("A"))
		var remedy string
		b.until(time.Minute, "closed", func() bool {
			st, ok := b.breaker("right")
			remedy = st.Remedy
			return ok
		})
		for _, word := range []string{"right", "stale", "/status/user/LOGIN/logout"} {
			if !strings.Contains(remedy, word) {
				b.t.Errorf("what is to be done does not say %q: %s", word, remedy)
			}
		}
		if r := b.row("A"); r.State != ledger.Queued {
			b.t.Errorf("it is %s(%s)", r.State, r.Reason)
		}
		erp, err := flexi.New(flexi.Options{URL: b.fake.URL(), Company: "firma", User: "flexid", Password: "secret", Dial: b.fake.Dial})
		must(b.t, err)
		must(b.t, erp.EndUserContext(b.t.Context()))
		must(b.t, b.eng.ResumeWrites(b.t.Context(), "faktura-vydana", "jana", "odhlášen"))
		b.becomes("A", time.Minute, ledger.Confirmed, "")
	})
}
