//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file is pushed while push and the daemon are killed at random moments and started again, with the faults of the other
// runs. In the end every document is in Flexi once, and the last report says exactly what is there.
func TestPushKilled(t *testing.T) {
	t.Parallel()
	n := newNight(t, "P", often(5000, 200))
	n.daemon.up()
	n.push()
	n.disturb(often(6, 3), often(6, 2))
	n.finish()
}

// TestPushAloneKilled is the same without a daemon: push does its work alone, and the next one goes on where it died.
func TestPushAloneKilled(t *testing.T) {
	t.Parallel()
	n := newNight(t, "L", often(1000, 200))
	n.flags = []string{"--new-ledger"}
	n.push()
	n.disturb(often(6, 3), 0)
	n.finish()
}

// night is a file, and everything that it is pushed through.
type night struct {
	run    *run
	daemon *daemon
	file   string
	flags  []string
	lines  []*document // by line
	report string
	proc   *process
	pushes int
	killed int
}

func newNight(t *testing.T, prefix string, documents int) *night {
	t.Helper()
	// At the quick pace also in full size: a write that is never answered keeps a connection until its deadline, and of 5,000
	// documents 250 meet that.
	r := &run{t: t, pace: quickPace(), erp: newERP(t), begun: time.Now(), script: &script{prefix: prefix}}
	dir := t.TempDir()
	n := &night{run: r, file: filepath.Join(dir, "night.ndjson"), report: filepath.Join(dir, "report.json")}
	n.write(documents)
	misbehave(r.erp, r.pace, r.script)
	set := r.pace.settings()
	maps.Copy(set, patient())
	// Three faults in a row look like an outage, and here that happens all the time.
	set["FLEXID_FLEXI_PAUSE"] = "100ms"
	// A fault makes a maybe of every document in its request, and what may be sent again after a maybe is a budget that successes
	// pay for: packed, the last hundred would wait for a token every 10 s.
	set["FLEXID_FLEXI_PACK"] = "1"
	// Push finds the daemon there after its restarts.
	set["FLEXID_HTTP_ADDR"] = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	n.daemon = newDaemon(t, "flexid", r.erp.URL(), set)
	n.daemon.at = "http://" + set["FLEXID_HTTP_ADDR"]
	r.daemons = []*daemon{n.daemon}
	return n
}

// write makes the file. Changes of a document come last, far behind its first line.
func (n *night) write(documents int) {
	s := n.run.script
	var lines, changes []map[string]any
	first := func(d *document, body map[string]any) {
		d.content, d.want = maps.Clone(body), []string{"confirmed", "confirmed(adopted)", "confirmed(repeated)"}
		lines, n.lines = append(lines, eventOf(d, "", body)), append(n.lines, d)
	}
	var changed []*document
	change := func(d *document, version string, body map[string]any) {
		maps.Copy(d.content, body)
		changes, changed = append(changes, eventOf(d, version, body)), append(changed, d)
	}
	for i := 0; len(s.documents) < documents; i++ {
		switch {
		case i%20 == 3: // the ERP says no
			d := s.add(issued, s.number(i), "invalid")
			body := fields(i, d.key)
			body["sumCelkem"] = "1.00"
			first(d, body)
			d.content, d.want, d.cause = nil, []string{"parked(rejected)"}, "sum_differs"
		case i%20 == 8: // a partner, and the invoice that needs it
			p := s.add(partners, fmt.Sprintf("P-%s-%d", s.prefix, i), "partner")
			first(p, map[string]any{"kod": p.key, "nazev": fmt.Sprintf("Partner %d", i)})
			d := s.add(issued, s.number(i), "invoice")
			body := fields(i, d.key)
			body["firma"] = "code:" + p.key
			first(d, body)
		case i%5 == 1: // numbered by the server
			first(s.add(issued, fmt.Sprintf("objednavka-%s-%d", s.prefix, i), "drawn"), fields(i, ""))
		case i%5 == 2:
			d := s.add(received, fmt.Sprintf("prijata-%s-%d", s.prefix, i), "received")
			body := fields(i, "")
			body["cisDosle"] = fmt.Sprintf("DOD/%s/%d", s.prefix, i)
			first(d, body)
		case i%10 == 5: // changed twice, without a version: each push goes through all three again
			d := s.add(issued, s.number(i), "changed")
			first(d, fields(i, d.key))
			change(d, "", map[string]any{"cisObj": "v2"})
			change(d, "", map[string]any{"cisObj": "v3", "popis": "změna"})
		case i%10 == 0: // changed, and the lines say which is newer
			d := s.add(issued, s.number(i), "versioned")
			body := fields(i, d.key)
			first(d, body)
			lines[len(lines)-1]["version"] = 1
			change(d, "2", map[string]any{"cisObj": "v2"})
		default:
			d := s.add(issued, s.number(i), "invoice")
			first(d, fields(i, d.key))
		}
	}
	n.lines = append(n.lines, changed...)
	n.save(append(lines, changes...))
}

