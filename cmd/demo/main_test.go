package main

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"flexid/testdata/testenv"
)

func TestMain(m *testing.M) {
	testenv.InMemory()
	testenv.SeldomCollect()
	goleak.VerifyTestMain(m)
}

// figures reads the last part of the report, as a script would.
func figures(t *testing.T, report string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(report) {
		words := strings.Fields(line)
		if len(words) == 2 || len(words) == 3 && words[2] == "(computed)" {
			found[words[0]] = words[1]
		}
	}
	return found
}

func whole(t *testing.T, f map[string]string, name string) int {
	t.Helper()
	n, err := strconv.Atoi(f[name])
	if err != nil {
		t.Fatalf("figure %s: %v", name, err)
	}
	return n
}

// TestDemo runs the command as a newcomer does, with fewer documents.
func TestDemo(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var stdout, stderr bytes.Buffer
	began := time.Now()
	if code := run(t.Context(), []string{"-exit", "-docs", "42", "-seed", "7"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, &stdout, &stderr)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	f := figures(t, stdout.String())
	for name, want := range map[string]int{
		"documents": 42, "logical_writes": 53, "duplicates": 0, "lost": 0, "wrong_content": 0, "parked": 2,
		"retryablehttp_gave_up": 1, // the one stale role
	} {
		if got := whole(t, f, name); got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
	if maybes := whole(t, f, "maybes"); maybes < 6 || maybes != whole(t, f, "confirmed_by_lookup")+whole(t, f, "sent_again_after_lookup") {
		t.Errorf("maybes = %d, confirmed by look-up %s, sent again %s", maybes, f["confirmed_by_lookup"], f["sent_again_after_lookup"])
	}
	if whole(t, f, "confirmed_by_lookup") == 0 || whole(t, f, "sent_again_after_lookup") == 0 {
		t.Error("both ends of a maybe must be shown")
	}
	// The conflict costs no write; everything else is sent, what went wrong is sent again at most a few times.
	if wire := whole(t, f, "wire_writes"); wire < 52 || wire > 52+20 {
		t.Errorf("wire_writes = %d", wire)
	}
	if whole(t, f, "retryablehttp_duplicates") == 0 {
		t.Error("the script holds nothing that a blind retry would double")
	}
	for _, words := range []string{
		"faktura-vydana/FV26-0127", "partner_missing", "Create the partner", "faktura-vydana/FV26-0101", "conflict", personText,
		"instead of 30 s and 15 min", "computed from the same script, not run",
	} {
		if !strings.Contains(stdout.String(), words) {
			t.Errorf("the report does not say %q", words)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if t.Failed() {
		t.Logf("\n%s\n%s", &stdout, &stderr)
	}
}

// cue calls back once a text has been written.
type cue struct {
	mu   sync.Mutex
	text bytes.Buffer
	word string
	call func()
}

func (c *cue) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(p)
	if c.call != nil && strings.Contains(c.text.String(), c.word) {
		c.call()
		c.call = nil
	}
	return len(p), nil
}

func TestStaysUpUntilInterrupted(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	stdout := &cue{word: "Ctrl-C ends it", call: interrupt}
	var stderr bytes.Buffer
	if code := run(ctx, []string{"-docs", "1"}, stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, &stdout.text, &stderr)
	}
	for _, words := range []string{"export FLEXID_API_URL=http://127.0.0.1:", "FLEXID_STATE_DIR=" + dir, "go run ./cmd/flexid docs list"} {
		if !strings.Contains(stdout.text.String(), words) {
			t.Errorf("it does not say how to look: %q is missing in\n%s", words, &stdout.text)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestInterruptedAtWork(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	stderr := &cue{word: "write requests", call: interrupt}
	if code := run(ctx, []string{"-exit"}, &bytes.Buffer{}, stderr); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
		says string
	}{
		"help":             {[]string{"-h"}, 0, "-exit"},
		"unknown flag":     {[]string{"-fast"}, 2, "-fast"},
		"an argument":      {[]string{"invoices"}, 2, `"invoices"`},
		"no documents":     {[]string{"-docs", "0"}, 2, "-docs"},
		"too many":         {[]string{"-docs", "1000000"}, 2, "-docs"},
		"no such address":  {[]string{"-exit", "-addr", "nowhere"}, 1, "HTTP_ADDR"},
		"negative seed":    {[]string{"-seed", "-1"}, 2, "-seed"},
		"address not ours": {[]string{"-exit", "-docs", "1", "-addr", "192.0.2.1:1"}, 1, "192.0.2.1:1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			var stderr bytes.Buffer
			if code := run(t.Context(), tt.args, &bytes.Buffer{}, &stderr); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(stderr.String(), tt.says) {
				t.Errorf("it says %q, nothing of %q", &stderr, tt.says)
			}
		})
	}
}
