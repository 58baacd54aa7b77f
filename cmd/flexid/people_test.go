package main

import (
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"flexid/cmd/internal/api"
	"flexid/flexi"
)

func TestVersionAsAFlag(t *testing.T) {
	_, word, _ := call(nil, "version")
	code, flag, talk := call(nil, "--version")
	if code != 0 || strings.Join(strings.Fields(flag), " ") != strings.Join(strings.Fields(word), " ") || !strings.HasPrefix(flag, "flexid ") {
		t.Errorf("exit %d %q %q, version says %q", code, flag, talk, word)
	}
}

// numbers is a daemon that knows documents by number and by key.
func numbers(t *testing.T, rows ...api.Row) []string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		for _, row := range rows {
			switch {
			case r.URL.Path == "/api/v1/documents/"+row.Evidence+"/"+row.Key:
				_, _ = w.Write([]byte(encode(t, api.Story{Row: row})))
				return
			case r.URL.Path == "/api/v1/documents" && (q.Get("number") == row.Number || q.Get("key") == row.Key) &&
				(q.Get("evidence") == "" || q.Get("evidence") == row.Evidence):
				_, _ = w.Write([]byte(encode(t, row)))
			}
		}
		if r.URL.Path != "/api/v1/documents" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"status":404,"detail":"no document here"}`))
		}
	}))
	t.Cleanup(s.Close)
	return []string{"FLEXID_API_URL=" + s.URL, "FLEXID_API_TOKEN=" + testToken}
}

func TestDocsShowFindsByNumber(t *testing.T) {
	env := numbers(t,
		api.Row{Evidence: "banka", Key: "k1", Number: "B-1", State: "confirmed"},
		api.Row{Evidence: "banka", Key: "k2", Number: "B-2", State: "confirmed"},
		api.Row{Evidence: "adresar", Key: "k3", Number: "B-2", State: "parked"},
		api.Row{Evidence: "adresar", Key: "B-1", Number: "other", State: "confirmed"})
	for name, tc := range map[string]struct {
		text string
		code int
		want string
	}{
		"by key":                   {"banka/k1", 0, "banka/k1"},
		"a key before a number":    {"adresar/B-1", 0, "adresar/B-1"},
		"by number":                {"B-1", 0, "banka/k1"},
		"by number and evidence":   {"banka/B-2", 0, "banka/k2"},
		"by key alone":             {"k3", 0, "adresar/k3"},
		"several: listed":          {"B-2", 1, "adresar"},
		"nobody":                   {"B-9", 3, ""},
		"nobody, with an evidence": {"banka/B-9", 3, ""},
		"an empty variable":        {"", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, talk := call(env, "docs", "show", tc.text)
			if code != tc.code || !strings.Contains(out, tc.want) {
				t.Errorf("exit %d %q %q", code, out, talk)
			}
			if tc.code == 1 && (!strings.Contains(out, "k2") || !strings.Contains(out, "k3") || !strings.Contains(talk, "name one")) {
				t.Errorf("%q %q", out, talk)
			}
		})
	}
}

// TestExcel: a Czech spreadsheet opens it with a double click, letters, columns and decimals right, and runs nothing.
func TestExcel(t *testing.T) {
	rows := []any{api.Row{Evidence: "banka", Key: "=HYPERLINK(1)", Number: "2026.10", State: "confirmed"}, api.Row{Evidence: "banka", Key: "žluť;1", Number: "-5"}}
	f := newFakeDaemon(t, map[string]string{"GET /api/v1/documents": encode(t, rows...)})
	code, out, talk := call(f.env(), "docs", "list", "--excel")
	if code != 0 || !strings.HasPrefix(out, "\ufeffevidence;source;key;") || !strings.Contains(out, "\r\n") {
		t.Fatalf("exit %d %q %q", code, out, talk)
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(out, "\ufeff")))
	r.Comma = ';'
	all, err := r.ReadAll()
	if err != nil || len(all) != 3 || all[1][2] != "'=HYPERLINK(1)" || all[2][2] != "žluť;1" || all[1][3] != "2026.10" || all[2][3] != "-5" {
		t.Errorf("%v %q", err, all)
	}
	code, out, _ = call(nil, "probe", "--script", "503,200", "--excel")
	fields := strings.Split(strings.Split(out, "\r\n")[1], ";")
	if code != 0 || len(fields) < 6 || fields[3] != "2,00" || strings.Contains(fields[4], ".") {
		t.Errorf("exit %d %q", code, out)
	}
}

// TestCompletion: keys, states, reasons, causes and evidences, never the names of files.
func TestCompletion(t *testing.T) {
	rows := []any{api.Row{Evidence: "banka", Key: "B-1"}, api.Row{Evidence: "banka", Source: "eshop", Key: "B-2"}, api.Row{Evidence: "adresar", Key: "A"}}
	f := newFakeDaemon(t, map[string]string{"GET /api/v1/documents": encode(t, rows...), "GET /api/v1/queue": encode(t, rows[:2]...)})
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"documents":           {[]string{"docs", "show", ""}, []string{"banka/B-1", "banka/eshop:B-2", "adresar/A"}},
		"begun":               {[]string{"docs", "show", "banka/e"}, []string{"banka/eshop:B-2"}},
		"only one":            {[]string{"docs", "show", "banka/B-1", ""}, nil},
		"what waits":          {[]string{"maybe", "drop", ""}, []string{"banka/B-1", "banka/eshop:B-2"}},
		"not twice":           {[]string{"maybe", "drop", "banka/B-1", ""}, []string{"banka/eshop:B-2"}},
		"states":              {[]string{"docs", "list", "--state", ""}, api.States()},
		"reasons":             {[]string{"maybe", "list", "--reason", ""}, api.Reasons()},
		"causes":              {[]string{"maybe", "drop", "--cause", "period"}, []string{string(flexi.PeriodLocked)}},
		"an evidence":         {[]string{"docs", "list", "--evidence", "faktura-v"}, []string{"faktura-vydana"}},
		"an evidence to stop": {[]string{"writes", "stop", "ban"}, []string{"banka"}},
		"output":              {[]string{"docs", "list", "-o", ""}, []string{"table", "json", "ndjson", "csv"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, talk := call(f.env(), append([]string{"__complete"}, tc.args...)...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			offered := slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, ":") || l == "" })
			if code != 0 || !slices.Equal(offered, tc.want) && len(offered)+len(tc.want) > 0 || !strings.Contains(talk, "NoFileComp") {
				t.Errorf("exit %d %q %q", code, offered, talk)
			}
		})
	}
	if code, out, _ := call([]string{"FLEXID_API_URL=" + gone.URL, "FLEXID_API_TOKEN=" + testToken}, "__complete", "docs", "show", ""); code != 0 || strings.TrimSpace(out) != ":4" {
		t.Errorf("without a daemon: exit %d %q", code, out)
	}
}

// TestEveryFilterFlagIsDocumented: what a command takes stands in its help.
func TestEveryFilterFlagIsDocumented(t *testing.T) {
	for _, command := range [][]string{{"docs", "list"}, {"maybe", "list"}, {"maybe", "drop"}, {"maybe", "confirm"}, {"maybe", "resend"}, {"maybe", "note"}, {"maybe", "look"}} {
		_, help, _ := call(nil, append(command, "--help")...)
		for _, name := range filterNames() {
			if !strings.Contains(help, "--"+name) {
				t.Errorf("%v --help does not name --%s", command, name)
			}
		}
	}
}

// TestSecretsThatOthersReadDrawAWarning: a password file, and an environment file that holds a password.
func TestSecretsThatOthersReadDrawAWarning(t *testing.T) {
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	base := "FLEXID_FLEXI_URL=https://x.example.com\nFLEXID_FLEXI_COMPANY=a\nFLEXID_FLEXI_USER=b\nFLEXID_STATE_DIR=" + dir + "\n"
	for name, tc := range map[string]struct {
		line         string
		file, secret os.FileMode
		want         string
	}{
		"a file of its own":       {"FLEXID_FLEXI_PASSWORD_FILE=" + password, 0o644, 0o644, "FLEXID_FLEXI_PASSWORD_FILE: may be read by every user"},
		"for the group":           {"FLEXID_FLEXI_PASSWORD_FILE=" + password, 0o644, 0o640, ""},
		"private":                 {"FLEXID_FLEXI_PASSWORD_FILE=" + password, 0o644, 0o600, ""},
		"in the environment file": {"FLEXID_FLEXI_PASSWORD=x", 0o644, 0o600, "flexid.env holds a secret"},
		"in a private one":        {"FLEXID_FLEXI_PASSWORD=x", 0o600, 0o600, ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "flexid.env")
			for path, content := range map[string]string{file: base + tc.line + "\n", password: "secret\n"} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(file, tc.file); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(password, tc.secret); err != nil {
				t.Fatal(err)
			}
			code, _, talk := call(nil, "config", "check", "--env-file", file)
			if code != 0 || strings.Contains(talk, "every user") != (tc.want != "") || !strings.Contains(talk, tc.want) {
				t.Errorf("exit %d %q", code, talk)
			}
		})
	}
}
