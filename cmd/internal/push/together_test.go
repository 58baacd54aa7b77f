package push_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flexid/batch"
	"flexid/batch/stream"
	"flexid/cmd/internal/push"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// tappedStand is a NATS server with our streams; who connects by js goes through the tap.
type tappedStand struct {
	tap  *tap
	js   jetstream.JetStream
	side jetstream.JetStream // past the tap
}

// newTappedStand starts the server with the options of an embedded one, changed by change.
func newTappedStand(t *testing.T, change func(*server.Options), o stream.Options) *tappedStand {
	t.Helper()
	so := &server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, NoSigs: true, NoLog: true,
		JetStreamMaxStore: 8 << 30, JetStreamMaxMemory: 16 << 20}
	if change != nil {
		change(so)
	}
	ns, err := server.NewServer(so)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	s := &tappedStand{tap: &tap{server: ns}}
	connect := func(o stream.ConnOptions) jetstream.JetStream {
		o.Log = zerolog.Nop()
		nc, err := stream.Connect(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		return js
	}
	s.side = connect(stream.ConnOptions{InProcess: ns, User: "admin", Password: "secret"})
	if _, err := stream.Ensure(t.Context(), s.side, o); err != nil {
		t.Fatal(err)
	}
	s.js = connect(stream.ConnOptions{InProcess: s.tap, User: "push", Password: "secret"})
	return s
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(t *testing.T)) {
	runtime.GC() // as onWire
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		f(t)
		time.Sleep(15 * time.Second) // of virtual time: what a broken batch left behind in the server ends by itself
	})
}

func (s *tappedStand) publish(ctx context.Context, spool *push.Spool) error {
	return push.Run(ctx, push.Options{Spool: spool, Run: "r1", JS: s.js, Log: zerolog.Nop()})
}

// stored is a message of the intake stream.
type stored struct {
	key   string
	n     int // of its line, from 1
	batch string
}

// stored gives what the stream holds.
func (s *tappedStand) stored(t *testing.T) (all []stored) {
	t.Helper()
	in, err := s.side.Stream(t.Context(), "FLEXID_PUSH")
	if err != nil {
		t.Fatal(err)
	}
	state := in.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := in.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		e := batch.Decoder{}.Decode(batch.Message{Subject: m.Subject, Header: m.Header, Data: m.Data})
		a := stored{key: e.Key, batch: m.Header.Get("Nats-Batch-Id")}
		if _, err := fmt.Sscanf(e.EventID, "push.r1.%d", &a.n); err != nil || e.Problem != "" {
			t.Fatalf("message %d: %v %s", seq, err, e.Problem)
		}
		all = append(all, a)
	}
	return all
}

// inOrder checks what holds whatever fails: all lines are there, in their order where each came first, and what comes again is known by
// its id, which is that of its line. It gives how often each came.
func inOrder(t *testing.T, all []stored, lines int) map[int]int {
	t.Helper()
	times, last := map[int]int{}, 0
	for _, a := range all {
		if times[a.n]++; times[a.n] > 1 {
			continue
		}
		if a.n != last+1 {
			t.Errorf("line %d came behind line %d", a.n, last)
		}
		last = a.n
	}
	if len(times) != lines {
		t.Errorf("%d of %d lines are in the stream", len(times), lines)
	}
	return times
}

