package daemon

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexid/flexi"
	"flexid/flexi/flexitest"
)

// TestRealHooks: hooks as they really came, in order, doubled, shuffled and with gaps. Consumers see per record the
// newest version of each read, in order, and none is missing; forged hooks change nothing.
func TestRealHooks(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../../../shared/data/flexi-hooks/webhook-1*.json")
	if len(files) == 0 {
		t.Skip("../shared/data/flexi-hooks is not there")
	}
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir(), webhookSettings()...))
	eventually(t, "the reader has begun", func() bool { return r.log.line("changes of Flexi are read from here on") != "" })

	var all []flexi.Change
	h := http.Header{"X-Fb-Hook-Seckey": {hookSecret}, "Content-Type": {"application/json"}}
	for i, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := erp.LoadChanges(body); err != nil {
			t.Fatal(err)
		}
		hook, err := flexi.DecodeChanges(body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, hook.Changes...)
		forged := http.Header{"X-Fb-Hook-Seckey": {"forged"}}
		if code, _ := r.deliver("/in/erp", string(body), forged); code != 401 {
			t.Errorf("forged: %d", code)
		}
		for _, send := range [][]int{{i}, {i, i}, {max(0, i-3), i, 0}, {}}[i%4] {
			earlier, err := os.ReadFile(files[send])
			if err != nil {
				t.Fatal(err)
			}
			if code, text := r.deliver("/in/erp", string(earlier), h); code != 200 || text != "" {
				t.Fatalf("%d %s", code, text)
			}
		}
	}
	if code, text := r.deliver("/in/erp", "", http.Header{}); code != 200 {
		t.Fatalf("registration: %d %s", code, text)
	}
	last, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := r.deliver("/in/erp", string(last), h); code != 200 {
		t.Fatal(code)
	}
	checkChanges(t, r, all)
}

// news is one message of flexi.change.
type news struct {
	subject, evidence, id string
	version               int64
}

func (r *running) news() (all []news) {
	nc, js := r.nats()
	defer nc.Close()
	s, err := js.Stream(r.t.Context(), "FLEXID_OUT")
	if err != nil {
		r.t.Fatal(err)
	}
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(context.WithoutCancel(r.t.Context()), seq)
		if err != nil || !strings.HasPrefix(m.Subject, "flexi.change.") {
			continue
		}
		var n struct {
			Evidence, ID string
			Version      int64
		}
		if err := json.Unmarshal(m.Data, &n); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, news{m.Subject, n.Evidence, n.ID, n.Version})
	}
	return all
}

func checkChanges(t *testing.T, r *running, log []flexi.Change) {
	t.Helper()
	want := map[string]int64{}
	operation := map[int64]string{}
	for _, c := range log {
		want[c.Evidence+"/"+c.ID] = c.Version
		operation[c.Version] = "flexi.change." + c.Evidence + "." + c.Operation
	}
	var all []news
	eventually(t, "the newest change is published", func() bool {
		all = r.news()
		return len(all) > 0 && all[len(all)-1].version == log[len(log)-1].Version
	})
	before := int64(0)
	for _, n := range all {
		if n.version <= before || n.subject != operation[n.version] {
			t.Errorf("%+v after version %d; the log says %s", n, before, operation[n.version])
		}
		before = n.version
		if want[n.evidence+"/"+n.id] == n.version {
			delete(want, n.evidence+"/"+n.id)
		}
	}
	if len(want) > 0 {
		t.Errorf("never told: %v", want)
	}
}

// TestOwnWritesAreChanges: the fake's own log, read through the client, after a write of ours.
func TestOwnWritesAreChanges(t *testing.T) {
	t.Parallel()
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir(), webhookSettings()...))
	eventually(t, "the reader has begun", func() bool { return r.log.line("changes of Flexi are read from here on") != "" })
	if code, text := r.deliver("/in/shop/adresar?wait=20s", `{"kod":"P1","nazev":"První"}`, token("")); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	h := http.Header{"X-Fb-Hook-Seckey": {hookSecret}}
	if code, _ := r.deliver("/in/erp", `{"winstrom":{"changes":[{"@evidence":"adresar","@in-version":"1","id":"1"}]}}`, h); code != 200 {
		t.Fatal(code)
	}
	eventually(t, "it is told", func() bool {
		for _, n := range r.news() {
			if n.subject == "flexi.change.adresar.create" {
				return true
			}
		}
		return false
	})
}

// TestRestoreIsNoticedByTheReader: writes stop, before anything is looked at.
func TestRestoreIsNoticedByTheReader(t *testing.T) {
	t.Parallel()
	erp := startERP(t, flexitest.Options{})
	before := erp.Snapshot()
	r := begin(t, settings(t, erp, t.TempDir(), webhookSettings()...))
	if code, text := r.deliver("/in/shop/adresar?wait=20s", `{"kod":"P1","nazev":"První"}`, token("")); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	poke := func() {
		h := http.Header{"X-Fb-Hook-Seckey": {hookSecret}}
		if code, text := r.deliver("/in/erp", "<x/>", h); code != 200 {
			t.Fatalf("%d %s", code, text)
		}
	}
	poke()
	eventually(t, "the change is told", func() bool { return len(r.news()) > 0 })
	erp.Restore(before)
	poke()
	eventually(t, "writes are held", func() bool {
		s := r.status()
		for _, g := range s.Engine.Stops {
			if g.Reason == "restored" {
				return true
			}
		}
		return false
	})
}
