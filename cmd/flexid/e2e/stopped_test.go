//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"flexid/flexi"
	"flexid/flexi/flexitest"
)

// A daemon is stopped in the middle of a write, for longer than its lease, while another one takes over; then it goes on as
// if nothing had happened. Whatever it still sends must not do harm.
func TestStoppedDaemon(t *testing.T) {
	t.Parallel()
	onlySlow(t, "a lease lasts 41 s at least")
	var cases sync.WaitGroup
	defer cases.Wait()
	// Once the lease is over two clocks of the continued daemon run a race after the claim, so that is tried more often.
	for at, often := range map[string]int{
		"after the dial": 1, "after the claim": 3, "in mid-body": 1, "before the answer": 1, "before the outcome is written": 1,
	} {
		for i := range 2 * often {
			op := []string{"create", "update"}[i%2]
			// All at once: nearly all of the time is waiting for the lease.
			cases.Go(func() {
				t.Run(op+" "+at, func(t *testing.T) { newStopped(t, at, op).run() })
			})
		}
	}
}

// stopped is one case: daemon a works through two proxies, daemon b directly.
type stopped struct {
	t      *testing.T
	at, op string
	erp    *flexitest.Server
	broker *broker
	toERP  *proxy
	toNATS *proxy
	a, b   *daemon
	key    string
	ext    string

	armed   atomic.Bool
	looked  atomic.Bool
	handed  int // bytes of the request in the kernel's hands when the daemon was stopped, and in all
	whole   int
	stopped chan string // the standing of the row at that moment
	once    sync.Once
}

func newStopped(t *testing.T, at, op string) *stopped {
	s := &stopped{t: t, at: at, op: op, erp: newERP(t), broker: newBroker(t, ""), key: "STOP-1", stopped: make(chan string, 1)}
	s.ext = string(flexi.NewExternalID("FLEXID", "", s.key))
	s.toERP = newProxy(t, strings.TrimPrefix(s.erp.URL(), "http://"))
	s.toNATS = newProxy(t, strings.TrimPrefix(s.broker.url, "nats://"))
	s.toNATS.queue = 10_000
	p := pace{"0s,200ms,500ms,1s", time.Second, 3 * time.Second, time.Second, 0, time.Second}
	set := p.settings()
	set["FLEXID_NATS_URL"] = "nats://" + s.toNATS.addr()
	s.a = newDaemon(t, "flexid-a", "http://"+s.toERP.addr(), set)
	set["FLEXID_NATS_URL"] = s.broker.url
	s.b = newDaemon(t, "flexid-b", s.erp.URL(), set)
	s.hooks()
	s.toERP.run(t)
	s.toNATS.run(t)
	return s
}

// hooks find the moment. They run in the proxies, before the bytes in question pass on.
func (s *stopped) hooks() {
	isWrite := func(c *proxied) bool {
		return bytes.HasPrefix(c.request(), []byte("POST /c/firma/faktura-vydana.json"))
	}
	s.toERP.answers = func(c *proxied, _ []byte) {
		switch {
		case !s.armed.Load():
		case isWrite(c) && s.at == "before the answer":
			s.toERP.down.shut()
			s.stop(nil)
		case isWrite(c) && s.at == "before the outcome is written":
			s.toNATS.up.shut()
		case bytes.Contains(c.request(), []byte(s.ext)) && bytes.Contains(c.request(), []byte("query.json")):
			s.looked.Store(true) // the next write of the row is the claim, and the connection stands by then
		}
	}
	s.toERP.sends = func(c *proxied, _ []byte) {
		if s.armed.Load() && s.at == "in mid-body" && isWrite(c) && len(c.request()) > 4096 {
			s.toERP.up.shut()
			s.stop(c)
		}
	}
	s.toNATS.sends = func(_ *proxied, b []byte) {
		switch ofRow := bytes.Contains(b, []byte("PUB $KV.flexid_ledger.d.")); {
		case !ofRow || !s.armed.Load():
		case s.at == "before the outcome is written" && s.toNATS.up.isShut():
			s.stop(nil)
		case s.at == "after the dial" && s.looked.Load():
			s.toNATS.up.shut() // the claim is asked for and does not arrive
			s.stop(nil)
		case s.at == "after the claim" && s.looked.Load():
			s.toNATS.down.shut() // it arrives, and the daemon does not hear of it yet
		}
	}
}

// watchClaim stops the daemon when its claim is durable, and before it has heard of that.
func (s *stopped) watchClaim() {
	kv := must(s.broker.js.KeyValue(s.t.Context(), "flexid_ledger"))(s.t, "opening the bucket of the ledger")
	w := must(kv.Watch(s.t.Context(), "d.*", jetstream.UpdatesOnly()))(s.t, "watching the ledger")
	go func() {
		for u := range w.Updates() {
			if u != nil && s.armed.Load() && standingOf(u.Value(), s.key) == "sending" {
				s.stop(nil)
			}
		}
	}()
}

func standingOf(value []byte, key string) string {
	var r row
	if json.Unmarshal(value, &r) != nil || r.Key != key {
		return ""
	}
	return r.standing()
}

