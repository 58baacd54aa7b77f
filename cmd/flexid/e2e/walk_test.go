//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// pages are walked in this order, as a newcomer would: the later ones build on what the README has set up.
var pages = []string{"README.md", "cmd/flexid/help/files.md", "cmd/flexid/help/webhooks.md", "cmd/flexid/help/operations.md",
	"cmd/flexid/help/settings.md", "cmd/flexid/help/proof.md", "cmd/flexid/help/flexi.md", "cmd/flexid/help/throughput.md"}

// elsewhere are commands that the walk does not run, and who does.
var elsewhere = map[string]string{
	"go run ./cmd/demo": "the tests of cmd/demo, and .ci/run",
	"go test ./...":     ".ci/run",

	"go run ./testdata/throughput":                                     "the tests of it",
	"go run ./testdata/throughput -n 3000 -rounds 1 -only pack20,file": "the tests of it, with fewer documents",
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestWalk runs every command of the README and of the help pages, in order, in one shell, with the fake as Flexi, and looks
// at the books afterwards.
func TestWalk(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "openssl", "sed", "od", "base64"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the walk needs %s: %v", tool, err)
		}
	}
	erp := newERP(t)
	dir := t.TempDir()
	api, webhooks := freePort(t), freePort(t)
	said := strings.NewReplacer(
		"https://flexi.example.com:5434", erp.URL(),
		"FLEXID_FLEXI_COMPANY=firma_s_r_o_", "FLEXID_FLEXI_COMPANY=firma",
		"go build ./cmd/flexid", "cp "+programs.flexid+" flexid",
		"127.0.0.1:8480", fmt.Sprint("127.0.0.1:", api),
		"127.0.0.1:8481", fmt.Sprint("127.0.0.1:", webhooks),
	)
	script := filepath.Join(dir, "walk.sh")
	if err := os.WriteFile(script, []byte(prelude+said.Replace(walked(t))+"\nstop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", script)
	cmd.Dir = dir
	cmd.Env = append(environ(nil), "HOME="+dir, "USER=walker", fmt.Sprint("FLEXID_HTTP_ADDR=127.0.0.1:", api), "TRACE="+filepath.Join(dir, "trace"))
	cmd.Env[0] = "PATH=" + natsTool(t, dir) + ":" + os.Getenv("PATH")
	cmd.Stdin = strings.NewReader("secret\n")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		trace, _ := os.ReadFile(filepath.Join(dir, "trace")) // what there is of it
		t.Fatalf("%v; the last commands:\n%s\nwhat they said:\n%s", err, last(trace, 4000), last(out, 6000))
	}
	for _, want := range []string{`"state":"confirmed"`, "1 rejected", "4 repeated", "1 confirmed, 3 repeated"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("nothing said %q:\n%s", want, last(out, 8000))
		}
	}
	for evidence, codes := range map[string][]string{issued: {"FV-TRY-1", "WH-1", "NB-1", "NB-2", "NB-3"}, partners: {"SHOP", "P-1", "WH-2"}} {
		for _, code := range codes {
			if n := len(erp.Find(evidence, "code:"+code)); n != 1 {
				t.Errorf("%d records of %s in the books", n, code)
			}
		}
	}
}

// walked is every command of the pages, as one script.
func walked(t *testing.T) string {
	t.Helper()
	var script strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		blocks := shellBlock.FindAllSubmatch(text, -1)
		for _, block := range blocks {
			for line := range strings.Lines(string(block[1])) {
				command, _, _ := strings.Cut(line, "#")
				if _, there := elsewhere[strings.TrimSpace(command)]; !there {
					script.WriteString(served.ReplaceAllString(line, "start $1\n"))
				}
			}
		}
	}
	return script.String()
}

// served is a daemon in the foreground, which the script starts beside itself.
var served = regexp.MustCompile(`^\./flexid (.*)\bserve\s*$`)

// prelude makes the shell stop at the first command that fails, and say which one it was.
const prelude = `set -euo pipefail
exec 7>"$TRACE"
BASH_XTRACEFD=7
set -x
daemon=
stop() {
	[ -z "$daemon" ] && return
	kill -TERM "$daemon"
	wait "$daemon"
	daemon=
}
trap '[ -z "$daemon" ] || kill -KILL "$daemon"' EXIT
start() {
	stop
	./flexid "$@" serve </dev/null >>serve.log 2>&1 7>&- &
	daemon=$!
	for try in $(seq 300); do
		./flexid "$@" healthcheck --ready >/dev/null 2>&1 && return
		kill -0 "$daemon" || { cat serve.log; exit 1; }
		sleep 0.1
	done
	cat serve.log
	exit 1
}
`

func last(text []byte, n int) []byte { return text[max(0, len(text)-n):] }

// natsTool is a folder with the command nats: the public tool where it is to be had, else a stand-in that understands what the
// pages say.
func natsTool(t *testing.T, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if tool, err := exec.LookPath("nats"); err == nil || slow() {
		if err != nil {
			tool = buildCLI(t)
		}
		if err := os.Symlink(tool, filepath.Join(bin, "nats")); err != nil {
			t.Fatal(err)
		}
		return bin
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/sh\nFLEXID_E2E_NATS=1 exec %q \"$@\"\n", self)
	if err := os.WriteFile(filepath.Join(bin, "nats"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}
