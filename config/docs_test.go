package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"flexid/config"
)

func TestDocsNameEveryVariable(t *testing.T) {
	for _, format := range []string{"table", "markdown", "json", "env"} {
		var out bytes.Buffer
		if err := config.Docs(&out, format); err != nil {
			t.Fatal(err)
		}
		for _, v := range config.Variables() {
			if strings.Contains(v.Name, "<") && format == "env" {
				continue
			}
			if !strings.Contains(out.String(), v.Name) {
				t.Errorf("%s lacks %s", format, v.Name)
			}
			if v.Meaning == "" || v.Allowed == "" || (v.Default == "" && !v.Secret && v.Name != "") && !optional(v.Name) {
				t.Errorf("%s is not described: %+v", v.Name, v)
			}
		}
	}
	if err := config.Docs(&bytes.Buffer{}, "pdf"); err == nil {
		t.Error("an unknown format")
	}
}

// optional are the variables whose default is that there is none.
func optional(name string) bool {
	return regexp.MustCompile(`_(CREDS_FILE|USER|CERT_FILE|KEY_FILE|HOSTS)$`).MatchString(name)
}

// TestDesignTable holds the names that users were promised.
func TestDesignTable(t *testing.T) {
	known := map[string]bool{}
	for _, v := range config.Variables() {
		known[v.Name] = true
	}
	for _, name := range strings.Fields(`FLEXI_URL FLEXI_COMPANY FLEXI_USER FLEXI_PASSWORD FLEXI_AUTH FLEXI_CA_FILE FLEXI_CERT_SHA256
		FLEXI_SYSTEM FLEXI_ALLOW FLEXI_CONCURRENCY FLEXI_WRITE_TIMEOUT FLEXI_READ_TIMEOUT FLEXI_PACK FLEXI_DAILY_REQUESTS FLEXI_DAILY_RESET
		NATS_URL NATS_CREDS_FILE NATS_CA_FILE NATS_CERT_FILE NATS_KEY_FILE NATS_REPLICAS NATS_PREFIX NATS_LISTEN STATE_DIR
		HTTP_ADDR HTTP_HOSTS HTTP_TRUSTED_PROXIES HTTP_USER_HEADER OPERATORS_FILE API_URL API_TOKEN WEBHOOK_ADDR WEBHOOK_SOURCES
		WEBHOOK_<NAME>_KIND WEBHOOK_<NAME>_SECRET WEBHOOK_<NAME>_PREVIOUS_SECRET WEBHOOK_<NAME>_MAPPING_FILE WEBHOOK_<NAME>_NETWORKS
		WEBHOOK_<NAME>_MAX_BYTES WEBHOOK_<NAME>_RATE WEBHOOK_<NAME>_TOLERANCE VERIFY_LOOKS VERIFY_SETTLE_SERVER_ERROR VERIFY_SETTLE_NO_ANSWER
		VERIFY_SETTLE_PROXY VERIFY_SENDS VERIFY_LOOK_FIRST VERIFY_OVERWRITE BATCH_DIR BATCH_SCHEDULE TZ KEEP_BODIES DRAIN_TIMEOUT LOG_LEVEL LOG_FORMAT`) {
		if !known["FLEXID_"+name] {
			t.Errorf("FLEXID_%s is not known", name)
		}
	}
}

// TestExamplesAreAccepted loads every example alone: an example that is refused would be copied all the same.
func TestExamplesAreAccepted(t *testing.T) {
	var out bytes.Buffer
	if err := config.Docs(&out, "json"); err != nil {
		t.Fatal(err)
	}
	var described []config.Variable
	if err := json.Unmarshal(out.Bytes(), &described); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	companions := map[string][]string{
		"FLEXID_NATS_CREDS_FILE":  {"FLEXID_NATS_URL=nats://n"},
		"FLEXID_NATS_USER":        {"FLEXID_NATS_URL=nats://n", "FLEXID_NATS_PASSWORD=x"},
		"FLEXID_NATS_CA_FILE":     {"FLEXID_NATS_URL=nats://n"},
		"FLEXID_NATS_CERT_FILE":   {"FLEXID_NATS_URL=nats://n", "FLEXID_NATS_KEY_FILE=" + file},
		"FLEXID_NATS_KEY_FILE":    {"FLEXID_NATS_URL=nats://n", "FLEXID_NATS_CERT_FILE=" + file},
		"FLEXID_NATS_REPLICAS":    {"FLEXID_NATS_URL=nats://n"},
		"FLEXID_HTTP_USER_HEADER": {"FLEXID_HTTP_TRUSTED_PROXIES=10.0.0.1"},
		"FLEXID_BATCH_DIR":        {"FLEXID_BATCH_SCHEDULE=02:30"},
		"FLEXID_BATCH_SCHEDULE":   {"FLEXID_BATCH_DIR=" + filepath.Dir(file)},
		"FLEXID_WEBHOOK_ADDR":     {"FLEXID_WEBHOOK_SOURCES=a", "FLEXID_WEBHOOK_A_KIND=token", "FLEXID_WEBHOOK_A_SECRET=x"},
		"FLEXID_WEBHOOK_SOURCES":  {"FLEXID_WEBHOOK_ESHOP_KIND=token", "FLEXID_WEBHOOK_ESHOP_SECRET=x", "FLEXID_WEBHOOK_FLEXI_KIND=flexi", "FLEXID_WEBHOOK_FLEXI_SECRET=x"},
	}
	source := []string{"FLEXID_WEBHOOK_SOURCES=a", "FLEXID_WEBHOOK_A_KIND=token", "FLEXID_WEBHOOK_A_SECRET=x"}
	for _, v := range described {
		if v.Secret || v.Name == "FLEXID_WEBHOOK_<NAME>_MAPPING_FILE" {
			continue
		}
		environ, value := companions[v.Name], v.Example
		if strings.HasSuffix(v.Name, "_FILE") && v.Name != "FLEXID_OPERATORS_FILE" {
			value = file
		}
		if v.Name == "FLEXID_BATCH_DIR" {
			value = filepath.Dir(file)
		}
		name := strings.Replace(v.Name, "<NAME>", "A", 1)
		if name != v.Name {
			environ = source
		}
		if _, _, err := config.Load(base(append(environ, name+"="+value)...), ""); value == "" || err != nil {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}
