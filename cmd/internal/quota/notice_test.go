package quota

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// book is the notices that were told; err fails the next ones, and each takes a while.
type book struct {
	mu    sync.Mutex
	all   []string
	err   error
	takes time.Duration
}

func (k *book) tell(ctx context.Context, text string) error {
	select {
	case <-time.After(k.takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.all = append(k.all, text)
	}
	return k.err
}

func (k *book) told() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.all)
}

// Notice is given once a day at 80 % and once when writes wait, by one of all replicas, and again while it cannot be told.
func TestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, k := newBucket(), &book{err: errDown}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		start := func(owner string) *Quota {
			q := quotaOf(t, b, 1000, owner, k)
			wg.Go(func() { q.Run(ctx) })
			return q
		}
		q, idle := start("a"), start("b")
		said := func(want ...string) {
			t.Helper()
			time.Sleep(2 * refreshTime)
			told := k.told()
			if len(told) != len(want) {
				t.Fatalf("told %q", told)
			}
			for i, w := range want {
				if !strings.Contains(told[i], w) {
					t.Errorf("told %q, want %q", told[i], w)
				}
			}
		}
		for range 700 {
			if _, err := q.Take(ctx, "write"); err != nil {
				t.Fatal(err)
			}
		}
		said()
		for range 110 {
			if _, err := q.Take(ctx, "write"); err != nil {
				t.Fatal(err)
			}
		}
		said()
		k.mu.Lock()
		k.err = nil
		k.mu.Unlock()
		said("of the 1000 requests")
		start("c")
		said("of the 1000 requests")
		if s := idle.Status(); s.Used < 810 || !s.Known {
			t.Errorf("an idle replica shows %+v", s)
		}
		spendAll(t, q, "write")
		said("of the 1000 requests", "writes wait until")
		time.Sleep(24 * time.Hour)
		spendAll(t, q, "write")
		time.Sleep(2 * refreshTime)
		cancel()
		wg.Wait()
		// The 80 % of the second day are said only if somebody looked between them and the end.
		if n := len(k.all); n < 3 || n > 4 || !strings.Contains(k.all[n-1], "writes wait until") {
			t.Errorf("told %q", k.all)
		}
	})
}

// Replicas that learn of a count at the same moment give one notice, however long telling takes.
func TestNoticeIsOneReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, k := newBucket(), &book{takes: time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, owner := range []string{"a", "b", "c"} {
			q := quotaOf(t, b, 1000, owner, k)
			spendAll(t, q, "write")
			wg.Go(func() { q.Run(ctx) })
		}
		time.Sleep(10 * refreshTime)
		cancel()
		wg.Wait()
		if told := k.told(); len(told) != 1 || !strings.Contains(told[0], "writes wait until") {
			t.Errorf("told %q", told)
		}
	})
}

// A notice that its giver never gave, because that replica died, is given by another, and not before that attempt is over.
func TestNoticeOfADeadReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dead, k := newBucket(), &book{takes: time.Hour}, &book{}
		a := quotaOf(t, b, 1000, "a", dead)
		spendAll(t, a, "write")
		dies, kill := context.WithCancel(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { a.Run(dies) })
		synctest.Wait() // it is telling
		kill()
		other := quotaOf(t, b, 1000, "b", k)
		wg.Go(func() { other.Run(ctx) })
		time.Sleep(askTimeout)
		if told := k.told(); len(told) != 0 {
			t.Errorf("told %q while the other replica might be telling", told)
		}
		time.Sleep(refreshTime)
		cancel()
		wg.Wait()
		if len(dead.told()) != 0 || len(k.told()) != 1 {
			t.Errorf("told %q by the dead and %q by the other", dead.told(), k.told())
		}
	})
}
