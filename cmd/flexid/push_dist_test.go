package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"flexid/config"
	"flexid/flexi/flexitest"
)

// shipped are the files that name commands and settings.
func shipped(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	names, err := filepath.Glob("dist/*")
	if err != nil || len(names) < 3 {
		t.Fatal(names, err)
	}
	for _, name := range append(names, filepath.Join("..", "..", "Dockerfile")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = string(text)
	}
	return files
}

// TestShippedFilesNameSettingsThatExist: flexid refuses to start with a variable that nothing reads.
func TestShippedFilesNameSettingsThatExist(t *testing.T) {
	var docs strings.Builder
	if err := config.Docs(&docs, "env"); err != nil {
		t.Fatal(err)
	}
	for name, text := range shipped(t) {
		text = regexp.MustCompile(`FLEXID_WEBHOOK_ESHOP_[A-Z_]+`).ReplaceAllString(text, "") // see TestEnvFileServesShellAndService
		for _, v := range regexp.MustCompile(`FLEXID_[A-Z0-9_]+`).FindAllString(text, -1) {
			if !strings.Contains(docs.String(), strings.TrimSuffix(v, "_FILE")+"=") {
				t.Errorf("%s names %s, which is no setting", name, v)
			}
		}
	}
}

// TestShippedFilesNameCommandsThatExist: a unit with a misspelt flag fails on the server only.
func TestShippedFilesNameCommandsThatExist(t *testing.T) {
	files := shipped(t)
	for name, command := range map[string]string{
		"flexid.service":      "ExecStart=/usr/local/bin/flexid serve\n",
		"flexid-push.service": "ExecStart=/usr/local/bin/flexid push /var/spool/flexid\n",
		"Dockerfile":          `CMD ["/flexid", "healthcheck"]`,
	} {
		if !strings.Contains(files[name], command) {
			t.Errorf("%s does not run %q", name, command)
		}
	}
	for _, command := range []string{"serve", "push", "healthcheck"} {
		if code, _, talk := call(nil, command, "--help"); code != 0 {
			t.Errorf("%s: exit %d %s", command, code, talk)
		}
	}
}

// TestUnitsAreHardened measures the units where systemd is at hand.
func TestUnitsAreHardened(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here: the units are not measured")
	}
	for _, unit := range []string{"flexid.service", "flexid-push.service"} {
		out, err := exec.CommandContext(t.Context(), tool, "security", "--offline=true", "--threshold=15", "--no-pager", filepath.Join("dist", unit)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// TestEnvFileServesShellAndService: the shipped file means the same to flexid, to a shell and to systemd, and its settings
// are right as they stand, with the password from systemd's credentials, from any working directory.
func TestEnvFileServesShellAndService(t *testing.T) {
	const file = "dist/flexid.env"
	lines, err := config.ReadEnvFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range lines {
		name, value, _ := strings.Cut(kv, "=")
		if isPath := strings.HasSuffix(name, "_FILE") || strings.HasSuffix(name, "_DIR"); isPath && !filepath.IsAbs(value) {
			t.Errorf("%s is not absolute", kv)
		}
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", `set -eu; set -a; . "$1"; env`, "sh", abs)
	shell.Dir, shell.Env = t.TempDir(), []string{"PATH=" + os.Getenv("PATH")}
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var sourced []string
	for _, kv := range strings.Split(string(out), "\n") {
		if strings.HasPrefix(kv, config.Prefix) {
			sourced = append(sourced, kv)
		}
	}
	slices.Sort(lines)
	slices.Sort(sourced)
	if !slices.Equal(lines, sourced) {
		t.Errorf("flexid reads %q\na shell reads %q", lines, sourced)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := write(t, t.TempDir(), "all.env", strings.ReplaceAll(string(text), "\n#FLEXID_", "\nFLEXID_"))
	if lines, err := config.ReadEnvFile(whole); err != nil {
		t.Error(err)
	} else if _, _, err := config.Load(lines, ""); err == nil || strings.Contains(err.Error(), "no setting has this name") {
		t.Errorf("with every line in use: %v", err) // the files that it names are not here
	}
	credentials := t.TempDir()
	if err := os.WriteFile(filepath.Join(credentials, "FLEXID_FLEXI_PASSWORD"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, warnings, err := config.Load(lines, credentials); err != nil || len(warnings) > 0 {
		t.Errorf("%v, warnings %v", err, warnings)
	}
}

// TestUnitsAreRight has systemd read the units, where it is at hand.
func TestUnitsAreRight(t *testing.T) {
	files := shipped(t)
	for _, name := range []string{"flexid.service", "flexid-push.service"} {
		for _, want := range []string{"After=network-online.target nats.service nats-server.service", "EnvironmentFile=-/etc/flexid/flexid.env"} {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s lacks %s", name, want)
			}
		}
	}
	if !strings.Contains(files["flexid.service"], "RestartPreventExitStatus=2 78") {
		t.Error("a wrong setting is tried for ever")
	}
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here: the units are not read by systemd")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var units []string
	for _, name := range []string{"flexid.service", "flexid-push.service", "flexid-push.timer"} {
		path := filepath.Join(dir, name)
		text := strings.ReplaceAll(files[name], "/usr/local/bin/flexid", self) // systemd wants a program that is there
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		units = append(units, path)
	}
	out, err := exec.CommandContext(t.Context(), tool, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "flexid") {
			t.Errorf("systemd says: %s", line)
		}
	}
	if err != nil && !strings.Contains(string(out), "flexid") {
		t.Logf("systemd-analyze: %v\n%s", err, out) // about other units of this machine
	}
}

// TestBadStateDirectoryIsNotTriedForEver: exit 78, which the unit does not restart, with the variable and what to do.
func TestBadStateDirectoryIsNotTriedForEver(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := t.TempDir()
	if err := os.WriteFile(filepath.Join(open, "admin.token"), []byte(strings.Repeat("0", 64)), 0o644); err != nil {
		t.Fatal(err)
	}
	taken := t.TempDir()
	if err := os.MkdirAll(filepath.Join(taken, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"a file": file, "below a file": filepath.Join(file, "state"), "nowhere": "/proc/flexid/state",
		"a token that others read": open, "a lock that is none": taken} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			talk := &safeBuffer{}
			p := &program{env: erpEnv(erp, dir, "FLEXID_HTTP_ADDR="+freeAddr(t)), in: strings.NewReader(""), out: io.Discard, err: talk}
			if code := p.run(ctx, []string{"serve"}); code != exitConfig || !strings.Contains(talk.String(), "FLEXID_STATE_DIR") {
				t.Errorf("exit %d: %s", code, talk)
			}
		})
	}
}
