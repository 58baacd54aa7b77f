package flexitest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

// dress gives the answer to a write the habits of this server: the content stays, the shape is another one.
func (x *exchange) dress(a answer) answer {
	x.s.mu.Lock()
	h := x.s.modes.habits
	x.s.mu.Unlock()
	if x.kind != Write || len(h.on) == 0 {
		return a
	}
	var doc struct {
		Winstrom map[string]any `json:"winstrom"`
	}
	if json.Unmarshal(a.body, &doc) != nil || doc.Winstrom == nil {
		return a
	}
	w := doc.Winstrom
	if h.has(ExistsIs409) && a.status == http.StatusBadRequest && aboutIdentity(w) {
		a.status = http.StatusConflict
	}
	if h.has(UpdateIs200) && a.status == http.StatusCreated && counter(w, created) == 0 {
		a.status = http.StatusOK
	}
	if (h.has(EmptySuccess) || h.has(NothingSaved)) && a.status < 300 {
		w["stats"], w["results"] = stats{}.render(0), []any{}
	}
	eachError(w, func(e map[string]any) {
		if h.has(BareErrors) {
			delete(e, "for")
			delete(e, "path")
			delete(e, "value")
			delete(e, "code")
			delete(e, "messageCode")
		}
	})
	reshape(w, h)
	a.body, _ = json.Marshal(doc)
	return a
}

// reshape changes types and nesting; it comes last, since the others read the usual shape.
func reshape(w map[string]any, h habits) {
	results, _ := w["results"].([]any)
	if h.has(ResultsReversed) {
		slices.Reverse(results)
	}
	if st, ok := w["stats"].(map[string]any); ok {
		if h.has(FailedIsZero) {
			st["failed"] = "0"
		}
		if h.has(NativeAnswers) {
			for name, v := range st {
				text, _ := v.(string)
				n, _ := strconv.Atoi(text)
				st[name] = n
			}
		}
		if h.has(StatsInList) {
			w["stats"] = []any{st}
		}
	}
	for _, r := range results {
		m, _ := r.(map[string]any)
		list, _ := m["errors"].([]any)
		switch {
		case len(list) == 0:
		case h.has(ErrorStrings):
			first, _ := list[0].(map[string]any)
			m["error"] = first["message"]
			delete(m, "errors")
		case h.has(WrappedLists):
			m["errors"] = map[string]any{"error": list}
		}
		if id, ok := m["id"].(string); ok && h.has(NativeAnswers) {
			m["id"] = json.Number(id)
		}
	}
	if h.has(WrappedLists) && results != nil {
		w["results"] = map[string]any{"result": results}
	}
	if said, ok := w["success"].(string); ok && h.has(NativeAnswers) {
		w["success"] = said == "true"
	}
}

func eachError(w map[string]any, do func(map[string]any)) {
	results, _ := w["results"].([]any)
	for _, r := range results {
		m, _ := r.(map[string]any)
		list, _ := m["errors"].([]any)
		for _, e := range list {
			if in, ok := e.(map[string]any); ok {
				do(in)
			}
		}
	}
}

// aboutIdentity: a record with the identifier or the number is there already.
func aboutIdentity(w map[string]any) (yes bool) {
	eachError(w, func(e map[string]any) {
		field, code := e["for"], e["code"]
		yes = yes || code == "importXmlUpdateNeniPovolen" || (field == "kod" || field == "id") && code == "INVALID"
	})
	return yes
}

func counter(w map[string]any, name effect) int {
	st, _ := w["stats"].(map[string]any)
	s, _ := st[string(name)].(string)
	n, _ := strconv.Atoi(s)
	return n
}
