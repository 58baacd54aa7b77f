package flexitest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func answerTests() map[string]manner {
	return map[string]manner{
		"failed-is-zero": func(t *testing.T, c *client) {
			_, again := c.twice()
			equal(t, "status", again.status, 400)
			equal(t, "failed", again.stat("failed"), "0")
		},
		"native-answers": func(t *testing.T, c *client) {
			r, _ := c.twice()
			equal(t, "success", r.root["success"], any(true))
			st, _ := r.root["stats"].(map[string]any)
			equal(t, "created", st["created"], any(1.0))
			equal(t, "id", r.result(0)["id"], any(1.0))
		},
		"error-strings": func(t *testing.T, c *client) {
			_, again := c.twice()
			words, _ := again.result(0)["error"].(string)
			equal(t, "words", strings.Contains(words, "již existuje"), true)
			equal(t, "list", again.result(0)["errors"], nil)
		},
		"wrapped-lists": func(t *testing.T, c *client) {
			first, again := c.twice()
			wrap, _ := first.root["results"].(map[string]any)
			list, _ := wrap["result"].([]any)
			equal(t, "results", len(list), 1)
			equal(t, "refused", bytes.Contains(again.body, []byte(`"errors":{"error":[{`)), true)
		},
		"stats-in-list": func(t *testing.T, c *client) {
			r, _ := c.twice()
			list, _ := r.root["stats"].([]any)
			equal(t, "stats", len(list), 1)
		},
		"bare-errors": func(t *testing.T, c *client) {
			_, again := c.twice()
			equal(t, "members of an error", len(again.firstError()), 1)
		},
		"exists-is-409": func(t *testing.T, c *client) {
			_, again := c.twice()
			equal(t, "status", again.status, 409)
			equal(t, "another trouble", c.post("faktura-vydana", `"typDokl":"code:NENI"`).status, 400)
		},
		"update-is-200": func(t *testing.T, c *client) {
			first, _ := c.twice()
			equal(t, "create", first.status, 201)
			equal(t, "update", c.post("faktura-vydana", `"id":"1","popis":"x"`).status, 200)
		},
		"results-reversed": func(t *testing.T, c *client) {
			r := c.post("faktura-vydana", invoice("ext:S:1", "FV-1"), invoice("ext:S:2", "FV-2"))
			equal(t, "first", r.result(0)["request-id"], any("ext:S:2"))
			equal(t, "second", r.result(1)["request-id"], any("ext:S:1"))
		},
		"empty-success": func(t *testing.T, c *client) {
			r, _ := c.twice()
			equal(t, "says", r.text("success")+" "+r.stat("created"), "true 0")
			equal(t, "results", len(r.result(0)), 0)
			equal(t, "records", c.count(), 1)
		},
		"nothing-saved": func(t *testing.T, c *client) {
			r, _ := c.twice()
			equal(t, "says", r.text("success")+" "+r.stat("created"), "true 0")
			equal(t, "records", c.count(), 0)
		},
	}
}

func travelTests() map[string]manner {
	unzip := func(t *testing.T, body []byte) string {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	// raw asks without letting net/http decompress.
	raw := func(c *client, accept string) reply {
		req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.s.URL()+"/c/firma/mena.json", nil)
		if err != nil {
			c.t.Fatal(err)
		}
		req.SetBasicAuth(c.user, c.pass)
		req.Header.Set("Accept-Encoding", accept)
		return c.send(req)
	}
	return map[string]manner{
		"chunked": func(t *testing.T, c *client) {
			r := c.post("faktura-vydana", invoice("", ""))
			c.must(r)
			equal(t, "length", r.header.Get("Content-Length"), "")
		},
		"gzip": func(t *testing.T, c *client) {
			r := raw(c, "gzip")
			equal(t, "encoding", r.header.Get("Content-Encoding"), "gzip")
			equal(t, "content", strings.Contains(unzip(t, r.body), "code:") || strings.Contains(unzip(t, r.body), "CZK"), true)
			equal(t, "not asked for", raw(c, "identity").header.Get("Content-Encoding"), "")
		},
		"gzip-unasked": func(t *testing.T, c *client) {
			r := raw(c, "identity")
			equal(t, "encoding", r.header.Get("Content-Encoding"), "gzip")
			equal(t, "content", strings.Contains(unzip(t, r.body), "CZK"), true)
		},
		"bodies-limited": func(t *testing.T, c *client) {
			c.must(c.post("faktura-vydana", invoice("ext:S:1", "FV-1")))
			r := c.post("faktura-vydana", invoice("ext:S:2", "FV-2")+`,"popis":"`+strings.Repeat("x", 2000)+`"`)
			equal(t, "status", r.status, 413)
			equal(t, "speaks JSON", r.root == nil, true)
			equal(t, "records", c.count(), 1)
		},
		"addresses-limited": func(t *testing.T, c *client) {
			equal(t, "short", c.do(http.MethodGet, "/c/firma/mena.json", "").status, 200)
			equal(t, "long", c.do(http.MethodGet, "/c/firma/mena.json?x="+strings.Repeat("x", 200), "").status, 414)
		},
		"proxy-impatient": func(t *testing.T, c *client) {
			began := time.Now()
			r := c.post("faktura-vydana", invoice("ext:S:1", ""))
			equal(t, "status", r.status, 504)
			equal(t, "after", time.Since(began), time.Second)
			equal(t, "not yet", c.count(), 0)
			time.Sleep(1500 * time.Millisecond)
			equal(t, "done after all", c.count(), 1)
		},
	}
}

