//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/flexi/flexitest"
)

// run is one script with everything it needs.
type run struct {
	t       *testing.T
	pace    pace
	erp     *flexitest.Server
	broker  *broker
	daemons []*daemon
	script  *script
	begun   time.Time

	fails     func(*flexitest.Server, pace, *script) // gives the ERP its faults
	listEvery time.Duration                          // how often all documents are listed while the run waits for its end

	later                later
	typed                []int64
	crashes, natsCrashes int
	people               sync.WaitGroup
	stopPeople           chan struct{}
}

// newRun starts NATS, the fake and the daemons.
func newRun(t *testing.T, prefix string, documents, daemons int, more map[string]string) *run {
	t.Helper()
	r := &run{t: t, pace: quickPace(), listEvery: 5 * time.Second, fails: misbehave}
	if slow() {
		r.pace = fullPace()
	}
	r.begin(prefix, documents, daemons, more)
	return r
}

func (r *run) begin(prefix string, documents, daemons int, more map[string]string) {
	r.t.Helper()
	t := r.t
	r.erp, r.begun, r.stopPeople = newERP(t), time.Now(), make(chan struct{})
	r.broker = newBroker(t, "")
	r.script = newScript(prefix, documents, 5)
	r.fails(r.erp, r.pace, r.script)
	for i := range daemons {
		set := r.pace.settings()
		set["FLEXID_NATS_URL"] = r.broker.url
		maps.Copy(set, more)
		r.daemons = append(r.daemons, newDaemon(t, fmt.Sprintf("flexid-%c", 'a'+i), r.erp.URL(), set))
	}
	for _, d := range r.daemons {
		d.up()
	}
	r.people.Go(r.hand)
	t.Cleanup(r.endPeople)
}

// publish publishes the script.
func (r *run) publish() {
	r.t.Helper()
	if err := r.publishing(); err != nil {
		r.t.Fatal(err)
	}
}

// publishing types what a person typed first, then publishes the script. It may run beside the test.
func (r *run) publishing() error {
	for _, d := range r.script.documents {
		if !strings.HasPrefix(d.kind, "typed-") {
			continue
		}
		id := r.erp.Type(d.evidence, d.content)
		if id == 0 {
			return fmt.Errorf("%s: the fake did not take what a person typed", d.address())
		}
		r.typed = append(r.typed, id)
	}
	var first []*event
	for _, d := range r.script.edited {
		first = append(first, &d.events[0])
	}
	for _, e := range slices.Concat(first, r.script.order) {
		if err := r.broker.publish(e.msg); err != nil {
			return fmt.Errorf("publishing %s: %w", e.id, err)
		}
	}
	return r.edit()
}

// edit changes documents by hand once they are confirmed, and then has flexid change the same field.
func (r *run) edit() error {
	most := time.Now().Add(10 * time.Minute)
	for _, d := range r.script.edited {
		for {
			err := r.broker.hear()
			if told := r.broker.told[d.events[0].id]; err == nil && len(told) > 0 && told[len(told)-1].State == "confirmed" {
				break
			}
			if time.Now().After(most) || !moment(r.t, 50*time.Millisecond) {
				return fmt.Errorf("%s, which a person wants to edit, was never confirmed: %w", d.address(), err)
			}
		}
		found := r.erp.Find(d.evidence, d.ext)
		if len(found) != 1 || !r.erp.Edit(d.evidence, found[0].ID, map[string]any{"cisObj": "rukou"}) {
			return fmt.Errorf("%s cannot be edited by hand: %d records", d.address(), len(found))
		}
		if err := r.broker.publish(d.events[1].msg); err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
	}
	return nil
}