// eventOf is one line; an upsert, as files have it. Where the number is the key, it need not be said.
func eventOf(d *document, version string, body map[string]any) map[string]any {
	e := map[string]any{"evidence": d.evidence, "document": body}
	if body["kod"] != d.key {
		e["key"] = d.key
	}
	if version != "" {
		e["version"] = version
	}
	return e
}

func (n *night) save(lines []map[string]any) {
	file := must(os.Create(n.file))(n.run.t, "making the file")
	out := json.NewEncoder(file)
	for _, line := range lines {
		if err := out.Encode(line); err != nil {
			n.run.t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		n.run.t.Fatal(err)
	}
}

// push starts flexid push without waiting for it.
func (n *night) push() {
	n.run.t.Helper()
	n.pushes++
	cmd := exec.Command(programs.flexid, append([]string{"push", "-o", "json", n.file}, n.flags...)...)
	n.proc = start(n.run.t, "push", n.report, cmd, environ(n.daemon.set))
}

// disturb kills push and the daemon at random moments and starts them again. A push that came to its end begins anew.
func (n *night) disturb(pushKills, daemonKills int) {
	n.run.t.Helper()
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)) // the moments are random on purpose
	upTo := func(d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
	// Short times are as likely as long ones: a start lasts a moment, publishing seconds, waiting minutes.
	longest := 1500 * time.Millisecond
	if slow() {
		longest = 16 * time.Second
	}
	gap := func() time.Duration {
		const shortest = 50 * time.Millisecond
		return time.Duration(float64(shortest) * math.Pow(float64(longest)/float64(shortest), rnd.Float64()))
	}
	for pushKills+daemonKills > 0 {
		if !moment(n.run.t, gap()) {
			return
		}
		n.revive(true)
		if rnd.IntN(pushKills+daemonKills) < daemonKills {
			daemonKills--
			n.run.crashes++
			n.daemon.proc.kill()
			if moment(n.run.t, upTo(300*time.Millisecond)) {
				n.daemon.start() // not waited for: it is killed while it starts, too
			}
			continue
		}
		pushKills--
		n.killed++
		if n.daemon.proc == nil { // the engine dies with it
			n.run.crashes++
		}
		n.proc.kill()
		if !moment(n.run.t, upTo(300*time.Millisecond)) {
			return
		}
		if n.daemon.proc != nil && rnd.IntN(4) > 0 { // else push may find none and do the work alone
			n.revive(false)
			n.daemon.ready(time.Minute)
		}
		n.push()
	}
}

// revive starts again what has ended by itself: a push, with its work done or without a daemon that was ready; a daemon,
// because a push without one had its state directory.
func (n *night) revive(push bool) {
	n.run.t.Helper()
	if push && !n.proc.alive() {
		n.push()
	}
	if p := n.daemon.proc; p != nil && !p.alive() {
		n.daemon.start()
	}
}

