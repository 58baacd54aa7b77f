package flexi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// seeded is a source of chance that may be shared.
func seeded(seed uint64) func(*Options) {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 1))
	return func(o *Options) {
		o.Rand = func() float64 { mu.Lock(); defer mu.Unlock(); return r.Float64() }
	}
}

// peak is the most of the moments within 50 ms.
func peak(at []time.Time) (most int) {
	slices.SortFunc(at, time.Time.Compare)
	from := 0
	for to := range at {
		for at[to].Sub(at[from]) >= 50*time.Millisecond {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}

// refusing refuses the first request of every caller and notes when each came. Callers are told apart by their evidence.
type refusing struct {
	header string
	mu     sync.Mutex
	came   map[string][]time.Time
}

func (f *refusing) handle(c *rawConn) {
	r, err := c.request()
	if err != nil {
		return
	}
	who := strings.Split(r.head, "/")[3]
	f.mu.Lock()
	f.came[who] = append(f.came[who], time.Now())
	first := len(f.came[who]) == 1
	f.mu.Unlock()
	switch {
	case first:
		sleep(context.Background(), 100*time.Millisecond) // so that all are there before the first is refused
		c.answerWith(429, f.header, "")
	case strings.Contains(r.head, "query.json"):
		c.answer(200, emptyList)
	default:
		c.answer(201, okBody)
	}
}

// judge: everybody came back once, nobody early, and few at the same time.
func (f *refusing) judge(t *testing.T, callers int, asked time.Duration) {
	t.Helper()
	var back []time.Time
	for who, at := range f.came {
		if len(at) != 2 {
			t.Fatalf("%s came %d times", who, len(at))
		}
		if got := at[1].Sub(at[0]); got < asked {
			t.Errorf("%s came back after %s", who, got)
		}
		back = append(back, at[1])
	}
	if len(back) != callers {
		t.Errorf("%d callers", len(back))
	}
	if n := peak(back); n > 12 {
		t.Errorf("%d requests within 50 ms", n)
	}
}

const herd = 200

// forms are the two forms of the header, and none; in virtual time a date is exact.
func forms() map[string]struct {
	header string
	asked  time.Duration
} {
	date := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return map[string]struct {
		header string
		asked  time.Duration
	}{
		"seconds": {"Retry-After: 2\r\n", 2 * time.Second},
		"date, and a server whose clock is wrong": {fmt.Sprintf("Date: %s\r\nRetry-After: %s\r\n",
			date.Format(http.TimeFormat), date.Add(3*time.Second).Format(http.TimeFormat)), 3 * time.Second},
		"none": {"", 0},
	}
}

func TestHerdOfReads(t *testing.T) {
	for name, form := range forms() {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &refusing{header: form.header, came: map[string][]time.Time{}}
					_, dial := pipes(f.handle)
					c := testClient(t, "http://erp.test", dial, seeded(seed), func(o *Options) { o.ReadTimeout = 30 * time.Second })
					var wg sync.WaitGroup
					for i := range herd {
						wg.Go(func() {
							if _, err := c.List(t.Context(), Query{Evidence: fmt.Sprint("r", i)}); err != nil {
								t.Error(err)
							}
						})
					}
					wg.Wait()
					f.judge(t, herd, form.asked)
					now := time.Now()
					if left := c.budget.Reads.Tokens(now); left != 10 {
						t.Errorf("refusals cost the budget of faults: %v left", left)
					}
				})
			})
		}
	}
}

// Writes wait in a queue of their own, by what Result.Wait and ThrottledError tell, and may go when they come.
func TestHerdOfWrites(t *testing.T) {
	for name, form := range forms() {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &refusing{header: form.header, came: map[string][]time.Time{}}
					_, dial := pipes(f.handle)
					c := testClient(t, "http://erp.test", dial, seeded(seed))
					var wg sync.WaitGroup
					for i := range herd {
						wg.Go(func() { push(t, c, fmt.Sprint("w", i)) })
					}
					wg.Wait()
					f.judge(t, herd, form.asked)
				})
			})
		}
	}
}

