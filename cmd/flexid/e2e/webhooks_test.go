//go:build linux

package e2e

import (
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"flexid/flexi/flexitest"
)

// Secrets of the sources of webhookSettings.
const (
	tokenSecret  = "a-secret-of-the-shop-0123456789"
	hookSecret   = "a-secret-of-the-hook-0123456789"
	signedSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// webhookSettings take deliveries of one source of each kind.
func webhookSettings() map[string]string {
	return map[string]string{
		"FLEXID_WEBHOOK_ADDR": "127.0.0.1:0", "FLEXID_WEBHOOK_SOURCES": "shop,signed,erp",
		"FLEXID_WEBHOOK_SHOP_KIND": "token", "FLEXID_WEBHOOK_SHOP_SECRET": tokenSecret,
		"FLEXID_WEBHOOK_SIGNED_KIND": "standard", "FLEXID_WEBHOOK_SIGNED_SECRET": signedSecret,
		"FLEXID_WEBHOOK_ERP_KIND": "flexi", "FLEXID_WEBHOOK_ERP_SECRET": hookSecret,
	}
}

// newWebhooks starts a daemon that takes deliveries, on a nats-server and a healthy fake.
func newWebhooks(t *testing.T, more map[string]string) *bench {
	t.Helper()
	set := webhookSettings()
	for name, value := range more {
		set[name] = value
	}
	b := newBench(t, flexitest.Options{}, set)
	b.daemon.up()
	return b
}

// webhookURL is where the running process takes deliveries.
func (d *daemon) webhookURL() string {
	d.t.Helper()
	m := regexp.MustCompile(`"address":"(http://[^"]+)",[^\n]*webhook deliveries`).FindStringSubmatch(d.log())
	if m == nil {
		d.t.Fatalf("%s says nothing of a webhook listener: %s", d.name, d.proc.tail(20))
	}
	return m[1]
}

// needCurl skips where the sender of these tests is missing.
func needCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
}

// curl posts with the curl of the machine, which nobody here wrote. Standard input is the body where args say so.
func curl(t *testing.T, in io.Reader, args ...string) (status int, answer string) {
	t.Helper()
	const mark = "\nstatus of curl: "
	cmd := exec.CommandContext(t.Context(), "curl", append([]string{"-q", "-sS", "-X", "POST", "--max-time", "60", "-w", mark + "%{http_code}"}, args...)...)
	cmd.Env, cmd.Stdin = environ(nil), in
	out, err := cmd.CombinedOutput()
	text, code, ok := strings.Cut(string(out), mark)
	status, _ = strconv.Atoi(strings.TrimSpace(code))
	if !ok || status == 0 {
		t.Errorf("curl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return status, text
}

// counter adds up the series of a metric that hold all the labels.
func (d *daemon) counter(name string, labels ...string) (sum float64) {
	d.t.Helper()
	text, status, err := d.get("/metrics")
	if err != nil || status != 200 {
		d.t.Fatalf("metrics: %d %v", status, err)
	}
next:
	for line := range strings.Lines(text) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if series != name && !strings.HasPrefix(series, name+"{") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(series, label) {
				continue next
			}
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			d.t.Fatalf("metric %s: %v", line, err)
		}
		sum += n
	}
	return sum
}

// inbox is everything that the inbox stream holds, by subject.
func (b *broker) inbox() map[string][]*jetstream.RawStreamMsg {
	b.t.Helper()
	s := must(b.js.Stream(b.t.Context(), "FLEXID_INBOX"))(b.t, "looking at the inbox")
	state := s.CachedInfo().State
	all := map[string][]*jetstream.RawStreamMsg{}
	var found uint64
	for seq := state.FirstSeq; seq <= state.LastSeq && found < state.Msgs; seq++ {
		m, err := s.GetMsg(b.t.Context(), seq)
		if err != nil {
			b.t.Fatalf("message %d of the inbox: %v", seq, err)
		}
		found++
		all[m.Subject] = append(all[m.Subject], m)
	}
	if found != state.Msgs {
		b.t.Fatalf("the inbox holds %d messages, %d were read", state.Msgs, found)
	}
	return all
}

// delivered waits until intake has taken everything out of the inbox that is in it.
func (d *daemon) delivered(b *broker, most time.Duration) {
	d.t.Helper()
	eventually(d.t, most, "intake takes what is in the inbox", func() (bool, string) {
		s, err := b.js.Stream(d.t.Context(), "FLEXID_INBOX")
		if err != nil {
			return false, err.Error()
		}
		for info := range s.ListConsumers(d.t.Context()).Info() {
			return info.NumPending == 0 && info.NumAckPending == 0, fmt.Sprintf("%d pending, %d unacknowledged", info.NumPending, info.NumAckPending)
		}
		return false, "no consumer"
	})
}