// finish waits for the last report and checks it.
func (n *night) finish() {
	t := n.run.t
	t.Helper()
	eventually(t, 20*time.Minute, "a push comes to its end", func() (bool, string) {
		if n.proc.alive() {
			if text := n.daemon.held(); text != "" {
				t.Fatalf("writes wait for a person, though nothing happened that needs one: %s", text)
			}
			return false, n.proc.tail(1)
		}
		if code := n.proc.cmd.ProcessState.ExitCode(); code == 0 || code == 4 || code == 5 {
			return true, ""
		}
		n.revive(true)
		return false, "started again"
	})
	eventually(t, time.Minute, "nothing is on its way at the ERP", func() (bool, string) {
		return n.run.erp.Pending() == 0, fmt.Sprintf("%d requests", n.run.erp.Pending())
	})
	if n.daemon.proc == nil || !n.daemon.proc.alive() {
		n.daemon.start()
	}
	n.daemon.ready(time.Minute)
	c := &check{t: t, run: n.run}
	c.read()
	for _, d := range n.run.script.documents {
		c.standing(d)
		c.books(d)
		if d.kind != "changed" { // each push sends the same changes again
			c.resends(d)
		}
		want := 1
		if d.content == nil {
			want = 0
		}
		if made := n.run.erp.Commits(d.evidence + "/" + d.ext); made != want {
			t.Errorf("%s (%s): made %d times, want %d", d.address(), d.kind, made, want)
		}
	}
	c.strangers()
	n.judge(c)
	alone := strings.Count(n.proc.said(), "working alone on")
	t.Logf("push started %d times, of them %d without a daemon, killed %d times; lines %d; %s", n.pushes, alone, n.killed, len(n.lines),
		c.summary(time.Since(n.run.begun)))
}

// reported is what the report says of one line.
type reported struct {
	Line     int    `json:"line"`
	Evidence string `json:"evidence"`
	Key      string `json:"key"`
	Outcome  string `json:"outcome"`
	Cause    string `json:"cause"`
	FlexiID  string `json:"flexi_id"`
	Errors   []struct {
		Text string `json:"message"`
	} `json:"errors"`
}

// judge compares the last report with the file, the books and the ledger, line by line.
func (n *night) judge(c *check) {
	t := n.run.t
	var report struct {
		Events    int            `json:"events"`
		Counts    map[string]int `json:"counts"`
		Documents []reported     `json:"documents"`
	}
	raw := must(os.ReadFile(n.report))(t, "reading the report")
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatalf("the report: %v: %.200s", err, raw)
	}
	if report.Events != len(n.lines) || len(report.Documents) != len(n.lines) {
		t.Fatalf("the report has %d events and %d lines, the file %d", report.Events, len(report.Documents), len(n.lines))
	}
	counts := map[string]int{}
	for i, line := range report.Documents {
		d := n.lines[i]
		counts[line.Outcome]++
		if line.Line != i+1 || line.Evidence+"/"+line.Key != d.address() {
			t.Fatalf("line %d of the report is line %d, %s/%s, want %s", i+1, line.Line, line.Evidence, line.Key, d.address())
		}
		n.judgeLine(c, d, &line)
	}
	for outcome, said := range report.Counts {
		if counts[outcome] != said {
			t.Errorf("the report counts %d %s, its lines %d", said, outcome, counts[outcome])
		}
	}
	if code := n.proc.cmd.ProcessState.ExitCode(); code != 4 {
		t.Errorf("push ended with %d, want 4, some were rejected: %s", code, n.proc.tail(5))
	}
	t.Logf("the last report: %v", counts)
}

func (n *night) judgeLine(c *check, d *document, line *reported) {
	t := n.run.t
	if d.content == nil {
		if line.Outcome != "rejected" || line.Cause != d.cause || len(line.Errors) == 0 || line.Errors[0].Text == "" {
			t.Errorf("line %d (%s %s) is reported as %+v, want rejected, %s, with the ERP's words", line.Line, d.kind, d.address(), line, d.cause)
		}
		return
	}
	switch line.Outcome {
	case "confirmed", "repeated", "adopted":
	case "superseded":
		if d.kind == "versioned" {
			return
		}
		fallthrough
	default:
		t.Errorf("line %d (%s %s) is reported as %s", line.Line, d.kind, d.address(), line.Outcome)
	}
	if found := c.ours[d.evidence+"/"+d.ext]; len(found) == 1 && line.FlexiID != fmt.Sprint(found[0].ID) {
		t.Errorf("line %d (%s %s) is reported under Flexi id %q, the books have %d", line.Line, d.kind, d.address(), line.FlexiID, found[0].ID)
	}
}
