package flexitest

import (
	"net/http"
	"net/url"
	"strings"
)

// routeKind is what an address asks for.
type routeKind uint8

const (
	rUnknown routeKind = iota
	rStatus
	rStatusCheck
	rLogin
	rRenew
	rKeepAlive
	rLogout
	rCompanies
	rCompany
	rEvidences
	rChanges
	rChangesSwitch
	rProperties
	rList
	rFilter
	rQuery
	rGet
	rDetail
)

// route is a parsed address.
type route struct {
	kind     routeKind
	company  string
	evidence string
	arg      string // id, filter, login name, or the word of a switch
	suffix   string // json, xml, html, … or ""
}

// parseRoute reads the escaped path, so that an encoded slash stays inside its segment.
func parseRoute(escaped string) (route, bool) {
	parts, ok := segments(escaped)
	if !ok {
		return route{}, false
	}
	last := len(parts) - 1
	var rt route
	parts[last], rt.suffix = cutSuffix(parts[last])
	switch parts[0] {
	case "status":
		if len(parts) == 4 && parts[1] == "user" && parts[3] == "logout" {
			rt.kind, rt.arg = rLogout, parts[2]
		} else if len(parts) == 1 {
			rt.kind = rStatus
		}
	case "status-check":
		rt.kind = rStatusCheck
	case "login-logout":
		if len(parts) == 2 && parts[1] == "login" {
			rt.kind = rLogin
		} else if len(parts) == 2 && parts[1] == "check" {
			rt.kind = rRenew
		} else if len(parts) == 2 && parts[1] == "session-keep-alive" {
			rt.kind = rKeepAlive
		}
	case "c":
		rt.inCompany(parts[1:])
	}
	return rt, true
}

func (rt *route) inCompany(p []string) {
	if len(p) == 0 {
		rt.kind = rCompanies
		return
	}
	rt.company = p[0]
	switch {
	case len(p) == 1:
		rt.kind = rCompany
	case p[1] == "evidence-list":
		rt.kind = rEvidences
	case p[1] == "changes" && len(p) == 2:
		rt.kind = rChanges
	case p[1] == "changes" && len(p) == 3:
		rt.kind, rt.arg = rChangesSwitch, p[2]
	case len(p) == 2:
		rt.kind, rt.evidence = rList, p[1]
	case len(p) == 3:
		rt.evidence, rt.arg = p[1], p[2]
		rt.kind = recordKind(p[2])
	}
}

func recordKind(word string) routeKind {
	switch {
	case word == "properties":
		return rProperties
	case word == "query":
		return rQuery
	case word == "get":
		return rGet
	case strings.HasPrefix(word, "(") && strings.HasSuffix(word, ")"):
		return rFilter
	}
	return rDetail
}

// segments splits a path. A filter is one segment even if its slashes are not encoded.
func segments(escaped string) ([]string, bool) {
	raw := strings.Split(strings.Trim(escaped, "/"), "/")
	for i, p := range raw {
		if strings.HasPrefix(p, "(") || strings.HasPrefix(strings.ToLower(p), "%28") {
			raw = append(raw[:i:i], strings.Join(raw[i:], "/"))
			break
		}
	}
	for i, p := range raw {
		u, err := url.PathUnescape(p)
		if err != nil {
			return nil, false
		}
		raw[i] = u
	}
	return raw, true
}

func cutSuffix(last string) (string, string) {
	for _, s := range []string{"json", "xml", "js", "html", "csv", "pdf", "isdoc", "xls", "dbf", "edi"} {
		if base, ok := strings.CutSuffix(last, "."+s); ok {
			return base, s
		}
	}
	return last, ""
}

// format is json, xml, html or another name. The suffix wins over Accept; without either the server makes a page for
// people. What is written in JSON is answered in JSON: the server does not mix formats.
func (rt route) format(r *http.Request) string {
	if rt.suffix == "js" {
		return "json"
	}
	if rt.suffix != "" {
		return rt.suffix
	}
	for _, h := range []string{r.Header.Get("Accept"), r.Header.Get("Content-Type")} {
		switch {
		case strings.Contains(h, "json"):
			return "json"
		case strings.Contains(h, "/xml"):
			return "xml"
		}
	}
	return "html"
}

// isWrite tells writes of records from everything else.
func (rt route) isWrite(method string) bool {
	switch rt.kind {
	case rList, rDetail, rFilter:
		return method == http.MethodPost || method == http.MethodPut || method == http.MethodDelete
	}
	return false
}

func (rt route) isRead(method string) bool {
	switch rt.kind {
	case rList, rDetail, rFilter:
		return method == http.MethodGet || method == http.MethodHead
	case rQuery, rGet:
		return true
	}
	return false
}
