package push_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flexid/batch"
	"flexid/batch/stream"
	"flexid/batch/stream/embedded"
	"flexid/cmd/internal/api"
	"flexid/cmd/internal/push"
	"flexid/testdata/testenv"
	"flexid/verify"
	"flexid/verify/ledger"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testenv.InMemory()
	testenv.Parallel(8)
	goleak.VerifyTestMain(m)
}

func spoolOf(t testing.TB, lines ...string) *push.Spool {
	t.Helper()
	s, err := push.NewSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	in := push.Input{Files: []string{"-"}, Stdin: strings.NewReader(strings.Join(lines, "\n")), Format: "ndjson", Evidence: "banka",
		Decoder: batch.Decoder{}}
	faults, err := push.Check(t.Context(), in, s, func(f push.Fault) { t.Error(f) })
	if err != nil || faults > 0 {
		t.Fatal(faults, err)
	}
	return s
}

func numbered(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"kod":"B%d","popis":"<&>"}`, i+1))
	}
	return lines
}

func counts(s *push.Spool) string {
	c, open := s.Counts()
	var parts []string
	for o, n := range c {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", push.Outcome(o), n))
		}
	}
	return fmt.Sprintf("%s, open %d", strings.Join(parts, ", "), open)
}

func TestOutcomes(t *testing.T) {
	words := map[string]bool{}
	for o := range push.Outcome(len(push.Counts{})) {
		words[o.String()] = true
	}
	if len(words) != 10 || len(push.Counts{}.Map()) != 10 {
		t.Errorf("words %v", words)
	}
	for _, tc := range []struct {
		s    ledger.State
		r    ledger.Reason
		word string
		over bool
	}{
		{ledger.Queued, "", "waiting", false}, {ledger.Sending, "", "waiting", false}, {ledger.Queued, ledger.Behind, "waiting", false},
		{ledger.Maybe, "", "maybe", false}, {ledger.Parked, ledger.Unknown, "maybe", true},
		{ledger.Confirmed, "", "confirmed", true}, {ledger.Confirmed, ledger.Adopted, "adopted", true},
		{ledger.Confirmed, ledger.Repeated, "repeated", true}, {ledger.Confirmed, ledger.Superseded, "superseded", true},
		{ledger.Parked, ledger.Rejected, "rejected", true}, {ledger.Parked, ledger.Unreadable, "rejected", true}, {ledger.Parked, ledger.IDReused, "rejected", true},
		{ledger.Parked, ledger.Conflict, "conflict", true}, {ledger.Parked, ledger.Duplicate, "conflict", true},
		{ledger.Dropped, "", "dropped", true}, {"a state of next year", "", "waiting", false},
	} {
		if o, over := push.OutcomeOf(tc.s, tc.r); o.String() != tc.word || over != tc.over {
			t.Errorf("%s %s: %s %v", tc.s, tc.r, o, over)
		}
	}
}

func TestSpoolKeepsWhatWasGiven(t *testing.T) {
	s := spoolOf(t, `{"evidence":"adresar","op":"update","key":"K 1","version":7,"document":{"kod":"a","popis":"<&>"}}`, "", `{"kod":"b"}`)
	e, err := s.Entry(0)
	if err != nil || e.Evidence != "adresar" || e.Op != "update" || e.Key != "K 1" || e.Version != "7" || e.Line != 1 || string(e.Body) != `{"kod":"a","popis":"<&>"}` {
		t.Errorf("%+v %s %v", e, e.Body, err)
	}
	if e, err = s.Entry(1); err != nil || e.Line != 3 || e.Evidence != "banka" || e.Key != "B" || string(e.Body) != `{"kod":"b"}` {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := s.Entry(2); err == nil {
		t.Error("an event past the end")
	}
}

func TestSpoolFollowsWhatIsTold(t *testing.T) {
	confirmed := push.Result{State: ledger.Confirmed, FlexiID: "7"}
	repeated := push.Result{State: ledger.Confirmed, Reason: ledger.Repeated}
	conflict := push.Result{State: ledger.Parked, Reason: ledger.Conflict}
	unknown := push.Result{State: ledger.Parked, Reason: ledger.Unknown}
	maybe := push.Result{State: ledger.Maybe}
	for name, tc := range map[string]struct {
		told []push.Result
		want string
		news []bool
	}{
		"confirmed":               {[]push.Result{confirmed}, "confirmed 1, open 0", []bool{true}},
		"told twice":              {[]push.Result{confirmed, confirmed}, "confirmed 1, open 0", []bool{true, false}},
		"delivered twice":         {[]push.Result{confirmed, repeated}, "confirmed 1, open 0", []bool{true, false}},
		"read back and different": {[]push.Result{confirmed, conflict}, "conflict 1, open 0", []bool{true, true}},
		"unknown, then found":     {[]push.Result{unknown, confirmed}, "confirmed 1, open 0", []bool{true, true}},
		"still a maybe":           {[]push.Result{maybe, maybe, maybe}, "maybe 1, open 1", []bool{true, false, false}},
		"over, then an old word":  {[]push.Result{confirmed, maybe}, "confirmed 1, open 0", []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			s := spoolOf(t, `{"kod":"A"}`)
			for i, r := range tc.told {
				news, err := s.Set(0, r)
				if err != nil || news != tc.news[i] {
					t.Errorf("result %d: news %v, %v", i, news, err)
				}
				if err := s.Published(0); err != nil { // the acknowledgement may come after the result
					t.Error(err)
				}
			}
			if got := counts(s); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if news, err := s.Set(5, confirmed); news || err != nil {
				t.Errorf("an event that there is not: %v %v", news, err)
			}
		})
	}
}

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spoolOf(t, numbered(100)...)
		m := push.Meter{Spool: s, Now: time.Now}
		m.Line("")
		for i := range 50 {
			_ = s.Published(i)
		}
		for i := range 20 {
			_, _ = s.Set(i, push.Result{State: ledger.Confirmed})
		}
		_, _ = s.Set(20, push.Result{State: ledger.Parked, Reason: ledger.Rejected})
		time.Sleep(10 * time.Second) // virtual
		want := "50 of 100 published, 21 done, 1 rejected, 2.1/s, about 38 s left, the stream is full"
		if got := m.Line("the stream is full"); got != want {
			t.Errorf("%s\n%s", got, want)
		}
		time.Sleep(2 * time.Minute)
		m.Line("")
		time.Sleep(2 * time.Minute)
		if got := m.Line(""); strings.Contains(got, "left") {
			t.Errorf("a rate of the past: %s", got)
		}
	})
}

// peer plays the daemon: it takes events and tells what became of them, or not.
type peer struct {
	mu    sync.Mutex
	quiet bool // tells nothing on flexi.done
	state func(key string) (ledger.State, ledger.Reason)
	row   api.Row             // of every document
	ids   map[string][]string // event ids by key, in order
	seen  []string            // keys in order

	stopped string // why nothing is sent
}

func (p *peer) take(m batch.Message) (told verify.Notice, quiet bool) {
	e := batch.Decoder{}.Decode(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids == nil {
		p.ids = map[string][]string{}
	}
	p.ids[e.Key] = append(p.ids[e.Key], e.EventID)
	p.seen = append(p.seen, e.Key)
	told = verify.Notice{Evidence: e.Evidence, Key: e.Key, EventID: e.EventID, Op: e.Op}
	told.State, told.Reason = p.state(e.Key)
	return told, p.quiet
}

func (p *peer) Maybes(_ context.Context, each func(api.Row)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.ids {
		if s, _ := p.state(key); s == ledger.Maybe {
			each(api.Row{Evidence: "banka", Key: key, State: string(s)})
		}
	}
	return nil
}

func (p *peer) Story(_ context.Context, a verify.Address) (s api.Story, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Row = p.row
	for _, id := range p.ids[a.Key] {
		state, reason := p.state(a.Key)
		s.Events = append(s.Events, api.StoryEvent{EventID: id, State: string(state), Reason: string(reason)})
	}
	return s, len(p.ids[a.Key]) > 0, nil
}

func (p *peer) Stopped(context.Context, map[string]bool) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped, nil
}

func always(s ledger.State, r ledger.Reason) func(string) (ledger.State, ledger.Reason) {
	return func(string) (ledger.State, ledger.Reason) { return s, r }
}

// stand is a NATS server with our streams.
func stand(t testing.TB, o stream.Options) jetstream.JetStream {
	t.Helper()
	server, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Private: true, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := stream.Connect(t.Context(), stream.ConnOptions{InProcess: server, Token: server.Token(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		nc.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Ensure(t.Context(), js, o); err != nil {
		t.Fatal(err)
	}
	return js
}

// taker is a daemon's intake that keeps nothing but how far it came.
type taker struct {
	handle func(context.Context, batch.Message) error
	js     jetstream.JetStream
	cursor ledger.Cursor
}

func (k *taker) Cursor(context.Context, string) (ledger.Cursor, error) { return k.cursor, nil }

func (k *taker) Take(ctx context.Context, ms []batch.Message, cursor func(n int) *ledger.Cursor, _ bool) (int, error) {
	if err := k.handle(ctx, ms[0]); err != nil {
		return 0, err
	}
	c := cursor(1)
	c.Revision++
	k.cursor = *c
	_, err := stream.Trim(ctx, k.js, stream.Options{Log: zerolog.Nop()}, k.cursor, false)
	return 1, err
}

// work lets the peer take events until the test ends.
func (p *peer) work(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	publisher := stream.NewPublisher(js, stream.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	begin, err := stream.Begin(t.Context(), js, "FLEXID_PUSH")
	if err != nil {
		t.Fatal(err)
	}
	begin.Revision = 1
	reader := stream.NewReader(js, stream.ReaderOptions{Taker: &taker{cursor: begin, js: js, handle: func(ctx context.Context, m batch.Message) error {
		told, quiet := p.take(m)
		if quiet {
			return nil
		}
		body, err := json.Marshal(told)
		return errors.Join(err, publisher.Notify(ctx, "done", told.Evidence, "", body))
	}}, Log: zerolog.Nop()})
	var done sync.WaitGroup
	done.Go(func() { _ = reader.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
}

func TestRunLearnsFromTheStream(t *testing.T) {
	js := stand(t, stream.Options{})
	p := &peer{state: always(ledger.Confirmed, "")}
	p.work(t, js)
	s := spoolOf(t, numbered(200)...)
	if err := push.Run(t.Context(), push.Options{Spool: s, Run: "r1", JS: js, Wait: time.Minute, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	if got := counts(s); got != "confirmed 200, open 0" {
		t.Error(got)
	}
	for i, key := range p.seen {
		if want := fmt.Sprintf("B%d", i+1); key != want || p.ids[key][0] != fmt.Sprintf("push.r1.%d", i+1) {
			t.Fatalf("event %d is %s with id %v", i, key, p.ids[key])
		}
	}
}

// TestRunAsksWhereTheStreamIsSilent: a result that never comes is found by asking.
func TestRunAsksWhereTheStreamIsSilent(t *testing.T) {
	js := stand(t, stream.Options{})
	p := &peer{quiet: true, state: always(ledger.Parked, ledger.Rejected)}
	p.work(t, js)
	s := spoolOf(t, numbered(5)...)
	if err := push.Run(t.Context(), push.Options{Spool: s, Run: "r1", JS: js, Daemon: p, Wait: 2 * time.Second, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	if got := counts(s); got != "rejected 5, open 0" {
		t.Error(got)
	}
}

// TestRunDoesNotWaitForAPerson: what waits behind a document that a person has to decide is reported, not waited for.
func TestRunDoesNotWaitForAPerson(t *testing.T) {
	t.Parallel()
	for reason, held := range map[ledger.Reason]bool{ledger.Conflict: true, ledger.Duplicate: true, ledger.Unknown: true, ledger.Rejected: false} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			js := stand(t, stream.Options{})
			p := &peer{quiet: true, state: always(ledger.Queued, ledger.Behind), row: api.Row{Evidence: "banka", Key: "B1", State: "parked", Reason: string(reason)}}
			p.work(t, js)
			s := spoolOf(t, numbered(3)...)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			err := push.Run(ctx, push.Options{Spool: s, Run: "r1", JS: js, Daemon: p, Wait: time.Hour, Ask: 20 * time.Millisecond, Log: zerolog.Nop()})
			want := "waiting 3, open 3"
			if held {
				want = "waiting 3, open 0"
			}
			if got := counts(s); got != want || (err == nil) != held {
				t.Errorf("%s, %v; want %s", got, err, want)
			}
			_, _, r, err := s.Standing(0)
			if err != nil || held && (len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Text, "flexid maybe show banka/B1")) {
				t.Errorf("told %+v, %v", r, err)
			}
		})
	}
}

func TestRunGivesUpAndTellsWhatStands(t *testing.T) {
	t.Parallel()
	js := stand(t, stream.Options{})
	p := &peer{quiet: true, state: func(key string) (ledger.State, ledger.Reason) {
		if key == "B2" {
			return ledger.Maybe, ""
		}
		return ledger.Queued, ledger.Blocked
	}}
	p.work(t, js)
	for name, tc := range map[string]struct {
		daemon push.Daemon
		want   string
	}{"asked": {p, "waiting 2, maybe 1, open 3"}, "nobody to ask": {nil, "waiting 3, open 3"}} {
		t.Run(name, func(t *testing.T) {
			s := spoolOf(t, numbered(3)...)
			err := push.Run(t.Context(), push.Options{Spool: s, Run: name, JS: js, Daemon: tc.daemon, Wait: 500 * time.Millisecond, Log: zerolog.Nop()})
			if got := counts(s); err != nil || got != tc.want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

func TestRunWaitsForAFullStream(t *testing.T) {
	t.Parallel()
	js := stand(t, stream.Options{MaxBytes: 4 << 10})
	p := &peer{state: always(ledger.Confirmed, "")}
	s := spoolOf(t, numbered(100)...)
	var once sync.Once
	trouble := func(text string) {
		if strings.Contains(text, "full") {
			once.Do(func() { p.work(t, js) }) // the daemon comes back
		}
	}
	if err := push.Run(t.Context(), push.Options{Spool: s, Run: "r1", JS: js, Daemon: p, Wait: time.Minute, Ask: time.Second, Trouble: trouble, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	if got := counts(s); got != "confirmed 100, open 0" || len(p.seen) != 100 {
		t.Errorf("%s, %d taken", got, len(p.seen))
	}
}

func TestRunStopsWhenItIsTold(t *testing.T) {
	t.Parallel()
	js := stand(t, stream.Options{MaxBytes: 4 << 10})
	s := spoolOf(t, numbered(100)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := push.Run(ctx, push.Options{Spool: s, Run: "r1", JS: js, Wait: time.Minute, Trouble: func(string) { cancel() }, Log: zerolog.Nop()})
	waiting, werr := stream.Waiting(t.Context(), js, stream.Options{})
	if got := counts(s); !errors.Is(err, context.Canceled) || werr != nil || got != fmt.Sprintf("unsent %d, waiting %d, open 100", 100-waiting, waiting) {
		t.Errorf("%s, %d in the stream, %v", got, waiting, err)
	}
}

// TestRunWaitsForReadBacks: what turns out wrong at the end is in the report.
func TestRunWaitsForReadBacks(t *testing.T) {
	t.Parallel()
	js := stand(t, stream.Options{})
	p := &peer{state: always(ledger.Confirmed, "")}
	p.work(t, js)
	s := spoolOf(t, numbered(3)...)
	publisher := stream.NewPublisher(js, stream.Options{})
	left := 2
	followUps := func(ctx context.Context) (int, error) {
		if left--; left == 0 {
			body, err := json.Marshal(verify.Notice{Evidence: "banka", Key: "B2", EventID: "push.r1.2", State: ledger.Parked, Reason: ledger.Conflict})
			return 0, errors.Join(err, publisher.Notify(ctx, "done", "banka", "", body))
		}
		return left, nil
	}
	if err := push.Run(t.Context(), push.Options{Spool: s, Run: "r1", JS: js, Wait: time.Minute, FollowUps: followUps, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	if got := counts(s); got != "confirmed 2, conflict 1, open 0" {
		t.Error(got)
	}
}

func TestReport(t *testing.T) {
	s := spoolOf(t, numbered(2)...)
	_, _ = s.Set(0, push.Result{State: ledger.Confirmed, FlexiID: "7", Sends: 1})
	var out strings.Builder
	if err := push.Report(&out, "r1", s); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	documents := got["documents"].([]any)
	first := documents[0].(map[string]any)
	if got["run"] != "r1" || got["events"] != 2.0 || got["counts"].(map[string]any)["unsent"] != 1.0 || len(documents) != 2 ||
		first["outcome"] != "confirmed" || first["flexi_id"] != "7" || first["file"] != "-" || first["line"] != 1.0 || first["event_id"] != "push.r1.1" {
		t.Errorf("%s", out.String())
	}
}

// TestSpoolReadsManyAtOnce: whatever is asked for at once, each event is read as it was put in.
func TestSpoolReadsManyAtOnce(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf(`{"kod":"B%d","popis":%q}`, i+1, strings.Repeat("x", i*7%50)))
	}
	s := spoolOf(t, lines...)
	for _, most := range []struct{ count, bytes, want int }{{1, 0, 1}, {7, 1 << 20, 7}, {1000, 1 << 20, 100}, {1000, 1, 1}, {1000, len(lines[0]) + len(lines[1]), 2}} {
		for i := 0; i < 100; {
			entries, err := s.Entries(i, most.count, most.bytes)
			if err != nil || i == 0 && len(entries) != most.want {
				t.Fatalf("%+v: %d, %v", most, len(entries), err)
			}
			for _, e := range entries {
				if string(e.Body) != lines[i] || e.Line != i+1 || e.Key != fmt.Sprintf("B%d", i+1) {
					t.Fatalf("%+v: event %d is %+v %s", most, i, e, e.Body)
				}
				i++
			}
		}
	}
	if _, err := s.Entries(100, 10, 1<<20); err == nil {
		t.Error("events past the end")
	}
	if _, err := s.Set(4, push.Result{State: ledger.Confirmed}); err != nil {
		t.Fatal(err)
	}
	if err := s.AllPublished(2, 5); err != nil { // a result may have come before
		t.Fatal(err)
	}
	if got := counts(s); got != "unsent 95, waiting 4, confirmed 1, open 99" {
		t.Error(got)
	}
}
