package daemon

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"flexid/flexi/flexitest"
)

// An installation without Basic: one login, a session that ends under a running daemon, and a logout at the stop. The
// password stands nowhere but in the logins.
func TestSessionLogin(t *testing.T) {
	const password = "tajne-heslo-9"
	erp := startERP(t, flexitest.Options{Password: password})
	r := begin(t, settings(t, erp, t.TempDir(), "FLEXID_FLEXI_AUTH=session", "FLEXID_FLEXI_PASSWORD="+password))
	r.push("FV-1")
	r.becomes("FV-1", "confirmed")
	if erp.Logins() != 1 || erp.Sessions("flexid") != 1 {
		t.Errorf("%d logins, %d sessions", erp.Logins(), erp.Sessions("flexid"))
	}
	erp.EndSessions()
	erp.SetPassword(password) // and the refresh token
	for n := range 5 {
		r.push(fmt.Sprintf("FV-2%d", n))
	}
	var stories []string
	for n := range 5 {
		s := r.becomes(fmt.Sprintf("FV-2%d", n), "confirmed")
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		stories = append(stories, string(text))
	}
	if erp.Logins() != 2 || len(erp.Records("faktura-vydana")) != 6 {
		t.Errorf("%d logins, %d records", erp.Logins(), len(erp.Records("faktura-vydana")))
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if erp.Sessions("flexid") != 0 {
		t.Error("a session is left behind")
	}
	for _, q := range erp.Requests() {
		if q.Header.Get("Authorization") != "" || strings.Contains(q.Path+q.Query+string(q.Body), password) {
			t.Errorf("%s %s?%s carries the password", q.Method, q.Path, q.Query)
		}
	}
	if strings.Contains(r.log.String()+strings.Join(stories, ""), password) {
		t.Error("the password is in the log or in a story")
	}
}

func TestSessionLoginRefused(t *testing.T) {
	t.Parallel()
	const password = "tajne-heslo-9"
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir(), "FLEXID_FLEXI_AUTH=session", "FLEXID_FLEXI_PASSWORD="+password, "FLEXID_FLEXI_PAUSE=200ms"))
	r.push("FV-1")
	eventually(t, "writes stop", func() bool {
		for _, g := range r.status().Engine.Stops {
			if g.Reason == "login" {
				return strings.Contains(g.Remedy, "FLEXID_FLEXI_PASSWORD")
			}
		}
		return false
	})
	r.becomes("FV-1", "queued")
	if strings.Contains(r.log.String(), password) || erp.Count("write") != 0 {
		t.Errorf("%d writes; log:\n%s", erp.Count("write"), r.log)
	}
	erp.SetPassword(password)
	r.becomes("FV-1", "confirmed")
}
