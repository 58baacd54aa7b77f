package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"flexid/testdata/testenv"
)

var (
	codeBlock = regexp.MustCompile("(?s)```(sh|text)\n(.*?)```")
	inline    = regexp.MustCompile("`(flexid [a-z][^`]*)`")
	variable  = regexp.MustCompile(`FLEXID_[A-Z0-9]+(?:_[A-Z0-9]+)+`)
	goCommand = regexp.MustCompile(`go (?:run|build|test) (\./cmd/[a-z]+)`)
)

func readme(t *testing.T) (text string, blocks map[string]string) {
	t.Helper()
	return page(t, filepath.Join("..", "..", "README.md"))
}

func page(t *testing.T, names ...string) (text string, blocks map[string]string) {
	t.Helper()
	blocks = map[string]string{}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(raw)
		for _, m := range codeBlock.FindAllStringSubmatch(string(raw), -1) {
			blocks[m[1]] += m[2]
		}
	}
	return text, blocks
}

// TestReadmeIsShort: more than that nobody reads; the rest belongs to the help pages, all of which it names.
func TestReadmeIsShort(t *testing.T) {
	text, _ := readme(t)
	if n := strings.Count(text, "\n"); n > 250 {
		t.Errorf("the README has %d lines, more than 250", n)
	}
	for _, name := range helpPages(t) {
		if topic := strings.TrimSuffix(filepath.Base(name), ".md"); !strings.Contains(text, "`"+topic+"`") {
			t.Errorf("the README does not name the page %s", topic)
		}
	}
}

func helpPages(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "flexid", "help", "*.md"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%v: %d pages", err, len(names))
	}
	return names
}

func TestReadmeNamesPackagesThatExist(t *testing.T) {
	text, _ := readme(t)
	found := map[string]bool{}
	for _, m := range goCommand.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
		if _, err := os.Stat(filepath.Join("..", "..", m[1], "doc.go")); err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
	for _, first := range []string{"./cmd/demo", "./cmd/flexid"} {
		if !found[first] {
			t.Errorf("the README does not begin with %s", first)
		}
	}
}

func TestReadmeFiguresAreTheDemos(t *testing.T) {
	_, blocks := readme(t)
	var report bytes.Buffer
	(&tally{logical: 1}).figures(&report)
	printed, shown := figures(t, report.String()), figures(t, blocks["text"])
	for name := range printed {
		if _, ok := shown[name]; !ok {
			t.Errorf("the README does not show %s", name)
		}
	}
	for name := range shown {
		if _, ok := printed[name]; !ok {
			t.Errorf("the README shows %s, which the demo does not print", name)
		}
	}
	for name, want := range map[string]string{"duplicates": "0", "lost": "0"} {
		if shown[name] != want {
			t.Errorf("the README shows %s %s", name, shown[name])
		}
	}
}

// TestReadmeCommandsExist asks the binary for the help of every command of the README and the help pages, and looks for every
// flag and variable. The e2e tests run the commands.
func TestReadmeCommandsExist(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary")
	}
	text, blocks := page(t, append(helpPages(t), filepath.Join("..", "..", "README.md"))...)
	flexid := filepath.Join(testenv.Disk(t), "flexid") // where memory is, programs may not be allowed to run
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", flexid, "flexid/cmd/flexid").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ask := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), flexid, args...)
		cmd.Env = []string{}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("flexid %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	var commands []string
	for line := range strings.Lines(blocks["sh"]) {
		if _, rest, ok := strings.Cut(line, "./flexid "); ok {
			rest, _, _ = strings.Cut(rest, "#")
			commands = append(commands, rest)
		}
	}
	for _, m := range inline.FindAllStringSubmatch(text, -1) {
		commands = append(commands, strings.TrimPrefix(m[1], "flexid "))
	}
	if len(commands) < 15 {
		t.Fatalf("only %d commands are found", len(commands))
	}
	for _, c := range commands {
		if !strings.HasPrefix(c, "--help") {
			checkCommand(t, c, ask)
		}
	}
	docs := ask("config", "docs", "--format", "env") + ask("config", "docs")
	for _, name := range variable.FindAllString(text, -1) {
		switch name {
		case "FLEXID_PUSH", "FLEXID_OUT", "FLEXID_INBOX", "FLEXID_SLOW", "FLEXID_BENCH": // streams, and switches of tests
			continue
		}
		for _, source := range []string{"ESHOP", "PARTNER", "ERP"} { // of the walk
			name = strings.Replace(name, "_WEBHOOK_"+source+"_", "_WEBHOOK_<NAME>_", 1)
		}
		if !strings.Contains(docs, name) && !strings.Contains(docs, strings.TrimSuffix(name, "_FILE")+"=") {
			t.Errorf("%s is no setting", name)
		}
	}
}

func checkCommand(t *testing.T, line string, ask func(...string) string) {
	t.Helper()
	var path, flags []string
	words := strings.Fields(strings.ReplaceAll(line, "--env-file try/flexid.env", ""))
	for _, w := range words {
		name, _, _ := strings.Cut(w, "=")
		switch {
		case strings.HasPrefix(w, "-"):
			flags = append(flags, name)
		case len(flags) == 0:
			path = append(path, w)
		}
	}
	help := ask(append(path, "--help")...)
	_, usage, _ := strings.Cut(help, "Usage:\n")
	usage, _, _ = strings.Cut(usage, "\n\n")
	said := "flexid " + strings.Join(path, " ")
	if strings.Contains(usage, "[command]") {
		t.Errorf("%q is no command: %s", line, usage)
	}
	name, _, _ := strings.Cut(strings.TrimSpace(usage), " [")
	name = strings.TrimSpace(regexp.MustCompile(` [A-Z/].*`).ReplaceAllString(name, ""))
	if !strings.HasPrefix(said+" ", name+" ") {
		t.Errorf("%q is understood as %q", line, name)
	}
	for _, f := range flags {
		if !strings.Contains(help, f) {
			t.Errorf("%q: no flag %s", line, f)
		}
	}
}