// push sends until it is accepted and keeps to the dates that it is told.
func push(t *testing.T, c *Client, evidence string) {
	w := createWrite()
	w.Evidence = evidence
	for n := range 100 {
		cn, err := c.Dial(t.Context())
		var shut *ThrottledError
		if errors.As(err, &shut) {
			sleep(t.Context(), time.Until(shut.Until))
			continue
		}
		if err != nil {
			t.Error(err)
			return
		}
		r := cn.Send(t.Context(), mustPrepare(t, w), permit(fmt.Sprint(evidence, n)))
		switch r.Outcome {
		case Accepted:
			return
		case Refused:
			sleep(t.Context(), r.Wait)
		default:
			t.Errorf("%s: %v", r.Outcome, r.Err)
			return
		}
	}
	t.Errorf("%s was not accepted", evidence)
}

// While a wait lasts nothing reaches the server: who cannot wait is told until when.
func TestShutDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dial := pipes(answering(429, "Retry-After: 100\r\n", ""))
		c := testClient(t, "http://erp.test", dial, seeded(1), func(o *Options) { o.ReadTimeout = 30 * time.Second })
		begun := time.Now()
		late := func(err error, status int, o Outcome) {
			t.Helper()
			var shut *ThrottledError
			if e := asError(t, err); !errors.As(err, &shut) || e.Status != status || e.Outcome != o {
				t.Fatalf("%v", err)
			}
			if d := shut.Until.Sub(begun); d < 100*time.Second || d > 152*time.Second || !strings.Contains(shut.Reason, "429, Retry-After 1m40s") {
				t.Errorf("until %s: %s", d, shut.Reason)
			}
		}
		_, err := c.List(t.Context(), Query{Evidence: "banka"})
		late(err, 429, Refused)
		_, err = c.List(t.Context(), Query{Evidence: "banka"})
		late(err, 0, NotSent)
		_, err = c.Dial(t.Context())
		late(err, 0, NotSent)
		late(c.EndUserContext(t.Context()), 0, NotSent)
		if conns, _, reqs := s.seen(); conns != 1 || len(reqs) != 1 || time.Since(begun) > 0 {
			t.Errorf("%d connections, %d requests, %s", conns, len(reqs), time.Since(begun))
		}
		if d := c.Throttle(); !d.Throttled || d.InARow != 1 || d.Waiting != 0 || d.Until.Sub(begun) < 100*time.Second {
			t.Errorf("%+v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		sleep(ctx, 105*time.Second)
		if d := c.Throttle(); d.Throttled {
			t.Errorf("%+v", d)
		}
		cn, err := c.Dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_ = cn.Close()
	})
}

// A dial waits for a throttle that ends soon, but no longer than a second and than its caller.
func TestDialWaitsALittle(t *testing.T) {
	cases := []struct {
		name   string
		wait   time.Duration
		caller time.Duration
		err    bool
	}{
		{"soon", 900 * time.Millisecond, time.Hour, false},
		{"later", 1100 * time.Millisecond, time.Hour, true},
		{"the caller has less time", 900 * time.Millisecond, 500 * time.Millisecond, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, dial := pipes(answering(429, "", ""))
				c := testClient(t, "http://erp.test", dial, func(o *Options) { o.Rand = func() float64 { return tc.wait.Seconds() / 2 } })
				c.throttle.answered(0, answer{status: 429, header: http.Header{"Retry-After": {"0"}}})
				sleep(t.Context(), time.Duration(tc.wait.Seconds()/2*float64(time.Second))-tc.wait)
				ctx, cancel := context.WithTimeout(t.Context(), tc.caller)
				defer cancel()
				c.throttle.until = time.Now().Add(tc.wait)
				begun := time.Now()
				cn, err := c.Dial(ctx)
				took := time.Since(begun)
				if tc.err {
					if !errors.As(err, new(*ThrottledError)) || took != 0 {
						t.Errorf("%v after %s", err, took)
					}
					return
				}
				if err != nil || took < tc.wait || took > tc.wait+slotWidth {
					t.Fatalf("%v after %s", err, took)
				}
				_ = cn.Close()
			})
		})
	}
}