// hand is a person who works at the ERP meanwhile: types other documents, and edits ours in a field that no event carries.
func (r *run) hand() {
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	rnd := rand.New(rand.NewPCG(3, 3))
	for i := 0; ; i++ {
		select {
		case <-r.stopPeople:
			return
		case <-tick.C:
		}
		if i < 200 && i%3 == 0 {
			r.erp.Type(issued, fields(i, fmt.Sprintf("RUKOU-%d", i)))
			continue
		}
		d := r.script.documents[rnd.IntN(len(r.script.documents))]
		for _, one := range r.erp.Find(d.evidence, d.ext) {
			r.erp.Edit(one.Evidence, one.ID, map[string]any{"kontaktEmail": fmt.Sprintf("ucetni%d@example.com", i)})
		}
	}
}

func (r *run) endPeople() {
	select {
	case <-r.stopPeople:
	default:
		close(r.stopPeople)
	}
	r.people.Wait()
}

// finish waits until every event has been told and nothing is under way, then checks everything.
func (r *run) finish(most time.Duration) {
	r.t.Helper()
	want := map[string]*document{}
	for _, d := range r.script.documents {
		for _, e := range d.events {
			want[e.id] = d
		}
	}
	text, asked := "", time.Time{} // the list of all documents is long: it is not asked for each time
	eventually(r.t, most, "the end of the run", func() (bool, string) {
		left, err := r.broker.waiting()
		if err != nil || left > 0 {
			return false, fmt.Sprintf("%d events wait in the stream (%v)", left, err)
		}
		if err := r.broker.hear(); err != nil {
			return false, err.Error()
		}
		maps.DeleteFunc(want, func(id string, d *document) bool { return r.broker.heard(d, id) })
		if text := r.daemons[0].held(); text != "" {
			r.t.Fatalf("writes wait for a person, though nothing happened that needs one: %s", text)
		}
		if time.Since(asked) > r.listEvery {
			rows, err := r.daemons[0].documents()
			if err != nil {
				return false, err.Error()
			}
			text, asked = r.unfinished(rows, want), time.Now()
			if inDoubt(rows, want) {
				if d, err := r.another(); err != nil {
					return false, err.Error()
				} else if d != nil {
					want[d.events[0].id] = d
				}
			}
		}
		return len(want) == 0 && r.erp.Pending() == 0, text
	})
	if slow() {
		r.readBack()
	}
	r.endPeople()
	r.script.documents = append(r.script.documents, r.later.script.documents...)
	c := &check{t: r.t, run: r}
	c.everything()
	r.t.Log(c.summary(time.Since(r.begun)))
}

// readBack waits until everything that was confirmed has been read back: what is wrong is parked by that.
func (r *run) readBack() {
	r.t.Helper()
	eventually(r.t, 5*time.Minute, "everything is read back", func() (bool, string) {
		left := 0
		err := r.broker.rows(func(value []byte) {
			var row struct {
				ReadBack time.Time `json:"read_back"`
			}
			if json.Unmarshal(value, &row) != nil || !row.ReadBack.IsZero() {
				left++
			}
		})
		return err == nil && left == 0, fmt.Sprintf("%d wait for it (%v)", left, err)
	})
}

// unfinished says where a few of the events stand that nobody has been told about.
func (r *run) unfinished(rows map[string]row, events map[string]*document) string {
	some := slices.Sorted(maps.Keys(events))
	text := fmt.Sprintf("%d of %d events have no notice", len(some), r.script.events())
	for _, id := range some[:min(5, len(some))] {
		text += fmt.Sprintf("; %s: %s", id, rows[events[id].address()].standing())
	}
	return text
}

type span struct{ from, to time.Time }

// staleTimes is when the fake refused every write of our user, from the log.
func (r *run) staleTimes() (out []span) {
	var open *span
	for _, q := range r.erp.Requests() {
		switch {
		case strings.HasPrefix(q.Fault, "stale role") && open == nil:
			open = &span{from: q.Time}
		case strings.Contains(q.Path, "/logout") && open != nil:
			open.to = q.Time.Add(q.Duration + 50*time.Millisecond)
			out, open = append(out, *open), nil
		}
	}
	if open != nil {
		open.to = time.Now()
		out = append(out, *open)
	}
	return out
}
