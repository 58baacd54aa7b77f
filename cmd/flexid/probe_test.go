package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"flexid/flexi/flexitest"
	"flexid/flexi/probe"
)

// probeWith runs the command and returns its exit code and both streams.
func probeWith(env []string, args ...string) (code int, stdout, stderr string) {
	var out, talk bytes.Buffer
	code = run(append([]string{"probe"}, args...), env, strings.NewReader(""), &out, &talk)
	return code, out.String(), talk.String()
}

// TestProbeScript: the figures of the three scripts that everybody tries first.
func TestProbeScript(t *testing.T) {
	cases := []struct {
		name, script  string
		write         bool
		wire          int
		amplification float64
		outcome       string
	}{
		{"read", "503,503,200", false, 3, 3, "ok"},
		{"write", "503,503,200", true, 1, 1, "maybe"},
		{"healthy", "200", false, 1, 1, "ok"},
		{"healthy write", "200", true, 1, 1, "accepted"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			args := []string{"--script", tc.script, "-o", "json"}
			if tc.write {
				args = append(args, "--write")
			}
			code, out, talk := probeWith(nil, args...)
			var r probe.Report
			if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK {
				t.Fatalf("exit %d, %v\n%s%s", code, err, out, talk)
			}
			if r.LogicalCalls != 1 || r.WireRequests != tc.wire || *r.ServerRequests != tc.wire || r.Amplification != tc.amplification || r.Outcome != tc.outcome {
				t.Errorf("%s", out)
			}
			if r.SpentSeconds <= 0 {
				t.Error("attempts that took no time")
			}
		})
	}
}

func TestProbeFormats(t *testing.T) {
	_, table, _ := probeWith(nil, "--script", "200*", "--calls", "3")
	for _, want := range []string{"logical calls     3", "amplification     1.00", "server requests   3", "outcome           ok"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	_, csv, _ := probeWith(nil, "--script", "500*", "--write", "-o", "csv")
	lines := strings.Split(strings.TrimSpace(csv), "\n")
	if len(lines) != 2 || lines[0] != "logical_calls,wire_requests,server_requests,amplification,spent_seconds,attempt_seconds,outcome" ||
		!strings.HasPrefix(lines[1], "1,1,1,1.00,") || !strings.HasSuffix(lines[1], ",maybe") {
		t.Errorf("csv:\n%s", csv)
	}
}

func TestProbeUsage(t *testing.T) {
	cases := []struct {
		name, want string
		args       []string
	}{
		{"a write to a real company", "--write-to-test-company", []string{"--write"}},
		{"a test company in a script", "--script", []string{"--script", "200", "--write-to-test-company"}},
		{"via without a script", "--script", []string{"--via", "http://127.0.0.1:1"}},
		{"a bad script", "explode", []string{"--script", "explode"}},
		{"an empty script", "script step", []string{"--script", ""}},
		{"no call", "--calls", []string{"--script", "200", "--calls", "0"}},
		{"too many records", "test company", []string{"--write-to-test-company", "--calls", "21"}},
		{"a negative time", "--timeout", []string{"--script", "200", "--timeout", "-1s"}},
		{"a bad address", "address", []string{"--script", "200", "--via", "nowhere"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if code, out, talk := probeWith(nil, tc.args...); code != exitUsage || !strings.Contains(talk, tc.want) || out != "" {
				t.Errorf("exit %d\n%s%s", code, out, talk)
			}
		})
	}
}

// TestProbeFlexi: a real company is only read, unless it is said that it is for tests.
func TestProbeFlexi(t *testing.T) {
	erp := flexitest.New(flexitest.Options{})
	if err := erp.Start(); err != nil {
		t.Fatal(err)
	}
	defer erp.Close()
	env := []string{
		"FLEXID_FLEXI_URL=" + erp.URL(), "FLEXID_FLEXI_COMPANY=firma", "FLEXID_FLEXI_USER=flexid", "FLEXID_FLEXI_PASSWORD=secret",
		"FLEXID_STATE_DIR=" + t.TempDir(), "FLEXID_TZ=Europe/Prague",
	}
	before := len(erp.Records("adresar"))
	cases := []struct {
		name, outcome string
		args          []string
		writes        int
		code          int
	}{
		{"read", "ok", nil, 0, exitOK},
		{"unknown evidence", "blocked", []string{"--evidence", "neznama"}, 0, exitFailed},
		{"write without the flag", "", []string{"--write"}, 0, exitUsage},
		{"write", "accepted", []string{"--write-to-test-company", "--calls", "2"}, 2, exitOK},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			erp.ResetLog()
			code, out, talk := probeWith(env, append(tc.args, "-o", "json")...)
			if code != tc.code || erp.Count(flexitest.Write) != tc.writes {
				t.Fatalf("exit %d, %d writes\n%s%s", code, erp.Count(flexitest.Write), out, talk)
			}
			if tc.outcome == "" {
				return
			}
			var r probe.Report
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
			if r.Outcome != tc.outcome || r.ServerRequests != nil || r.WireRequests != erp.Count("") || r.Amplification != 1 {
				t.Errorf("%d requests at the server\n%s", erp.Count(""), out)
			}
			if strings.Contains(out, "secret") {
				t.Error("the password is printed")
			}
		})
	}
	if n := len(erp.Records("adresar")) - before; n != 2 {
		t.Errorf("%d records made, want 2", n)
	}
}

// TestProbeObeysAllow: an operation that is not allowed is not allowed to the probe either.
func TestProbeObeysAllow(t *testing.T) {
	erp := flexitest.New(flexitest.Options{})
	if err := erp.Start(); err != nil {
		t.Fatal(err)
	}
	defer erp.Close()
	env := []string{
		"FLEXID_FLEXI_URL=" + erp.URL(), "FLEXID_FLEXI_COMPANY=firma", "FLEXID_FLEXI_USER=flexid", "FLEXID_FLEXI_PASSWORD=secret",
		"FLEXID_FLEXI_ALLOW=update", "FLEXID_STATE_DIR=" + t.TempDir(), "FLEXID_TZ=Europe/Prague",
	}
	if code, _, talk := probeWith(env, "--write-to-test-company"); code != exitUsage || erp.Count("") != 0 || !strings.Contains(talk, "FLEXID_FLEXI_ALLOW") {
		t.Errorf("exit %d, %d requests: %s", code, erp.Count(""), talk)
	}
}
