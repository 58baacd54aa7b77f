package flexi_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flexid/flexi"
	"flexid/flexi/flexitest"
)

// TestEveryUnknownIsAnswered: the open questions about the ERP are numbered; each has what is taken for true, what happens
// otherwise, the code that rests on it and the mode of the fake or the test that shows it.
func TestEveryUnknownIsAnswered(t *testing.T) {
	declared, settings, tests := declarations(t), settingNames(t), testNames(t)
	modes := map[string]int{}
	for _, m := range flexitest.Modes() {
		modes[m.Name] = m.Unknown
	}
	seen := map[int]bool{}
	for _, u := range flexi.Unknowns() {
		if seen[u.No] {
			t.Errorf("%d stands there twice", u.No)
		}
		seen[u.No] = true
		if u.Name == "" || u.Default == "" || u.Otherwise == "" || len(u.Rests) == 0 || len(u.Shown) == 0 {
			t.Errorf("%d (%s) is not answered: %+v", u.No, u.Name, u)
		}
		for _, name := range u.Rests {
			if !declared[name] && !settings[name] {
				t.Errorf("%d (%s) rests on %s, which is no function, constant or setting", u.No, u.Name, name)
			}
		}
		for _, name := range u.Shown {
			_, isMode := modes[name]
			if !isMode && !tests[name] {
				t.Errorf("%d (%s) is shown by %s, which is neither a mode of the fake nor a test", u.No, u.Name, name)
			}
		}
		for name, no := range modes {
			if no == u.No && !slices.Contains(u.Shown, name) {
				t.Errorf("mode %s is the other answer to %d (%s), which does not name it", name, u.No, u.Name)
			}
		}
	}
	for no := 1; no <= 24; no++ {
		if !seen[no] {
			t.Errorf("question %d has no entry", no)
		}
	}
	if len(seen) != 24 {
		t.Errorf("%d questions, want 24", len(seen))
	}
}

// declarations is what this package declares at its top level and uses besides.
func declarations(t *testing.T) map[string]bool {
	t.Helper()
	all := ""
	for _, name := range sources(t, ".") {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(src)
	}
	// The words of the entries themselves are no use.
	code := regexp.MustCompile(`"[^"\n]*"`).ReplaceAllString(all, `""`)
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |const |\t)(\w+)\b`).FindAllStringSubmatch(code, -1) {
		uses := len(regexp.MustCompile(`\b`+m[1]+`\b`).FindAllString(code, 3))
		out[m[1]] = uses > 1
	}
	return out
}

func sources(t *testing.T, dir string) (out []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if !strings.HasSuffix(name, "_test.go") {
			out = append(out, name)
		}
	}
	return out
}

func settingNames(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "config", "docs_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, name := range regexp.MustCompile(`\b[A-Z]+_[A-Z_]+\b`).FindAllString(string(text), -1) {
		out["FLEXID_"+name] = true
	}
	return out
}

func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(src), -1) {
			out[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
