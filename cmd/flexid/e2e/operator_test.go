//go:build linux

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"flexid/flexi/flexitest"
)

// A login that is refused: documents wait, nothing is sent, and the operator reads how many and what to set.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	b := newBench(t, flexitest.Options{}, map[string]string{"FLEXID_FLEXI_PASSWORD": "wrong"})
	b.daemon.up()
	const documents = 5
	for i := range documents {
		key := fmt.Sprintf("PW-%d", i)
		b.sendFields(key, fields(i, key))
	}
	eventually(t, time.Minute, "status and log say what to do", func() (bool, string) {
		status, _, _ := b.daemon.get("/api/v1/status")
		log := b.daemon.log()
		waits := regexp.MustCompile(`"documents_waiting":"5"`).MatchString(log) || regexp.MustCompile(`"waiting": 5`).MatchString(status)
		return waits && strings.Contains(status, "FLEXID_FLEXI_PASSWORD") && strings.Contains(log, "FLEXID_FLEXI_PASSWORD"), status
	})
	if n := b.erp.Count(flexitest.Write); n != 0 {
		t.Errorf("%d writes were sent with a password that is refused", n)
	}
	out, talk, code := b.daemon.command("docs", "list", "-o", "ndjson", "--state", "open")
	if code != 0 || strings.Count(out, "\n") != documents {
		t.Errorf("docs list --state open exits with %d and shows %s%s", code, out, talk)
	}
	if strings.Contains(b.daemon.proc.said(), "wrong") {
		t.Error("the password stands in the log")
	}
	if code := b.daemon.proc.stop(30 * time.Second); code != 0 {
		t.Errorf("the daemon ended with %d", code)
	}
	b.daemon.set["FLEXID_FLEXI_PASSWORD"] = "secret"
	b.daemon.up()
	for i := range documents {
		b.daemon.settles(issued, fmt.Sprintf("PW-%d", i), "confirmed", time.Minute)
	}
	if n := len(b.erp.Records(issued)); n != documents {
		t.Errorf("%d records, want %d", n, documents)
	}
}

// A ledger of another company: exit 78, both names and both ways out; the old company goes on as before.
func TestWrongCompany(t *testing.T) {
	t.Parallel()
	b := newBench(t, flexitest.Options{}, nil)
	b.daemon.up()
	b.sendFields("CO-1", fields(1, "CO-1"))
	b.daemon.settles(issued, "CO-1", "confirmed", time.Minute)
	b.daemon.proc.stop(30 * time.Second)
	b.daemon.set["FLEXID_FLEXI_COMPANY"] = "jina_firma"
	b.daemon.start()
	if code := b.daemon.proc.wait(30 * time.Second); code != 78 {
		t.Errorf("the daemon ended with %d, want 78", code)
	}
	for _, want := range []string{"firma", "jina_firma", "FLEXID_FLEXI_COMPANY=firma", "FLEXID_NATS_PREFIX"} {
		if !strings.Contains(b.daemon.log(), want) {
			t.Errorf("it does not say %q: %s", want, b.daemon.log())
		}
	}
	b.daemon.set["FLEXID_FLEXI_COMPANY"] = "firma"
	b.daemon.up()
	b.sendFields("CO-2", fields(2, "CO-2"))
	b.daemon.settles(issued, "CO-2", "confirmed", time.Minute)
}

// A certificate that does not fit: its fingerprint and the line to set are said, nothing is sent, and the line helps.
func TestWrongCertificate(t *testing.T) {
	t.Parallel()
	for name, pin := range map[string]string{"not pinned": "", "another one pinned": strings.Repeat("ab", 32)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := map[string]string{}
			if pin != "" {
				more["FLEXID_FLEXI_CERT_SHA256"] = pin
			}
			b := newBench(t, flexitest.Options{TLS: true}, more)
			sum := sha256.Sum256(b.erp.Certificate().Raw)
			line := "FLEXID_FLEXI_CERT_SHA256=" + hex.EncodeToString(sum[:])
			b.daemon.up()
			b.sendFields("TLS-1", fields(1, "TLS-1"))
			eventually(t, time.Minute, "status and log name the line to set", func() (bool, string) {
				status, _, _ := b.daemon.get("/api/v1/status")
				return strings.Contains(status, line) && strings.Contains(b.daemon.log(), line), status
			})
			if out, talk, code := b.daemon.command("doctor"); code == 0 || !strings.Contains(out+talk, line) {
				t.Errorf("doctor exits with %d and does not name the line: %s%s", code, out, talk)
			}
			if n := b.erp.Count(""); n != 0 {
				t.Errorf("%d requests reached a server that is not trusted", n)
			}
			b.daemon.proc.stop(30 * time.Second)
			b.daemon.set["FLEXID_FLEXI_CERT_SHA256"] = hex.EncodeToString(sum[:])
			b.daemon.up()
			b.daemon.settles(issued, "TLS-1", "confirmed", time.Minute)
		})
	}
}
