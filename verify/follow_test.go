package verify_test

import (
	"flexid/verify"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// written stores a confirmed document as another process does of which this one knows nothing.
func (b *bench) written(key string) ledger.Row {
	b.t.Helper()
	ext := flexi.NewExternalID("FLEXID", "", key)
	row := ledger.Row{ID: ledger.RowID("firma", "faktura-vydana", ext), Evidence: "faktura-vydana", Key: key, Ext: ext, State: ledger.Confirmed}
	must(b.t, b.ledger.Settle(b.t.Context(), []*ledger.Row{&row})[0])
	return row
}

// TestWaitsForAnothers: a document waits for one that another process has taken a moment before, the first of its evidence.
func TestWaitsForAnothers(t *testing.T) {
	virtual(t, func(b *bench) {
		b.wrap = func(l verify.Ledger) verify.Ledger { return b.anotherLedger() }
		b.start()
		<-b.eng.Ready()
		ext := flexi.NewExternalID("FLEXID", "", "NOVA")
		row := ledger.Row{ID: ledger.RowID("firma", "adresar", ext), Evidence: "adresar", Key: "NOVA", Ext: ext, State: ledger.Queued, Tail: 1}
		_, err := b.ledger.TakeNumber(b.t.Context(), "adresar", "NOVA", row.ID)
		must(b.t, err)
		must(b.t, b.ledger.Settle(b.t.Context(), []*ledger.Row{&row})[0])
		b.push(flexi.Create, "A", invoice("A", "firma", "code:NOVA"))
		b.pass(time.Second)
		if r := b.row("A"); r.Reason != ledger.WaitsFor {
			b.t.Fatalf("A is %s(%s)", r.State, r.Reason)
		}
	})
}

// TestFollowsOthers: what another process stores is known here a moment later, also a row that does not come to rest; and a row that
// somebody deletes right after it was written is not.
func TestFollowsOthers(t *testing.T) {
	virtual(t, func(b *bench) {
		b.wrap = func(l verify.Ledger) verify.Ledger { return b.anotherLedger() }
		b.start()
		<-b.eng.Ready()
		b.written("A")
		b.until(time.Second, "known", func() bool { return b.in(ledger.Confirmed) == 1 })

		busy := b.written("B")
		for range 20 {
			b.pass(50 * time.Millisecond)
			must(b.t, b.ledger.Settle(b.t.Context(), []*ledger.Row{&busy})[0])
		}
		if n := b.in(ledger.Confirmed); n != 2 {
			b.t.Fatalf("%d documents known, of 2: one that changes all the time was never looked at", n)
		}

		// It waits for word for the first time, or for the second.
		for key, wait := range map[string]time.Duration{"C": 0, "D": 150 * time.Millisecond} {
			gone := b.written(key)
			b.pass(wait)
			must(b.t, b.kv().Delete(b.t.Context(), "d."+string(gone.ID)))
			b.pass(time.Second)
			if n := b.in(ledger.Confirmed); n != 2 {
				b.t.Fatalf("deleted %v after it was written: %d documents known, of 2", wait, n)
			}
		}
	})
}

// TestAcceptsWhatIsHeardOf: of a document that another process has stored a moment before, and whose row nobody has read here yet, a look
// is asked for too when a person accepts the restored books.
func TestAcceptsWhatIsHeardOf(t *testing.T) {
	virtual(t, func(b *bench) {
		b.wrap = func(verify.Ledger) verify.Ledger { return b.anotherLedger() }
		b.start()
		<-b.eng.Ready()
		b.pass(time.Second)
		ext := flexi.NewExternalID("FLEXID", "", "B")
		row := ledger.Row{ID: ledger.RowID("firma", "faktura-vydana", ext), Evidence: "faktura-vydana", Key: "B", Ext: ext, State: ledger.Confirmed, Head: 1, Tail: 1,
			Work: &ledger.Work{N: 1, Op: flexi.Create, Final: true}, Last: &ledger.Effect{N: 1, At: time.Now().Add(-time.Minute), Number: "B"}}
		must(b.t, b.ledger.Settle(b.t.Context(), []*ledger.Row{&row})[0])
		b.pass(50 * time.Millisecond)
		must(b.t, b.eng.AcceptCompany(b.t.Context(), "restored", "jana", "obnova"))
		if !b.row("B").LookOnce {
			b.t.Error("no look is asked for")
		}
	})
}