func TestThrottlePauses(t *testing.T) {
	now := time.Unix(1e9, 0)
	refusal := func(after string) answer {
		h := http.Header{}
		if after != "" {
			h.Set("Retry-After", after)
		}
		return answer{status: 429, header: h}
	}
	type step struct {
		inFlight bool // the refused request had entered before the wait began
		a        answer
		shut     time.Duration // from now, with the most of the jitter
	}
	cases := []struct {
		name  string
		steps []step
	}{
		{"no header: grows", []step{{false, refusal(""), time.Second}, {false, refusal(""), 2 * time.Second}, {false, refusal(""), 4 * time.Second}}},
		{"a header, and a pause on top", []step{{false, refusal("5"), 6 * time.Second}, {false, refusal("5"), 7 * time.Second}}},
		{"capped", append(slices.Repeat([]step{{false, refusal(""), 0}}, 20), step{false, refusal(""), 30 * time.Second})},
		{"overflow", []step{{false, refusal("9300000000"), time.Hour + time.Second}}},
		{"under way: extends only", []step{{false, refusal("5"), 6 * time.Second}, {true, refusal("5"), 6 * time.Second}, {true, refusal("8"), 8 * time.Second}}},
		{"under way: is not in a row", []step{{false, refusal(""), time.Second}, {true, refusal(""), time.Second}, {false, refusal(""), 2 * time.Second}}},
		{"an answer ends the row", []step{{false, refusal(""), time.Second}, {false, answer{status: 500}, 0}, {false, refusal(""), time.Second}}},
		{"an answer to what was under way does not", []step{{false, refusal(""), time.Second}, {true, answer{status: 200}, time.Second}, {false, refusal(""), 2 * time.Second}}},
		{"no answer says nothing", []step{{false, refusal(""), time.Second}, {false, answer{}, 0}, {false, refusal(""), 2 * time.Second}}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			now := now
			th := &throttle{now: func() time.Time { return now }, random: func() float64 { return 1 }}
			for i, s := range tc.steps {
				era := th.era
				if s.inFlight {
					era--
				} else if th.until.After(now) {
					now = th.until
				}
				wait := th.answered(era, s.a)
				if got := th.until.Sub(now); s.shut > 0 && got != s.shut {
					t.Errorf("step %d: shut for %s, want %s", i, got, s.shut)
				}
				if s.a.status == 429 && wait < th.until.Sub(now) {
					t.Errorf("step %d: a wait of %s is too short", i, wait)
				}
			}
		})
	}
}

// Who waits for the throttle when there is another refusal is not let through at the old moment.
func TestThrottleRefusedAgainWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := &throttle{now: time.Now, random: func() float64 { return 0 }}
		begun := time.Now()
		th.answered(0, answer{status: 429, header: http.Header{"Retry-After": {"2"}}})
		came := make(chan time.Duration, 3)
		for range 3 {
			go func() {
				if _, err := th.enter(t.Context(), time.Minute); err != nil {
					t.Error(err)
				}
				came <- time.Since(begun)
			}()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gave := make(chan error, 1)
		go func() { _, err := th.enter(ctx, time.Minute); gave <- err }()
		synctest.Wait()
		if st := th.state(); st.Waiting != 4 {
			t.Errorf("%d wait", st.Waiting)
		}
		sleep(t.Context(), time.Second)
		th.answered(0, answer{status: 429, header: http.Header{"Retry-After": {"2"}}})
		left := errors.New("left")
		cancel(left)
		if err := <-gave; !errors.Is(err, left) {
			t.Errorf("%v", err)
		}
		for i := range 3 {
			if got := <-came; got < 3*time.Second || got > 3100*time.Millisecond {
				t.Errorf("caller %d after %s", i, got)
			}
		}
	})
}

// A clock that stands still or jumps must neither hold callers for ever nor spin.
func TestThrottleWithAStandingClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		still := time.Now()
		th := &throttle{now: func() time.Time { return still }, random: func() float64 { return 0 }}
		th.answered(0, answer{status: 429, header: http.Header{"Retry-After": {"2"}}})
		if _, err := th.enter(t.Context(), time.Minute); err != nil || time.Since(still) != 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(still))
		}
	})
}

