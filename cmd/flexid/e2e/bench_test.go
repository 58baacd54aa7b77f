//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexid/flexi/flexitest"
)

// TestBenchPush measures a file of FLEXID_BENCH documents on its way through push and a daemon with NATS inside: rates, and
// the most memory that either process took. A figure is never a failure, a missing document is.
func TestBenchPush(t *testing.T) {
	documents, err := strconv.Atoi(os.Getenv("FLEXID_BENCH"))
	if err != nil {
		t.Skip("FLEXID_BENCH=200000 measures that many documents")
	}
	erp := flexitest.New(flexitest.Options{KeepBody: 1})
	t.Cleanup(erp.Close)
	if err := erp.Start(); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, "flexid", erp.URL(), map[string]string{"FLEXID_HTTP_ADDR": fmt.Sprintf("127.0.0.1:%d", freePort(t))})
	file := filepath.Join(t.TempDir(), "night.ndjson")
	writeInvoices(t, file, documents)
	d.up()
	m := &meter{t: t, broker: embeddedBroker(d), begun: time.Now(), documents: documents, daemon: d.proc}
	m.push = launch(t, "push", programs.flexid, environ(d.set), "push", file)
	m.watch()
	if code := m.push.wait(time.Minute); code != 0 {
		t.Errorf("push ended with %d: %s", code, m.push.tail(5))
	}
	sent, made := 0, len(erp.Records(issued))
	for _, r := range erp.Requests() {
		sent += len(r.Docs)
	}
	if sent != documents || made != documents {
		t.Errorf("%d documents were sent %d times and made %d records", documents, sent, made)
	}
	t.Logf("%s; %d write requests", m.text(), erp.Count(flexitest.Write))
}

// writeInvoices writes n invoices of one row each, as NDJSON.
func writeInvoices(t *testing.T, name string, n int) {
	t.Helper()
	f := must(os.Create(name))(t, "making the file")
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintf(w, `{"evidence":"faktura-vydana","document":{"kod":"NB-%07d","varSym":"%d","typDokl":"code:FAKTURA","popis":"delivery %d",`+
			`"polozkyFaktury":[{"nazev":"work","mnozMj":"1","cenaMj":"850.00","typSzbDphK":"typSzbDph.dphZakl"}]}}`+"\n", i+1, i+1, i+1)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// meter follows a push from outside: by the sequences of the streams and by what the kernel says of both processes.
type meter struct {
	t            *testing.T
	broker       *broker
	push, daemon *process
	documents    int
	begun        time.Time

	first, published, told time.Time // the first event was stored, the last one, and the last result
	pushPeak, daemonPeak   int       // KiB
	pushTime, daemonTime   time.Duration
}

func (m *meter) watch() {
	m.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		in, out := m.broker.lastSeq("FLEXID_PUSH"), m.broker.lastSeq("FLEXID_OUT")
		now := time.Now()
		if m.first.IsZero() && in > 0 {
			m.first = now
		}
		if m.published.IsZero() && in >= uint64(m.documents) {
			m.published = now
		}
		if m.told.IsZero() && out >= uint64(m.documents) {
			m.told = now
		}
		m.pushPeak, m.daemonPeak = max(m.pushPeak, peak(m.push)), max(m.daemonPeak, peak(m.daemon))
		m.pushTime, m.daemonTime = max(m.pushTime, processor(m.push)), max(m.daemonTime, processor(m.daemon))
		if n%600 == 0 {
			m.t.Logf("%v: %d published, %d told, peaks %d and %d MiB", now.Sub(m.begun).Round(time.Second), in, out, m.pushPeak>>10, m.daemonPeak>>10)
		}
		select {
		case <-m.push.done:
			return
		case <-tick.C:
		}
	}
}

// peak is the most memory that a running process has had resident, KiB; 0 once it has ended.
func peak(p *process) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	_, _ = fmt.Sscan(rest, &kib)
	return kib
}

// processor is the processor time that a running process has taken; 0 once it has ended.
func processor(p *process) time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ, the same on every Linux
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

func (m *meter) text() string {
	rate := func(from, to time.Time) float64 { return float64(m.documents) / to.Sub(from).Seconds() }
	return fmt.Sprintf("%d documents: first published after %v, published at %.0f/s, confirmed at %.0f/s, in all %v; "+
		"most memory: push %d MiB, daemon %d MiB; processor time: push %v, daemon %v",
		m.documents, m.first.Sub(m.begun).Round(10*time.Millisecond), rate(m.first, m.published), rate(m.first, m.told),
		time.Since(m.begun).Round(time.Second), m.pushPeak>>10, m.daemonPeak>>10,
		m.pushTime.Round(100*time.Millisecond), m.daemonTime.Round(100*time.Millisecond))
}
