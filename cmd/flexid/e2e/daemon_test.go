//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// daemon is `flexid serve` with a state directory that survives its deaths.
type daemon struct {
	t    *testing.T
	name string
	dir  string
	set  map[string]string
	proc *process
	at   string // where its API is, where that is fixed; a push that works alone has it there too
	from int    // where the log of the running process begins
}

// row is one line of the list of documents.
type row struct {
	Evidence string `json:"evidence"`
	Key      string `json:"key"`
	Number   string `json:"number"`
	State    string `json:"state"`
	Reason   string `json:"reason"`
	Cause    string `json:"cause"`
	Sends    int    `json:"sends"`
	FlexiID  string `json:"flexi_id"`
}

func (r row) standing() string {
	if r.Reason == "" {
		return r.State
	}
	return r.State + "(" + r.Reason + ")"
}

// story is what the tests read of the story of a document.
type story struct {
	row
	Problem *struct {
		Text   string `json:"text"`
		Link   string `json:"link"`
		Errors []struct {
			Text string `json:"message"`
		} `json:"errors"`
	} `json:"problem"`
	Events []struct {
		N       int    `json:"n"`
		EventID string `json:"event_id"`
		State   string `json:"state"`
		Reason  string `json:"reason"`
		Problem *struct {
			Text string `json:"text"`
		} `json:"problem"`
	} `json:"events"`
	Attempts []struct {
		Event   int    `json:"event"`
		Outcome string `json:"outcome"`
	} `json:"attempts"`
	Looks []struct {
		Why     string `json:"why"`
		Verdict string `json:"verdict"`
	} `json:"looks"`
}

// newDaemon prepares a daemon on an ERP; more holds further variables, of which NATS is usually one. It is not started.
func newDaemon(t *testing.T, name, erp string, more map[string]string) *daemon {
	t.Helper()
	d := &daemon{t: t, name: name, dir: filepath.Join(t.TempDir(), name), set: map[string]string{
		"FLEXID_FLEXI_URL": erp, "FLEXID_FLEXI_COMPANY": "firma", "FLEXID_FLEXI_USER": "flexid", "FLEXID_FLEXI_PASSWORD": "secret",
		"FLEXID_FLEXI_ALLOW": "create,update,upsert,storno,delete", "FLEXID_HTTP_ADDR": "127.0.0.1:0", "FLEXID_DRAIN_TIMEOUT": "10s",
	}}
	d.set["FLEXID_STATE_DIR"] = d.dir
	maps.Copy(d.set, more)
	return d
}

// start starts the process without waiting for anything.
func (d *daemon) start() {
	d.t.Helper()
	d.from = 0
	if d.proc != nil {
		d.from = len(d.proc.said())
	}
	d.proc = launch(d.t, d.name, programs.flexid, environ(d.set), "serve")
}

// log is what the running process has written.
func (d *daemon) log() string { return d.proc.said()[d.from:] }

// url is where the running process answers, "" while it does not yet.
func (d *daemon) url() string {
	if d.at != "" {
		return d.at
	}
	m := regexp.MustCompile(`"address":"(http://[^"]+)","[^\n]*API, metrics and health`).FindStringSubmatch(d.log())
	if m == nil {
		return ""
	}
	return m[1]
}

// up starts the process and waits until it is ready.
func (d *daemon) up() {
	d.t.Helper()
	d.start()
	d.ready(time.Minute)
}

func (d *daemon) ready(most time.Duration) {
	d.t.Helper()
	eventually(d.t, most, d.name+" is ready", func() (bool, string) {
		if !d.proc.alive() {
			d.t.Fatalf("%s ended with %d: %s", d.name, d.proc.cmd.ProcessState.ExitCode(), d.proc.tail(10))
		}
		text, status, err := d.get("/readyz")
		return err == nil && status == http.StatusOK, fmt.Sprint(text, err)
	})
}

// get asks the running daemon.
func (d *daemon) get(path string) (string, int, error) { return d.ask(http.MethodGet, path, nil) }

func (d *daemon) ask(method, path string, body any) (string, int, error) {
	base := d.url()
	if base == "" {
		return "", 0, fmt.Errorf("%s does not listen yet", d.name)
	}
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return "", 0, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(d.t.Context(), method, base+path, in)
	if err != nil {
		return "", 0, err
	}
	token, _ := os.ReadFile(filepath.Join(d.dir, "admin.token"))
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), resp.StatusCode, err
}

func (d *daemon) getJSON(path string, into any) error {
	text, status, err := d.get(path)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s: status %d: %s", path, status, text)
	}
	return json.Unmarshal([]byte(text), into)
}

// documents is every document by evidence/key.
func (d *daemon) documents() (map[string]row, error) {
	var rows []row
	if err := d.getJSON("/api/v1/documents?limit=0", &rows); err != nil {
		return nil, err
	}
	all := make(map[string]row, len(rows))
	for _, r := range rows {
		all[r.Evidence+"/"+r.Key] = r
	}
	return all, nil
}

// story is the whole story of one document.
func (d *daemon) story(evidence, key string) (story, error) {
	var s story
	err := d.getJSON("/api/v1/documents/"+evidence+"/"+key, &s)
	return s, err
}

// held is why writes wait for a person, "" while they do not.
func (d *daemon) held() string {
	var status struct {
		Engine struct {
			Gates []struct {
				Reason   string `json:"reason"`
				Text     string `json:"text"`
				NeedsYou bool   `json:"needs_you"`
			} `json:"gates"`
		} `json:"engine"`
	}
	if d.getJSON("/api/v1/status", &status) != nil {
		return "" // it starts just now
	}
	for _, g := range status.Engine.Gates {
		if g.NeedsYou {
			return g.Reason + ": " + g.Text
		}
	}
	return ""
}

// settles waits until a document stands as wanted, "confirmed" or "parked(conflict)".
func (d *daemon) settles(evidence, key, standing string, most time.Duration) story {
	d.t.Helper()
	var last story
	eventually(d.t, most, evidence+"/"+key+" becomes "+standing, func() (bool, string) {
		s, err := d.story(evidence, key)
		if err != nil {
			return false, err.Error()
		}
		last = s
		return s.standing() == standing, s.standing()
	})
	return last
}

// command runs a flexid command against the running daemon.
func (d *daemon) command(args ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	set := maps.Clone(d.set)
	set["FLEXID_API_URL"] = d.url()
	set["USER"] = "e2e"
	return runCommand(d.t, environ(set), args...)
}