// TestBatchFaults breaks the first of two batches at each step, done and not done. Nothing of the second may come before all of the
// first is there.
func TestBatchFaults(t *testing.T) {
	const lines, first = 850, 800
	for name, tc := range map[string]struct {
		at    func(m message) bool // the message that fails, once
		deed  deed
		twice bool // the batch was stored all the same
	}{
		"none":                              {nil, pass, false},
		"the first is lost":                 {func(m message) bool { return m.place == 1 }, swallow, false},
		"the answer to the first is lost":   {func(m message) bool { return m.place == 1 }, mute, false},
		"cut before the first":              {func(m message) bool { return m.place == 1 }, cut, false},
		"cut after the first":               {func(m message) bool { return m.place == 1 }, cutLate, false},
		"one in the middle is lost":         {func(m message) bool { return m.place == 400 }, swallow, false},
		"cut in the middle":                 {func(m message) bool { return m.place == 400 }, cut, false},
		"the commit is lost":                {func(m message) bool { return m.commit }, swallow, false},
		"cut before the commit":             {func(m message) bool { return m.commit }, cut, false},
		"the answer to the commit is lost":  {func(m message) bool { return m.commit }, mute, true},
		"cut before the answer of a commit": {func(m message) bool { return m.commit }, cutLate, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newTappedStand(t, nil, stream.Options{})
				failed := 0
				s.tap.decide = func(m message) deed {
					if tc.at == nil || failed > 0 || m.batch == "" || !tc.at(m) {
						return pass
					}
					failed++
					return tc.deed
				}
				spool := spoolOf(t, numbered(lines)...)
				begun := time.Now()
				if err := s.publish(t.Context(), spool); err != nil {
					t.Fatal(err)
				}
				// The answer of a broken connection is not waited for, save by the first event that is published alone.
				if took := time.Since(begun); (tc.deed == cut || tc.deed == cutLate) && took > 8*time.Second {
					t.Errorf("it took %v", took)
				}
				if got, want := counts(spool), fmt.Sprintf("waiting %d, open %d", lines, lines); got != want {
					t.Errorf("%s, want %s", got, want)
				}
				all := s.stored(t)
				for n, times := range inOrder(t, all, lines) {
					if want := 1 + b2i(tc.twice && n <= first); times != want {
						t.Fatalf("line %d is there %d times, want %d", n, times, want)
					}
				}
				if tc.at != nil && failed != 1 {
					t.Error("nothing failed")
				}
				if last := all[len(all)-1]; last.batch == "" {
					t.Error("after the fault nothing is published together any more")
				}
			})
		})
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestBatchesKeepTheOrderOfADocument: whatever fails, done or not done, at whatever message, an event of a document never comes before
// an earlier one, and what comes again is one that is there already.
func TestBatchesKeepTheOrderOfADocument(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const lines = 5000
		s := newTappedStand(t, nil, stream.Options{})
		rnd := rand.New(rand.NewPCG(1, 2))
		var docs []string
		for i := range lines {
			docs = append(docs, fmt.Sprintf(`{"kod":"B%d","popis":"%d"}`, rnd.IntN(100), i))
		}
		done, commits := map[deed]int{}, 0
		s.tap.decide = func(m message) deed {
			if m.commit {
				what := deed(commits % int(numDeeds))
				commits++
				done[what]++
				return what
			}
			often := 5 // of a thousand
			if m.batch != "" {
				often = 1
			}
			if rnd.IntN(1000) < often {
				return deed(1 + rnd.IntN(int(numDeeds)-1))
			}
			return pass
		}
		spool := spoolOf(t, docs...)
		if err := s.publish(t.Context(), spool); err != nil {
			t.Fatal(err)
		}
		if got, want := counts(spool), fmt.Sprintf("waiting %d, open %d", lines, lines); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		all := s.stored(t)
		inOrder(t, all, lines)
		if len(all) == lines {
			t.Error("nothing came twice")
		}
		for d := range numDeeds {
			if done[d] == 0 {
				t.Errorf("deed %d never happened to a commit", d)
			}
		}
	})
}

// TestBatchesGetSmaller where the server does not answer in time: else it would store everything twice for ever.
func TestBatchesGetSmaller(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newTappedStand(t, nil, stream.Options{})
		var sizes []int
		s.tap.decide = func(m message) deed {
			if m.commit {
				if sizes = append(sizes, m.place); m.place > 100 {
					return mute
				}
			}
			return pass
		}
		if err := s.publish(t.Context(), spoolOf(t, numbered(1800)...)); err != nil {
			t.Fatal(err)
		}
		if want := []int{800, 400, 200, 100, 200}; len(sizes) < len(want) || !slices.Equal(sizes[:len(want)], want) {
			t.Errorf("batches of %v, want them to begin with %v", sizes, want)
		}
		inOrder(t, s.stored(t), 1800)
	})
}

// TestServersOfOtherKinds: what a server does not take together goes one by one, each event once.
func TestServersOfOtherKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		server  func(*server.Options)
		setting bool // allow_atomic is off
		old     bool
		batches int // messages that a batch in the stream has at most
		twice   int // lines that are there twice
	}{
		"as it should be":          {batches: 800},
		"few together":             {server: func(o *server.Options) { o.JetStreamLimits.MaxBatchSize = 60 }, batches: 60},
		"very few together":        {server: func(o *server.Options) { o.JetStreamLimits.MaxBatchSize = 3 }},
		"the setting is off":       {setting: true},
		"it knows nothing of that": {old: true, twice: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newTappedStand(t, tc.server, stream.Options{})
				s.tap.old = tc.old
				refused := 0
				s.tap.decide = func(m message) deed {
					refused += b2i(m.commit && m.place > tc.batches)
					return pass
				}
				if tc.setting {
					singly(t, s.side)
				}
				spool := spoolOf(t, numbered(600)...)
				if err := s.publish(t.Context(), spool); err != nil {
					t.Fatal(err)
				}
				all := s.stored(t)
				inOrder(t, all, 600)
				if got := counts(spool); got != "waiting 600, open 600" || len(all) != 600+tc.twice {
					t.Errorf("%s; %d are in the stream", got, len(all))
				}
				if refused > 8 { // each time half as many
					t.Errorf("%d batches were too large", refused)
				}
				sizes, most := map[string]int{}, 0
				for _, a := range all {
					if a.batch != "" {
						sizes[a.batch]++
						most = max(most, sizes[a.batch])
					}
				}
				if most > tc.batches || tc.batches > 0 && most < tc.batches/2 {
					t.Errorf("%d together, want up to %d", most, tc.batches)
				}
			})
		})
	}
}

