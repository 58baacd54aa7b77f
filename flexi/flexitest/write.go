package flexitest

import (
	"net/http"
	"strconv"
)

// write carries a write request out. With commit off it does all the work and then takes it back, so that a fault can
// say what would have been said.
func (x *exchange) write(commit bool) answer {
	s := x.s
	if x.rt.kind == rFilter {
		return message(http.StatusMethodNotAllowed, "Metoda není povolena.", "")
	}
	if !x.locked {
		if !s.lockSeries() {
			return page(http.StatusServiceUnavailable, "Closed")
		}
		defer s.unlockSeries()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.r.Method == http.MethodDelete {
		return x.deleteOne(commit)
	}
	if x.envErr != nil {
		return message(http.StatusBadRequest, "Chyba při čtení vstupu: "+x.envErr.Error(), "")
	}
	if x.env == nil {
		return message(http.StatusBadRequest, "Tělo požadavku je prázdné.", "")
	}
	if x.flag("dry-run") {
		commit = false
	}
	if atomic := x.param("atomic"); atomic == "false" {
		return x.writeEach(commit)
	}
	return x.writeAll(commit)
}

func (x *exchange) userName() string {
	if x.user == "" {
		return x.s.opt.User
	}
	return x.user
}

// writeAll is the normal case: one transaction, which stops at the first record that is refused.
func (x *exchange) writeAll(commit bool) answer {
	t := x.s.beginTx(x.userName())
	st := stats{}
	results := []map[string]any{}
	jobs, invalid := x.jobs()
	if invalid != nil {
		return *invalid
	}
	for _, j := range jobs {
		res, bad, refused := x.applyJob(t, j)
		if refused != nil {
			t.rollback()
			return *refused
		}
		if bad != nil {
			t.rollback()
			return x.refusedWhole(bad)
		}
		st[res.effect]++
		if res.effect != skipped {
			results = append(results, x.s.renderResult(res, x.flag("code-in-response")))
		}
	}
	x.finish(t, commit)
	content := map[string]any{"success": "true", "stats": st.render(0), "results": results}
	a := winstrom(x.successStatus(st), x.mannered(content, st))
	if len(results) == 1 && st[created] == 1 {
		a.header = map[string]string{"Location": x.origin() + results[0]["ref"].(string)}
	}
	return a
}

// writeEach gives every record a transaction of its own. No public sample of a partly failed answer exists; this one
// lists results and refusals in the order of the request.
func (x *exchange) writeEach(commit bool) answer {
	st, failed := stats{}, 0
	results := []map[string]any{}
	jobs, invalid := x.jobs()
	if invalid != nil {
		return *invalid
	}
	for _, j := range jobs {
		t := x.s.beginTx(x.userName())
		res, bad, refused := x.applyJob(t, j)
		if refused != nil {
			t.rollback()
			return *refused
		}
		if bad != nil {
			t.rollback()
			failed++
			results = append(results, renderRefusal(bad))
			continue
		}
		x.finish(t, commit)
		st[res.effect]++
		results = append(results, x.s.renderResult(res, x.flag("code-in-response")))
	}
	status, success := x.successStatus(st), "true"
	if failed > 0 {
		status, success = http.StatusBadRequest, "false"
	}
	return winstrom(status, map[string]any{"success": success, "stats": st.render(failed), "results": results})
}

// jobs is the records of the request, those that a filter selects one by one.
func (x *exchange) jobs() (out []job, refused *answer) {
	for _, j := range x.env.jobs {
		list, refused := x.expand(x.s.canonical(j))
		if refused != nil {
			return nil, refused
		}
		out = append(out, list...)
	}
	return out, nil
}

// finish commits, or takes everything back when nothing shall stay.
func (x *exchange) finish(t *tx, commit bool) {
	if !commit {
		t.rollback()
		return
	}
	t.commit()
	if x.entry != nil {
		x.entry.Committed, x.entry.Effective = true, x.s.now()
	}
}

func (x *exchange) successStatus(st stats) int {
	if x.flag("dry-run") || st[created]+st[updated]+st[deleted] == 0 {
		return http.StatusOK
	}
	return http.StatusCreated
}

// applyJob checks the evidence of one record and applies it. The third result is a refusal of the whole request.
func (x *exchange) applyJob(t *tx, j job) (result, *refusal, *answer) {
	ev := x.s.catalog.byPath[j.path]
	if ev == nil {
		a := message(http.StatusBadRequest, "Evidence '"+j.path+"' neexistuje.", "")
		return result{}, nil, &a
	}
	if !x.s.importable(ev) { // rows, for one, are written inside their document
		a := message(http.StatusBadRequest, "Import není povolen.", codeNoImport)
		return result{}, nil, &a
	}
	if x.s.modes.forbidden[ev.path] {
		a := forbidden()
		return result{}, nil, &a
	}
	urlID := ""
	if x.rt.kind == rDetail && j.path == x.rt.evidence {
		urlID = x.rt.arg
	}
	res, bad := t.apply(ev, cloneObject(j.in), urlID)
	if bad == nil && len(res.warnings) > 0 && x.flag("fail-on-warning") {
		bad = &refusal{path: ev.path + "[" + strconv.FormatInt(res.id, 10) + "]", number: res.code, errors: res.warnings}
	}
	return res, bad, nil
}

// cloneObject: a late commit applies the same request again, so the first time must leave it as it was.
func cloneObject(in object) object {
	out := make(object, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

func forbidden() answer {
	return message(http.StatusForbidden, "K této operaci nemáte dostatečná oprávnění.", "")
}

func (x *exchange) deleteOne(commit bool) answer {
	ev := x.s.catalog.byPath[x.rt.evidence]
	if x.rt.kind != rDetail {
		return message(http.StatusMethodNotAllowed, "Metoda není povolena.", "")
	}
	if len(x.s.store.find(ev, x.rt.arg)) == 0 {
		return notFound(ev.path + "#" + x.rt.arg)
	}
	t := x.s.beginTx(x.userName())
	res, bad := t.apply(ev, object{"@action": "delete"}, x.rt.arg)
	if bad != nil {
		t.rollback()
		return x.refusedWhole(bad)
	}
	x.finish(t, commit)
	return winstrom(http.StatusOK, map[string]any{
		"success": "true", "stats": stats{deleted: 1}.render(0), "results": []any{x.s.renderResult(res, false)},
	})
}
