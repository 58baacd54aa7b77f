package flexi_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
)

// TestAServerThatTakesOneAtATime: twenty readers who know nothing of each other find the pace of a server that refuses a
// second request at once, and keep it; without that every second request would be refused for ever.
func TestAServerThatTakesOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flexitest.New(flexitest.Options{})
		defer s.Close()
		s.Slow(100 * time.Millisecond)
		s.LimitAtOnce(1, "")
		r, mu := rand.New(rand.NewPCG(3, 3)), sync.Mutex{}
		c, err := flexi.New(flexi.Options{URL: s.URL(), Company: "firma", User: "flexid", Password: "secret", Dial: s.Dial,
			Rand: func() float64 { mu.Lock(); defer mu.Unlock(); return r.Float64() }})
		if err != nil {
			t.Fatal(err)
		}
		refused := func() (n int) {
			for _, q := range s.Requests() {
				if q.Status == 429 {
					n++
				}
			}
			return n
		}
		var wg sync.WaitGroup
		done := 0
		for range 20 {
			wg.Go(func() {
				for range 5 {
					for {
						_, err := c.List(t.Context(), flexi.Query{Evidence: "mena", Limit: 1})
						if err == nil {
							break
						}
						time.Sleep(time.Second)
					}
					mu.Lock()
					done++
					mu.Unlock()
				}
			})
		}
		begun := time.Now()
		wg.Wait()
		if took := time.Since(begun); took > 5*time.Minute {
			t.Errorf("100 reads of 100 ms took %s", took)
		}
		if n := refused(); done != 100 || n > done {
			t.Errorf("%d reads were answered, %d refused", done, n)
		}
	})
}
