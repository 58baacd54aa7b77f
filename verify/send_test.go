package verify

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// slowERP is an ERP whose connections come about after a while, or not at all.
type slowERP struct {
	ERP
	after time.Duration
}

func (s slowERP) Dial(ctx context.Context) (*flexi.Conn, error) {
	time.Sleep(s.after)
	return nil, errors.New("no connection")
}

type noLedger struct{ Ledger }

// TestWaitsWhileAnotherIsSent: a worker whose slot carries an older document, because that one's own worker is not in line
// yet, has its own document looked at again when that is due, not when the other's answer has come.
func TestWaitsWhileAnotherIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const answer = 100 * time.Second
		set := Settings{System: "FLEXID", Company: "firma", Instance: "i", Run: "r", Pack: 1, Concurrency: 1}
		e, err := New(Options{ERP: slowERP{after: answer}, Ledger: noLedger{}, Settings: set})
		if err != nil {
			t.Fatal(err)
		}
		came, seq := time.Now(), uint64(0)
		document := func(key string) *task {
			seq++
			row := &ledger.Row{ID: ledger.ID(key), Evidence: "faktura-vydana", Key: key, Ext: flexi.NewExternalID("FLEXID", "", key)}
			row.Work = &ledger.Work{LastAbs: came}
			body := json.RawMessage(`{"kod":"` + key + `"}`)
			ev := &ledger.Event{Number: key, Body: body, Received: came, Stream: ledger.StreamRef{Seq: seq}}
			return &task{row: row, ev: ev, body: body, op: flexi.Create}
		}
		older, err := e.newJob(document("A"))
		if err != nil {
			t.Fatal(err)
		}
		e.packs.offer(older)
		turn, err := e.send(t.Context(), t.Context(), document("B"))
		if waited, want := time.Since(came), e.o.Settings.Fresh*3/4; err != nil || waited != want || !turn.goOn {
			t.Errorf("B came back after %s (%+v, %v), want %s", waited, turn, err, want)
		}
		if res := <-older.result; time.Since(came) != answer || res.next.at.IsZero() {
			t.Errorf("A came back after %s with %+v", time.Since(came), res)
		}
		e.sending.Wait()
	})
}
