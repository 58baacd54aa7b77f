package webhook

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// tampered are a foreign sender's headers and body, and copies of them that differ in one place.
func tampered(r *rig, secret, id, at, signature, body string) {
	t := r.t
	t.Helper()
	send := func(id, at, signature, body string) int {
		return r.send("POST", "/in/std", body, "webhook-id: "+id, "webhook-timestamp: "+at, "webhook-signature: "+signature).status
	}
	for name, status := range map[string]int{
		"id": send(id+"x", at, signature, body), "time": send(id, at[:len(at)-1]+"5", signature, body), "body": send(id, at, signature, body+" "),
		"signature": send(id, at, "v1,"+strings.ToUpper(signature[3:]), body),
	} {
		if status != 401 {
			t.Errorf("%s tampered with: %d", name, status)
		}
	}
	if len(r.sink.all()) != 0 {
		t.Error("something was stored")
	}
	if status := send(id, at, signature, body); status != 202 {
		t.Errorf("as it was sent: %d", status)
	}
	if kept := r.sink.all()["std/id "+id]; string(kept.Body) != body {
		t.Errorf("kept %q", kept.Body)
	}
	stranger := start(t, func(o *Options) { o.Sources["std"] = Source{Kind: "standard", Secret: secret[:len(secret)-1] + "x"} })
	stranger.Server.o.Now = r.Server.o.Now
	r = stranger
	if status := send(id, at, signature, body); status != 401 {
		t.Errorf("with another secret: %d", status)
	}
}

// bodies of foreign senders: plain, Czech, and one where re-encoding would change bytes.
func bodies() []string {
	return []string{`{"kod":"FV-1"}`, `{"kod":"Příliš žluťoučký kůň"}`, "{ \"kod\" : \"A\\u00e1<>&\" , \"n\": 1.00 }\n"}
}

// TestOfficialLibraryForGo: the library as a foreign sender.
func TestOfficialLibraryForGo(t *testing.T) {
	wh, err := standardwebhooks.NewWebhook(shared)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies() {
		at := signedAt.Add(time.Second)
		signature, err := wh.Sign("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", at, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		tampered(start(t, nil), shared, "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", "1767882820", signature, body)
	}
}

// nodeSender prints the signature of its arguments id, seconds and body.
const nodeSender = `const { Webhook } = require("standardwebhooks");
const [secret, id, at, body] = process.argv.slice(1);
process.stdout.write(new Webhook(secret).sign(id, new Date(Number(at) * 1000), body));`

// TestOfficialLibraryForNode needs node and NODE_PATH with the package standardwebhooks.
func TestOfficialLibraryForNode(t *testing.T) {
	if os.Getenv("NODE_PATH") == "" {
		t.Skip("NODE_PATH names no folder with the package standardwebhooks")
	}
	for _, body := range bodies() {
		out, err := exec.CommandContext(t.Context(), "node", "-e", nodeSender, shared, "msg_node", "1767882819", body).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		tampered(start(t, nil), shared, "msg_node", "1767882819", string(out), body)
	}
}
