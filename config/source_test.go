package config_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"flexid/config"
)

func TestWebhookSources(t *testing.T) {
	c, warnings, err := config.Load(base("TZ=UTC", "FLEXID_WEBHOOK_ADDR=127.0.0.1:8490", "FLEXID_WEBHOOK_SOURCES=eshop, my-flexi",
		"FLEXID_WEBHOOK_ESHOP_KIND=token", "FLEXID_WEBHOOK_ESHOP_SECRET=s1s1s1s1", "FLEXID_WEBHOOK_ESHOP_MAX_BYTES=64KiB",
		"FLEXID_WEBHOOK_MY_FLEXI_KIND=flexi", "FLEXID_WEBHOOK_MY_FLEXI_SECRET=s2s2s2s2", "FLEXID_WEBHOOK_MY_FLEXI_NETWORKS=192.0.2.0/24"), "")
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	eshop, flexi := c.Webhook.Source["eshop"], c.Webhook.Source["my-flexi"]
	if eshop.Kind != "token" || eshop.Secret.Reveal() != "s1s1s1s1" || eshop.MaxBytes != 64<<10 || eshop.Tolerance != 5*time.Minute {
		t.Errorf("%+v", eshop)
	}
	if flexi.Kind != "flexi" || flexi.Secret.Reveal() != "s2s2s2s2" || len(flexi.Networks) != 1 || flexi.MaxBytes != 512<<10 {
		t.Errorf("%+v", flexi)
	}
}

func TestWebhookSourceFaults(t *testing.T) {
	complete := []string{"FLEXID_WEBHOOK_ADDR=127.0.0.1:8490", "FLEXID_WEBHOOK_SHOP_KIND=token", "FLEXID_WEBHOOK_SHOP_SECRET=s1s1s1s1"}
	for _, tc := range []struct {
		name, variable, says string
		environ              []string
	}{
		{"a name with a dot", "FLEXID_WEBHOOK_SOURCES", "a.b", []string{"FLEXID_WEBHOOK_SOURCES=shop,a.b"}},
		{"a name twice", "FLEXID_WEBHOOK_SOURCES", "cannot be told", []string{"FLEXID_WEBHOOK_SOURCES=shop,shop"}},
		{"names that make one variable", "FLEXID_WEBHOOK_SOURCES", "cannot be told", []string{"FLEXID_WEBHOOK_SOURCES=shop,shop-previous", "FLEXID_WEBHOOK_SHOP_PREVIOUS_KIND=token"}},
		{"no secret", "FLEXID_WEBHOOK_SHOP_SECRET", "required", []string{"FLEXID_WEBHOOK_SOURCES=shop", "FLEXID_WEBHOOK_SHOP_SECRET="}},
		{"size", "FLEXID_WEBHOOK_SHOP_MAX_BYTES", "above", []string{"FLEXID_WEBHOOK_SOURCES=shop", "FLEXID_WEBHOOK_SHOP_MAX_BYTES=1MiB"}},
		{"size that is none", "FLEXID_WEBHOOK_SHOP_MAX_BYTES", "bytes", []string{"FLEXID_WEBHOOK_SOURCES=shop", "FLEXID_WEBHOOK_SHOP_MAX_BYTES=big"}},
		{"mapping", "FLEXID_WEBHOOK_SHOP_MAPPING_FILE", "not supported by this version", []string{"FLEXID_WEBHOOK_SOURCES=shop", "FLEXID_WEBHOOK_SHOP_MAPPING_FILE=/no/such"}},
		{"unknown kind", "FLEXID_WEBHOOK_SHOP_KIND", "allowed words", []string{"FLEXID_WEBHOOK_SOURCES=shop", "FLEXID_WEBHOOK_SHOP_KIND=shoptet"}},
		{"a misspelt variable", "FLEXID_WEBHOOK_SHOP_NETWORK", "FLEXID_WEBHOOK_SHOP_NETWORKS", []string{"FLEXID_WEBHOOK_SOURCES=shop", "FLEXID_WEBHOOK_SHOP_NETWORK=10.0.0.0/8"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := config.Load(base(append(complete, tc.environ...)...), "")
			var faults config.Faults
			if !errors.As(err, &faults) || faults[0].Variable != tc.variable || !strings.Contains(faults[0].Problem, tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
