//go:build linux

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"flexid/flexi"
)

// realHook is one body as a real Flexi sent it.
type realHook struct {
	file string
	body []byte
	flexi.Changes
}

func realHooks(t *testing.T) (all []realHook) {
	t.Helper()
	files, _ := filepath.Glob("../../../../shared/data/flexi-hooks/*.json")
	if len(files) == 0 {
		t.Skip("../shared/data/flexi-hooks is not there")
	}
	for _, name := range files {
		body := must(os.ReadFile(name))(t, "reading a hook")
		all = append(all, realHook{name, body, must(flexi.DecodeChanges(body))(t, "reading a hook")})
	}
	slices.SortFunc(all, func(a, b realHook) int { return cmp.Compare(a.GlobalVersion, b.GlobalVersion) })
	return all
}

// hookStep loads hooks into the log of changes and then delivers some, by their places in the list.
type hookStep struct {
	load, deliver []int
	down          bool // all of it happens while the daemon is down, so that no delivery arrives
}

// hookPlans are the ways in which hooks arrive.
func hookPlans(n int) map[string][]hookStep {
	plans := map[string][]hookStep{}
	for i := range n {
		plans["in order"] = append(plans["in order"], hookStep{load: []int{i}, deliver: []int{i}})
		plans["doubled"] = append(plans["doubled"], hookStep{load: []int{i}, deliver: []int{i, i}})
	}
	for i := 0; i < n; i += 3 {
		three := []int{i, min(i+1, n-1), min(i+2, n-1)}
		load := slices.Compact(slices.Clone(three))
		plans["shuffled"] = append(plans["shuffled"], hookStep{load: load, deliver: []int{three[2], three[0], three[1]}})
		plans["with gaps"] = append(plans["with gaps"], hookStep{load: load, deliver: load[len(load)-1:]})
		plans["while it was down"] = append(plans["while it was down"], hookStep{load: load, down: true})
	}
	return plans
}

// TestRealHooks: the fake holds the changes of a real Flexi, and curl delivers the hooks that carried them. Whoever listens
// to flexi.change.> gets, of each read of the log, the newest change of every record, in order; none is missing, however the
// hooks arrive. A hook with a forged secret is refused and wakes nobody.
func TestRealHooks(t *testing.T) {
	t.Parallel()
	needCurl(t)
	hooks := realHooks(t)
	if !slow() {
		hooks = hooks[6:12] // among them large ones that change one record several times
	}
	for name, steps := range hookPlans(len(hooks)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &hookRun{bench: newWebhooks(t, nil), hooks: hooks}
			r.listen()
			for _, s := range steps {
				r.step(s)
			}
			r.verdict()
		})
	}
}

// hookRun is one way of arrival on a daemon of its own.
type hookRun struct {
	*bench
	hooks    []realHook
	log      []flexi.Change // loaded so far
	accepted int            // deliveries that wake the reader
	starts   int            // of the daemon
	forged   float64

	mu    sync.Mutex
	heard []changeTold
}

// changeTold is one message of flexi.change.
type changeTold struct {
	Subject    string   `json:"-"`
	Evidence   string   `json:"evidence"`
	Operation  string   `json:"operation"`
	Operations []string `json:"operations"`
	Version    int64    `json:"version"`
	ID         string   `json:"id"`
	External   []string `json:"external_ids"`
	Timestamp  string   `json:"timestamp"`
}

