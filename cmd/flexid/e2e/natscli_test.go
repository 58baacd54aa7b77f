//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The version of the public command-line tool that is tried.
const natsCLI = "github.com/nats-io/natscli/nats@v0.5.1"

// An integrator's first try: the public command-line tool publishes to the NATS server inside the daemon, with address and
// token from the file that the daemon wrote.
func TestPublicCommandLineTool(t *testing.T) {
	t.Parallel()
	onlySlow(t, "the tool is built first")
	tool := buildCLI(t)
	erp := newERP(t)
	d := newDaemon(t, "flexid", erp.URL(), quickPace().settings())
	d.up()
	var info struct{ URL, Token string }
	raw := must(os.ReadFile(filepath.Join(d.dir, "nats.json")))(t, "reading nats.json")
	if err := json.Unmarshal(raw, &info); err != nil {
		t.Fatalf("nats.json: %v", err)
	}
	if stat := must(os.Stat(filepath.Join(d.dir, "nats.json")))(t, "nats.json"); stat.Mode().Perm() != 0o600 {
		t.Errorf("nats.json may be read by others: %v", stat.Mode())
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), tool, append([]string{"-s", info.URL, "--user", info.Token}, args...)...)
		cmd.Env = append(environ(nil), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("nats %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("pub", "-J", "flexi.push.faktura-vydana", `{"kod":"CLI-1","typDokl":"code:FAKTURA","firma":"code:NOVAK","varSym":"1","sumZklZakl":"100.00"}`)
	run("pub", "-J", "-H", "Flexid-Op:update", "flexi.push.faktura-vydana.CLI-1", `{"cisObj":"v2"}`)
	eventually(t, time.Minute, "the invoice is in Flexi", func() (bool, string) {
		found := erp.Find(issued, "code:CLI-1")
		return len(found) == 1 && found[0].Fields["cisObj"] == "v2", d.proc.tail(3)
	})
	d.settles(issued, "CLI-1", "confirmed", time.Minute)
	if out := run("stream", "ls"); !strings.Contains(out, "FLEXID_PUSH") {
		t.Errorf("nats stream ls does not show our streams: %s", out)
	}
}

// buildCLI builds the tool in a place of its own: its dependencies are not ours.
func buildCLI(t *testing.T) string {
	t.Helper()
	if tool, err := exec.LookPath("nats"); err == nil {
		return tool
	}
	dir := programs.dir // not t.TempDir: where memory is, programs may not be allowed to run
	cmd := exec.CommandContext(t.Context(), "go", "install", natsCLI)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("%s cannot be had here: %v: %s", natsCLI, err, bytes.TrimSpace(out))
	}
	return filepath.Join(dir, "nats")
}
