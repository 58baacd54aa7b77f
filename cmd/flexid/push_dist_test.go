package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"flexid/config"
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
