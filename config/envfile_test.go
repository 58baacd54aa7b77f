package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"flexid/config"
)

func envFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flexid.env")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadEnvFile(t *testing.T) {
	text := "\ufeff# comment\r\n; another\r\n\r\nA=1\r\n export B = two words \nC=\nD='a \"b\" $c \\d # e'\nE=\"a \\\"b\\\" \\$c \\\\d\"\nF=a#b=c\n"
	want := []string{"A=1", "B=two words", "C=", `D=a "b" $c \d # e`, `E=a "b" $c \d`, "F=a#b=c"}
	got, err := config.ReadEnvFile(envFile(t, text))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestReadEnvFileFaults(t *testing.T) {
	for _, tc := range []struct {
		name, line, says string
	}{
		{"no equals sign", "FLEXID_" + sesame, "KEY=VALUE"},
		{"a name that is none", "1A=" + sesame, "name"},
		{"a comment behind", "A=" + sesame + " # x", "single quotes"},
		{"a quote inside", "A=" + sesame + "'", "single quotes"},
		{"a backslash", `A=\` + sesame, "single quotes"},
		{"no closing quote", "A='" + sesame, "closing quote"},
		{"more behind the quote", "A='" + sesame + "'x", "follows"},
		{"an escape that is none", `A="\n` + sesame + `"`, "only"},
		{"an escape at the end", `A="` + sesame + `\`, "only"},
		{"a variable twice", "FIRST=" + sesame, "already set in line 1"},
		{"not UTF-8", "A=\xff" + sesame, "UTF-8"},
		{"a zero byte", "A=\x00" + sesame, "UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := config.ReadEnvFile(envFile(t, "FIRST=1\n"+tc.line+"\n"))
			var line *config.LineError
			if !errors.As(err, &line) || line.Line != 2 || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), sesame) {
				t.Errorf("the value is shown: %v", err)
			}
		})
	}
	_, err := config.ReadEnvFile(envFile(t, "A\nB=1\nB=2\nC='\nD=1\n"))
	for _, says := range []string{"line 1: is not KEY=VALUE", "line 3: B is already set in line 2", "line 4: C: the closing quote"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	if _, err := config.ReadEnvFile(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

func TestRealEnvironmentWinsOverTheFile(t *testing.T) {
	file := []string{"FLEXID_FLEXI_PACK=5", "FLEXID_FLEXI_CONCURRENCY=2"}
	c, _, err := config.Load(config.Merge(file, base("FLEXID_FLEXI_PACK=7")), "")
	if err != nil || c.Flexi.Pack != 7 || c.Flexi.Concurrency != 2 {
		t.Errorf("%d %d %v", c.Flexi.Pack, c.Flexi.Concurrency, err)
	}
}

func FuzzReadEnvFile(f *testing.F) {
	for _, seed := range []string{"A=1\n", "A='x'\nB=\"y\\\"\"", "export A=1", "#\n;\n", "A=\\", "A=\"\\", "=", "A='", "\ufeff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		environ, err := config.ReadEnvFile(envFile(t, text))
		if err != nil && environ != nil {
			t.Fatal("half a file is worse than none")
		}
		for _, line := range environ {
			name, value, ok := strings.Cut(line, "=")
			if !ok || name == "" || strings.ContainsAny(line, "\x00\n") {
				t.Fatalf("not a variable: %q", line)
			}
			again, err := config.ReadEnvFile(envFile(t, name+"='"+value+"'"))
			if !strings.Contains(value, "'") && (err != nil || again[0] != line) {
				t.Fatalf("%q quoted is read as %q, %v", line, again, err)
			}
		}
	})
}
