package changes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"flexid/flexi"
	"flexid/webhook/changes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is Flexi's log, the store of the cursor and the stream, with faults.
type world struct {
	mu      sync.Mutex
	log     []flexi.Change
	version int64
	page    int // most changes of a page; 0 = as asked
	reads   int
	starts  []int64

	cursor   []byte
	revision uint64

	told     []changes.News
	subjects []string

	feedErr, storeErr, notifyErr error
	tellFails                    int // the n-th message fails, 0 = none
	stuck                        bool
	early                        int64 // shows that many versions before the one asked for
}

func (w *world) Changes(_ context.Context, start int64, limit int) (flexi.Changes, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	w.starts = append(w.starts, start)
	if w.feedErr != nil {
		return flexi.Changes{}, w.feedErr
	}
	if w.page > 0 {
		limit = min(limit, w.page)
	}
	out := flexi.Changes{GlobalVersion: w.version}
	if w.stuck {
		out.Next = start
		return out, nil
	}
	for _, c := range w.log {
		if c.Version < start-w.early {
			continue
		}
		if len(out.Changes) == limit {
			out.Next = c.Version
			break
		}
		out.Changes = append(out.Changes, c)
	}
	return out, nil
}

func (w *world) Get(context.Context, string) ([]byte, uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cursor, w.revision, nil
}

func (w *world) Update(_ context.Context, _ string, value []byte, revision uint64) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.storeErr != nil {
		return 0, w.storeErr
	}
	if revision != w.revision {
		return 0, errors.New("another one was faster")
	}
	w.cursor, w.revision = value, w.revision+1
	return w.revision, nil
}

func (w *world) Notify(_ context.Context, kind, token, id string, body []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notifyErr != nil {
		return w.notifyErr
	}
	if w.tellFails > 0 {
		if w.tellFails--; w.tellFails == 0 {
			return errors.New("the stream is away")
		}
	}
	var n changes.News
	if err := json.Unmarshal(body, &n); err != nil {
		return err
	}
	if id == "" {
		return errors.New("no message id")
	}
	w.told, w.subjects = append(w.told, n), append(w.subjects, kind+"."+token)
	return nil
}

// happen adds changes, each "evidence id operation", one version apart.
func (w *world) happen(all ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range all {
		f := strings.Fields(text)
		w.version++
		w.log = append(w.log, flexi.Change{Evidence: f[0], ID: f[1], Operation: f[2], Version: w.version})
	}
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// shown are the messages in short form, and forgets them.
func (w *world) shown() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.told {
		all = append(all, fmt.Sprintf("%s/%s %s v%d", n.Evidence, n.ID, strings.Join(n.Operations, "+"), n.Version))
	}
	w.told = nil
	return all
}

// run reads in virtual time.
func run(t *testing.T, f func(t *testing.T, w *world, r *changes.Reader), change func(w *world, o *changes.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{version: 100}
		o := changes.Options{Feed: w, Store: w, Notifier: w, Log: zerolog.Nop()}
		if change != nil {
			change(w, &o)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := changes.New(o)
		var ended sync.WaitGroup
		ended.Go(func() { r.Run(ctx) })
		synctest.Wait()
		f(t, w, r)
		cancel()
		ended.Wait()
	})
}

// wake wakes and lets the shortest time between two reads pass.
func wake(r *changes.Reader) {
	r.Wake()
	time.Sleep(1100 * time.Millisecond)
	synctest.Wait()
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNewestOfEachRecordInOrder(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *changes.Reader) {
		equal(t, w.shown()) // history is not news
		w.happen("rocni-rada 1 update", "faktura-vydana 7 create", "faktura-vydana-polozka 1 create", "faktura-vydana 7 update",
			"adresar 7 update", "faktura-vydana-polozka 2 create", "faktura-vydana 7 update")
		wake(r)
		equal(t, w.shown(), "rocni-rada/1 update v101", "faktura-vydana-polozka/1 create v103", "adresar/7 update v105",
			"faktura-vydana-polozka/2 create v106", "faktura-vydana/7 create+update v107")
		if last := w.subjects[len(w.subjects)-1]; last != "change.faktura-vydana.update" {
			t.Errorf("subject %s", last)
		}
		wake(r)
		equal(t, w.shown())
		w.happen("faktura-vydana 7 delete")
		wake(r)
		equal(t, w.shown(), "faktura-vydana/7 delete v108")
	}, nil)
}

