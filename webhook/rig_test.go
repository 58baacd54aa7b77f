package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a sink, and a reader that takes every JSON object with a kod, and a delete without a body.
type memory struct {
	mu     sync.Mutex
	stored map[string]Delivery // by source and place
	fail   error
	block  chan struct{} // nil = nobody is held up
	holds  chan struct{} // told when somebody is held up
}

func (m *memory) Store(ctx context.Context, source, id string, header map[string][]string, body []byte) (fresh, same bool, err error) {
	if m.block != nil {
		m.holds <- struct{}{}
		select {
		case <-m.block:
		case <-ctx.Done():
			return false, false, ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return false, false, m.fail
	}
	if before, ok := m.stored[source+"/"+id]; ok {
		equal := maps.EqualFunc(header, before.Header(), func(a, b []string) bool { return a[0] == b[0] })
		return false, equal && bytes.Equal(before.Body, body), nil
	}
	if m.stored == nil {
		m.stored = map[string]Delivery{}
	}
	get := func(name string) string { return strings.Join(header[name], ",") }
	m.stored[source+"/"+id] = Delivery{Source: source, ID: get("Flexid-Event-Id"), ours: get("Flexid-Delivery"), Body: body,
		Evidence: get("Flexid-Evidence"), Key: get("Flexid-Key"), Op: get("Flexid-Op"), Version: get("Flexid-Version"), Problem: get("Flexid-Problem")}
	return true, false, nil
}

func (m *memory) Read(d *Delivery) (Document, error) {
	var doc struct{ Kod string }
	if len(d.Body) == 0 && d.Op == "delete" {
		return Document{Evidence: d.Evidence, Source: d.Source, Key: d.Key, EventID: d.ID}, nil
	}
	if err := json.Unmarshal(d.Body, &doc); err != nil || doc.Kod == "" {
		return Document{}, errors.New("the document has no kod")
	}
	return Document{Evidence: d.Evidence, Source: d.Source, Key: doc.Kod, EventID: d.ID, Address: d.Evidence + "/" + d.Source + ":" + doc.Kod, Path: "/docs/" + doc.Kod}, nil
}

func (m *memory) all() map[string]Delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.stored)
}

// logBook collects log lines.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// rig is a server on a real port.
type rig struct {
	*Server
	t     *testing.T
	sink  *memory
	log   *logBook
	reg   *prometheus.Registry
	woken chan string
}

const tokenSecret = "token-secret-0123456789"

func start(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, sink: &memory{}, log: &logBook{}, reg: prometheus.NewRegistry(), woken: make(chan string, 100)}
	o := Options{
		Addr: "127.0.0.1:0", Sink: r.sink, Reader: r.sink, Wake: func(s string) { r.woken <- s }, Registry: r.reg, Log: zerolog.New(r.log),
		Sources: map[string]Source{
			"shop": {Kind: "token", Secret: tokenSecret}, "std": {Kind: "standard", Secret: shared}, "erp": {Kind: "flexi", Secret: "hook-secret-0123456789"},
		},
		Now: func() time.Time { return signedAt },
	}
	if change != nil {
		change(&o)
	}
	var err error
	if r.Server, err = New(o); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request with a body; a header is "Name: value".
func (r *rig) send(method, path, body string, head ...string) reply {
	r.t.Helper()
	return r.stream(method, path, strings.NewReader(body), head...)
}

func (r *rig) stream(method, path string, body io.Reader, head ...string) reply {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.Addr()+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for _, h := range head {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Del(name)
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return reply{body: err.Error()}
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text)}
}

const bearer = "Authorization: Bearer " + tokenSecret

// count reads a counter of the registry by name and labels.
func (r *rig) count(name string, labels ...string) float64 {
	r.t.Helper()
	families, err := r.reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	next:
		for _, m := range f.GetMetric() {
			for i := 0; i < len(labels); i += 2 {
				found := false
				for _, l := range m.GetLabel() {
					found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
				}
				if !found {
					continue next
				}
			}
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}
