package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexid/config"
	"flexid/flexi/flexitest"
	"flexid/webhook"

	"github.com/rs/zerolog"
)

const (
	webhookSecret = "a-secret-of-the-shop-0123456789"
	signSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	hookSecret    = "a-secret-of-the-hook-0123456789"
)

// webhookSettings are those of one source of each kind.
func webhookSettings(more ...string) []string {
	return append([]string{
		"FLEXID_WEBHOOK_ADDR=127.0.0.1:0", "FLEXID_WEBHOOK_SOURCES=shop,signed,erp",
		"FLEXID_WEBHOOK_SHOP_KIND=token", "FLEXID_WEBHOOK_SHOP_SECRET=" + webhookSecret,
		"FLEXID_WEBHOOK_SIGNED_KIND=standard", "FLEXID_WEBHOOK_SIGNED_SECRET=" + signSecret,
		"FLEXID_WEBHOOK_ERP_KIND=flexi", "FLEXID_WEBHOOK_ERP_SECRET=" + hookSecret,
	}, more...)
}

// deliver posts a delivery to a running daemon.
func (r *running) deliver(path, body string, header http.Header) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.info.Webhook+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header = header
	client := http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func token(id string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + webhookSecret}, "Content-Type": {"application/json"}}
	if id != "" {
		h.Set("Idempotency-Key", id)
	}
	return h
}

func order(key string) string {
	return fmt.Sprintf(`{"kod":%q,"typDokl":"code:FAKTURA","varSym":"2026001","polozkyFaktury":[{"nazev":"práce","mnozMj":"1","cenaMj":"100"}]}`, key)
}

func TestWebhooksToken(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir(), webhookSettings()...))
	for _, again := range []bool{false, true} {
		code, text := r.deliver("/in/shop/faktura-vydana?wait=20s", order("FV-1"), token("e1"))
		if code != 200 || !strings.Contains(text, `"state":"confirmed"`) || !strings.Contains(text, `"document":"faktura-vydana/shop:FV-1"`) || strings.Contains(text, `"again":true`) != again {
			t.Errorf("%d %s", code, text)
		}
	}
	if code, text := r.deliver("/in/shop/faktura-vydana", order("FV-2"), token("e1")); code != 422 {
		t.Errorf("an id used for another document: %d %s", code, text)
	}
	s, ok := r.story("faktura-vydana/shop:FV-1")
	if !ok || s.Source != "shop" || s.ExternalID != "ext:FLEXID.shop:FV-1" || s.Events[0].EventID != "shop e1" {
		t.Errorf("%+v", s)
	}
	if n := len(erp.Find("faktura-vydana", "ext:FLEXID.shop:FV-1")); n != 1 || erp.Count("write") != 1 {
		t.Errorf("%d records, %d writes", n, erp.Count("write"))
	}
	// A rejection is an outcome too, with the ERP's words.
	code, text := r.deliver("/in/shop/faktura-vydana?wait=20s", `{"kod":"FV-3","neniTakove":"x"}`, token(""))
	if code != 200 || !strings.Contains(text, `"reason":"rejected"`) || !strings.Contains(text, `"errors":[{`) {
		t.Errorf("%d %s", code, text)
	}
	if strings.Contains(r.log.String(), webhookSecret) || strings.Contains(r.log.String(), hookSecret) {
		t.Error("a secret is in the log")
	}
}

// TestWebhooksOrder: events of one document take effect in the order in which they were stored.
func TestWebhooksOrder(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir(), webhookSettings()...))
	if code, text := r.deliver("/in/shop/adresar", `{"kod":"P1","nazev":"0"}`, token("")); code != 202 {
		t.Fatalf("%d %s", code, text)
	}
	for i := 1; i <= 5; i++ {
		h := token(strconv.Itoa(i))
		h.Set("Flexid-Op", "update")
		h.Set("Flexid-Key", "P1")
		if code, text := r.deliver("/in/shop/adresar", fmt.Sprintf(`{"nazev":"%d"}`, i), h); code != 202 {
			t.Fatalf("%d %s", code, text)
		}
	}
	eventually(t, "all events are over", func() bool {
		s, ok := r.story("adresar/shop:P1")
		return ok && len(s.Events) == 6 && s.Events[5].State == "confirmed"
	})
	if found := erp.Find("adresar", "ext:FLEXID.shop:P1"); len(found) != 1 {
		t.Errorf("%+v", found)
	}
}