// The budget of refusals ends the tries of reads, with the date of its next token.
func TestReadRefusalsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		_, dial := pipes(counted(&n, answering(429, "Retry-After: 0\r\n", "")))
		b := NewBudget(1)
		b.Refusals = NewBucket(3, 0, 5*time.Minute)
		c := testClient(t, "http://erp.test", dial, func(o *Options) { o.Budget, o.ReadTimeout = b, 30*time.Second })
		begun := time.Now()
		_, err := c.List(t.Context(), Query{Evidence: "banka"})
		var shut *ThrottledError
		if !errors.As(err, &shut) || n.Load() != 4 || asError(t, err).Outcome != Refused {
			t.Fatalf("%d requests: %v", n.Load(), err)
		}
		if d := shut.Until.Sub(begun); d < 290*time.Second || d > 301*time.Second {
			t.Errorf("until %s", d)
		}
	})
}

// Refused writes pay from the same budget; without a token they wait for one in their queue.
func TestWriteRefusalsBudget(t *testing.T) {
	s := startRaw(t, answering(421, "", ""))
	b := NewBudget(1)
	b.Refusals = NewBucket(1, 0, 5*time.Minute)
	c := testClient(t, s.url(), func(o *Options) { o.Budget = b })
	for i, least := range []time.Duration{0, 290 * time.Second} {
		r := send(t, c, mustPrepare(t, createWrite()), permit(fmt.Sprint(i)))
		if r.Outcome != Refused || r.Wait < least || r.Wait > least+10*time.Second {
			t.Errorf("%s %d waits %s", r.Outcome, i, r.Wait)
		}
	}
}

// The errors of the network are not the throttle's business.
func TestThrottleIgnoresFaults(t *testing.T) {
	broken := errors.New("no network in tests")
	c := testClient(t, "http://erp.test", func(o *Options) {
		o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, broken }
	})
	for range 5 {
		if _, err := c.Dial(t.Context()); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	if d := c.Throttle(); d != (ThrottleState{}) {
		t.Errorf("%+v", d)
	}
}

// Whatever happens in whatever order: no caller is let through before the wait is over, none waits longer than it would,
// and after a refusal few come at the same time.
func FuzzDoor(f *testing.F) {
	f.Add(uint64(1), []byte{1, 2, 0, 0, 0, 200, 0, 0, 5})
	f.Fuzz(func(t *testing.T, seed uint64, ops []byte) {
		now := time.Unix(1e9, 0)
		r := rand.New(rand.NewPCG(seed, 2))
		th := &throttle{now: func() time.Time { return now }, random: r.Float64}
		th.answered(0, answer{status: 429, header: http.Header{"Retry-After": {"1"}}})
		var came []time.Time
		for i, op := range ops[:min(len(ops), 500)] {
			switch op % 4 {
			case 0:
				now = now.Add(time.Duration(op) * time.Millisecond)
			case 1:
				before := th.until
				th.answered(th.era-int(op/4)%2, answer{status: 429, header: http.Header{"Retry-After": {fmt.Sprint(op / 16)}}})
				if th.until.Before(before) || th.until.Before(now) {
					t.Fatalf("op %d: a refusal ended the wait", i)
				}
				came = slices.DeleteFunc(came, th.until.After) // they will wake, be turned back and take another
			default:
				patience := time.Duration(op) * 20 * time.Millisecond
				at, wait, err := th.take(patience)
				switch {
				case err != nil:
					var shut *ThrottledError
					if !errors.As(err, &shut) || shut.Until.Before(th.until) || !shut.Until.After(now) {
						t.Fatalf("op %d: %v", i, err)
					}
				case at.Before(th.until), at.Before(now), wait > patience, wait < 0:
					t.Fatalf("op %d: at %s, wait %s", i, at, wait)
				case now.Before(th.until.Add(th.spread)):
					came = append(came, at)
				}
			}
		}
		if n := peak(came); n > 6 {
			t.Fatalf("%d within 50 ms", n)
		}
	})
}
