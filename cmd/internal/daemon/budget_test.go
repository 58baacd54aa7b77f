package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexid/flexi/flexitest"

	"github.com/nats-io/nats.go/jetstream"
)

// A budget that is used up sends nothing more to the ERP, also after a restart; nothing is parked, and it is said.
func TestDailyBudget(t *testing.T) {
	t.Parallel()
	const limit = 60
	erp := startERP(t, flexitest.Options{})
	dir := t.TempDir()
	// The day must not end during the test.
	reset := time.Now().UTC().Add(12 * time.Hour).Format("15:04")
	more := []string{fmt.Sprintf("FLEXID_FLEXI_DAILY_REQUESTS=%d", limit), "FLEXID_FLEXI_DAILY_RESET=" + reset, "FLEXID_TZ=UTC",
		"FLEXID_FLEXI_PACK=1"} // however many wait at once, each takes a request of its own
	r := begin(t, settings(t, erp, dir, more...))
	nc, js := r.nats()
	alerts, err := js.OrderedConsumer(t.Context(), "FLEXID_OUT", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"flexi.alert.quota"}})
	if err != nil {
		t.Fatal(err)
	}
	const documents = 60 // each takes one write at least, and reads are needed too
	for n := range documents {
		r.push(fmt.Sprintf("FV-%d", n))
	}
	eventually(t, "the budget is used up", func() bool { q := r.status().Quota; return q != nil && q.Waiting })
	msg, err := alerts.Next(jetstream.FetchMaxWait(20 * time.Second))
	if err != nil || !strings.Contains(string(msg.Data()), `"kind":"quota"`) {
		t.Fatalf("no alert: %v", err)
	}
	nc.Close()
	st := r.status()
	if st.Quota.Limit != limit || st.Quota.Used < limit*9/10 || st.Quota.Resets.Format("15:04") != reset {
		t.Errorf("%+v", st.Quota)
	}
	if st.Engine.Documents["parked"] != 0 || st.Engine.Documents["queued"] == 0 {
		t.Errorf("documents %v", st.Engine.Documents)
	}
	if code, text := r.do("GET", "/metrics", ""); code != 200 || !strings.Contains(text, fmt.Sprintf("flexid_quota_requests{state=\"limit\"} %d\n", limit)) {
		t.Error("no metric of the budget")
	}
	if r.log.line("of the daily budget are used")+r.log.line("the daily request budget is used up") == "" {
		t.Error("nothing in the log")
	}
	r.end()
	r = begin(t, settings(t, erp, dir, more...))
	eventually(t, "the budget is known again", func() bool { q := r.status().Quota; return q != nil && q.Known && q.Waiting })
	r.end()
	if n := erp.Count(""); n > limit || n < limit*8/10 {
		t.Errorf("%d requests of a budget of %d", n, limit)
	}

	// Another day: all go through.
	cfg := settings(t, erp, dir, "FLEXID_FLEXI_DAILY_REQUESTS=100000", "FLEXID_TZ=UTC")
	r = begin(t, cfg)
	eventually(t, "all are confirmed", func() bool { return r.status().Engine.Documents["confirmed"] == documents })
	if n := len(erp.Records("faktura-vydana")); n != documents {
		t.Errorf("%d records of %d documents", n, documents)
	}
}
