//go:build linux

package e2e

import (
	"os"
	"strconv"
	"testing"
	"time"

	"flexid/flexi/flexitest"
)

// TestLoad: two daemons carry 100,000 documents with changes, of which a person touches one in fifty at the ERP, while requests
// fail. FLEXID_DOCUMENTS asks for another number of them.
func TestLoad(t *testing.T) {
	t.Parallel()
	onlySlow(t, "it takes half an hour")
	documents := 100_000
	if text := os.Getenv("FLEXID_DOCUMENTS"); text != "" {
		documents = must(strconv.Atoi(text))(t, "FLEXID_DOCUMENTS")
	}
	r := &run{t: t, pace: fullPace(), listEvery: time.Minute, fails: failSeldom}
	r.begin("L", documents, 2, map[string]string{"FLEXID_FLEXI_CONCURRENCY": "8"})
	r.publish()
	r.finish(3 * time.Hour)
	r.packed()
}

// failSeldom gives each fault 5 in 1,000 documents on their first write and 2 in 1,000 on their second. What makes all writes wait is
// given to 5 in 10,000.
func failSeldom(erp *flexitest.Server, p pace, s *script) {
	clean := map[string]bool{}
	for _, d := range s.documents {
		if d.clean() {
			clean[d.evidence+"/"+d.ext] = true
		}
	}
	share := func(nth int, salt string, from, to uint64, f flexitest.Fault) {
		erp.OnWrite(nth, func(r flexitest.Request) bool {
			id := r.Docs[0].ID()
			n := 100*lot(id+salt) + lot(id+salt+"/fine")
			return !clean[id] && from <= n && n < to
		}, f)
	}
	late := flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: p.late}
	for i, f := range []flexitest.Fault{
		{Kind: flexitest.CommitThenStatus, Status: 500}, {Kind: flexitest.ResetAfterCommit}, {Kind: flexitest.SilenceAfterCommit}, late,
		{Kind: flexitest.ServerError, Status: 500}, {Kind: flexitest.ResetAnswer},
	} {
		share(1, "", uint64(50*i), uint64(50*i+50), f)
		share(2, "/2", uint64(20*i), uint64(20*i+20), f)
	}
	share(1, "", 300, 305, flexitest.Fault{Kind: flexitest.TooMany})
	share(1, "", 305, 310, flexitest.Fault{Kind: flexitest.StaleRole})
}
