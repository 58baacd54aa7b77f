package flexitest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

// winstrom wraps content into the envelope of version 1, in which every value is a string.
func winstrom(status int, content map[string]any) answer {
	content["@version"] = "1.0"
	return jsonAnswer(status, map[string]any{"winstrom": content})
}

func jsonAnswer(status int, content any) answer {
	body, err := json.Marshal(content)
	if err != nil {
		return page(http.StatusInternalServerError, err.Error())
	}
	return answer{status: status, kind: "application/json", body: body}
}

// message is a refusal of the whole request, without results.
func message(status int, text, code string) answer {
	content := map[string]any{"success": "false", "message": text}
	if code != "" {
		content["message@messageCode"] = code
	}
	return winstrom(status, content)
}

func unauthorized() answer {
	a := message(http.StatusUnauthorized, "Je potřebná autorizace.", "authRequired")
	a.header = map[string]string{"WWW-Authenticate": `Basic realm="ABRA Flexi"`}
	return a
}

func notFound(what string) answer {
	return message(http.StatusNotFound, "Záznam nebyl v datovém zdroji nalezen: "+what, "formZaznamNenalezen")
}

// stats are the counters of a write.
type stats map[effect]int

func (st stats) render(failed int) map[string]string {
	return map[string]string{
		"created": strconv.Itoa(st[created]), "updated": strconv.Itoa(st[updated]), "deleted": strconv.Itoa(st[deleted]),
		"skipped": strconv.Itoa(st[skipped]), "failed": strconv.Itoa(failed),
	}
}

func (s *Server) renderResult(r result, withCode bool) map[string]any {
	m := map[string]any{}
	// A record that was left alone is not told: not even its id.
	if r.id != 0 {
		id := strconv.FormatInt(r.id, 10)
		m["id"], m["ref"] = id, "/c/"+s.opt.Company+"/"+r.ev.path+"/"+id+".json"
	}
	if r.requestID != "" {
		m["request-id"] = r.requestID
	}
	if withCode && r.code != "" {
		m["code"] = r.code
	}
	if len(r.warnings) > 0 {
		m["warnings"] = renderErrors(r.warnings, "", "")
	}
	return m
}

func renderRefusal(r *refusal) map[string]any {
	return map[string]any{"errors": renderErrors(r.errors, r.path, r.number)}
}

func renderErrors(errs []*fieldError, path, number string) []map[string]string {
	var out []map[string]string
	for _, e := range errs {
		m := map[string]string{"message": e.message}
		if number != "" {
			m["message"] += " [" + number + "]"
		}
		if e.field != "" {
			m["for"] = e.field
		}
		if path != "" && e.field != "" {
			m["path"] = path + "." + e.field
		}
		if e.value != "" {
			m["value"] = e.value
		}
		if e.code != "" {
			m["code"] = e.code
			if !slices.Contains([]string{"PROP", "INVALID"}, e.code) {
				m["messageCode"] = e.code
			}
		}
		out = append(out, m)
	}
	return out
}
