package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"flexid/flexi/flexitest"
	"flexid/testdata/testenv"
)

// TestMain lets the test binary be what the command starts of itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && partOf(os.Args[1:]) != nil {
		main()
		return
	}
	testenv.InMemory()
	m.Run()
}

// TestCommand runs it small; with FLEXID_SLOW=1 all of it. Each figure is there, and every document was made once.
func TestCommand(t *testing.T) {
	o := options{dir: t.TempDir(), n: 100, rounds: 1, slice: 1, only: []string{"pack20", fileCase}}
	rows := map[string]string{ // by what they begin with: who has a figure there
		"0 ms a request, 20 in it, 4 at once: documents/s": "flexid peer limit",
		"0 ms a request, 20 in it, 4 at once: processor":   "flexid peer limit",
		"push: published/s":                         "flexid limit",
		"push: documents/s":                         "flexid",
		"push: most memory":                         "flexid",
		" finished: `docs list --number`, ms":       "flexid",
		" finished: of it the daemon's answer":      "flexid",
		" finished: memory after a restart":         "flexid",
		" finished: sends again after a restart, s": "flexid",
	}
	if os.Getenv("FLEXID_SLOW") == "1" {
		o.n, o.only, o.profiles = 200, nil, t.TempDir()
		if _, err := exec.LookPath("strace"); err == nil {
			o.strace, rows["0 ms a request, 20 in it, 4 at once: syncs"] = true, "flexid limit"
		}
		rows["0 ms a request, 100 in it, 4 at once: documents/s"] = "flexid peer limit"
		rows["20 ms a request, 1 in it, 16 at once: documents/s"] = "flexid peer limit"
		rows["140 ms a request, 20 in it, 4 at once: documents/s"] = "flexid peer limit"
	}
	var out, talk strings.Builder
	if err := measure(t.Context(), o, &out, &talk); err != nil {
		t.Fatalf("%v\n%s", err, talk.String())
	}
	t.Log(out.String())
	for row, who := range rows {
		_, line, _ := strings.Cut(out.String(), row)
		line, _, _ = strings.Cut(line, "\n")
		cells := strings.Split(line, " | ")
		for i, program := range []string{"flexid", "peer", "limit"} {
			has := len(cells) > i+1 && cells[i+1] != "–" && cells[i+1] != "0.00"
			if has != strings.Contains(who, program) {
				t.Errorf("%s: a figure of %s: %t", row, program, has)
			}
		}
	}
	if o.only != nil && strings.Contains(out.String(), "20 ms a request") || !strings.Contains(out.String(), "Every document was made once.") {
		t.Error(out.String())
	}
	if kept, _ := filepath.Glob(filepath.Join(o.profiles, "pack20-*.prof")); o.profiles != "" && len(kept) == 0 {
		t.Errorf("no profile was kept: %s", talk.String())
	}
	if left, _ := os.ReadDir(o.dir); len(left) > 0 {
		t.Errorf("files stay: %v", left)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{"-only nothing", "-n 0", "-rounds 0", "more", "-only pack20,", "-nonsense"} {
		var talk strings.Builder
		if _, err := parse(strings.Fields(args), &talk); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
	o, err := parse([]string{"-only", "single,file", "-n", "7"}, &strings.Builder{})
	if b := (bench{options: o}); err != nil || o.n != 7 || b.wanted("pack20") || !b.wanted("single") || !b.wanted(fileCase) {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestCount: a document that is not in the books is lost, one that is there twice doubled, whatever the program said.
func TestCount(t *testing.T) {
	srv := flexitest.New(flexitest.Options{AllowUsedNumbers: true})
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: srv.Dial, DisableKeepAlives: true}}
	s := &sender{url: srv.URL() + "/c/firma/" + evidence + ".json", client: *client}
	for _, i := range []int{1, 2, 2, 2, 4, 9} {
		if err := s.send(t.Context(), document(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := count(srv, 1, 4), (tally{Made: 3, Doubled: 2, Lost: 1, Strange: 1, Writes: 6}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestJudge: what the fake says of the documents decides whether the command fails.
func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		tally tally
		bad   bool
	}{
		"all":      {tally{Made: 4}, false},
		"lost":     {tally{Made: 3, Lost: 1}, true},
		"doubled":  {tally{Made: 4, Doubled: 1}, true},
		"strange":  {tally{Made: 4, Strange: 1}, true},
		"balanced": {tally{Made: 4, Doubled: 1, Strange: -1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(tc.tally) }))
			defer srv.Close()
			var b bench
			if err := b.judge(t.Context(), &fakeERP{control: srv.URL}, "flexid", 4); err != nil || (len(b.faults) > 0) != tc.bad {
				t.Errorf("%v, %v", b.faults, err)
			}
		})
	}
}

// TestJournal: the revisions that callers are given are those of their keys, in one batch with others or alone.
func TestJournal(t *testing.T) {
	nc, stop, err := startNATS(server.Options{StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "LEDGER", Subjects: []string{"row.>"}, AllowAtomicPublish: true, MaxMsgsPerSubject: 2}); err != nil {
		t.Fatal(err)
	}
	j := newJournal(nc, js)
	var ran sync.WaitGroup
	defer ran.Wait()
	ran.Go(func() { _ = j.run(ctx) })
	defer cancel()

	var callers sync.WaitGroup
	for _, keys := range []int{1, 1, 1, 2, 5, 20, 20, 300} {
		callers.Go(func() {
			revisions := make([]uint64, keys)
			for range 5 {
				puts := make([]put, keys)
				for k := range puts {
					puts[k] = put{fmt.Sprintf("row.%p.%d", revisions, k), []byte("x"), revisions[k]}
				}
				last, err := j.store(ctx, puts)
				if err != nil {
					t.Errorf("%d keys: %v", keys, err)
					return
				}
				for k := range revisions {
					revisions[k] = last - uint64(keys-1-k)
				}
			}
		})
	}
	callers.Wait()
	for _, keys := range []int{1, 20} {
		puts := make([]put, keys)
		for k := range puts {
			puts[k] = put{fmt.Sprintf("row.old.%d.%d", keys, k), []byte("x"), 4711}
		}
		if _, err := j.store(ctx, puts); err == nil {
			t.Errorf("%d keys with a revision that they do not have were stored", keys)
		}
	}
}