func admissionTests() map[string]manner {
	limited := func(status int) manner {
		return func(t *testing.T, c *client) {
			for range 20 {
				equal(t, "before", c.do(http.MethodGet, "/c.json", "").status, 200)
			}
			r := c.post("faktura-vydana", invoice("", ""))
			equal(t, "after", r.status, status)
			equal(t, "Retry-After", r.header.Get("Retry-After"), "")
			equal(t, "records", c.count(), 0)
		}
	}
	second := func(retryAfter string) manner {
		return func(t *testing.T, c *client) {
			first := make(chan reply)
			go func() { first <- c.post("faktura-vydana", invoice("ext:S:1", "")) }()
			time.Sleep(50 * time.Millisecond)
			r := c.post("faktura-vydana", invoice("ext:S:2", ""))
			one := <-first
			equal(t, "first", one.status, 201)
			equal(t, "refused", r.status, 429)
			equal(t, "Retry-After", r.header.Get("Retry-After"), retryAfter)
		}
	}
	login := func(body string) manner {
		return func(t *testing.T, c *client) {
			for _, in := range []string{`{"username":"flexid","password":"secret"}`, "username=flexid&password=secret"} {
				r := c.do(http.MethodPost, "/login-logout/login.json", in)
				equal(t, in, strings.Contains(string(r.body), `"success":true`), strings.HasPrefix(in, body))
			}
		}
	}
	return map[string]manner{
		"daily-limit-429": limited(429), "daily-limit-402": limited(402), "daily-limit-403": limited(403),
		"one-at-a-time": second(""), "one-at-a-time-seconds": second("2"), "one-at-a-time-date": second("Mon, 09 Mar 2026 10:28:13 GMT"),
		"too-many-users": func(t *testing.T, c *client) {
			for n := 1; n <= 14; n++ {
				want := 201
				if n%7 == 0 {
					want = 403
				}
				equal(t, "write", c.post("faktura-vydana", invoice("", "")).status, want)
			}
		},
		"stale-is-error": func(t *testing.T, c *client) {
			r := c.post("faktura-vydana", invoice("", ""))
			equal(t, "status", r.status, 400)
			equal(t, "error", len(r.firstError()), 1)
			equal(t, "message", r.text("message"), "")
			c.do(http.MethodPost, "/status/user/flexid/logout.json", "")
			equal(t, "after logout", c.post("faktura-vydana", invoice("", "")).status, 201)
		},
		"stale-is-403": func(t *testing.T, c *client) {
			equal(t, "status", c.post("faktura-vydana", invoice("", "")).status, 403)
			c.do(http.MethodPost, "/status/user/flexid/logout.json", "")
			equal(t, "after logout", c.post("faktura-vydana", invoice("", "")).status, 201)
		},
		"maintenance": func(t *testing.T, c *client) {
			r := c.post("faktura-vydana", invoice("", ""))
			equal(t, "status", r.status, 503)
			equal(t, "words", r.text("message"), "Probíhá údržba.")
		},
		"login-redirect": func(t *testing.T, c *client) {
			r := c.do(http.MethodGet, "/c/firma/mena.json", "")
			equal(t, "status", r.status, 302)
			equal(t, "to", strings.Contains(r.header.Get("Location"), "/login-logout/login.html"), true)
			equal(t, "asked for", c.do(http.MethodGet, "/c/firma/mena.json?auth=http", "").status, 200)
		},
		"login-page": func(t *testing.T, c *client) {
			r := c.post("faktura-vydana", invoice("", ""))
			equal(t, "status", r.status, 200)
			equal(t, "type", r.header.Get("Content-Type"), "text/html; charset=utf-8")
			equal(t, "records", c.count(), 0)
		},
		"login-form-only": login("username="), "login-json-only": login("{"),
	}
}
