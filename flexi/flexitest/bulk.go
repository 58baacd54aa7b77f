package flexitest

import (
	"strconv"
	"strings"
)

// spread takes the attributes that stand beside an evidence ("faktura-vydana@action", "faktura-vydana@filter") over to its
// records: the documentation writes them there as well as inside a record. With a filter no record has to be named.
func (env *envelope) spread() {
	for _, key := range sortedKeys(env.beside) {
		path, name, _ := strings.Cut(key, "@")
		found := false
		for _, j := range env.jobs {
			if j.path == path {
				found = true
				if j.in["@"+name] == nil {
					j.in["@"+name] = env.beside[key]
				}
			}
		}
		if !found {
			env.jobs = append(env.jobs, job{path: path, in: object{"@" + name: env.beside[key]}})
		}
	}
}

// isBeside names what may stand beside an evidence.
func isBeside(key string) bool {
	path, name, ok := strings.Cut(key, "@")
	return ok && path != "" && (name == "action" || name == "filter")
}

// expand replaces a record with a filter by one for each record that the filter selects; the ids it names are then ignored.
// A filter that selects nothing leaves a record without an id, which an action refuses. It needs Server.mu.
func (x *exchange) expand(j job) ([]job, *answer) {
	text, _ := scalar(j.in["@filter"])
	ev := x.s.catalog.byPath[j.path]
	if text == "" || ev == nil {
		return []job{j}, nil
	}
	n, err := parseFilter(text)
	m := x.matcher()
	if err == nil {
		err = m.check(ev, n)
	}
	if err != nil {
		a := message(400, "Neplatný filtr: "+err.Error(), "")
		return nil, &a
	}
	var out []job
	for _, r := range x.s.store.sorted(ev.path) {
		if m.match(r, n) {
			in := cloneObject(j.in)
			delete(in, "@filter")
			in["id"] = strconv.FormatInt(r.id, 10)
			out = append(out, job{path: j.path, in: in})
		}
	}
	if len(out) == 0 && j.in["@action"] != nil {
		in := cloneObject(j.in)
		delete(in, "id")
		out = append(out, job{path: j.path, in: in})
	}
	return out, nil
}

// notCopied is what a copy does not take over from its source: what identifies it, and what happened to it.
func notCopied(name string) bool {
	switch name {
	case "kod", "uuid", "varSym", "storno", "zamekK", "stavUhrK", "juhSum", "zbyvaUhradit", "zbyvaUhraditMen", "datUhr",
		"createdBy", "zuctovano", "cisDosle":
		return true
	}
	return false
}

// copySource begins a new record as a copy of the one that "@sourceId" names; what else the client sends overrides it.
func (d *draft) copySource() {
	id := d.attr("@sourceId")
	if id == "" {
		return
	}
	found := d.t.st.find(d.ev, id)
	if len(found) != 1 {
		d.fail(invalid("sourceId", "INVALID", "Zdrojový záznam '%s' neexistuje.", id))
		return
	}
	from := found[0].clone()
	for name, v := range from.fields {
		if !notCopied(name) {
			d.rec.fields[name] = v
		}
	}
	for _, item := range from.rows {
		item.id, item.ext = 0, nil
		d.rec.rows = append(d.rec.rows, item)
		d.newRows = append(d.newRows, item)
	}
}
