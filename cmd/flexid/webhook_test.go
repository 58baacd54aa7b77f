package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexid/flexi/flexitest"
)

const (
	shopSecret   = "a-secret-of-the-shop-0123456789"
	signedSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

func webhookEnv(t *testing.T, erp *flexitest.Server, more ...string) []string {
	t.Helper()
	return erpEnv(erp, filepath.Join(t.TempDir(), "state"), append([]string{
		"FLEXID_HTTP_ADDR=" + freeAddr(t), "FLEXID_WEBHOOK_ADDR=" + freeAddr(t), "FLEXID_WEBHOOK_SOURCES=shop,signed,erp,foreign",
		"FLEXID_WEBHOOK_SHOP_KIND=token", "FLEXID_WEBHOOK_SHOP_SECRET=" + shopSecret,
		"FLEXID_WEBHOOK_SIGNED_KIND=standard", "FLEXID_WEBHOOK_SIGNED_SECRET=" + signedSecret,
		"FLEXID_WEBHOOK_ERP_KIND=flexi", "FLEXID_WEBHOOK_ERP_SECRET=a-secret-of-the-hook-0123456789",
		"FLEXID_WEBHOOK_FOREIGN_KIND=standard", "FLEXID_WEBHOOK_FOREIGN_SECRET=whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=",
	}, more...)...)
}

func TestWebhookSend(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	env := webhookEnv(t, erp)
	log, _ := serving(t, env)
	eventually(t, "ready", func() bool { return strings.Contains(log.String(), `"message":"ready"`) })
	file := filepath.Join(t.TempDir(), "doc.json")
	if err := os.WriteFile(file, []byte(`{"kod":"P9","nazev":"Devátý"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		args     []string
		code     int
		out, err string
	}{
		{"sample of a document", []string{"shop", "--wait", "20s"}, 0, `"state":"confirmed"`, "200 OK"},
		{"sample again costs no write", []string{"shop", "--wait", "20s"}, 0, `"reason":"repeated"`, "FLEXID-TEST"},
		{"sample of an event", []string{"signed"}, 0, `"document":"adresar/signed:FLEXID-TEST"`, "202 Accepted"},
		{"hook", []string{"erp"}, 0, "", "200 OK"},
		{"file", []string{"shop", file, "--evidence", "adresar", "--key", "K", "--id", "e1", "--wait", "20s"}, 0, `"document":"adresar/shop:K"`, "200 OK"},
		{"the same id for another document", []string{"shop", file, "--evidence", "adresar", "--key", "L", "--id", "e1"}, 1, "422", "422"},
		{"a document where an event is wanted", []string{"signed", file}, 1, "is not an event", "422"},
		{"unknown source", []string{"mall"}, exitUsage, "", "shop, signed, erp, foreign"},
		{"no evidence", []string{"shop", file}, exitUsage, "", "--evidence"},
		{"evidence of an event", []string{"signed", "--evidence", "banka"}, exitUsage, "", "kind token"},
		{"public key", []string{"foreign"}, 1, "", "only its sender can sign"},
		{"nobody there", []string{"shop", "--url", "http://127.0.0.1:1"}, exitTryAgain, "", "nobody answers"},
		{"no such file", []string{"shop", file + "x", "--evidence", "banka"}, 1, "", "no such file"},
	} {
		code, out, talk := call(env, append([]string{"webhook", "send"}, tc.args...)...)
		if code != tc.code || !strings.Contains(out, tc.out) || !strings.Contains(talk, tc.err) {
			t.Errorf("%s: exit %d\n%s\n%s", tc.name, code, out, talk)
		}
		if all := out + talk; strings.Contains(all, shopSecret) || strings.Contains(all, signedSecret) {
			t.Errorf("%s shows a secret: %s", tc.name, all)
		}
	}
	if n := len(erp.Writes("ext:FLEXID.shop:FLEXID-TEST")); n != 1 {
		t.Errorf("%d writes of the sample", n)
	}
}

// TestWebhookSettings: the daemon refuses to start, and `config check` says the same before.
func TestWebhookSettings(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	for _, tc := range []struct {
		name, line string
		says       []string
	}{
		{"unknown kind", "FLEXID_WEBHOOK_SHOP_KIND=shoptet", []string{`FLEXID_WEBHOOK_SHOP_KIND="shoptet"`, "flexi, standard, token"}},
		{"empty secret", "FLEXID_WEBHOOK_SHOP_SECRET=", []string{"FLEXID_WEBHOOK_SHOP_SECRET", "required"}},
		{"empty after its prefix", "FLEXID_WEBHOOK_SIGNED_SECRET=whsec_", []string{"FLEXID_WEBHOOK_SIGNED_SECRET", "0 bytes"}},
		{"mapping", "FLEXID_WEBHOOK_SHOP_MAPPING_FILE=shop.jq", []string{"FLEXID_WEBHOOK_SHOP_MAPPING_FILE", "not supported by this version"}},
	} {
		for _, args := range [][]string{{"serve"}, {"config", "check"}} {
			code, _, talk := call(webhookEnv(t, erp, tc.line), args...)
			for _, want := range tc.says {
				if code != exitConfig || !strings.Contains(talk, want) {
					t.Errorf("%s, %s: exit %d without %q: %s", tc.name, args[0], code, want, talk)
				}
			}
		}
	}
}
