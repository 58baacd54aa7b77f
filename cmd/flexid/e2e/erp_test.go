//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"flexid/flexi/flexitest"
)

// pace is how quickly a run goes. Late commits are always over before the settle time is.
type pace struct {
	looks                             string
	serverError, noAnswer, writeLimit time.Duration
	late                              time.Duration // up to twice that
	pause                             time.Duration // the first of a tripped breaker
}

func fullPace() pace {
	return pace{"0s,300ms,1s,2s,4s", 3 * time.Second, 8 * time.Second, 5 * time.Second, 2 * time.Second, time.Second}
}

func quickPace() pace {
	return pace{"0s,200ms,500ms,1s", time.Second, 4 * time.Second, 1500 * time.Millisecond, 750 * time.Millisecond, 300 * time.Millisecond}
}

// settings are the variables that make flexid keep this pace.
func (p pace) settings() map[string]string {
	return map[string]string{
		"FLEXID_VERIFY_LOOKS": p.looks, "FLEXID_VERIFY_SETTLE_SERVER_ERROR": p.serverError.String(),
		"FLEXID_VERIFY_SETTLE_PROXY": "1s", "FLEXID_VERIFY_SETTLE_NO_ANSWER": p.noAnswer.String(),
		"FLEXID_FLEXI_WRITE_TIMEOUT": p.writeLimit.String(), "FLEXID_FLEXI_READ_TIMEOUT": "5s", "FLEXID_FLEXI_PAUSE": "500ms",
	}
}

// settle is how long a write with that fault may still take effect; 0 = it did not, and flexid was told so.
func (p pace) settle(fault string) time.Duration {
	switch {
	case strings.HasPrefix(fault, "500"):
		return p.serverError
	case fault == "", fault == "429", strings.HasPrefix(fault, "stale role"):
		return 0
	}
	return p.noAnswer
}

// lateness is after which time a late commit of that document comes.
func (p pace) lateness(id string) time.Duration {
	return p.late * time.Duration(4+lot(id+"/late")%5) / 4
}

// lot is a number from 0 to 99 that hangs on nothing but the document.
func lot(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return (h.Sum64() ^ h.Sum64()>>29) * 0x9e3779b97f4a7c15 >> 40 % 100
}

// newERP is a fake with uniqueness off, so that a doubled write shows as two records.
func newERP(t *testing.T) *flexitest.Server {
	t.Helper()
	erp := flexitest.New(flexitest.Options{AllowUsedNumbers: true, Seed: 11, KeepBody: 1 << 20})
	t.Cleanup(erp.Close)
	if err := erp.Start(); err != nil {
		t.Fatal(err)
	}
	return erp
}

// misbehave gives each fault 5 % of the documents on their first write, and some of the changes the faults that matter most.
func misbehave(erp *flexitest.Server, p pace, s *script) {
	clean := map[string]bool{}
	for _, d := range s.documents {
		if d.clean() {
			clean[d.evidence+"/"+d.ext] = true
		}
	}
	share := func(nth int, salt string, from, to uint64, f flexitest.Fault) {
		erp.OnWrite(nth, func(r flexitest.Request) bool {
			id := r.Docs[0].ID()
			n := lot(id + salt)
			return !clean[id] && from <= n && n < to
		}, f)
	}
	late := func(nth int, salt string, from, to uint64) {
		for i := range 5 {
			f := flexitest.Fault{Kind: flexitest.LateCommit, Status: 504, Delay: p.late * time.Duration(4+i) / 4}
			erp.OnWrite(nth, func(r flexitest.Request) bool {
				id := r.Docs[0].ID()
				n := lot(id + salt)
				return !clean[id] && from <= n && n < to && p.lateness(id) == f.Delay
			}, f)
		}
	}
	share(1, "", 0, 5, flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500})
	share(1, "", 5, 10, flexitest.Fault{Kind: flexitest.ResetAfterCommit})
	share(1, "", 10, 15, flexitest.Fault{Kind: flexitest.SilenceAfterCommit})
	late(1, "", 15, 20)
	share(1, "", 20, 25, flexitest.Fault{Kind: flexitest.ServerError, Status: 500})
	share(1, "", 25, 30, flexitest.Fault{Kind: flexitest.ResetAnswer})
	share(1, "", 30, 35, flexitest.Fault{Kind: flexitest.TooMany})
	share(1, "", 35, 40, flexitest.Fault{Kind: flexitest.StaleRole})
	// Changes: the second write of documents whose first one went well.
	share(2, "/2", 0, 3, flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500})
	share(2, "/2", 3, 5, flexitest.Fault{Kind: flexitest.SilenceAfterCommit})
	late(2, "/2", 5, 8)
	share(2, "/2", 8, 10, flexitest.Fault{Kind: flexitest.ResetAnswer})
}

// written is one write as the fake received it.
type written struct {
	flexitest.Request
	record    map[string]any // as sent
	op        string
	documents int // in the request
}

// version is the order in which changes of a document must take effect.
func (w written) version() int {
	var n int
	text, _ := w.record["cisObj"].(string)
	_, _ = fmt.Sscanf(text, "v%d", &n)
	return n
}

// writes is every write by document.
func writes(t *testing.T, erp *flexitest.Server) map[string][]written {
	t.Helper()
	all := map[string][]written{}
	for _, r := range erp.Requests() {
		if r.Kind != flexitest.Write || len(r.Docs) == 0 {
			continue
		}
		var body struct {
			Winstrom map[string]json.RawMessage `json:"winstrom"`
		}
		var records []map[string]any
		if err := json.Unmarshal(r.Body, &body); err != nil || json.Unmarshal(body.Winstrom[r.Docs[0].Evidence], &records) != nil {
			t.Errorf("request %d: the body cannot be read: %s", r.N, r.Body)
			continue
		}
		for i, d := range r.Docs {
			one := r
			one.Docs = []flexitest.Doc{d}
			w := written{Request: one, record: records[i], op: d.Op, documents: len(r.Docs)}
			all[d.ID()] = append(all[d.ID()], w)
		}
	}
	return all
}
