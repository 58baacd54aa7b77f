package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"
)

// TestAmplification is what the probe is for: how many requests one call becomes, counted on both sides.
func TestAmplification(t *testing.T) {
	cases := []struct {
		name, script string
		write        bool
		wire         int
		outcome      string
		commits      int
	}{
		{"healthy read", "200", false, 1, "ok", 0},
		{"healthy write", "200", true, 1, "accepted", 1},
		{"read, twice 503", "503,503,200", false, 3, "ok", 0},
		{"write, twice 503", "503,503,200", true, 1, "maybe", 0},
		{"read, 500 for ever", "500*", false, 4, "refused", 0},
		{"write, 500 for ever", "500*", true, 1, "maybe", 0},
		{"write done and 500", "commit500", true, 1, "maybe", 1},
		{"read, refused once", "429", false, 2, "ok", 0},
		{"write, refused", "429", true, 1, "refused", 0},
		{"read, a wait that overflows", "429:9300000000*", false, 1, "refused", 0},
		{"write, stale role", "stale", true, 1, "refused", 0},
		{"write, rejected", "400", true, 1, "rejected", 0},
		{"read, no right", "403", false, 1, "blocked", 0},
		{"write, no licence", "402", true, 1, "blocked", 0},
		{"read, reset", "reset", false, 2, "ok", 0},
		{"write, reset", "reset", true, 1, "maybe", 0},
		{"write done and reset", "commitreset", true, 1, "maybe", 1},
		{"write, closed", "close", true, 1, "maybe", 0},
		{"read, half", "half", false, 2, "ok", 0},
		{"write done and half", "commithalf", true, 1, "maybe", 1},
		{"write, a page", "html", true, 1, "maybe", 0},
		{"read, a page", "html", false, 2, "ok", 0},
		{"write, redirect", "307", true, 1, "maybe", 0},
		{"read, redirect", "302", false, 1, "rejected", 0},
		{"write, no content", "204", true, 1, "maybe", 0},
		{"read, not implemented", "501", false, 1, "refused", 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := listening(t, tc.script)
			r := compared(t, s, s.URL(), Plan{Write: tc.write})
			if r.LogicalCalls != 1 || r.WireRequests != tc.wire || *r.ServerRequests != tc.wire || r.Mismatch != "" {
				t.Errorf("%d calls, %d wire, %d server (%s); want %d", r.LogicalCalls, r.WireRequests, *r.ServerRequests, r.Mismatch, tc.wire)
			}
			if r.Amplification != float64(tc.wire) || r.Outcome != tc.outcome || *r.Commits != tc.commits {
				t.Errorf("amplification %v, %s, %d commits; want %d, %s, %d", r.Amplification, r.Outcome, *r.Commits, tc.wire, tc.outcome, tc.commits)
			}
			if well := tc.outcome == "ok" || tc.outcome == "accepted"; r.Clean() != well || (r.Error == "") != well {
				t.Errorf("clean %v, error %q", r.Clean(), r.Error)
			}
		})
	}
}

// TestManyCalls: the script goes on over the calls, and the figure is their mean.
func TestManyCalls(t *testing.T) {
	cases := []struct {
		name, script string
		write        bool
		calls, wire  int
		outcomes     map[string]int
	}{
		{"all well", "200*", false, 50, 50, map[string]int{"ok": 50}},
		{"writes, all well", "200*", true, 50, 50, map[string]int{"accepted": 50}},
		{"a third fails once", "500,200,200,500,200,200", false, 4, 6, map[string]int{"ok": 4}},
		{"writes, some fail", "500*3", true, 10, 10, map[string]int{"accepted": 7, "maybe": 3}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := listening(t, tc.script)
			r := compared(t, s, s.URL(), Plan{Write: tc.write, Calls: tc.calls})
			if r.LogicalCalls != tc.calls || *r.ServerRequests != tc.wire || r.Mismatch != "" {
				t.Errorf("%+v", r)
			}
			if want := float64(tc.wire) / float64(tc.calls); math.Abs(r.Amplification-want) > 1e-9 {
				t.Errorf("amplification %v, want %v", r.Amplification, want)
			}
			for o, n := range tc.outcomes {
				if r.Outcomes[o] != n {
					t.Errorf("outcomes %v, want %v", r.Outcomes, tc.outcomes)
				}
			}
		})
	}
}

