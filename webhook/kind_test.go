package webhook

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// order is the body of the golden vectors, without a line end.
const order = `{"eshopId":222651,"event":"order:create","eventCreated":"2026-01-08T15:13:39+0100","eventInstance":"2026000057"}`

const (
	shared = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	public = "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
	good   = "v1,Pr0TB1CAqOldDD7DC+dzmLFSv4HU5/S1md7TvGjFBzc="
	goodA  = "v1a,vdaSQw1iGZNb//yWdYnSFcG6hOAnxm2ktGwP7rtG4zqKZ76bNBuLdgxUFJk3Gck98Gh3G9F7+xv5TQ/1ifE0Dg=="
	wrong  = "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
)

// signedAt is the time of the golden vectors.
var signedAt = time.Unix(1767882819, 0)

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func webhookHeaders(id, at, signature string) http.Header {
	return headers("webhook-id", id, "webhook-timestamp", at, "webhook-signature", signature)
}

func statusOf(t *testing.T, err error) (int, string) {
	t.Helper()
	if err == nil {
		return http.StatusOK, ""
	}
	var r *Refusal
	if !errors.As(err, &r) {
		t.Fatalf("no refusal: %v", err)
	}
	return r.Status, r.Reason
}

func TestStandardVectors(t *testing.T) {
	const at = "1767882819"
	old := Source{Kind: "standard", Secret: "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24)), PreviousSecret: shared}
	for _, tc := range []struct {
		name   string
		source Source
		header http.Header
		body   string
		now    time.Time
		status int
		reason string
	}{
		{name: "v1", header: webhookHeaders("msg_1", at, good), status: 200},
		{name: "v1, of the specification's library", source: Source{Secret: shared},
			header: webhookHeaders("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
			body:   `{"test": 2432232314}`, now: time.Unix(1614265330, 0), status: 200},
		{name: "v1a", source: Source{Secret: public}, header: webhookHeaders("msg_1", at, goodA), status: 200},
		{name: "svix headers", header: headers("svix-id", "msg_1", "svix-timestamp", at, "svix-signature", good), status: 200},
		{name: "secret without its prefix", source: Source{Secret: strings.TrimPrefix(shared, "whsec_")}, header: webhookHeaders("msg_1", at, good), status: 200},
		{name: "previous secret", source: old, header: webhookHeaders("msg_1", at, good), status: 200},
		{name: "both kinds of key", source: Source{Secret: public, PreviousSecret: shared}, header: webhookHeaders("msg_1", at, good), status: 200},
		{name: "several signatures in a line", header: webhookHeaders("msg_1", at, "v2,x "+wrong+" "+good), status: 200},
		{name: "several lines of signatures", header: headers("webhook-id", "msg_1", "webhook-timestamp", at, "webhook-signature", wrong, "webhook-signature", good), status: 200},
		{name: "300 s old", header: webhookHeaders("msg_1", at, good), now: signedAt.Add(300 * time.Second), status: 200},
		{name: "301 s old", header: webhookHeaders("msg_1", at, good), now: signedAt.Add(301 * time.Second), status: 401, reason: "stale"},
		{name: "replayed after 6 minutes", header: webhookHeaders("msg_1", at, good), now: signedAt.Add(6 * time.Minute), status: 401, reason: "stale"},
		{name: "301 s ahead", header: webhookHeaders("msg_1", at, good), now: signedAt.Add(-301 * time.Second), status: 401, reason: "stale"},
		{name: "own tolerance", source: Source{Tolerance: time.Minute}, header: webhookHeaders("msg_1", at, good), now: signedAt.Add(61 * time.Second), status: 401, reason: "stale"},

		{name: "body changed", header: webhookHeaders("msg_1", at, good), body: order + " ", status: 401, reason: "signature"},
		{name: "id changed", header: webhookHeaders("msg_2", at, good), status: 401, reason: "signature"},
		{name: "time changed", header: webhookHeaders("msg_1", "1767882820", good), status: 401, reason: "signature"},
		{name: "signature changed", header: webhookHeaders("msg_1", at, strings.Replace(good, "P", "Q", 1)), status: 401, reason: "signature"},
		{name: "signature without padding", header: webhookHeaders("msg_1", at, strings.TrimSuffix(good, "=")), status: 401, reason: "signature"},
		{name: "other secret", source: Source{Secret: old.Secret}, header: webhookHeaders("msg_1", at, good), status: 401, reason: "signature"},
		{name: "Stripe's reading of the secret", header: webhookHeaders("msg_1", at, "v1,JujvoK+96wDe18bjD6xwGsdLY0qBUCwUYbSWE4H8MyI="), status: 401, reason: "signature"},
		{name: "signed with an empty key", header: webhookHeaders("msg_1", at, "v1,"+base64.StdEncoding.EncodeToString(mac(nil, []byte("msg_1."+at+"."+order)))), status: 401, reason: "signature"},
		{name: "public key used as a shared one", source: Source{Secret: public},
			header: webhookHeaders("msg_1", at, "v1,"+base64.StdEncoding.EncodeToString(mac([]byte(public), []byte("msg_1."+at+"."+order)))), status: 401, reason: "signature"},
		{name: "v1a signature under the name v1", source: Source{Secret: public}, header: webhookHeaders("msg_1", at, "v1,"+goodA[4:]), status: 401, reason: "signature"},
		{name: "no headers", header: http.Header{}, status: 401, reason: "signature"},
		{name: "no signature", header: headers("webhook-id", "msg_1", "webhook-timestamp", at), status: 401, reason: "signature"},
		{name: "two ids", header: headers("webhook-id", "msg_1", "webhook-id", "msg_2", "webhook-timestamp", at, "webhook-signature", good), status: 401, reason: "signature"},
		{name: "the right one is behind too many others", header: webhookHeaders("msg_1", at, strings.Repeat(wrong+" ", most)+good), status: 401, reason: "signature"},

		{name: "header sets mixed", header: headers("webhook-id", "msg_1", "webhook-timestamp", at, "webhook-signature", good,
			"svix-id", "msg_1", "svix-timestamp", at, "svix-signature", good), status: 400, reason: "malformed"},
		{name: "time with a sign", header: webhookHeaders("msg_1", "+"+at, good), status: 400, reason: "malformed"},
		{name: "time is a word", header: webhookHeaders("msg_1", "now", good), status: 400, reason: "malformed"},
		{name: "time beyond all years", header: webhookHeaders("msg_1", "9223372036854775807", good), status: 400, reason: "malformed"},
		{name: "id with a dot", header: webhookHeaders("msg.1", at, good), status: 400, reason: "malformed"},
		{name: "id with a blank", header: webhookHeaders("msg 1", at, good), status: 400, reason: "malformed"},
		{name: "id too long", header: webhookHeaders(strings.Repeat("x", maxID+1), at, good), status: 400, reason: "malformed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.source.Kind = "standard"
			if tc.source.Secret == "" {
				tc.source.Secret = shared
			}
			if tc.body == "" {
				tc.body = order
			}
			if tc.now.IsZero() {
				tc.now = signedAt
			}
			kind, err := newKind(tc.source)
			if err != nil {
				t.Fatal(err)
			}
			request := &Request{Header: tc.header, Body: []byte(tc.body), Now: tc.now}
			if status, reason := statusOf(t, kind.Verify(request)); status != tc.status || reason != tc.reason {
				t.Fatalf("%d %s, want %d %s", status, reason, tc.status, tc.reason)
			}
			if tc.status != 200 {
				return
			}
			tc.header.Set("Flexid-Key", "unsigned")
			if d, err := kind.Read(request); err != nil || !strings.HasPrefix(d.ID, "msg_") || d.Key != "" || string(d.Body) != tc.body {
				t.Errorf("%+v %v", d, err)
			}
		})
	}
}

func TestTokenVectors(t *testing.T) {
	k, err := newKind(Source{Kind: "token", Secret: "new-secret", PreviousSecret: "old-secret"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		header http.Header
		status int
	}{
		"right":              {headers("Authorization", "Bearer new-secret"), 200},
		"previous":           {headers("Authorization", "Bearer old-secret"), 200},
		"scheme in any case": {headers("Authorization", "bearer new-secret"), 200},
		"wrong":              {headers("Authorization", "Bearer new-secreT"), 401},
		"both at once":       {headers("Authorization", "Bearer new-secretold-secret"), 401},
		"beginning of it":    {headers("Authorization", "Bearer new"), 401},
		"empty":              {headers("Authorization", "Bearer "), 401},
		"no scheme":          {headers("Authorization", "new-secret"), 401},
		"basic":              {headers("Authorization", "Basic new-secret"), 401},
		"missing":            {http.Header{}, 401},
		"twice":              {headers("Authorization", "Bearer new-secret", "Authorization", "Bearer x"), 401},
	} {
		if status, _ := statusOf(t, k.Verify(&Request{Header: tc.header})); status != tc.status {
			t.Errorf("%s: %d, want %d", name, status, tc.status)
		}
	}
}

func TestTokenReads(t *testing.T) {
	k, _ := newKind(Source{Kind: "token", Secret: "x"})
	for name, tc := range map[string]struct {
		header http.Header
		body   string
		want   Delivery
		status int
	}{
		"all headers": {headers("Idempotency-Key", "a 1", "Flexid-Key", " order 7 ", "Flexid-Op", "update", "Flexid-Version", "3"), `{}`,
			Delivery{ID: "a 1", Evidence: "banka", Key: "order 7", Op: "update", Version: "3"}, 200},
		"none":               {http.Header{}, `{"a":[{"b":1},{"b":2}],"c":{"b":3}}`, Delivery{Evidence: "banka"}, 200},
		"key twice":          {headers("Flexid-Key", "a", "Flexid-Key", "b"), `{}`, Delivery{}, 400},
		"empty id":           {headers("Idempotency-Key", ""), `{}`, Delivery{}, 400},
		"long id":            {headers("Idempotency-Key", strings.Repeat("x", maxID+1)), `{}`, Delivery{}, 400},
		"key is not UTF-8":   {headers("Flexid-Key", "\xff"), `{}`, Delivery{}, 400},
		"name twice":         {http.Header{}, `{"kod":"A","kod":"B"}`, Delivery{}, 422},
		"name twice, deeper": {http.Header{}, `{"r":[1,{"x":{"kod":"A","b":[],"kod":"B"}}]}`, Delivery{}, 422},
		"escaped name twice": {http.Header{}, `{"kod":"A","\u006bod":"B"}`, Delivery{}, 422},
		"nested too deep":    {http.Header{}, strings.Repeat("[", 100000), Delivery{}, 422},
	} {
		d, err := k.Read(&Request{Header: tc.header, Evidence: "banka", Body: []byte(tc.body)})
		if status, _ := statusOf(t, err); status != tc.status {
			t.Errorf("%s: %d, want %d", name, status, tc.status)
		}
		if tc.status == 200 && (d.ID != tc.want.ID || d.Evidence != tc.want.Evidence || d.Key != tc.want.Key || d.Op != tc.want.Op || d.Version != tc.want.Version) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestFlexiVectors(t *testing.T) {
	k, _ := newKind(Source{Kind: "flexi", Secret: "new", PreviousSecret: "old"})
	const body = `{"winstrom":{"@globalVersion":"5","changes":[{"@evidence":"adresar","@in-version":"5","@operation":"update","id":"1"}],"next":"none"}}`
	for name, tc := range map[string]struct {
		header http.Header
		body   string
		ping   bool
		status int
	}{
		"right":                    {headers("X-FB-Hook-SecKey", "new"), body, false, 200},
		"previous":                 {headers("X-FB-Hook-SecKey", "old"), body, false, 200},
		"forged":                   {headers("X-FB-Hook-SecKey", "neu"), body, false, 401},
		"missing":                  {http.Header{}, body, false, 401},
		"empty":                    {headers("X-FB-Hook-SecKey", ""), body, false, 401},
		"body is not understood":   {headers("X-FB-Hook-SecKey", "new"), "<winstrom/>", false, 200},
		"registration, empty":      {http.Header{}, "", true, 401},
		"registration, object":     {http.Header{}, " {}\n", true, 401},
		"registration, no changes": {http.Header{}, `{"winstrom":{"@globalVersion":"5","changes":[],"next":"none"}}`, true, 401},
	} {
		r := &Request{Header: tc.header, Body: []byte(tc.body)}
		if k.Ping(r) != tc.ping {
			t.Errorf("%s: ping %v", name, !tc.ping)
		}
		if status, _ := statusOf(t, k.Verify(r)); status != tc.status {
			t.Errorf("%s: %d, want %d", name, status, tc.status)
		}
	}
}

func TestSettingsThatCannotBeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		source  Source
		setting string
	}{
		"unknown kind":          {Source{Kind: "shoptet", Secret: "x"}, "KIND"},
		"no secret":             {Source{Kind: "token"}, "SECRET"},
		"empty after prefix":    {Source{Kind: "standard", Secret: "whsec_"}, "SECRET"},
		"one byte":              {Source{Kind: "standard", Secret: "whsec_YQ=="}, "SECRET"},
		"not base64":            {Source{Kind: "standard", Secret: "whsec_hunter2hunter2!"}, "SECRET"},
		"private key":           {Source{Kind: "standard", Secret: "whsk_AAECAwQFBgcICQoLDA0ODw=="}, "SECRET"},
		"public key of 3 bytes": {Source{Kind: "standard", Secret: "whpk_YWJj"}, "SECRET"},
		"previous":              {Source{Kind: "standard", Secret: shared, PreviousSecret: "whsec_"}, "PREVIOUS_SECRET"},
	} {
		_, err := New(Options{Sources: map[string]Source{"shop": tc.source}})
		var source *SourceError
		var setting *SettingError
		if !errors.As(err, &source) || !errors.As(err, &setting) || source.Source != "shop" || setting.Name != tc.setting {
			t.Errorf("%s: %v", name, err)
		} else if tc.source.Secret != "" && strings.Contains(err.Error(), strings.TrimPrefix(tc.source.Secret, "whsec_")) && len(tc.source.Secret) > 8 {
			t.Errorf("%s: the error shows the secret: %v", name, err)
		}
	}
}

// TestSignedByUs: what `flexid webhook send` signs is what the receiver takes.
func TestSignedByUs(t *testing.T) {
	for _, s := range []Source{{Kind: "token", Secret: "x"}, {Kind: "standard", Secret: shared}, {Kind: "flexi", Secret: "x"}} {
		h, err := Sign(s, "msg_1", signedAt, []byte(order))
		if err != nil {
			t.Fatal(err)
		}
		k, _ := newKind(s)
		if err := k.Verify(&Request{Header: h, Body: []byte(order), Now: signedAt}); err != nil {
			t.Errorf("%s: %v", s.Kind, err)
		}
	}
	if h, err := Sign(Source{Kind: "standard", Secret: shared}, "msg_1", signedAt, []byte(order)); err != nil || h.Get("Webhook-Signature") != good {
		t.Errorf("not the golden signature: %v %v", h, err)
	}
	for name, s := range map[string]Source{"public key": {Kind: "standard", Secret: public}, "no id": {Kind: "standard", Secret: shared}, "no kind": {Secret: "x"}} {
		id := "msg_1"
		if name == "no id" {
			id = ""
		}
		if _, err := Sign(s, id, signedAt, nil); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}