// TestTheLineToBlame: a batch that is refused for one of its events is taken apart, and the error names the line.
func TestTheLineToBlame(t *testing.T) {
	bad := func(line string) []string { return slices.Concat(numbered(300), []string{line}, numbered(200)) }
	for name, tc := range map[string]struct {
		lines []string
		want  string
	}{
		"too large for the stream": {bad(fmt.Sprintf(`{"kod":"BIG","popis":%q}`, strings.Repeat("x", 3<<10))), "524288"},
		"too large for the server": {bad(fmt.Sprintf(`{"kod":"BIG","popis":%q}`, strings.Repeat("x", 9<<10))), "max_payload"},
		"not permitted":            {bad(`{"evidence":"adresar","document":{"kod":"BIG"}}`), "permission for flexi.push.adresar is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newTappedStand(t, func(o *server.Options) {
					o.MaxPayload = 8 << 10
					o.Users = []*server.User{{Username: "admin", Password: "secret"}, {Username: "push", Password: "secret",
						Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"flexi.push.adresar"}}}}}
				}, stream.Options{})
				in, err := s.side.Stream(t.Context(), "FLEXID_PUSH")
				if err != nil {
					t.Fatal(err)
				}
				c := in.CachedInfo().Config
				c.MaxMsgSize = 2 << 10
				if _, err := s.side.UpdateStream(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				spool := spoolOf(t, tc.lines...)
				err = s.publish(t.Context(), spool)
				if err == nil || !strings.Contains(err.Error(), "-:301: ") || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v", err)
				}
				inOrder(t, s.stored(t), 300)
				if got := counts(spool); got != "unsent 201, waiting 300, open 501" {
					t.Error(got)
				}
			})
		})
	}
}

// TestAFullStreamKeepsTheOrder: what finds no room waits, and nothing passes by it.
func TestAFullStreamKeepsTheOrder(t *testing.T) {
	t.Parallel()
	s := newTappedStand(t, nil, stream.Options{MaxBytes: 256 << 10})
	var lines []string
	for i := range 1000 { // every tenth is large
		lines = append(lines, fmt.Sprintf(`{"kod":"B%d","popis":%q}`, i+1, strings.Repeat("x", 5000*b2i(i%10 == 0))))
	}
	in, err := s.side.Stream(t.Context(), "FLEXID_PUSH")
	if err != nil {
		t.Fatal(err)
	}
	var all []stored
	full := 0
	trouble := func(text string) {
		if !strings.Contains(text, "full") {
			return
		}
		full++
		all = append(all, s.stored(t)...)
		if err := in.Purge(t.Context()); err != nil {
			t.Error(err)
		}
		if in, err = s.side.Stream(t.Context(), "FLEXID_PUSH"); err != nil {
			t.Error(err)
		}
	}
	spool := spoolOf(t, lines...)
	if err := push.Run(t.Context(), push.Options{Spool: spool, Run: "r1", JS: s.js, Trouble: trouble, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	all = append(all, s.stored(t)...)
	inOrder(t, all, 1000)
	together := slices.ContainsFunc(all, func(a stored) bool { return a.batch != "" })
	if got := counts(spool); got != "waiting 1000, open 1000" || len(all) != 1000 || full == 0 || !together {
		t.Errorf("%s; %d were stored, full %d times, some together: %v", got, len(all), full, together)
	}
}

// TestBatchStops: Ctrl-C sends nothing more, and the report says what was acknowledged.
func TestBatchStops(t *testing.T) {
	for name, tc := range map[string]struct {
		deed deed
		want string
	}{
		"acknowledged in the end": {pass, "unsent 100, waiting 800, open 900"},
		"never answered":          {mute, "unsent 900, open 900"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newTappedStand(t, nil, stream.Options{})
				ctx, cancel := context.WithCancelCause(t.Context())
				stopped := errors.New("Ctrl-C")
				after := 0
				s.tap.decide = func(m message) deed {
					if ctx.Err() != nil {
						after++
					}
					if m.commit {
						cancel(stopped)
						return tc.deed
					}
					return pass
				}
				spool := spoolOf(t, numbered(900)...)
				begun := time.Now()
				if err := s.publish(ctx, spool); !errors.Is(err, stopped) {
					t.Error(err)
				}
				if got := counts(spool); got != tc.want || after > 0 || time.Since(begun) > 3*time.Second {
					t.Errorf("%s, want %s; %d messages after the end, in %v", got, tc.want, after, time.Since(begun))
				}
			})
		})
	}
}

// TestPublishGivesUp: what nothing is heard of for as long as is to be waited is not waited for longer, whatever keeps it.
func TestPublishGivesUp(t *testing.T) {
	for _, f := range []fault{full, brokenNotDone, silentNotDone} {
		t.Run(fmt.Sprint("fault ", f), func(t *testing.T) {
			onWire(t, func(t *testing.T, w *wire) {
				w.fault = func(n int) fault { return []fault{none, f}[b2i(n >= 5)] }
				s := spoolOf(t, numbered(20)...)
				begun := time.Now()
				err := push.Run(t.Context(), push.Options{Spool: s, Run: "r1", JS: w, Wait: time.Minute, Log: zerolog.Nop()})
				if took := time.Since(begun); err != nil || took < time.Minute || took > 2*time.Minute {
					t.Errorf("after %v: %v", took, err)
				}
				if got := counts(s); got != "unsent 15, waiting 5, open 20" {
					t.Error(got)
				}
			})
		})
	}
}
