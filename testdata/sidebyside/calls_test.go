package sidebyside

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"flexid/flexi"
)

// The load of the scenarios. Calls come one every 100 ms and do not wait for each other, as from a queue.
const (
	calls    = 1000
	every    = 100 * time.Millisecond
	patience = 10 * time.Minute // of one call
	herd     = 200
	window   = 50 * time.Millisecond
)

// caller makes a call with everything under it; end gives up what it holds.
type caller func(dial dialer) (c call, end func())

func (p peer) caller() caller {
	return func(dial dialer) (call, func()) {
		client, end := transport(dial)
		return p.over(client), end
	}
}

// reader is flexid's reads. The body is flexid's own question, so the one that is handed in is not used.
func reader(t *testing.T, seed uint64) caller {
	return func(dial dialer) (call, func()) {
		c, err := flexi.New(flexi.Options{
			URL: "http://flexi.test:5434", Company: "firma", User: "flexid", Password: "secret", Dial: dial, Log: zerolog.Nop(),
			Rand: chance(seed),
		})
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, url string, _ []byte) error {
			var n int
			if _, err := fmt.Sscanf(url, "http://flexi.test:5434/c/firma/call-%d.json", &n); err != nil {
				return err
			}
			_, err := c.List(ctx, flexi.Query{Evidence: fmt.Sprintf("call-%d", n), Fields: []string{"id"}, Limit: 1})
			return err
		}, func() {}
	}
}

// chance is a fixed row of numbers that several may draw from.
func chance(seed uint64) func() float64 {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	return func() float64 { mu.Lock(); defer mu.Unlock(); return rnd.Float64() }
}

// run makes n calls, apart by gap, and returns what arrived and how many calls succeeded.
func run(t *testing.T, c caller, s script, n int, gap time.Duration) (seen []arrival, ok int) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, s)
		defer server.stop()
		do, end := c(server.dial)
		defer end()
		var wg sync.WaitGroup
		var good atomic.Int64
		for i := range n {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if do(ctx, address(i), []byte(`{}`)) == nil {
					good.Add(1)
				}
			})
			if gap > 0 {
				after(gap)
			}
		}
		wg.Wait()
		seen, ok = server.arrivals(), int(good.Load())
	})
	return seen, ok
}

// amplification is requests by calls; ok is the part of the calls that succeeded, since a layer that gives up at once
// amplifies nothing either.
func amplification(t *testing.T, c caller, s script) (a, ok float64) {
	seen, good := run(t, c, s, calls, every)
	return float64(len(seen)) / calls, float64(good) / calls
}

// The scripts of the first three columns.
func twice503(_, n int) reply {
	if n <= 2 {
		return reply{status: http.StatusServiceUnavailable}
	}
	return reply{}
}

func always500(_, _ int) reply { return reply{status: http.StatusInternalServerError} }

func half500(call, n int) reply {
	if rand.NewPCG(uint64(call), uint64(n)).Uint64()&1 == 0 {
		return reply{status: http.StatusInternalServerError}
	}
	return reply{}
}

// stampede is what 200 callers do after they were refused together.
type stampede struct {
	back  int // calls that came back
	peak  int // most requests of theirs within 50 ms
	early int // of them sooner than asked
}

const asked = 2 * time.Second

func stampedeOf(t *testing.T, c caller) stampede {
	seen, _ := run(t, c, func(_, n int) reply {
		if n == 1 {
			// All of them have asked before the first is refused: whoever shares what he learns must not have it easier.
			return reply{status: http.StatusTooManyRequests, retryAfter: "2", after: every}
		}
		return reply{}
	}, herd, 0)
	return judge(seen)
}

// judge reads a log in which the first request of every call was refused.
func judge(seen []arrival) stampede {
	var out stampede
	refused := make(map[int]time.Time)
	came := make(map[int]time.Time) // by request
	back := make(map[int]bool)      // by call
	for _, a := range seen {
		if a.n == 1 {
			refused[a.call] = a.at.Add(a.after)
			continue
		}
		came[a.request], back[a.call] = a.at, true
		if a.at.Sub(refused[a.call]) < asked {
			out.early++
		}
	}
	at := slices.SortedFunc(maps.Values(came), time.Time.Compare)
	out.back = len(back)
	from := 0
	for to := range at {
		for at[to].Sub(at[from]) >= window {
			from++
		}
		out.peak = max(out.peak, to-from+1)
	}
	return out
}

// endless is how many requests one call makes at a server that asks for 295 years of patience.
func endless(t *testing.T, c caller) int {
	seen, _ := run(t, c, func(int, int) reply {
		return reply{status: http.StatusTooManyRequests, retryAfter: "9300000000"}
	}, 1, 0)
	return len(seen)
}
