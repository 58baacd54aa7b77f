package daemon

import (
	"errors"
	"testing"

	"flexid/batch/stream"
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
