package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

// LineError is a line of an environment file that cannot be read. It never holds the value.
type LineError struct {
	Path    string
	Line    int
	Problem string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s, line %d: %s", e.Path, e.Line, e.Problem) }

// ReadEnvFile reads lines KEY=VALUE and gives them in the form of os.Environ. What systemd, docker and this reader would
// understand differently (a comment or a quote behind an unquoted value, a backslash) is an error, so that one file means
// the same to all of them; every such line is told. Merge it below the real environment.
func ReadEnvFile(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the environment file: %w", err)
	}
	return parseEnvFile(path, text)
}

func parseEnvFile(path string, text []byte) ([]string, error) {
	key := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	seen := map[string]int{}
	var environ []string
	var wrong []error
	for i, line := range strings.Split(string(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))), "\n") {
		fail := func(problem string) { wrong = append(wrong, &LineError{Path: path, Line: i + 1, Problem: problem}) }
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if !utf8.ValidString(line) || strings.ContainsRune(line, 0) {
			fail("is not UTF-8 text")
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name = strings.TrimSpace(name)
		value, problem := unquote(strings.TrimSpace(value))
		switch {
		case !ok:
			fail("is not KEY=VALUE")
		case !key.MatchString(name):
			fail("the part before = is not the name of a variable")
		case seen[name] > 0:
			fail(fmt.Sprintf("%s is already set in line %d", name, seen[name]))
		case problem != "":
			fail(name + ": " + problem)
		}
		if ok && seen[name] == 0 {
			seen[name] = i + 1
		}
		environ = append(environ, name+"="+value)
	}
	if wrong != nil {
		return nil, errors.Join(wrong...)
	}
	return environ, nil
}

// unquote reads one value: 'literal', "with \" \\ \$ and \`", or bare.
func unquote(s string) (value, problem string) {
	if s == "" {
		return "", ""
	}
	if quote := s[0]; quote == '\'' || quote == '"' {
		return unquoteWith(quote, s[1:])
	}
	if strings.ContainsAny(s, `'"\`+"`") || strings.Contains(s, " #") {
		return "", "the value holds a quote, a backslash or a #: put all of it in single quotes"
	}
	return s, ""
}

func unquoteWith(quote byte, s string) (value, problem string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			if s[i+1:] != "" {
				return "", "something follows the closing quote"
			}
			return b.String(), ""
		case c == '\\' && quote == '"':
			if i++; i == len(s) || !strings.ContainsRune("\"\\$`", rune(s[i])) {
				return "", "after \\ only \" \\ $ and ` are understood: use single quotes"
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "the closing quote is missing"
}

// Merge puts the real environment above a file: what an operator sets by hand wins.
func Merge(file, environ []string) []string {
	return append(append([]string(nil), file...), environ...)
}

// HoldsSecret says whether lines set a password, token or secret themselves and not the name of a file with it.
func HoldsSecret(environ []string) bool {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, Prefix) || value == "" {
			continue
		}
		for _, end := range []string{"PASSWORD", "TOKEN", "SECRET"} {
			if strings.HasSuffix(name, "_"+end) {
				return true
			}
		}
	}
	return false
}
