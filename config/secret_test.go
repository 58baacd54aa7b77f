package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"flexid/config"
)

const sesame = "open-sesame-99"

// fillSecrets sets every Secret of a structure and counts them, so that a new one is covered without a new test.
func fillSecrets(v reflect.Value) (n int) {
	switch {
	case v.Type() == reflect.TypeFor[config.Secret]():
		v.Set(reflect.ValueOf(config.NewSecret(sesame)))
		return 1
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += fillSecrets(v.Field(i))
			}
		}
	}
	return n
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	var c config.Config
	var source config.Source
	if n := fillSecrets(reflect.ValueOf(&c).Elem()) + fillSecrets(reflect.ValueOf(&source).Elem()); n < 6 {
		t.Fatalf("only %d secrets found", n)
	}
	c.Webhook.Source = map[string]config.Source{"eshop": source}
	hidden := struct{ inner config.Secret }{config.NewSecret(sesame)} // a printer cannot call methods here
	for _, value := range []any{c, &c, c.Flexi.Password, &c.Flexi.Password, []config.Secret{c.API.Token}, map[string]config.Secret{"a": c.API.Token}, hidden, &hidden} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10v", "%p"} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, sesame) || strings.Contains(text, fmt.Sprintf("%x", sesame)) {
				t.Errorf("%s of %T shows it: %s", verb, value, text)
			}
		}
		text, err := json.Marshal(value)
		if err != nil || bytes.Contains(text, []byte(sesame)) {
			t.Errorf("JSON of %T: %s, %v", value, text, err)
		}
		var log bytes.Buffer
		logger := zerolog.New(&log)
		logger.Info().Interface("value", value).Send()
		if strings.Contains(log.String(), sesame) {
			t.Errorf("log of %T: %s", value, log.String())
		}
	}
	if text := fmt.Sprint(c.Flexi.Password); text != "[hidden]" {
		t.Errorf("shown as %s", text)
	}
	if text, _ := c.Flexi.Password.MarshalText(); string(text) != "[hidden]" {
		t.Errorf("encoded as %s", text)
	}
	if c.Flexi.Password.Reveal() != sesame || c.Flexi.Password.String()+c.Flexi.Password.GoString() != "[hidden][hidden]" {
		t.Error("Reveal alone gives it away")
	}
}

func secretFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecretsComeFromFiles(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	twin := secretFile(t, dir, "twin", "from twin\r\n")
	secretFile(t, dir, "FLEXID_FLEXI_PASSWORD", " from credentials \n\n")
	none := "FLEXID_FLEXI_PASSWORD="
	for _, tc := range []struct {
		name, credentials string
		environ           []string
		want              string
		warnings          int
	}{
		{"variable", empty, nil, "hunter2hunter2", 0},
		{"twin, one line end cut", "", []string{none, "FLEXID_FLEXI_PASSWORD_FILE=" + twin}, "from twin", 0},
		{"credentials, one line end cut, blanks kept", dir, []string{none}, " from credentials \n", 0},
		{"credentials before all", dir, []string{"FLEXID_FLEXI_PASSWORD_FILE=" + twin}, " from credentials \n", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, warnings, err := config.Load(base(append(tc.environ, "TZ=UTC")...), tc.credentials)
			if err != nil || c.Flexi.Password.Reveal() != tc.want || len(warnings) != tc.warnings {
				t.Errorf("%q, %v, %v", c.Flexi.Password.Reveal(), warnings, err)
			}
		})
	}
}

func TestSecretFaultsNeverShowTheValue(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name, says string
		environ    []string
	}{
		{"both", "remove one", []string{"FLEXID_FLEXI_PASSWORD=" + sesame, "FLEXID_FLEXI_PASSWORD_FILE=/x"}},
		{"twin missing", "no such file", []string{"FLEXID_FLEXI_PASSWORD=", "FLEXID_FLEXI_PASSWORD_FILE=" + dir + "/absent"}},
		{"twin empty", "is empty", []string{"FLEXID_FLEXI_PASSWORD=", "FLEXID_FLEXI_PASSWORD_FILE=" + secretFile(t, dir, "e", "\n")}},
		{"twin a directory", "cannot be read", []string{"FLEXID_FLEXI_PASSWORD=", "FLEXID_FLEXI_PASSWORD_FILE=" + dir}},
		{"twin too long", "cannot be read", []string{"FLEXID_FLEXI_PASSWORD=", "FLEXID_FLEXI_PASSWORD_FILE=" + secretFile(t, dir, "l", strings.Repeat(sesame, 8000))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := config.Load(base(tc.environ...), "")
			var faults config.Faults
			if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Variable != "FLEXID_FLEXI_PASSWORD" || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), sesame) || !strings.Contains(faults[0].Example, "FLEXID_FLEXI_PASSWORD_FILE=") {
				t.Errorf("text: %v", err)
			}
		})
	}
}