// TestTotalOutage: the budget of the client ends the retries of reads; without it every call would cost four requests.
func TestTotalOutage(t *testing.T) {
	s := listening(t, "500*")
	r := compared(t, s, s.URL(), Plan{Calls: 200})
	if r.Amplification > 1.1 || r.Outcomes["refused"] != 200 || r.Mismatch != "" {
		t.Errorf("amplification %v, outcomes %v, %s", r.Amplification, r.Outcomes, r.Mismatch)
	}
}

// TestSpent: a silent server costs what the settings say, and a probe ends. Spent and elapsed hold the waits, which the caller
// waited for too; the attempts alone stand beside them.
func TestSpent(t *testing.T) {
	cases := []struct {
		name, script      string
		write             bool
		wire              int
		attempts, elapsed time.Duration
		outcome           string
	}{
		{"silence to a read", "silence*", false, 2, 60 * time.Second, 60 * time.Second, "refused"},
		{"silence to a write", "silence*", true, 1, 180 * time.Second, 180 * time.Second, "maybe"},
		{"silence, then well", "silence,200", false, 2, 30 * time.Second, 30 * time.Second, "ok"},
		{"a wait the server asked for", "429:20,200", false, 2, 0, 20 * time.Second, "ok"},
		{"two waits", "429:2,429:3,200", false, 3, 0, 5 * time.Second, "ok"},
		{"a wait among faults", "503,503,429:2,200", false, 4, 0, 2 * time.Second, "ok"},
		{"a wait that does not fit", "429:3600,200", false, 1, 0, 0, "refused"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(script(t, tc.script))
				defer s.Close() //nolint:errcheck // it has no listener
				r := compared(t, s, "http://flexi.test", Plan{Write: tc.write}, inMemory(s))
				attempts := time.Duration(r.AttemptSeconds * float64(time.Second)).Round(time.Millisecond)
				spent := time.Duration(r.SpentSeconds * float64(time.Second)).Round(time.Millisecond)
				elapsed := time.Duration(r.ElapsedMillis) * time.Millisecond
				if r.WireRequests != tc.wire || attempts != tc.attempts || spent != tc.elapsed || elapsed != tc.elapsed || r.Outcome != tc.outcome {
					t.Errorf("%d requests, spent %s, elapsed %s, %s", r.WireRequests, spent, elapsed, r.Outcome)
				}
				if r.Mismatch != "" {
					t.Error(r.Mismatch)
				}
			})
		})
	}
}

// TestCallsAfterARefusal: the next calls keep to it too; those that do not fit become no request at all.
func TestCallsAfterARefusal(t *testing.T) {
	cases := []struct {
		name, script  string
		write         bool
		wire          int
		outcomes      map[string]int
		elapsed, wait time.Duration
	}{
		{"reads wait", "429:5,200*", false, 4, map[string]int{"ok": 3}, 5 * time.Second, 0},
		{"reads that cannot", "429:600,200*", false, 1, map[string]int{"refused": 1, "not_sent": 2}, 0, 0},
		{"a write waits a little", "429:1,200*", true, 3, map[string]int{"refused": 1, "accepted": 2}, time.Second, 0},
		{"writes that cannot", "429:5,200*", true, 1, map[string]int{"refused": 1, "not_sent": 2}, 0, 5 * time.Second},
		{"writes, an overflow", "429:9300000000*", true, 1, map[string]int{"refused": 1, "not_sent": 2}, 0, time.Hour},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(script(t, tc.script))
				defer s.Close() //nolint:errcheck // it has no listener
				r := compared(t, s, "http://flexi.test", Plan{Write: tc.write, Calls: 3}, inMemory(s))
				if r.WireRequests != tc.wire || *r.ServerRequests != tc.wire || !maps.Equal(r.Outcomes, tc.outcomes) {
					t.Errorf("%d requests, %v (%s)", r.WireRequests, r.Outcomes, r.Mismatch)
				}
				elapsed, wait := time.Duration(r.ElapsedMillis)*time.Millisecond, time.Duration(r.WaitMillis)*time.Millisecond
				if elapsed.Round(100*time.Millisecond) != tc.elapsed || wait.Round(time.Second) != tc.wait {
					t.Errorf("elapsed %s, wait %s", elapsed, wait)
				}
			})
		})
	}
}

