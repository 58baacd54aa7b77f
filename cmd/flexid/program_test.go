package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/batch/stream"
	"flexid/batch/stream/embedded"
	"flexid/cmd/internal/api"
	"flexid/flexi/flexitest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// safeBuffer can be read while the program writes.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func startERP(t *testing.T, o flexitest.Options) *flexitest.Server {
	t.Helper()
	s := flexitest.New(o)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func erpEnv(erp *flexitest.Server, dir string, more ...string) []string {
	return append([]string{"FLEXID_FLEXI_URL=" + erp.URL(), "FLEXID_FLEXI_COMPANY=firma", "FLEXID_FLEXI_USER=flexid",
		"FLEXID_FLEXI_PASSWORD=secret", "FLEXID_STATE_DIR=" + dir, "FLEXID_VERIFY_LOOKS=0s,100ms,300ms", "USER=jana"}, more...)
}

// serving runs `flexid serve` in this process until the test ends or stop is called.
func serving(t *testing.T, env []string) (log *safeBuffer, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log = &safeBuffer{}
	done := make(chan int, 1)
	go func() {
		p := &program{env: env, in: strings.NewReader(""), out: log, err: log}
		done <- p.run(ctx, []string{"serve"})
	}()
	code := -1
	stop = func() int {
		cancel()
		if code < 0 {
			code = <-done
		}
		return code
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("log of serve:\n%s", log)
		}
	})
	return log, stop
}

func publish(t *testing.T, dir, key, body string) {
	t.Helper()
	info, err := embedded.ReadInfo(filepath.Join(dir, "nats.json"))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(info.URL, nats.Token(info.Token))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.NewPublisher(js, stream.Options{}).Push(t.Context(), "faktura-vydana", key, nil, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func TestWholeProgram(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := filepath.Join(t.TempDir(), "state")
	env := erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t))
	_, stop := serving(t, env)
	eventually(t, "ready", func() bool { code, _, _ := call(env, "healthcheck", "--ready"); return code == 0 })

	erp.Script(flexitest.Fault{Kind: flexitest.ServerError, Status: 500, Done: true})
	publish(t, dir, "FV-1", `{"kod":"FV-1","typDokl":"code:FAKTURA","varSym":"1","polozkyFaktury":[{"nazev":"práce","mnozMj":"1","cenaMj":"100"}]}`)
	eventually(t, "the fault is over", func() bool {
		_, out, _ := call(env, "docs", "list", "-o", "csv")
		return strings.Contains(out, "FV-1,FV-1,confirmed")
	})
	publish(t, dir, "FV-2", `{"kod":"FV-2","typDokl":"code:NENI","varSym":"2"}`)
	eventually(t, "one confirmed, one rejected", func() bool {
		_, out, _ := call(env, "docs", "list", "-o", "csv")
		return strings.Contains(out, "FV-1,FV-1,confirmed") && strings.Contains(out, "FV-2,FV-2,parked,rejected")
	})
	if n := len(erp.Find("faktura-vydana", "code:FV-1")); n != 1 {
		t.Errorf("%d records", n)
	}
	code, out, _ := call(env, "docs", "show", "faktura-vydana/FV-1")
	for _, want := range []string{"500", "look", "found", "confirmed"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is missing in the story\n%s", code, want, out)
		}
	}
	if code, out, _ := call(env, "docs", "show", "faktura-vydana/FV-2"); code != 0 || !strings.Contains(out, "Flexi says") || !strings.Contains(out, "to do") {
		t.Errorf("exit %d, the ERP's words are missing\n%s", code, out)
	}
	_, english, _ := call(append(env, "LANG=en_US.UTF-8"), "docs", "show", "faktura-vydana/FV-2")
	_, czech, _ := call(append(env, "LANG=cs_CZ.UTF-8"), "docs", "show", "faktura-vydana/FV-2")
	if english == czech {
		t.Error("what to do is said in one language only")
	}
	code, out, _ = call(env, "writes", "stop", "--reason", "year end", "-o", "json")
	var st api.Status
	if err := json.Unmarshal([]byte(out), &st); code != 0 || err != nil || st.Engine == nil || len(st.Engine.Stops) == 0 || st.Engine.Stops[0].By != "jana" {
		t.Fatalf("exit %d %v %s", code, err, out)
	}
	before := erp.Count("write")
	publish(t, dir, "FV-3", `{"kod":"FV-3","typDokl":"code:FAKTURA","varSym":"3"}`)
	eventually(t, "it waits", func() bool {
		code, out, _ := call(env, "docs", "list", "--state", "queued", "-o", "ndjson")
		return code == 0 && strings.Contains(out, "FV-3")
	})
	if n := erp.Count("write"); n != before {
		t.Errorf("%d writes while they are stopped", n-before)
	}
	if code, _, talk := call(env, "writes", "resume", "--reason", "done"); code != 0 {
		t.Errorf("resume: %d %s", code, talk)
	}
	eventually(t, "it goes on", func() bool {
		_, out, _ := call(env, "docs", "list", "--number", "fv-3", "-o", "ndjson")
		return strings.Contains(out, `"confirmed"`)
	})
	if code, _, talk := call(env, "maybe", "resend", "faktura-vydana/FV-1", "--reason", "x"); code != 1 {
		t.Errorf("a resend of a confirmed document: exit %d %s", code, talk)
	}
	if code, _, talk := call(env, "serve"); code != 1 || !strings.Contains(talk, "is held by another flexid") {
		t.Errorf("a second serve: %d %s", code, talk)
	}
	if code := stop(); code != 0 {
		t.Errorf("serve ended with %d", code)
	}
	if code, _, talk := call(env, "docs", "list"); code != 1 || !strings.Contains(talk, "is `flexid serve` running?") {
		t.Errorf("after the stop: %d %s", code, talk)
	}
	if code, _, talk := call(append(env, "FLEXID_FLEXI_COMPANY=jina"), "serve"); code != exitConfig || !strings.Contains(talk, `"firma"`) || !strings.Contains(talk, `"jina"`) {
		t.Errorf("another company: %d %s", code, talk)
	}
}
