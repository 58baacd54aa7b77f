package flexitest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

func done(x *exchange) answer {
	if x.rt.format(x.r) == "xml" {
		body := "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<winstrom version=\"1.0\"><success>true</success></winstrom>\n"
		return answer{status: http.StatusOK, kind: "application/xml", body: []byte(body)}
	}
	return winstrom(http.StatusOK, map[string]any{"success": "true"})
}

func (s *Server) status(x *exchange) answer {
	return jsonAnswer(http.StatusOK, map[string]any{"status": map[string]any{
		"version": "2026.5.2", "licenseName": s.opt.CompanyName, "licenseVariant": "premium", "loggedUser": x.user,
		"sessions": strconv.Itoa(len(s.sessions)), "appServerRunning": "true", "javaVersion": "21",
		"operatingSystem": "Linux",
	}})
}

func (s *Server) company() answer {
	return jsonAnswer(http.StatusOK, map[string]any{"companies": map[string]any{"company": map[string]any{
		"createDt": s.companyMade, "dbNazev": s.opt.Company, "id": s.companyID, "licenseGroup": "A",
		"nazev": s.opt.CompanyName, "show": "true", "stavEnum": "ESTABLISHED",
		"watchingChanges": strconv.FormatBool(s.store.watching),
	}}})
}

func (s *Server) evidenceList(user string) answer {
	var list []map[string]any
	for _, e := range s.catalog.list {
		if s.hides(user, e.path) {
			continue
		}
		list = append(list, map[string]any{
			"evidenceType": e.kind, "evidenceName": e.title, "evidencePath": e.path, "importStatus": s.importStatus(e),
			"extIdSupported": strconv.FormatBool(e.extIDs), "dbName": e.table,
			"className": "cz.winstrom.vo." + e.table, "beanKey": "cz.winstrom.vo." + e.table, "formCode": e.path,
		})
	}
	return jsonAnswer(http.StatusOK, map[string]any{"evidences": map[string]any{
		"@version": "1.0", "companyId": s.opt.Company, "companyName": s.opt.CompanyName, "evidence": list,
	}})
}

// properties is the metadata of one evidence in the shape of the real server.
func properties(e *evidence) answer {
	var list []map[string]any
	for _, f := range e.fields {
		list = append(list, f.property())
	}
	return jsonAnswer(http.StatusOK, map[string]any{"properties": map[string]any{
		"@version": "1.0", "evidenceName": e.title, "tagName": e.path, "dbName": e.table, "property": list,
	}})
}

func (f *field) property() map[string]any {
	yes := strconv.FormatBool
	p := map[string]any{
		"propertyName": f.name, "name": f.title, "title": f.title, "type": f.kind, "mandatory": yes(f.mandatory),
		"isWritable": yes(!f.readOnly), "isUpperCase": yes(f.upper), "isLowerCase": yes(f.lower),
		"inSummary": yes(f.summary), "inDetail": "true", "inId": yes(f.name == "id" || f.name == "external-ids"),
		"isVisible": "true", "isSortable": "true",
	}
	if f.maxLength > 0 {
		p["maxLength"] = strconv.Itoa(f.maxLength)
	}
	if f.digits > 0 {
		p["digits"], p["decimal"] = strconv.Itoa(f.digits), strconv.Itoa(f.decimal)
	}
	if f.to != "" {
		p["fkEvidencePath"] = f.to
		p["fkEvidenceType"] = strings.ToUpper(strings.ReplaceAll(f.to, "-", "_"))
	}
	if len(f.values) > 0 {
		var values []map[string]string
		for _, v := range f.values {
			values = append(values, map[string]string{"@key": v, "$": v})
		}
		p["values"] = map[string]any{"value": values}
	}
	return p
}

func (s *Server) switchChanges(x *exchange) answer {
	write := x.r.Method == http.MethodPost || x.r.Method == http.MethodPut
	switch {
	case x.rt.arg == "enable" && write:
		s.store.watching = true
	case x.rt.arg == "disable" && write:
		s.store.watching, s.store.changes = false, nil
	case x.rt.arg == "status":
	default:
		return message(http.StatusMethodNotAllowed, "Metoda není povolena.", "")
	}
	if x.rt.format(x.r) == "xml" {
		body := fmt.Sprintf("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<winstrom version=\"1.0\"><success>%t</success></winstrom>\n", s.store.watching)
		return answer{status: http.StatusOK, kind: "application/xml", body: []byte(body)}
	}
	return winstrom(http.StatusOK, map[string]any{"success": strconv.FormatBool(s.store.watching)})
}

// changesSince lists changes from a version on, inclusive.
func (s *Server) changesSince(x *exchange) answer {
	if !s.store.watching {
		return message(http.StatusBadRequest, "Sledování změn není zapnuto.", "")
	}
	start, _ := strconv.ParseInt(x.param("start"), 10, 64)
	limit := 100
	if n, err := strconv.Atoi(x.param("limit")); err == nil && n > 0 {
		limit = min(n, 1000)
	}
	only := x.r.URL.Query()["evidence"]
	next, list := "none", []map[string]any{}
	for _, c := range s.store.changes {
		if c.version < start || len(only) > 0 && !slices.Contains(only, c.evidence) {
			continue
		}
		if len(list) == limit {
			next = strconv.FormatInt(c.version, 10)
			break
		}
		if c.op == "delete" && s.modes.habits.has(BareDeletes) {
			c.ext = nil
		}
		list = append(list, c.render(s.zone))
	}
	return jsonAnswer(http.StatusOK, map[string]any{"winstrom": map[string]any{
		"@globalVersion": strconv.FormatInt(s.store.version, 10), "changes": list, "next": next,
	}})
}

// render writes the time as the real server does: local, no zone, trailing zeros cut but for one digit.
func (c change) render(zone *time.Location) map[string]any {
	at := c.at.In(zone).Format("2006-01-02 15:04:05.000000")
	for strings.HasSuffix(at, "0") && !strings.HasSuffix(at, ".0") {
		at = at[:len(at)-1]
	}
	if c.stamp != "" {
		at = c.stamp
	}
	ext := c.ext
	if ext == nil {
		ext = []string{}
	}
	return map[string]any{
		"@evidence": c.evidence, "@in-version": strconv.FormatInt(c.version, 10), "@operation": c.op, "@timestamp": at,
		"id": strconv.FormatInt(c.id, 10), "external-ids": ext,
	}
}
