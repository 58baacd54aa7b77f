package flexi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Company is the company that we write to.
type Company struct {
	ID, DBName, Name, CreatedAt string
	State                       string // ESTABLISHED when it can be used
	WatchingChanges             bool   // the Changes API is on
}

// ServerInfo is what the server says about itself.
type ServerInfo struct {
	Version, LicenseName, User string
	Date                       time.Time // of the answer by the server's clock; zero when it does not say
}

// Company reads who the company is. An identifier in an address may belong to another company after a restore.
func (c *Client) Company(ctx context.Context) (Company, error) {
	var out Company
	err := c.get(ctx, "company", "/c/"+c.o.Company+".json", func(a answer) error {
		in, err := root(a.body, "companies")
		if err != nil {
			return err
		}
		out, err = pickCompany(in, c.o.Company)
		return err
	})
	return out, err
}

// pickCompany takes ours out of an answer with one company or several.
func pickCompany(in json.RawMessage, name string) (Company, error) {
	list := objects(inner(in, "company"))
	for _, m := range list {
		co := Company{
			ID: text(m["id"]), DBName: text(m["dbNazev"]), Name: text(m["nazev"]), CreatedAt: text(m["createDt"]),
			State: text(m["stavEnum"]), WatchingChanges: isTrue(m["watchingChanges"]),
		}
		if co.DBName == name || len(list) == 1 && co.DBName != "" {
			return co, nil
		}
	}
	return Company{}, errors.New("no company in it")
}

// RegistrationNumber reads the company's number in the public register (IČO) out of its settings. "" = it has none, has
// several, or the ERP does not show the settings to our user.
func (c *Client) RegistrationNumber(ctx context.Context) (string, error) {
	page, err := c.List(ctx, Query{Evidence: "nastaveni", Fields: []string{"id", "ic"}})
	var e *Error
	switch {
	case err == nil:
	case errors.As(err, &e) && answeredForGood(e.Status):
		return "", nil
	default:
		return "", err
	}
	number := ""
	for _, r := range page.Records {
		switch ic := strings.TrimSpace(r.Text("ic")); {
		case ic == "":
		case number == "":
			number = ic
		case number != ic:
			return "", nil
		}
	}
	return number, nil
}

// answeredForGood tells an answer that will be the same tomorrow from one that is worth waiting for.
func answeredForGood(status int) bool {
	switch status {
	case 0, http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooEarly,
		http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	}
	return true
}

// Server reads version, licence, user and clock.
func (c *Client) Server(ctx context.Context) (ServerInfo, error) {
	var out ServerInfo
	err := c.get(ctx, "status of the server", "/status.json", func(a answer) error {
		m := statusObject(a.body)
		out = ServerInfo{
			Version: text(m["version"]), LicenseName: text(m["licenseName"]), User: text(m["loggedUser"]),
		}
		if out.Version == "" {
			return errors.New("no version in it")
		}
		if date, err := http.ParseTime(a.header.Get("Date")); err == nil {
			out.Date = date
		}
		return nil
	})
	return out, err
}

// statusObject finds the object that holds the version: the answer itself, or the one inside a single key.
func statusObject(body []byte) map[string]json.RawMessage {
	m := object(body)
	for _, k := range sortedKeys(m) {
		if in := object(m[k]); in != nil && m["version"] == nil && in["version"] != nil {
			return in
		}
	}
	return m
}

// EndUserContext makes the server forget what it holds of our user for this company: it goes on acting on a role or a
// login that was changed long after. Sessions stay open. It writes no document and is sent once. Where a write was refused
// because its session had ended it only logs in again.
func (c *Client) EndUserContext(ctx context.Context) error {
	if c.session != nil && !c.session.takeStale() {
		_, err := c.enter(ctx)
		return err
	}
	path := c.logoutPath() + "&company=" + url.QueryEscape(c.o.Company)
	return c.read(ctx, ask{op: "end the context of our user", kind: "read", method: http.MethodPost, path: path,
		once: true, take: func(answer) error { return nil }})
}
