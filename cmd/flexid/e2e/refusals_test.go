//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"flexid/webhook"
)

// signed are curl's headers of a signed delivery.
func signed(t *testing.T, id string, at time.Time, body string) (args []string) {
	t.Helper()
	h := must(webhook.Sign(webhook.Source{Kind: "standard", Secret: signedSecret}, id, at, []byte(body)))(t, "signing")
	for name := range h {
		args = append(args, "-H", name+": "+h.Get(name))
	}
	return args
}

// unkeyed is a signature by somebody who hopes that the receiver's secret is empty.
func unkeyed(id, body string) []string {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, nil)
	_, _ = io.WriteString(mac, id+"."+at+"."+body)
	return []string{"-H", "Content-Type: application/json", "-H", "webhook-id: " + id, "-H", "webhook-timestamp: " + at,
		"-H", "webhook-signature: v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}
}

// TestRefusals: what must not get in is refused with its code, by the real daemon, and leaves nothing in the inbox.
func TestRefusals(t *testing.T) {
	t.Parallel()
	needCurl(t)
	b := newWebhooks(t, nil)
	const document, event = `{"kod":"R-1","nazev":"x"}`, `{"evidence":"adresar","document":{"kod":"R-2","nazev":"x"}}`
	const hook = `{"winstrom":{"changes":[{"@evidence":"adresar","@in-version":"1","@operation":"update","id":"1"}],"next":"none"}}`
	json, bearer := []string{"-H", "Content-Type: application/json"}, []string{"-H", "Authorization: Bearer " + tokenSecret}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = io.WriteString(zip, document)
	_ = zip.Close()
	all := func(parts ...[]string) (args []string) {
		for _, p := range parts {
			args = append(args, p...)
		}
		return args
	}
	for _, tc := range []struct {
		name, path, body string
		args             []string
		status           int
	}{
		{"gzip", "/in/shop/adresar", packed.String(), all(json, bearer, []string{"-H", "Content-Encoding: gzip"}), 415},
		{"a name twice", "/in/shop/adresar", `{"kod":"R-1","nazev":"x","kod":"R-3"}`, all(json, bearer), 422},
		{"a name twice, signed", "/in/signed", `{"evidence":"adresar","evidence":"banka","document":{"kod":"R-1"}}`,
			signed(t, "m1", time.Now(), `{"evidence":"adresar","evidence":"banka","document":{"kod":"R-1"}}`), 422},
		{"curl's own content type", "/in/shop/adresar", document, bearer, 415},
		{"replay after 6 minutes", "/in/signed", event, signed(t, "m2", time.Now().Add(-6*time.Minute), event), 401},
		{"signed for a time to come", "/in/signed", event, signed(t, "m3", time.Now().Add(6*time.Minute), event), 401},
		{"empty bearer token", "/in/shop/adresar", document, all(json, []string{"-H", "Authorization: Bearer "}), 401},
		{"no secret", "/in/shop/adresar", document, json, 401},
		{"signed with an empty secret", "/in/signed", event, unkeyed("m4", event), 401},
		{"empty secret of a hook", "/in/erp", hook, all(json, []string{"-H", "X-FB-Hook-SecKey;"}), 401},
		{"unknown source", "/in/mall/adresar", document, all(json, bearer), 404},
		{"too large by a byte", "/in/shop/adresar", strings.Repeat(" ", 512<<10-len(document)+1) + document, all(json, bearer), 413},
		{"the same size is not", "/in/shop/adresar", strings.Repeat(" ", 512<<10-len(document)) + document, all(json, bearer), 202},
		{"signed just now", "/in/signed", event, signed(t, "m2", time.Now(), event), 202},
	} {
		status, answer := curl(t, strings.NewReader(tc.body), append(tc.args, "--data-binary", "@-", b.daemon.webhookURL()+tc.path)...)
		if status != tc.status {
			t.Errorf("%s: %d %s, want %d", tc.name, status, answer, tc.status)
		}
	}
	if n := len(b.broker.inbox()); n != 2 {
		t.Errorf("%d deliveries in the inbox, want 2", n)
	}
	for _, secret := range []string{tokenSecret, signedSecret, hookSecret} {
		if strings.Contains(b.daemon.proc.said(), secret) {
			t.Error("a secret stands in the log")
		}
	}
}