// listen consumes as a stranger would, and waits until the daemon knows from where on changes are news.
func (r *hookRun) listen() {
	s := must(r.broker.js.Stream(r.t.Context(), "FLEXID_OUT"))(r.t, "looking at the stream of changes")
	consumer := must(s.OrderedConsumer(r.t.Context(), jetstream.OrderedConsumerConfig{FilterSubjects: []string{"flexi.change.>"}}))(r.t, "consuming changes")
	running := must(consumer.Consume(func(m jetstream.Msg) {
		told := changeTold{Subject: m.Subject()}
		if err := json.Unmarshal(m.Data(), &told); err != nil {
			r.t.Errorf("a change that cannot be read: %v: %s", err, m.Data())
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.heard = append(r.heard, told)
	}))(r.t, "consuming changes")
	r.t.Cleanup(func() {
		running.Stop()
		<-running.Closed()
	})
	r.starts = 1
	eventually(r.t, time.Minute, "the reader of changes has begun", func() (bool, string) {
		return r.daemon.counter("flexid_changes_cursor_version") > 0, r.daemon.proc.tail(3)
	})
}

func (r *hookRun) step(s hookStep) {
	if s.down {
		if code := r.daemon.proc.stop(30 * time.Second); code != 0 {
			r.t.Fatalf("the daemon ended with %d", code)
		}
	}
	for _, i := range s.load {
		if err := r.erp.LoadChanges(r.hooks[i].body); err != nil {
			r.t.Fatal(err)
		}
		r.log = append(r.log, r.hooks[i].Changes.Changes...)
	}
	if s.down {
		r.daemon.up()
		r.starts++
	}
	for _, i := range s.deliver {
		r.forge(i)
		if status, answer := r.deliver(i, hookSecret); status != 200 || answer != "" {
			r.t.Errorf("hook %d: %d %q", i, status, answer)
		}
		r.accepted++
	}
	newest := r.log[len(r.log)-1].Version
	eventually(r.t, time.Minute, fmt.Sprintf("version %d is told", newest), func() (bool, string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		n := len(r.heard)
		return n > 0 && r.heard[n-1].Version == newest, fmt.Sprintf("%d changes told", n)
	})
}

func (r *hookRun) deliver(i int, secret string) (int, string) {
	return curl(r.t, nil, "-H", "Content-Type: application/json", "-H", "X-FB-Hook-SecKey: "+secret,
		"--data-binary", "@"+r.hooks[i].file, r.daemon.webhookURL()+"/in/erp")
}

func (r *hookRun) forge(i int) {
	for _, secret := range []string{"forged", hookSecret[:len(hookSecret)-1], hookSecret + "0"} {
		if status, _ := r.deliver(i, secret); status != 401 {
			r.t.Errorf("hook %d with the secret %q: %d", i, secret, status)
		}
		r.forged++
	}
}

// reads are the versions from which on the log was read; the first read of all asks for its end only.
func (r *hookRun) reads() (starts []int64) {
	for _, q := range r.erp.Requests() {
		if strings.HasSuffix(q.Path, "/changes.json") {
			query, _ := url.ParseQuery(q.Query)
			starts = append(starts, must(strconv.ParseInt(query.Get("start"), 10, 64))(r.t, "start of a read"))
		}
	}
	return starts
}

// wanted is what one read, from version start to before version end, must tell.
func (r *hookRun) wanted(start, end int64) (want []changeTold) {
	for _, c := range r.log {
		if c.Version < start || c.Version >= end {
			continue
		}
		told := changeTold{Subject: "flexi.change." + c.Evidence + "." + c.Operation, Evidence: c.Evidence, Operation: c.Operation,
			Version: c.Version, ID: c.ID, External: c.ExternalIDs, Timestamp: c.Timestamp}
		same := func(w changeTold) bool { return w.Evidence == c.Evidence && w.ID == c.ID }
		if i := slices.IndexFunc(want, same); i >= 0 {
			told.Operations = want[i].Operations
			want = slices.Delete(want, i, i+1)
		}
		if !slices.Contains(told.Operations, c.Operation) {
			told.Operations = append(told.Operations, c.Operation)
		}
		want = append(want, told)
	}
	return want
}

func (r *hookRun) verdict() {
	t, reads := r.t, r.reads()
	var want []changeTold
	for i, start := range reads[1:] {
		end := int64(1) << 62
		if i+2 < len(reads) {
			end = reads[i+2]
		}
		want = append(want, r.wanted(start, end)...)
	}
	r.mu.Lock()
	heard := r.heard
	r.mu.Unlock()
	for i := range max(len(want), len(heard)) {
		if i >= len(want) || i >= len(heard) || fmt.Sprint(want[i]) != fmt.Sprint(heard[i]) {
			t.Fatalf("message %d of %d heard, %d wanted\nheard  %v\nwanted %v", i, len(heard), len(want), heard[i:min(i+1, len(heard))], want[i:min(i+1, len(want))])
		}
	}
	if most := r.starts + r.accepted; len(reads) > most {
		t.Errorf("%d reads, more than the %d that starts and true hooks ask for: %v", len(reads), most, reads)
	}
	if n := r.daemon.counter("flexid_webhook_rejected_total", `source="erp"`, `reason="signature"`); n != r.forged {
		t.Errorf("%v refusals are counted, %v hooks were forged", n, r.forged)
	}
	if n := len(r.broker.inbox()); n != 0 {
		t.Errorf("%d hooks lie in the inbox", n)
	}
	t.Logf("%d changes of %d hooks in %d reads; %d told; %d deliveries taken, %v forged", len(r.log), len(r.hooks), len(reads), len(heard), r.accepted, r.forged)
}
