package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bucket is a Store in memory. fail is asked before each Update: an error, and whether the value is stored all the same.
type bucket struct {
	mu      sync.Mutex
	values  map[string][]byte
	revs    map[string]uint64
	updates int
	gets    int
	down    bool
	fail    func() (err error, stored bool)
}

func newBucket() *bucket { return &bucket{values: map[string][]byte{}, revs: map[string]uint64{}} }

var errDown = errors.New("no answer from NATS")

func (b *bucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	b.mu.Lock()
	b.gets++
	down := b.down
	b.mu.Unlock()
	if down {
		<-ctx.Done()
		return nil, 0, errDown
	}
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.values[key], b.revs[key], nil
}

func (b *bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	stored := true
	if b.fail != nil {
		err, stored = b.fail()
	}
	if !stored {
		return 0, err
	}
	if b.revs[key] != revision {
		return 0, fmt.Errorf("revision %d, not %d", b.revs[key], revision)
	}
	b.updates++
	b.values[key], b.revs[key] = value, revision+1
	return revision + 1, err
}

func (b *bucket) Delete(_ context.Context, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.values, key)
	delete(b.revs, key)
	return nil
}

func quotaOf(t testing.TB, b *bucket, limit int, owner string, k *book) *Quota {
	t.Helper()
	if k == nil {
		k = &book{}
	}
	return New(Options{Limit: limit, Zone: zone(t, "Europe/Prague"), Store: b, Owner: owner, Tell: k.tell, Now: time.Now, Log: zerolog.Nop()})
}

// spendAll takes until it is refused and returns how many were granted.
func spendAll(t testing.TB, q *Quota, kind string) (n int, until time.Time) {
	t.Helper()
	for ; n < 1e6; n++ {
		if _, err := q.Take(t.Context(), kind); err != nil {
			var used *flexi.QuotaError
			if !errors.As(err, &used) || used.Err != nil {
				t.Fatalf("%v", err)
			}
			return n, used.Until
		}
	}
	t.Fatal("no end")
	return
}

func TestReserveForLookups(t *testing.T) {
	for name, tc := range map[string]struct{ limit, writes, lookups int }{
		"a usual licence": {5000, 4750, 250},
		"a small one":     {10, 9, 1},
		"rounded up":      {21, 19, 2},
		"one request":     {1, 1, 0},
		"two":             {2, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBucket()
				q := quotaOf(t, b, tc.limit, "a", nil)
				writes, until := spendAll(t, q, "write")
				if reads, _ := spendAll(t, q, "read"); reads != 0 || writes != tc.writes {
					t.Errorf("%d writes and %d reads", writes, reads)
				}
				if time.Until(until) > 25*time.Hour || until.In(q.o.Zone).Format("15:04") != "00:00" {
					t.Errorf("until %s", until)
				}
				if s := q.Status(); !s.Waiting || s.Used != writes || s.Limit != tc.limit || !s.Resets.Equal(until) {
					t.Errorf("%+v", s)
				}
				lookups, _ := spendAll(t, q, "lookup")
				if logins, _ := spendAll(t, q, flexi.KindLogin); lookups != tc.lookups || logins != 0 {
					t.Errorf("%d look-ups, %d logins", lookups, logins)
				}
				asked := b.gets
				spendAll(t, q, "write")
				if b.gets != asked {
					t.Error("a budget that is used up is asked about again")
				}
				time.Sleep(time.Until(until))
				if writes, _ := spendAll(t, q, "write"); writes != tc.writes {
					t.Errorf("%d writes on the next day", writes)
				}
			})
		})
	}
}

// A request costs no durable write of its own, and a daemon that dies at every start does not eat the day.
func TestBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBucket()
		spendAll(t, quotaOf(t, b, 10000, "a", nil), "write")
		if b.updates > 400 {
			t.Errorf("%d durable writes for 9500 requests", b.updates)
		}
		b = newBucket()
		for n := range 100 {
			if _, err := quotaOf(t, b, 10000, fmt.Sprint(n), nil).Take(t.Context(), "read"); err != nil {
				t.Fatal(err)
			}
		}
		q := quotaOf(t, b, 10000, "last", nil)
		if _, err := q.Take(t.Context(), "read"); err != nil || q.Status().Used != 101 {
			t.Errorf("%d used after 101 requests of 101 runs, %v", q.Status().Used, err)
		}
	})
}

