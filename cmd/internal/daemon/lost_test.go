package daemon

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexid/batch/stream/embedded"
	"flexid/flexi/flexitest"

	"github.com/nats-io/nats-server/v2/server"
)

// again starts a daemon that cannot become ready by itself, at the address of an earlier one.
func again(t *testing.T, was Info, settingsOf func(more ...string) *running) *running {
	t.Helper()
	r := settingsOf("FLEXID_HTTP_ADDR=" + strings.TrimPrefix(was.HTTP, "http://"))
	r.info = was
	return r
}

// stands makes sure that nothing goes on by itself: not ready, both ways out named, no write.
func (r *running) stands(erp *flexitest.Server, writes int) {
	r.t.Helper()
	r.notReady()
	hold := time.NewTimer(3 * ledgerPause / 2)
	<-hold.C // longer than between two looks
	r.notReady()
	if n := erp.Count("write"); n != writes {
		r.t.Errorf("%d writes, want %d", n, writes)
	}
}

// natsInfo is how to reach the embedded server of a daemon that is not ready.
func natsInfo(t *testing.T, dir string) (url, token string) {
	t.Helper()
	var info embedded.Info
	eventually(t, "NATS is up", func() (ok bool) {
		var err error
		info, err = embedded.ReadInfo(filepath.Join(dir, "nats.json"))
		return err == nil
	})
	return info.URL, info.Token
}

func portOf(t *testing.T, url string) int {
	t.Helper()
	port, err := strconv.Atoi(url[strings.LastIndex(url, ":")+1:])
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// names are the streams that a NATS server has.
func (r *running) names() (all string) {
	r.t.Helper()
	nc, js := r.nats()
	defer nc.Close()
	list := js.StreamNames(r.t.Context())
	for name := range list.Name() {
		all += name + " "
	}
	if err := list.Err(); err != nil {
		r.t.Fatal(err)
	}
	return all
}

// TestNATSEmptiedWhileStopped: the files of the embedded NATS were moved away. It is no first start.
func TestNATSEmptiedWhileStopped(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := t.TempDir()
	r := begin(t, settings(t, erp, dir))
	r.pushMany(3)
	eventually(t, "confirmed", func() bool { return r.status().Engine.Documents["confirmed"] == 3 })
	was := r.info
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "nats"), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	writes := erp.Count("write")
	r = again(t, was, func(more ...string) *running { r, _ := launch(t, settings(t, erp, dir, more...)); return r })
	eventually(t, "the API is up", func() bool { return r.log.line("API, metrics and health") != "" })
	r.stands(erp, writes)
	r.info.NATS, r.info.NATSToken = natsInfo(t, dir)
	if names := r.names(); names != "" {
		t.Errorf("made by itself: %s", names)
	}
	code, text := r.do("POST", "/api/v1/ledger/accept-empty", `{"by":"jana","why":"the disk is lost"}`)
	if code != 200 || !strings.Contains(text, "3 documents (3 confirmed)") {
		t.Errorf("what is missing is not told: %d %s", code, text)
	}
	r.pushMany(1) // one of before: it is looked up, not written again
	if s := r.becomes("FV-0", "confirmed"); s.Reason != "adopted" || erp.Count("write") != writes {
		t.Errorf("it is confirmed(%s) after %d writes, want adopted after %d", s.Reason, erp.Count("write"), writes)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	begin(t, settings(t, erp, dir)) // accepted once, accepted for good
}

// TestNATSRestoredWhileStopped: the files come back, and it goes on as if nothing had been.
func TestNATSRestoredWhileStopped(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir, store := t.TempDir(), t.TempDir()
	start := func(port int) *server.Server {
		return external(t, store, func(o *server.Options) {
			if port > 0 {
				o.Port = port
			}
		})
	}
	ns := start(0)
	url := ns.ClientURL()
	port := portOf(t, url)
	r := begin(t, settings(t, erp, dir, "FLEXID_NATS_URL="+url))
	r.push("FV-1")
	r.becomes("FV-1", "confirmed")
	ns.Shutdown()
	ns.WaitForShutdown()
	away := store + "-away"
	if err := os.Rename(store, away); err != nil {
		t.Fatal(err)
	}
	ns = start(port)
	r.stands(erp, 1)
	if names := r.names(); names != "" {
		t.Errorf("made by itself: %s", names)
	}
	ns.Shutdown()
	ns.WaitForShutdown()
	if err := os.RemoveAll(store); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, store); err != nil {
		t.Fatal(err)
	}
	start(port)
	waitFor(t, time.Minute, "ready again", func() bool { code, _ := r.do("GET", "/readyz", ""); return code == 200 })
	r.push("FV-2")
	r.becomes("FV-2", "confirmed")
	if s := r.becomes("FV-1", "confirmed"); s.Sends != 1 || erp.Count("write") != 2 {
		t.Errorf("%d sends, %d writes", s.Sends, erp.Count("write"))
	}
}