func TestWebhooksStandard(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir(), webhookSettings()...))
	send := func(body string) (int, string) {
		h, err := webhook.Sign(webhook.Source{Kind: "standard", Secret: signSecret}, "msg_1", time.Now(), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return r.deliver("/in/signed", body, h)
	}
	if code, text := send(`{"evidence":"adresar","key":"P1","document":{"kod":"P1","nazev":"První"}}`); code != 202 {
		t.Fatalf("%d %s", code, text)
	}
	// The other body under the same id is kept for a person, and has no effect.
	if code, text := send(`{"evidence":"adresar","key":"P2","document":{"kod":"P2","nazev":"Druhý"}}`); code != 409 {
		t.Fatalf("%d %s", code, text)
	}
	eventually(t, "one confirmed, one parked", func() bool {
		one, ok := r.story("adresar/signed:P1")
		two, also := r.story("adresar/signed:P2")
		return ok && also && one.State == "confirmed" && two.State == "parked" && two.Reason == "unreadable"
	})
	if len(erp.Find("adresar", "code:P2")) != 0 {
		t.Error("the other body took effect")
	}
	if code, text := send(`{"document":{"kod":"P3"}}`); code != 422 {
		t.Errorf("%d %s", code, text)
	}
}

// TestWebhooksWithoutNATS: 503 and nothing is stored, before NATS is there and while it is gone.
func TestWebhooksWithoutNATS(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	r, _ := launch(t, settings(t, erp, t.TempDir(), webhookSettings("FLEXID_NATS_URL=nats://127.0.0.1:1")...))
	eventually(t, "the listener is up", func() bool { return r.log.line("webhook deliveries") != "" })
	var line struct{ Address string }
	if err := json.Unmarshal([]byte(r.log.line("webhook deliveries")), &line); err != nil {
		t.Fatal(err)
	}
	r.info.Webhook = line.Address
	if code, text := r.deliver("/in/shop/banka", `{"kod":"A"}`, token("")); code != 503 {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := r.deliver("/in/shop/banka", `{"kod":"A"}`, http.Header{}); code != 415 {
		t.Errorf("refused otherwise: %d", code)
	}
}

func TestWebhooksSettings(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	cfg := settings(t, erp, t.TempDir(), webhookSettings("FLEXID_WEBHOOK_SIGNED_SECRET=whsec_YQ==", "FLEXID_WEBHOOK_SHOP_KIND=standard")...)
	err := Run(t.Context(), Options{Config: cfg, Log: zerolog.Nop()})
	var setting *SettingError
	if !errors.As(err, &setting) || setting.Variable != "FLEXID_WEBHOOK_SHOP_SECRET" {
		t.Errorf("%v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "FLEXID_WEBHOOK_SIGNED_SECRET") || strings.Contains(err.Error(), webhookSecret) {
		t.Errorf("not all faults, or a secret: %v", err)
	}
}

// TestKindsAreThoseOfTheListener: config checks the word before the listener sees it, and neither may know more than the other.
func TestKindsAreThoseOfTheListener(t *testing.T) {
	for _, v := range config.Variables() {
		if want := "one of " + strings.Join(webhook.Kinds(), ", "); v.Name == "FLEXID_WEBHOOK_<NAME>_KIND" && v.Allowed == want {
			return
		}
	}
	t.Errorf("KIND does not allow just %v", webhook.Kinds())
}