// Whatever the store does, all replicas and all their runs together are granted no more than the limit, and writes never
// reach into the reserve.
func TestNeverMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit, keep = 400, 20
				random, trouble := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
				b := newBucket()
				b.fail = func() (error, bool) {
					switch trouble.IntN(4) {
					case 0:
						return errDown, false // not done
					case 1:
						return errDown, true // done
					}
					return nil, true
				}
				var mu sync.Mutex
				granted := map[string]int{}
				var wg sync.WaitGroup
				for replica := range 3 {
					wg.Go(func() {
						for run := range 4 {
							q := quotaOf(t, b, limit, fmt.Sprintf("%d.%d", replica, run), nil)
							var callers sync.WaitGroup
							for c := range 4 {
								callers.Go(func() {
									kind := []string{"write", "read", "lookup", "write"}[c]
									for range 60 {
										undo, err := q.Take(t.Context(), kind)
										mu.Lock()
										switch {
										case err != nil:
										case random.IntN(5) == 0:
											undo()
										default:
											granted[kind]++
										}
										mu.Unlock()
									}
								})
							}
							callers.Wait() // and a crash: what was drawn is lost
						}
					})
				}
				wg.Wait()
				others := granted["write"] + granted["read"]
				if all := others + granted["lookup"]; all > limit || others > limit-keep || all < limit/4 {
					t.Errorf("granted %v of %d", granted, limit)
				}
			})
		})
	}
}

func TestUndoBelongsToItsDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quotaOf(t, newBucket(), 10, "a", nil)
		undo, err := q.Take(t.Context(), "write")
		if err != nil {
			t.Fatal(err)
		}
		undo()
		undo, _ = q.Take(t.Context(), "write")
		if used := q.Status().Used; used != 1 {
			t.Errorf("used %d", used)
		}
		time.Sleep(25 * time.Hour)
		if _, err := q.Take(t.Context(), "write"); err != nil {
			t.Fatal(err)
		}
		undo() // of yesterday
		if n, _ := spendAll(t, q, "write"); n != 8 {
			t.Errorf("%d more of 9 writes", n)
		}
	})
}

// Where the store cannot be asked, what is drawn is spent, and then nothing leaves until it can.
func TestStoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBucket()
		q := quotaOf(t, b, 1000, "a", nil)
		for range 4 { // drawn 1, 2 and 4
			if _, err := q.Take(t.Context(), "write"); err != nil {
				t.Fatal(err)
			}
		}
		b.down = true
		granted, start := 0, time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 50 {
			wg.Go(func() {
				_, err := q.Take(t.Context(), "write")
				mu.Lock()
				defer mu.Unlock()
				var no *flexi.QuotaError
				switch {
				case err == nil:
					granted++
				case !errors.As(err, &no) || !errors.Is(err, errDown) || time.Until(no.Until) > askPause:
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		if granted != 3 || time.Since(start) != askTimeout {
			t.Errorf("%d granted after %s", granted, time.Since(start))
		}
		if s := q.Status(); s.Trouble == "" || s.Waiting {
			t.Errorf("%+v", s)
		}
		b.down = false
		time.Sleep(askPause)
		if _, err := q.Take(t.Context(), "write"); err != nil || q.Status().Trouble != "" {
			t.Errorf("%v %+v", err, q.Status())
		}
	})
}

// A caller that gives up does not make the store look sick to the others.
func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBucket()
		b.down = true
		q := quotaOf(t, b, 1000, "a", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Take(ctx, "write"); err == nil {
			t.Fatal("granted without the store")
		}
		b.down = false
		if _, err := q.Take(t.Context(), "write"); err != nil {
			t.Error(err)
		}
	})
}

func TestUnreadableCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBucket()
		q := quotaOf(t, b, 1000, "a", nil)
		k := key(dayOf(time.Now(), 0, q.o.Zone).name)
		b.values[k], b.revs[k] = []byte("{"), 7
		var no *flexi.QuotaError
		if _, err := q.Take(t.Context(), "write"); !errors.As(err, &no) || no.Err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%v", err)
		}
	})
}

func TestOldCountsAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBucket()
		for range 40 {
			if _, err := quotaOf(t, b, 10, "a", nil).Take(t.Context(), "write"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(24 * time.Hour)
		}
		if len(b.values) > keepDays {
			t.Errorf("%d counts are kept", len(b.values))
		}
	})
}