// TestStreamDeletedOrMadeAnew: what came in and was not taken is lost with the stream, so that is a person's matter too.
func TestStreamDeletedOrMadeAnew(t *testing.T) {
	for name, anew := range map[string]bool{"FLEXID_PUSH": true, "FLEXID_INBOX": false} {
		t.Run(name+map[bool]string{false: " deleted", true: " made anew"}[anew], func(t *testing.T) {
			erp := startERP(t, flexitest.Options{})
			r := begin(t, settings(t, erp, t.TempDir()))
			r.push("FV-1")
			r.becomes("FV-1", "confirmed")
			nc, js := r.nats()
			defer nc.Close()
			s, err := js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if err := js.DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			if anew {
				if _, err := js.CreateStream(t.Context(), s.CachedInfo().Config); err != nil {
					t.Fatal(err)
				}
			}
			r.notReady()
			if _, text := r.do("GET", "/readyz", ""); !strings.Contains(text, name) {
				t.Errorf("the stream is not named: %s", text)
			}
			said := ""
			eventually(t, "it is accepted", func() bool {
				code, text := r.do("POST", "/api/v1/ledger/accept-empty", `{"by":"jana","why":"nothing was in it"}`)
				said = text
				return code == 200
			})
			if !strings.Contains(said, name) {
				t.Errorf("what is missing is not told: %s", said)
			}
			r.push("FV-2")
			r.becomes("FV-2", "confirmed")
			if s := r.becomes("FV-1", "confirmed"); s.Sends != 1 {
				t.Errorf("the ledger was there and is not kept: %+v", s)
			}
		})
	}
}

// TestWhatMayBeLostIsMadeAgain: results that could not be told are told once FLEXID_OUT is there again, and a stop of writes
// outlives the bucket that it was stored in.
func TestWhatMayBeLostIsMadeAgain(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir()))
	if code, text := r.do("POST", "/api/v1/writes/stop", `{"evidence":"banka","by":"eva","why":"uzávěrka"}`); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	nc, js := r.nats()
	defer nc.Close()
	for _, name := range []string{"FLEXID_OUT", "KV_flexid_state"} {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	r.pushMany(2)
	eventually(t, "told", func() bool {
		s, err := js.Stream(t.Context(), "FLEXID_OUT")
		return err == nil && s.CachedInfo().State.Msgs >= 2
	})
	r.pushMany(1) // a later event of a document that was told
	eventually(t, "later events go on", func() bool {
		s, ok := r.story("faktura-vydana/FV-0")
		return ok && len(s.Events) == 2 && s.Events[1].State == "confirmed"
	})
	waitFor(t, time.Minute, "the stop is stored again", func() bool {
		kv, err := js.KeyValue(t.Context(), "flexid_state")
		if err != nil {
			return false
		}
		e, err := kv.Get(t.Context(), "writes.stops")
		return err == nil && strings.Contains(string(e.Value()), "banka")
	})
	if _, text := r.do("GET", "/api/v1/status", ""); !strings.Contains(text, "uzávěrka") {
		t.Error("the stop is gone")
	}
}