// TestWithoutAHook: a hook that never came costs minutes, and one that comes a hundred times costs one read.
func TestWithoutAHook(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *changes.Reader) {
		w.happen("banka 1 create")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		equal(t, w.shown(), "banka/1 create v101")
		w.set(func() { w.reads = 0 })
		for range 100 {
			r.Wake()
		}
		time.Sleep(10 * time.Second)
		if w.set(func() {}); w.reads > 2 {
			t.Errorf("%d reads for one burst of hooks", w.reads)
		}
	}, nil)
}

func TestPages(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *changes.Reader) {
		w.happen("a 1 create", "a 1 update", "a 2 create", "a 1 update", "a 3 create")
		wake(r)
		equal(t, w.shown(), "a/1 create+update v102", "a/2 create v103", "a/1 update v104", "a/3 create v105")
	}, func(w *world, _ *changes.Options) { w.page = 2 })
}

// TestNothingIsLostByFailures: at every step, and across a restart.
func TestNothingIsLostByFailures(t *testing.T) {
	away := errors.New("away")
	for name, tc := range map[string]struct {
		fail, heal func(w *world)
		want       []string
	}{
		"Flexi is away":             {func(w *world) { w.feedErr = away }, func(w *world) { w.feedErr = nil }, []string{"a/1 create v101", "a/2 create v102"}},
		"the stream is away":        {func(w *world) { w.notifyErr = away }, func(w *world) { w.notifyErr = nil }, []string{"a/1 create v101", "a/2 create v102"}},
		"the cursor does not move":  {func(w *world) { w.storeErr = away }, func(w *world) { w.storeErr = nil }, []string{"a/1 create v101", "a/2 create v102", "a/1 create v101", "a/2 create v102"}},
		"one of several is refused": {func(w *world) { w.tellFails = 2 }, func(*world) {}, []string{"a/1 create v101", "a/1 create v101", "a/2 create v102"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world, r *changes.Reader) {
				w.set(func() { tc.fail(w) })
				w.happen("a 1 create", "a 2 create")
				wake(r)
				w.set(func() { tc.heal(w) })
				time.Sleep(6 * time.Second)
				synctest.Wait()
				equal(t, w.shown(), tc.want...)
				w.happen("a 3 create")
				wake(r)
				equal(t, w.shown(), "a/3 create v103")
			}, nil)
		})
	}
}

// TestFailuresDoNotBecomeAStorm: hooks do not make a broken Flexi be asked more often.
func TestFailuresDoNotBecomeAStorm(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *changes.Reader) {
		w.set(func() { w.feedErr, w.reads = errors.New("away"), 0 })
		for range 3600 {
			r.Wake()
			time.Sleep(time.Second)
		}
		if w.set(func() {}); w.reads > 25 {
			t.Errorf("%d reads in an hour of failures", w.reads)
		}
	}, nil)
}

func TestRestart(t *testing.T) {
	var kept []byte
	run(t, func(t *testing.T, w *world, r *changes.Reader) {
		w.happen("a 1 create")
		wake(r)
		kept = w.cursor
	}, nil)
	run(t, func(t *testing.T, w *world, _ *changes.Reader) {
		equal(t, w.shown(), "a/2 create v102")
		if w.starts[0] != 102 {
			t.Errorf("reads from %v on", w.starts)
		}
	}, func(w *world, _ *changes.Options) {
		w.happen("a 1 create", "a 2 create")
		w.cursor, w.revision = kept, 5
	})
}