// stop stops the daemon, once. c is the connection of a write in mid-body.
func (s *stopped) stop(c *proxied) {
	s.once.Do(func() {
		s.a.proc.freeze()
		s.armed.Store(false)
		if c != nil {
			_, length, _ := bytes.Cut(c.request(), []byte("Content-Length: "))
			_, _ = fmt.Sscan(string(length), &s.whole)
			s.handed = s.toERP.handed(s.t, c)
		}
		s.stopped <- s.inLedger()
	})
}

// inLedger is how the document stands, read past all daemons.
func (s *stopped) inLedger() string {
	found := "not there"
	err := s.broker.rows(func(value []byte) {
		if standing := standingOf(value, s.key); standing != "" {
			found = standing
		}
	})
	if err != nil {
		return err.Error()
	}
	return found
}

func (s *stopped) publish(key, op string, body map[string]any) {
	s.t.Helper()
	m := nats.NewMsg("flexi.push.faktura-vydana." + key)
	m.Header.Set("Flexid-Op", op)
	m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%s-%s-%v", key, op, body["cisObj"]))
	m.Data = must(json.Marshal(body))(s.t, "writing a body")
	if err := s.broker.publish(m); err != nil {
		s.t.Fatalf("publishing: %v", err)
	}
}

func (s *stopped) run() {
	t := s.t
	s.a.up()
	// Metadata are known and the fence is proved before the moment comes.
	s.publish("WARM", "create", fields(1, "WARM"))
	s.a.settles(issued, "WARM", "confirmed", time.Minute)
	if s.op == "update" {
		s.publish(s.key, "create", fields(2, s.key))
		s.a.settles(issued, s.key, "confirmed", time.Minute)
	}
	if s.at == "after the claim" {
		s.watchClaim()
	}
	s.armed.Store(true)
	body := fields(2, s.key)
	if s.op == "update" {
		body = map[string]any{"cisObj": "v2"}
	}
	if s.at == "in mid-body" {
		body["poznam"] = strings.Repeat("dlouhá poznámka ", 27_000)
	}
	s.publish(s.key, s.op, body)
	s.checkMoment()

	s.b.up()
	s.publish(s.key, "update", map[string]any{"cisObj": "v3"})
	last := fmt.Sprintf("%s-update-v3", s.key)
	eventually(t, 2*time.Minute, "the other daemon takes over and goes on", func() (bool, string) {
		if err := s.broker.hear(); err != nil {
			return false, err.Error()
		}
		return len(s.broker.told[last]) > 0, s.inLedger()
	})
	s.goOn()
	s.verdict()
}

// checkMoment: the daemon was stopped where the case says, and not a little later.
func (s *stopped) checkMoment() {
	s.t.Helper()
	want, most := "sending", time.NewTimer(30*time.Second)
	if s.at == "after the dial" {
		want = "queued"
	}
	defer most.Stop()
	select {
	case standing := <-s.stopped:
		if standing != want {
			s.t.Fatalf("stopped %s: the row is %s, want %s", s.at, standing, want)
		}
		if s.at == "in mid-body" && (s.handed == 0 || s.handed > s.whole-10_000) {
			s.t.Fatalf("stopped %s: %d of %d bytes were out already", s.at, s.handed, s.whole)
		}
	case <-most.C:
		s.t.Fatalf("the moment %q never came; the row is %s", s.at, s.inLedger())
	}
}

// goOn lets the stopped daemon continue, with everything that was held back for it, and waits until it has caught up.
func (s *stopped) goOn() {
	s.toNATS.down.release()
	s.a.proc.signal(syscall.SIGCONT)
	s.toNATS.up.release()
	s.toERP.up.release()
	s.toERP.down.release()
	s.a.ready(time.Minute)
	s.publish("AFTER", "create", fields(3, "AFTER"))
	s.a.settles(issued, "AFTER", "confirmed", time.Minute)
	eventually(s.t, 30*time.Second, "the continued daemon lets go of its write", func() (bool, string) {
		return s.toERP.conns.Load() == 0 && s.erp.Pending() == 0, fmt.Sprintf("%d connections", s.toERP.conns.Load())
	})
}

func (s *stopped) verdict() {
	t := s.t
	if n := len(s.erp.Find(issued, s.ext)); n != 1 || s.erp.Commits(issued+"/"+s.ext) != 1 {
		t.Errorf("%d records and %d creates under our external id, want 1", n, s.erp.Commits(issued+"/"+s.ext))
	}
	if n := len(s.erp.Find(issued, "code:"+s.key)); n != 1 {
		t.Errorf("%d records with the number, want 1", n)
	}
	if got := s.erp.Find(issued, s.ext)[0].Fields["cisObj"]; got != "v3" {
		t.Errorf("the record shows %v, want the last update, v3", got)
	}
	before, effects := 0, map[int]int{}
	for _, w := range writes(t, s.erp)[issued+"/"+s.ext] {
		if !w.Committed {
			continue
		}
		if w.version() < before {
			t.Errorf("update %d took effect after update %d", w.version(), before)
		}
		before = w.version()
		if effects[before]++; effects[before] > 1 {
			t.Errorf("version %d took effect %d times", before, effects[before])
		}
	}
	r, err := s.b.story(issued, s.key)
	if err != nil || r.standing() != "confirmed" && r.standing() != "confirmed(adopted)" {
		t.Errorf("in the end the document is %s: %s (%v)", r.standing(), r.text(), err)
	}
}
