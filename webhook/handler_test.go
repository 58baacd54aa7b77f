package webhook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const doc = `{"kod":"FV-1"}`

// TestRefusals: each with its code, its problem document, its metric, and nothing stored.
func TestRefusals(t *testing.T) {
	const banka = "/in/shop/banka"
	for _, tc := range []struct {
		name, method, path, body string
		head                     []string
		status                   int
		reason                   string
		want                     []string // headers of the answer
	}{
		{"unknown source", "POST", "/in/other/banka", doc, []string{bearer}, 404, "path", nil},
		{"no source", "POST", "/in/", doc, []string{bearer}, 404, "path", nil},
		{"another path", "POST", "/", doc, []string{bearer}, 404, "path", nil},
		{"token without evidence", "POST", "/in/shop", doc, []string{bearer}, 404, "path", nil},
		{"token with an empty evidence", "POST", "/in/shop/", doc, []string{bearer}, 404, "path", nil},
		{"token with more behind", "POST", "/in/shop/banka/x", doc, []string{bearer}, 404, "path", nil},
		{"evidence beside a signed event", "POST", "/in/std/banka", doc, nil, 404, "path", nil},
		{"double slash is no redirect", "POST", "//in//shop/banka", doc, []string{bearer}, 404, "path", nil},
		{"dots are no redirect", "POST", "/in/x/../shop/banka", doc, []string{bearer}, 404, "path", nil},
		{"unknown source by GET", "GET", "/in/other/banka", "", nil, 404, "path", nil},
		{"GET", "GET", banka, "", []string{bearer}, 405, "method", []string{"Allow: POST"}},
		{"PUT", "PUT", banka, doc, []string{bearer}, 405, "method", []string{"Allow: POST"}},
		{"other network", "POST", "/in/far/banka", doc, []string{bearer}, 403, "network", nil},
		{"other network, made-up proxy", "POST", "/in/far/banka", doc, []string{bearer, "X-Forwarded-For: 192.0.2.7"}, 403, "network", nil},
		{"too large by its head", "POST", banka, `{"kod":"` + strings.Repeat("x", 512<<10) + `"}`, []string{bearer}, 413, "size", nil},
		{"gzip", "POST", banka, doc, []string{bearer, "Content-Encoding: gzip"}, 415, "type", nil},
		{"form", "POST", banka, doc, []string{bearer, "Content-Type: application/x-www-form-urlencoded"}, 415, "type", nil},
		{"no content type", "POST", banka, doc, []string{bearer, "Content-Type: "}, 415, "type", nil},
		{"cloud event", "POST", banka, doc, []string{bearer, "Content-Type: application/cloudevents+json"}, 415, "type", nil},
		{"no secret", "POST", banka, doc, nil, 401, "signature", []string{`Www-Authenticate: Bearer realm="flexid"`}},
		{"empty secret", "POST", banka, doc, []string{"Authorization: Bearer "}, 401, "signature", nil},
		{"forged signature", "POST", "/in/std", doc, []string{"webhook-id: m", "webhook-timestamp: 1767882819", "webhook-signature: " + wrong}, 401, "signature", nil},
		{"replay after 6 minutes", "POST", "/in/old", order, []string{"webhook-id: msg_1", "webhook-timestamp: 1767882819", "webhook-signature: " + good}, 401, "stale", nil},
		{"malformed time", "POST", "/in/std", doc, []string{"webhook-id: m", "webhook-timestamp: x", "webhook-signature: " + wrong}, 400, "malformed", nil},
		{"forged hook", "POST", "/in/erp", `{"winstrom":{"changes":[{"@evidence":"a","@in-version":"1"}]}}`, []string{"X-FB-Hook-SecKey: x"}, 401, "signature", nil},
		{"name twice", "POST", banka, `{"kod":"A","kod":"B"}`, []string{bearer}, 422, "content", nil},
		{"not JSON", "POST", banka, `kod=A`, []string{bearer}, 422, "content", nil},
		{"no document number", "POST", banka, `{}`, []string{bearer}, 422, "content", nil},
		{"wait is no duration", "POST", banka + "?wait=20", doc, []string{bearer}, 400, "malformed", nil},
		{"wait is negative", "POST", banka + "?wait=-1s", doc, []string{bearer}, 400, "malformed", nil},
		{"wait twice", "POST", banka + "?wait=1s&wait=2s", doc, []string{bearer}, 400, "malformed", nil},
		{"wait in other letters", "POST", banka + "?Wait=1s", doc, []string{bearer}, 400, "malformed", nil},
		{"the operation in the address", "POST", banka + "?wait=1s&op=storno", doc, []string{bearer}, 400, "malformed", nil},
		{"parameters that are none", "POST", banka + "?wait=%zz", doc, []string{bearer}, 400, "malformed", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := start(t, func(o *Options) {
				o.Sources["far"] = Source{Kind: "token", Secret: tokenSecret, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
				o.Sources["old"] = Source{Kind: "standard", Secret: shared}
				if tc.reason == "stale" {
					o.Now = func() time.Time { return signedAt.Add(6 * time.Minute) }
				}
			})
			got := r.send(tc.method, tc.path, tc.body, tc.head...)
			if got.status != tc.status {
				t.Fatalf("%d %s, want %d", got.status, got.body, tc.status)
			}
			var p problem
			if err := json.Unmarshal([]byte(got.body), &p); err != nil || p.Status != tc.status || p.Detail == "" ||
				got.header.Get("Content-Type") != "application/problem+json" || !strings.HasPrefix(p.Type, "urn:flexid:problem:") {
				t.Errorf("problem: %s %v", got.body, err)
			}
			for _, want := range tc.want {
				if name, value, _ := strings.Cut(want, ": "); got.header.Get(name) != value {
					t.Errorf("header %s is %q", want, got.header.Get(name))
				}
			}
			if n := len(r.sink.all()); n != 0 || len(r.woken) != 0 {
				t.Errorf("%d stored, %d wake-ups", n, len(r.woken))
			}
			if n := r.count("flexid_webhook_rejected_total", "reason", tc.reason); n != 1 {
				t.Errorf("counted %v refusals of reason %s", n, tc.reason)
			}
			if log := r.log.String(); strings.Contains(log, tokenSecret) || strings.Contains(log, wrong) || !strings.Contains(log, tc.reason) {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// TestParametersOfTheAddress: where the sender writes the address, one that means nothing is named; who has parameters of his own
// is taken as before.
func TestParametersOfTheAddress(t *testing.T) {
	r := start(t, nil)
	if got := r.send("POST", "/in/shop/banka?op=storno", doc, bearer); got.status != 400 || !strings.Contains(got.body, "op") || !strings.Contains(got.body, "Flexid-Op") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.send("POST", "/in/shop/banka?wait=", doc, bearer); got.status != 202 {
		t.Errorf("an empty wait: %d %s", got.status, got.body)
	}
	hook := `{"winstrom":{"changes":[{"@evidence":"a","@in-version":"1"}]}}`
	if got := r.send("POST", "/in/erp?utm=1", hook, "X-FB-Hook-SecKey: hook-secret-0123456789"); got.status != 200 {
		t.Errorf("a hook with a parameter: %d %s", got.status, got.body)
	}
}

// TestRefusalsTellNothing: what is not there looks alike, and so do a wrong signature and an old one.
func TestRefusalsTellNothing(t *testing.T) {
	r := start(t, nil)
	unknown, half := r.send("POST", "/in/other", doc, bearer), r.send("POST", "/in/shop", doc, bearer)
	if unknown.body != half.body {
		t.Errorf("%s and %s", unknown.body, half.body)
	}
	forged := r.send("POST", "/in/std", order, "webhook-id: msg_1", "webhook-timestamp: 1767882819", "webhook-signature: "+wrong)
	late := start(t, func(o *Options) { o.Now = func() time.Time { return signedAt.Add(6 * time.Minute) } })
	old := late.send("POST", "/in/std", order, "webhook-id: msg_1", "webhook-timestamp: 1767882819", "webhook-signature: "+good)
	if forged.body != old.body || forged.status != old.status {
		t.Errorf("%s and %s", forged.body, old.body)
	}
}

func TestADocumentIsStoredOnce(t *testing.T) {
	r := start(t, nil)
	send := func(body string, head ...string) reply {
		return r.send("POST", "/in/shop/banka", body, append(head, bearer, "Idempotency-Key: e1", "Cookie: session=1")...)
	}
	first := send(doc, "Flexid-Op: update", "Flexid-Key: K")
	if first.status != 202 || first.header.Get("Location") != "/docs/FV-1" || !strings.Contains(first.body, `"document":"banka/shop:FV-1"`) {
		t.Fatalf("%+v", first)
	}
	again := send(doc, "Flexid-Op: update", "Flexid-Key: K", "User-Agent: another")
	if again.status != 202 || !strings.Contains(again.body, `"again":true`) {
		t.Errorf("%+v", again)
	}
	for name, other := range map[string]reply{
		"other body": send(`{"kod":"FV-2"}`, "Flexid-Op: update", "Flexid-Key: K"), "other operation": send(doc, "Flexid-Key: K"),
		"other key": send(doc, "Flexid-Op: update", "Flexid-Key: L"),
	} {
		if other.status != 422 {
			t.Errorf("%s under the same id: %+v", name, other)
		}
	}
	all := r.sink.all()
	want := `{"Flexid-Event-Id":["e1"],"Flexid-Evidence":["banka"],"Flexid-Key":["K"],"Flexid-Op":["update"]}`
	kept := all["shop/id e1"]
	if head, _ := json.Marshal(kept.Header()); len(all) != 1 || string(head) != want || string(kept.Body) != doc {
		t.Errorf("%+v", all)
	}
	if r.count("flexid_webhook_duplicates_total") != 1 || r.count("flexid_webhook_conflicts_total") != 3 ||
		r.count("flexid_webhook_requests_total", "source", "shop", "code", "202") != 2 {
		t.Error("metrics do not say so")
	}
	if strings.Contains(r.log.String(), tokenSecret) {
		t.Error("the secret is in the log")
	}
}

// TestWithoutAnID: a document without an event id is a new event each time.
func TestWithoutAnID(t *testing.T) {
	r := start(t, nil)
	for range 2 {
		if got := r.send("POST", "/in/shop/banka", doc, bearer); got.status != 202 {
			t.Fatalf("%+v", got)
		}
	}
	if n := len(r.sink.all()); n != 2 {
		t.Errorf("%d stored", n)
	}
}

func TestSignedEvent(t *testing.T) {
	r := start(t, nil)
	send := func(body string) reply {
		h, err := Sign(Source{Kind: "standard", Secret: shared}, "msg_1", signedAt, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		var head []string
		for name := range h {
			head = append(head, name+": "+h.Get(name))
		}
		return r.send("POST", "/in/std", body, append(head, "Flexid-Key: not signed")...)
	}
	if got := send(doc); got.status != 202 {
		t.Fatalf("%+v", got)
	}
	if got := send(doc); got.status != 202 {
		t.Errorf("repeated: %+v", got)
	}
	for range 2 {
		if got := send(`{"kod":"FV-2"}`); got.status != 409 {
			t.Errorf("other body: %+v", got)
		}
	}
	all := r.sink.all()
	if len(all) != 2 || all["std/id msg_1"].Key != "" {
		t.Errorf("%+v", all)
	}
	for place, d := range all {
		if place != "std/id msg_1" && (d.ID != "" || !strings.Contains(d.Problem, "msg_1") || string(d.Body) != `{"kod":"FV-2"}`) {
			t.Errorf("the other body is kept as %+v", d)
		}
	}
}

func TestFlexiHookWakes(t *testing.T) {
	r := start(t, nil)
	hook := `{"winstrom":{"@globalVersion":"5","changes":[{"@evidence":"adresar","@in-version":"5","@operation":"update","id":"1"}],"next":"none"}}`
	for _, body := range []string{"", "{}"} {
		if got := r.send("POST", "/in/erp", body, "Content-Type: "); got.status != 200 || got.body != "" || len(r.woken) != 0 {
			t.Errorf("registration: %+v, %d wake-ups", got, len(r.woken))
		}
	}
	got := r.send("POST", "/in/erp", hook, "X-FB-Hook-SecKey: hook-secret-0123456789")
	if got.status != 200 || got.body != "" || len(r.woken) != 1 || <-r.woken != "erp" || len(r.sink.all()) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestNothingStoredIsA503(t *testing.T) {
	r := start(t, nil)
	r.sink.fail = errors.New("stream FLEXID_INBOX is full")
	got := r.send("POST", "/in/shop/banka", doc, bearer)
	if got.status != 503 || got.header.Get("Retry-After") != "5" || strings.Contains(got.body, "FLEXID_INBOX") {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(r.log.String(), "FLEXID_INBOX is full") || r.count("flexid_intake_publish_failures_total") != 1 {
		t.Errorf("log: %s", r.log)
	}
}

func TestRate(t *testing.T) {
	r := start(t, func(o *Options) { o.Sources["shop"] = Source{Kind: "token", Secret: tokenSecret, Rate: 3} })
	for range 5 {
		r.send("POST", "/in/shop/banka", doc, "Authorization: Bearer stranger") // uses nothing up
	}
	for i := range 5 {
		got := r.send("POST", "/in/shop/banka", doc, bearer)
		if want := map[bool]int{true: 202, false: 429}[i < 3]; got.status != want || want == 429 && got.header.Get("Retry-After") == "" {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

func TestProxies(t *testing.T) {
	local, outside := netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24")
	r := start(t, func(o *Options) {
		o.Proxies = []netip.Prefix{local, netip.MustParsePrefix("10.0.0.0/8")}
		o.Sources["shop"] = Source{Kind: "token", Secret: tokenSecret, Networks: []netip.Prefix{outside}}
	})
	for forwarded, status := range map[string]int{
		"192.0.2.7": 202, "198.51.100.1, 192.0.2.7": 202, "192.0.2.7, 10.1.1.1": 202,
		"192.0.2.7, 198.51.100.1": 403, "192.0.2.7, nonsense": 403, "": 403,
	} {
		if got := r.send("POST", "/in/shop/banka", doc, bearer, "X-Forwarded-For: "+forwarded); got.status != status {
			t.Errorf("%q: %+v", forwarded, got)
		}
	}
}

// TestTooManyAtOnce: nobody waits in a queue, and what is held up does not use up memory without end.
func TestTooManyAtOnce(t *testing.T) {
	block, holds := make(chan struct{}), make(chan struct{}, perSource)
	r := start(t, func(o *Options) { o.Sources["shop"] = Source{Kind: "token", Secret: tokenSecret, Rate: 1000} })
	r.sink.block, r.sink.holds = block, holds
	var held sync.WaitGroup
	stored := make(chan int, perSource)
	for range perSource {
		held.Go(func() { stored <- r.send("POST", "/in/shop/banka", doc, bearer).status })
	}
	for range perSource {
		<-holds
	}
	got := r.send("POST", "/in/shop/banka", doc, bearer)
	if got.status != 503 || got.header.Get("Retry-After") != "5" {
		t.Errorf("%+v", got)
	}
	close(block)
	held.Wait()
	for range perSource {
		if status := <-stored; status != 202 {
			t.Errorf("held up: %d", status)
		}
	}
	r.sink.block = nil
	if got := r.send("POST", "/in/shop/banka", doc, bearer); got.status != 202 {
		t.Errorf("afterwards: %+v", got)
	}
}

// endless is a body of zeros; it counts what was read. The client may go on reading it after it has the answer.
type endless struct {
	left int64
	read atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.left)
	e.left -= n
	e.read.Add(n)
	return int(n), nil
}

// TestGigabyte: refused at the limit, whatever the sender goes on sending.
func TestGigabyte(t *testing.T) {
	r := start(t, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body := &endless{left: 1 << 30}
	got := r.stream("POST", "/in/shop/banka", body, bearer) // chunked: the head does not say how much comes
	runtime.ReadMemStats(&after)
	if got.status != http.StatusRequestEntityTooLarge && got.status != 0 { // the connection may be cut while the client writes
		t.Errorf("%+v", got)
	}
	if r.count("flexid_webhook_rejected_total", "reason", "size") != 1 || body.read.Load() > 64<<20 || after.TotalAlloc-before.TotalAlloc > 32<<20 {
		t.Errorf("%d bytes read, %d allocated", body.read.Load(), after.TotalAlloc-before.TotalAlloc)
	}
}

// TestByteOrderMark: a mark at the very beginning is no content, though a signature is over it; the same body with and
// without it is one delivery.
func TestByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	t.Run("token", func(t *testing.T) {
		r := start(t, nil)
		for i, body := range []string{mark + doc, doc} {
			got := r.send("POST", "/in/shop/banka", body, bearer, "Idempotency-Key: e1")
			if got.status != 202 || strings.Contains(got.body, `"again":true`) != (i == 1) {
				t.Errorf("delivery %d: %d %s", i, got.status, got.body)
			}
		}
		for id, d := range r.sink.all() {
			if string(d.Body) != doc {
				t.Errorf("%s holds %q", id, d.Body)
			}
		}
	})
	t.Run("signed", func(t *testing.T) {
		r := start(t, nil)
		decoded, err := decodeKey(shared)
		if err != nil {
			t.Fatal(err)
		}
		at := strconv.FormatInt(signedAt.Unix(), 10)
		signature := "v1," + base64.StdEncoding.EncodeToString(mac(decoded.shared, []byte("msg_9."+at+"."+mark+doc)))
		got := r.send("POST", "/in/std", mark+doc, "webhook-id: msg_9", "webhook-timestamp: "+at, "webhook-signature: "+signature)
		if got.status != 202 || len(r.sink.all()) != 1 {
			t.Errorf("%d %s, %d stored", got.status, got.body, len(r.sink.all()))
		}
		if got := r.send("POST", "/in/std", doc, "webhook-id: msg_9", "webhook-timestamp: "+at, "webhook-signature: "+signature); got.status != 401 {
			t.Errorf("a body without the mark that was signed: %d", got.status)
		}
	})
}
