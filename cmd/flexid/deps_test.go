package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rules is the last column of DESIGN 2: what each package may import of ours, directly. A package that is not listed has
// to be added here with its rule.
func rules() map[string][]string {
	return map[string][]string{
		"flexi":                 {},
		"flexi/flexitest":       {},
		"flexi/probe":           {"flexi"},
		"verify":                {"flexi", "verify/ledger", "verify/compare"},
		"verify/compare":        {"flexi"},
		"verify/ledger":         {"flexi"},
		"verify/audit":          {"flexi", "verify", "verify/ledger"},
		"batch":                 {"flexi", "verify", "verify/ledger"}, // how far a stream was taken is a key of the ledger
		"batch/read":            {"batch"},
		"batch/mapping":         {},
		"batch/stream":          {"batch", "verify/ledger"},
		"batch/stream/embedded": {},
		"webhook":               {"flexi"},
		"webhook/changes":       {"flexi"},
		"config":                {},
		"config/statedir":       {},
		"cmd/internal/quota":    {"flexi"},
		"cmd/internal/api":      {"flexi", "verify", "verify/ledger", "cmd/internal/quota"},
		"cmd/internal/page":     {"flexi", "verify", "verify/ledger", "cmd/internal/api"},
		"cmd/internal/mcp":      {"flexi", "verify", "verify/ledger", "cmd/internal/api"},
		"cmd/internal/push":     {"flexi", "verify", "verify/ledger", "batch", "batch/read", "batch/stream", "cmd/internal/api"},
		"cmd/internal/daemon":   {anyButFake},
		"cmd/flexid":            {anyButFake},
		"cmd/demo":              {anything},
		"cmd/flexid/e2e":        {}, // tests only
	}
}

const (
	anyButFake = "all but flexi/flexitest"
	anything   = "all"
)

// golist runs the go tool in the repository's root and returns its lines.
func golist(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestDirectImports(t *testing.T) {
	allowed := rules()
	for _, line := range golist(t, "-e", "-f", `{{if .GoFiles}}{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{end}}`, "./...") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		name := strings.TrimPrefix(words[0], "flexid/")
		rule, ok := allowed[name]
		if !ok {
			t.Errorf("package %s has no rule", name)
			continue
		}
		for _, imported := range words[1:] {
			ours, is := strings.CutPrefix(imported, "flexid/")
			switch {
			case !is, slices.Contains(rule, ours), slices.Contains(rule, anything):
			case slices.Contains(rule, anyButFake) && ours != "flexi/flexitest":
			default:
				t.Errorf("%s imports %s", name, ours)
			}
		}
	}
}

func TestProductionBinaryHoldsNoTestCode(t *testing.T) {
	deps := golist(t, "-deps", "./cmd/flexid")
	if !slices.Contains(deps, "flexid/verify") {
		t.Fatal("go list does not see the binary")
	}
	for _, d := range deps {
		for _, banned := range []string{"flexid/flexi/flexitest", "flexid/testdata/testenv", "testing", "net/http/httptest", "testing/iotest", "testing/synctest",
			"go.uber.org/goleak", "github.com/stretchr/testify"} {
			if d == banned || strings.HasPrefix(d, banned+"/") {
				t.Errorf("the production binary holds %s", d)
			}
		}
	}
}

// TestBelowTheStreamNobodyKnowsNATS: the rules about sending hold whatever carries the events.
func TestBelowTheStreamNobodyKnowsNATS(t *testing.T) {
	for _, pkg := range []string{"./flexi", "./verify/compare", "./config"} {
		for _, d := range golist(t, "-deps", pkg) {
			if strings.HasPrefix(d, "github.com/nats-io/") {
				t.Errorf("%s reaches %s", pkg, d)
			}
		}
	}
	// verify reaches it through the ledger only.
	for _, line := range golist(t, "-f", `{{range .Imports}}{{.}} {{end}}`, "./verify", "./batch") {
		if strings.Contains(line, "github.com/nats-io/") {
			t.Errorf("verify or batch imports NATS: %s", line)
		}
	}
}

// TestOnlyCmdMakesAClient: a package that may import flexi for its types could still make a client with it, and would then
// have a way to the ERP that passes by verify.
func TestOnlyCmdMakesAClient(t *testing.T) {
	root := filepath.Join("..", "..")
	makers := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		for _, name := range selectors(t, path) {
			switch name {
			case "New":
				makers++
				if !strings.HasPrefix(filepath.ToSlash(rel), "cmd/") {
					t.Errorf("%s names flexi.New", rel)
				}
			case "Prepare":
				if dir := filepath.ToSlash(filepath.Dir(rel)); dir != "verify" && dir != "flexi/probe" {
					t.Errorf("%s names flexi.Prepare: only verify may send a document", rel)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if makers == 0 {
		t.Error("nobody names flexi.New: this test looks for the wrong thing")
	}
}

// selectors lists what a file names of package flexi.
func selectors(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	local := ""
	for _, i := range file.Imports {
		if i.Path.Value == `"flexid/flexi"` {
			if local = "flexi"; i.Name != nil {
				local = i.Name.Name
			}
		}
	}
	if local == "" {
		return nil
	}
	if local == "." {
		t.Errorf("%s imports flexi with a dot", path)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == local {
				names = append(names, s.Sel.Name)
			}
		}
		return true
	})
	return names
}