// TestUnusableSources: a daemon that would let in anybody, or read what it does not understand, does not start.
func TestUnusableSources(t *testing.T) {
	t.Parallel()
	for name, set := range map[string][3]string{
		"empty secret": {"FLEXID_WEBHOOK_SHOP_SECRET", "", "required"},
		"unknown kind": {"FLEXID_WEBHOOK_SHOP_KIND", "shoptet", "flexi, standard, token"},
		"mapping":      {"FLEXID_WEBHOOK_SHOP_MAPPING_FILE", "shop.jq", "not supported by this version"},
	} {
		more := webhookSettings()
		more[set[0]] = set[1]
		d := newDaemon(t, "flexid", "http://127.0.0.1:1", more)
		if _, talk, code := runCommand(t, environ(d.set), "serve"); code != 78 || !strings.Contains(talk, set[0]) || !strings.Contains(talk, set[2]) {
			t.Errorf("%s: exit %d: %s", name, code, talk)
		}
	}
}

// TestSlowSenders: one whose head never ends, and one whose body does not.
func TestSlowSenders(t *testing.T) {
	t.Parallel()
	onlySlow(t, "the body has 10 s")
	b := newWebhooks(t, nil)
	head := "POST /in/shop/adresar HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + tokenSecret + "\r\n"
	const good = `{"kod":"S-1","nazev":"x"}`
	addr := strings.TrimPrefix(b.daemon.webhookURL(), "http://")
	var senders sync.WaitGroup
	for begins, want := range map[string]int{head: 0, head + "Content-Length: 25\r\n\r\n" + good[:10]: http.StatusRequestTimeout} {
		senders.Go(func() {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, begins)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if want == 0 { // net/http closes without a word, or says 408
				if err == nil && resp.StatusCode != http.StatusRequestTimeout {
					t.Errorf("half a head is answered with %d", resp.StatusCode)
				}
				return
			}
			if err != nil || resp.StatusCode != want || !resp.Close {
				t.Errorf("half a body: %v %+v", err, resp)
			}
		})
	}
	senders.Wait()
	if n := len(b.broker.inbox()); n != 0 {
		t.Errorf("%d deliveries in the inbox", n)
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// peak is the most memory that the process has ever held, bytes.
func (p *process) peak() int64 {
	p.t.Helper()
	text := must(os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)))(p.t, "reading the state of a process")
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		p.t.Fatalf("no peak of memory in %s", text)
	}
	return must(strconv.ParseInt(string(m[1]), 10, 64))(p.t, "reading the peak of memory") << 10
}

// TestGigabytes: bodies of 1 GB, with and without a length, are refused, and the memory of the daemon stays as it is after as
// many bodies of the size that is allowed.
func TestGigabytes(t *testing.T) {
	t.Parallel()
	needCurl(t)
	b := newWebhooks(t, map[string]string{"FLEXID_WEBHOOK_SHOP_RATE": "100000"})
	const size = 1 << 30
	atOnce, rounds, url := 4, 1, b.daemon.webhookURL()+"/in/shop/adresar"
	if slow() {
		atOnce, rounds = 16, 3
	}
	file := filepath.Join(t.TempDir(), "gigabyte") // has no blocks on the disk
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	send := func(want int, in func() io.Reader, args ...string) {
		t.Helper()
		var senders sync.WaitGroup
		for range atOnce {
			senders.Go(func() {
				all := append([]string{"-H", "Content-Type: application/json", "-H", "Authorization: Bearer " + tokenSecret}, args...)
				if status, answer := curl(t, in(), append(all, url)...); status != want {
					t.Errorf("%d %s, want %d", status, answer, want)
				}
			})
		}
		senders.Wait()
	}
	largest := `{"kod":"` + strings.Repeat("x", 512<<10-10) + `"}` // no number is that long: it is read whole and refused
	send(http.StatusUnprocessableEntity, func() io.Reader { return strings.NewReader(largest) }, "--data-binary", "@-")
	before := b.daemon.proc.peak()
	for range rounds {
		send(http.StatusRequestEntityTooLarge, func() io.Reader { return nil }, "-T", file)
		send(http.StatusRequestEntityTooLarge, func() io.Reader { return nil }, "-T", file, "-H", "Expect:")
		send(http.StatusRequestEntityTooLarge, func() io.Reader { return io.LimitReader(zeros{}, size) }, "-T", "-", "-H", "Expect:")
	}
	after := b.daemon.proc.peak()
	t.Logf("peak of memory: %d MiB after %d bodies of 512 KiB at once, %d MiB after %d of 1 GiB, %d at once", before>>20, atOnce, after>>20, 3*rounds*atOnce, atOnce)
	if after-before > 32<<20 {
		t.Errorf("the peak of memory rose from %d to %d MiB", before>>20, after>>20)
	}
	if n := len(b.broker.inbox()); n != 0 {
		t.Errorf("%d deliveries in the inbox", n)
	}
}