func TestRestoredFromABackup(t *testing.T) {
	var fell []int64
	run(t, func(t *testing.T, w *world, r *changes.Reader) {
		w.happen("a 1 create", "a 2 create", "a 3 create")
		wake(r)
		w.shown()
		w.set(func() { w.log, w.version = w.log[:1], 101 })
		wake(r)
		if !slices.Equal(fell, []int64{103, 101}) {
			t.Errorf("told %v", fell)
		}
		equal(t, w.shown())
		w.happen("a 9 create")
		wake(r)
		equal(t, w.shown(), "a/9 create v102")
		if len(fell) != 2 {
			t.Errorf("told again: %v", fell)
		}
	}, func(_ *world, o *changes.Options) {
		o.Fell = func(known, now int64) { fell = append(fell, known, now) }
	})
}

// TestALogThatDoesNotAdvance is not read in a circle.
func TestALogThatDoesNotAdvance(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *changes.Reader) {
		w.set(func() { w.stuck, w.reads = true, 0 })
		wake(r)
		if w.set(func() {}); w.reads != 1 {
			t.Errorf("%d reads", w.reads)
		}
	}, nil)
}

// TestWhatWasReadIsNotToldAgain, whatever the server takes the start to mean.
func TestWhatWasReadIsNotToldAgain(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *changes.Reader) {
		w.happen("a 1 create", "a 2 create")
		wake(r)
		w.happen("a 3 create")
		wake(r)
		equal(t, w.shown(), "a/1 create v101", "a/2 create v102", "a/3 create v103")
	}, func(w *world, _ *changes.Options) { w.early = 1 })
}

func TestADamagedCursorIsNotPassedOver(t *testing.T) {
	run(t, func(t *testing.T, w *world, _ *changes.Reader) {
		if w.set(func() {}); w.reads != 0 || string(w.cursor) != "x" {
			t.Errorf("%d reads, cursor %s", w.reads, w.cursor)
		}
	}, func(w *world, _ *changes.Options) { w.cursor, w.revision = []byte("x"), 1 })
}

// TestRealHooks: the log is what real hooks carried. However they arrive, consumers see per record the newest version of
// each read, in order, and none is missing.
func TestRealHooks(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/data/flexi-hooks/webhook-1*.json")
	if len(files) == 0 {
		t.Skip("../shared/data/flexi-hooks is not there")
	}
	var bodies []flexi.Changes
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		body, err := flexi.DecodeChanges(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		bodies = append(bodies, body)
	}
	for name, wakes := range map[string]func(i int) int{
		"in order":  func(int) int { return 1 },
		"doubled":   func(int) int { return 2 },
		"with gaps": func(i int) int { return i % 2 },
		"all late":  func(i int) int { return i / (len(bodies) - 1) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world, r *changes.Reader) {
				for i, body := range bodies {
					w.set(func() {
						w.log = append(w.log, body.Changes...)
						w.version = max(w.version, body.GlobalVersion)
					})
					for range wakes(i) {
						wake(r)
					}
				}
				wake(r)
				checkNews(t, w)
			}, func(w *world, _ *changes.Options) { w.version = bodies[0].Changes[0].Version - 1 })
		})
	}
}

// checkNews compares what was told with the log.
func checkNews(t *testing.T, w *world) {
	t.Helper()
	last, told := map[string]int64{}, map[string]int64{}
	for _, c := range w.log {
		key := c.Evidence + "/" + c.ID
		last[key] = max(last[key], c.Version)
	}
	before := int64(0)
	for _, n := range w.told {
		if n.Version <= before {
			t.Errorf("version %d after %d", n.Version, before)
		}
		before = n.Version
		told[n.Evidence+"/"+n.ID] = n.Version
	}
	if len(last) == 0 || len(told) != len(last) {
		t.Errorf("%d records told of %d", len(told), len(last))
	}
	for key, version := range last {
		if told[key] != version {
			t.Errorf("%s: told version %d, newest is %d", key, told[key], version)
		}
	}
}
