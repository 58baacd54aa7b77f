package embedded

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestFullDiskIsSaidOnceWithWhatToDo(t *testing.T) {
	var out bytes.Buffer
	s := &Server{log: &logger{log: zerolog.New(&out)}}
	s.log.Errorf("some error of %s", "another kind")
	if why, remedy := s.Broken(); why != "" || remedy != "" {
		t.Errorf("broken by %q, %q", why, remedy)
	}
	for range 3 {
		s.log.Errorf("Filestore [%s] Critical write error: write 1.blk: no space left on device", "KV_flexid_ledger")
	}
	if why, remedy := s.Broken(); !strings.Contains(why, "KV_flexid_ledger") || !strings.Contains(remedy, "restart flexid") {
		t.Errorf("broken by %q, %q", why, remedy)
	}
	if n := strings.Count(out.String(), "restart flexid"); n != 1 {
		t.Errorf("what to do is said %d times: %s", n, out.String())
	}
}