// TestCountsAgree: over long random scripts of every step, the client's count is the server's.
func TestCountsAgree(t *testing.T) {
	kinds := strings.Fields("200 200 200 201 204 302 307 400 401 402 403 404 408 421 425 429 429:0 429:3 429:9300000000 " +
		"429:soon 500 501 502 503 503:2 504 599 stale reset close silence half html")
	for _, write := range []bool{false, true} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("write %v, seed %d", write, seed), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 5))
				steps := make([]string, maxSteps)
				for i := range steps {
					if steps[i] = kinds[rnd.IntN(len(kinds))]; rnd.IntN(3) == 0 {
						steps[i] = "commit" + steps[i]
					}
				}
				synctest.Test(t, func(t *testing.T) { agree(t, write, strings.Join(steps, ",")) })
			})
		}
	}
}

func agree(t *testing.T, write bool, text string) {
	s, tally := newServer(script(t, text)), new(Tally)
	defer s.Close() //nolint:errcheck // it has no listener
	o := flexi.Options{URL: "http://flexi.test", Company: "probe", User: "probe", Password: "probe", Observe: tally.Observe}
	inMemory(s)(&o)
	c, err := flexi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	p := Plan{Evidence: "adresar", Write: write, System: "FLEXID", Name: "P", Now: time.Now}
	outcomes := make(map[string]int)
	for n := range 300 {
		if d := c.Throttle(); d.Throttled {
			<-time.After(time.Until(d.Until))
		}
		end, err := p.call(t.Context(), c, n)
		if err != nil {
			t.Fatal(err)
		}
		outcomes[end.outcome]++
	}
	if wire := len(tally.all()); wire != s.Requests() || wire < 250 || len(outcomes) < 4 {
		t.Errorf("%d at the client, %d at the server, %v", wire, s.Requests(), outcomes)
	}
}

// TestRefusedWriteTellsItsWait: the wait is the queue's business, so it is told and not waited for.
func TestRefusedWriteTellsItsWait(t *testing.T) {
	s := listening(t, "429:30")
	r := compared(t, s, s.URL(), Plan{Write: true})
	if r.WaitMillis != 30_000 || r.ElapsedMillis > 10_000 {
		t.Errorf("wait %d ms, elapsed %d ms", r.WaitMillis, r.ElapsedMillis)
	}
}

func TestNotSent(t *testing.T) {
	s := listening(t, "200")
	address := s.URL()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, write := range []bool{false, true} {
		r := probed(t, address, Plan{Write: write})
		if r.Outcome != "not_sent" || r.WireRequests != 0 || r.Amplification != 0 || r.ServerRequests != nil || r.Clean() {
			t.Errorf("write %v: %+v", write, r)
		}
	}
}

func TestBadPlan(t *testing.T) {
	s := listening(t, "200*")
	c, err := flexi.New(flexi.Options{URL: s.URL(), Company: "probe", User: "probe", Password: "probe"})
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	cases := []struct {
		name string
		ctx  context.Context //nolint:containedctx // a table
		plan Plan
	}{
		{"too many calls", t.Context(), Plan{Evidence: "adresar", Calls: MaxCalls + 1}},
		{"negative calls", t.Context(), Plan{Evidence: "adresar", Calls: -1}},
		{"not an evidence", t.Context(), Plan{Evidence: "../x", Write: true, System: "FLEXID", Name: "P"}},
		{"no time", over, Plan{Evidence: "adresar"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Run(tc.ctx, c, new(Tally), tc.plan); err == nil {
				t.Error("no error")
			}
		})
	}
	if n := s.Requests(); n != 0 {
		t.Errorf("%d requests for plans that are refused", n)
	}
}

// TestReportJSON: the names are fixed, and a count that nobody made is null, not zero.
func TestReportJSON(t *testing.T) {
	data, err := json.Marshal(Report{})
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"logical_calls", "wire_requests", "server_requests", "amplification", "spent_seconds", "outcome"} {
		if _, ok := m[name]; !ok {
			t.Errorf("%s is missing in %s", name, data)
		}
	}
	if string(m["server_requests"]) != "null" {
		t.Errorf("server_requests is %s", m["server_requests"])
	}
}
