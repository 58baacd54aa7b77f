package daemon

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"flexid/batch/stream"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

// TestACursorThatMovesWhileItIsRead is no ledger that was set back: intake takes while the stores are looked after.
func TestACursorThatMovesWhileItIsRead(t *testing.T) {
	d := &daemon{}
	d.noteTaken(map[string]uint64{"S": 100})
	read := func(seq, meanwhile uint64) error {
		_, err := d.notBefore("S", func() (ledger.Cursor, error) {
			d.noteTaken(map[string]uint64{"S": meanwhile})
			return ledger.Cursor{Stream: "S", Seq: seq}, nil
		})
		return err
	}
	if err := read(100, 350); err != nil {
		t.Errorf("taken meanwhile: %v", err)
	}
	var back *stream.SetBackError
	if err := read(349, 0); !errors.As(err, &back) || back.Taken != 349 || back.Before != 350 {
		t.Errorf("set back: %v", err)
	}
}

// TestACursorRemovedByHand is a person's matter, and a person's word mends it: nothing is sent twice, and intake goes on.
func TestACursorRemovedByHand(t *testing.T) {
	for name, remove := range map[string]func(jetstream.KeyValue) error{
		"deleted": func(kv jetstream.KeyValue) error { return kv.Delete(t.Context(), "c.FLEXID_PUSH") },
		"purged":  func(kv jetstream.KeyValue) error { return kv.Purge(t.Context(), "c.FLEXID_PUSH") },
	} {
		t.Run(name, func(t *testing.T) {
			erp := startERP(t, flexitest.Options{})
			r := begin(t, settings(t, erp, t.TempDir()))
			r.push("FV-1")
			r.becomes("FV-1", "confirmed")
			nc, js := r.nats()
			defer nc.Close()
			kv, err := js.KeyValue(t.Context(), "flexid_ledger")
			if err != nil {
				t.Fatal(err)
			}
			if err := remove(kv); err != nil {
				t.Fatal(err)
			}
			r.notReady()
			r.push("FV-2")
			said := ""
			eventually(t, "it is accepted", func() bool {
				code, text := r.do("POST", "/api/v1/ledger/accept-empty", `{"by":"jana","why":"removed by mistake"}`)
				said = text
				return code == 200
			})
			waitFor(t, time.Minute, "ready", func() bool { code, _ := r.do("GET", "/readyz", ""); return code == 200 })
			if !strings.Contains(said, "FLEXID_PUSH") {
				t.Errorf("what is missing is not told: %s", said)
			}
			r.push("FV-3")
			r.becomes("FV-3", "confirmed")
			if s := r.becomes("FV-1", "confirmed"); s.Sends != 1 {
				t.Errorf("FV-1 has %d sends", s.Sends)
			}
		})
	}
}
