package flexitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client speaks to a Server as a stranger would: raw JSON over net/http.
type client struct {
	t    *testing.T
	s    *Server
	http *http.Client
	user string
	pass string
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
	root   map[string]any // content of winstrom
}

func fixedNow() time.Time { return time.Date(2026, 3, 9, 10, 28, 13, 166_000_000, time.UTC) }

// pipe makes a server and an in-memory client; both end with the test.
func pipe(t *testing.T, opt Options) *client {
	t.Helper()
	if opt.Now == nil {
		opt.Now = fixedNow
	}
	s := New(opt)
	return newClient(t, s, &http.Transport{DialContext: s.Dial})
}

func newClient(t *testing.T, s *Server, tr *http.Transport) *client {
	t.Helper()
	c := &client{t: t, s: s, user: s.opt.User, pass: s.opt.Password, http: &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	t.Cleanup(func() {
		s.Close()
		tr.CloseIdleConnections()
	})
	return c
}

func (c *client) do(method, path, body string) reply {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.s.URL()+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatalf("make request: %v", err)
	}
	if c.user != "" {
		req.SetBasicAuth(c.user, c.pass)
	}
	return c.send(req)
}

func (c *client) send(req *http.Request) reply {
	resp, err := c.http.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, header: resp.Header}
	r.body, r.err = io.ReadAll(resp.Body)
	var doc struct {
		Winstrom map[string]any `json:"winstrom"`
	}
	if json.Unmarshal(r.body, &doc) == nil {
		r.root = doc.Winstrom
	}
	return r
}

// post writes records of one evidence: each argument is the inside of one record.
func (c *client) post(evidence string, records ...string) reply {
	c.t.Helper()
	return c.do(http.MethodPost, "/c/firma/"+evidence+".json?code-in-response=true", envelopeOf(evidence, records...))
}

func envelopeOf(evidence string, records ...string) string {
	return fmt.Sprintf(`{"winstrom":{"@version":"1.0",%q:[{%s}]}}`, evidence, strings.Join(records, "},{"))
}

// list reads a filtered list.
func (c *client) list(evidence, filter, query string) []map[string]any {
	c.t.Helper()
	r := c.do(http.MethodGet, "/c/firma/"+evidence+"/"+url.PathEscape("("+filter+")")+".json?"+query, "")
	if r.status != http.StatusOK {
		c.t.Fatalf("list %s (%s): status %d, %s, %v", evidence, filter, r.status, r.body, r.err)
	}
	return r.records(evidence)
}

func (r reply) records(evidence string) []map[string]any {
	list, _ := r.root[evidence].([]any)
	out := []map[string]any{}
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func (r reply) result(i int) map[string]any {
	list, _ := r.root["results"].([]any)
	if i >= len(list) {
		return map[string]any{}
	}
	m, _ := list[i].(map[string]any)
	return m
}

func (r reply) stat(name string) string {
	m, _ := r.root["stats"].(map[string]any)
	s, _ := m[name].(string)
	return s
}

// firstError is the first error of the first result.
func (r reply) firstError() map[string]any {
	list, _ := r.result(0)["errors"].([]any)
	if len(list) == 0 {
		return map[string]any{}
	}
	m, _ := list[0].(map[string]any)
	return m
}

func (r reply) text(name string) string {
	s, _ := r.root[name].(string)
	return s
}

// must fails the test unless a write was accepted; it returns the id.
func (c *client) must(r reply) string {
	c.t.Helper()
	if r.err != nil || r.status != http.StatusCreated || r.text("success") != "true" {
		c.t.Fatalf("write: status %d, %s, %v", r.status, r.body, r.err)
	}
	id, _ := r.result(0)["id"].(string)
	return id
}

// invoice is a complete issued invoice as a foreign client would send it.
func invoice(id, kod string) string {
	s := `"typDokl":"code:FAKTURA","firma":"code:NOVAK","datVyst":"2026-03-01",` +
		`"polozkyFaktury":[{"nazev":"Práce","mnozMj":"2","cenaMj":"100.00","typSzbDphK":"typSzbDph.dphZakl"}]`
	if id != "" {
		s += fmt.Sprintf(`,"@update":"fail","id":%q`, id)
	}
	if kod != "" {
		s += fmt.Sprintf(`,"kod":%q,"varSym":"7"`, kod)
	}
	return s
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
