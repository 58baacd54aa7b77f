package flexitest

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// read answers lists, filters, bulk reads and details; it needs Server.mu.
func (x *exchange) read() answer {
	ev := x.s.catalog.byPath[x.rt.evidence]
	if x.env == nil && (x.rt.kind == rQuery || x.rt.kind == rGet) {
		return message(http.StatusBadRequest, "Tělo požadavku není platné.", "")
	}
	switch x.rt.kind {
	case rGet:
		return x.bulk(ev)
	case rDetail:
		return x.detail(ev)
	}
	filter := ""
	switch x.rt.kind {
	case rFilter:
		filter = x.rt.arg
	case rQuery:
		filter = x.param("filter")
	}
	n, err := parseQuoted(filter, x.s.quoting())
	m := x.matcher()
	if err == nil {
		err = m.check(ev, n)
	}
	if err == nil {
		if why := x.refusesFilter(ev, filter, n); why != "" {
			err = errors.New(why)
		}
	}
	if err != nil {
		return message(http.StatusBadRequest, "Neplatný filtr: "+err.Error(), "")
	}
	var rows []*record
	for _, r := range x.s.asked(ev, n) {
		if m.match(r, n) {
			rows = append(rows, r)
		}
	}
	if a := x.sort(ev, rows); a != nil {
		return *a
	}
	return x.page(ev, rows)
}

func (x *exchange) matcher() *matcher {
	return &matcher{s: x.s, user: x.userName(), blind: x.s.modes.lie == LoseControl}
}

// visible is what reads see of an evidence under the lies in force.
func (s *Server) visible(ev *evidence) []*record {
	if ev.rowOf != nil && s.modes.lie != LostRights {
		return s.rowsOf(ev)
	}
	return s.shown(s.store.sorted(ev.path))
}

// shown leaves out what the lies in force hide.
func (s *Server) shown(records []*record) []*record {
	m := &s.modes
	if m.lie == LostRights {
		return nil
	}
	horizon := s.now().Add(-m.lieAge)
	var out []*record
	for _, r := range records {
		if m.lie == OnlySome && r.id%2 == 1 {
			continue
		}
		for m.lie == Stale && r != nil && r.updated.After(horizon) {
			r = r.prev
		}
		if r == nil || m.hide != nil && m.hide(s.export(r)) {
			continue
		}
		out = append(out, r)
	}
	return out
}

// rowsOf shows the rows of all visible documents as records of their own.
func (s *Server) rowsOf(ev *evidence) []*record {
	var out []*record
	for _, doc := range s.visible(ev.rowOf) {
		for _, item := range doc.rows {
			r := &record{ev: ev, id: item.id, ext: item.ext, fields: maps.Clone(item.fields), created: doc.created, updated: doc.updated}
			r.fields[ev.rowOf.doc.parent] = ref{to: ev.rowOf.path, id: doc.id, text: strconv.FormatInt(doc.id, 10)}
			out = append(out, r)
		}
	}
	return out
}

// page cuts the list: 20 records unless the client says otherwise, 0 is all.
func (x *exchange) page(ev *evidence, rows []*record) answer {
	limit, start := 20, 0
	for name, v := range map[string]*int{"limit": &limit, "start": &start} {
		if text := x.param(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return message(http.StatusBadRequest, "Neplatná hodnota parametru '"+name+"'.", "")
			}
			*v = n
		}
	}
	total := len(rows)
	rows = rows[min(start, total):]
	if limit > 0 {
		rows = rows[:min(limit, len(rows))]
	}
	content := map[string]any{}
	if x.flag("add-row-count") {
		content["@rowCount"] = strconv.Itoa(total)
	}
	return x.list(ev, rows, "summary", content)
}

func (x *exchange) list(ev *evidence, rows []*record, detail string, content map[string]any) answer {
	if x.flag("add-global-version") {
		content["@globalVersion"] = strconv.FormatInt(x.s.store.version, 10)
	}
	v, err := newView(x, detail)
	if err != nil {
		return message(http.StatusBadRequest, err.Error(), "")
	}
	out := make([]map[string]any, 0, len(rows))
	for _, r := range rows {
		out = append(out, x.s.modes.asShown(v.record(r)))
	}
	content[ev.path] = out
	return x.s.modes.fitting(winstrom(http.StatusOK, content))
}

// bulk reads by ids. Unknown ones are left out without a word, aliases give a record twice.
func (x *exchange) bulk(ev *evidence) answer {
	var rows []*record
	seen := map[int64]*record{}
	for _, r := range x.s.visible(ev) {
		seen[r.id] = r
	}
	for ident := range strings.SplitSeq(x.env.attrs["id"], "\n") {
		if x.s.modes.lie == LoseControl && isNumber(ident) {
			continue
		}
		for _, r := range x.s.store.find(ev, strings.TrimSpace(ident)) {
			if shown := seen[r.id]; shown != nil {
				rows = append(rows, shown)
			}
		}
	}
	content := map[string]any{}
	if x.flag("add-row-count") {
		content["@rowCount"] = strconv.Itoa(len(rows))
	}
	return x.list(ev, rows, "summary", content)
}

// detail shows one record. Other names than the numeric id are redirected to it.
func (x *exchange) detail(ev *evidence) answer {
	if !isNumber(x.rt.arg) && !strings.Contains(x.rt.arg, ":") {
		return message(http.StatusNotFound, "Can't find record identified by "+x.rt.arg, "")
	}
	var rows []*record
	for _, r := range x.s.store.find(ev, x.rt.arg) {
		i := slices.IndexFunc(x.s.visible(ev), func(v *record) bool { return v.id == r.id })
		if i >= 0 {
			rows = append(rows, x.s.visible(ev)[i])
		}
	}
	if len(rows) == 0 {
		return notFound("cz.winstrom.vo." + ev.path + "#" + x.rt.arg)
	}
	if isNumber(x.rt.arg) {
		return x.list(ev, rows[:1], "full", map[string]any{})
	}
	target := x.origin() + "/c/" + x.s.opt.Company + "/" + ev.path + "/" + strconv.FormatInt(rows[0].id, 10)
	if x.rt.suffix != "" {
		target += "." + x.rt.suffix
	}
	if q := x.r.URL.RawQuery; q != "" {
		target += "?" + q
	}
	return answer{status: x.s.moved(), header: map[string]string{"Location": target}}
}

// moved is the status that sends a reader to the numeric address.
func (s *Server) moved() int {
	switch h := s.modes.habits; {
	case h.has(DetailMoved301):
		return http.StatusMovedPermanently
	case h.has(DetailMoved302):
		return http.StatusFound
	}
	return http.StatusSeeOther
}

func (x *exchange) origin() string {
	scheme := "http://"
	if x.s.opt.TLS {
		scheme = "https://"
	}
	return scheme + x.r.Host
}

// sort orders a list: documents by date, the youngest first, everything else by id; or as the client says.
func (x *exchange) sort(ev *evidence, rows []*record) *answer {
	keys := x.orderKeys()
	if len(keys) == 0 {
		if ev.doc != nil {
			keys = []string{"datVyst@D", "id@D"}
		} else {
			keys = []string{"id@A"}
		}
	}
	m := x.matcher()
	for _, k := range keys {
		if name, _, _ := strings.Cut(k, "@"); ev.field(name) == nil {
			a := message(http.StatusBadRequest, "Podle vlastnosti '"+name+"' nelze řadit.", "")
			return &a
		}
	}
	slices.SortStableFunc(rows, func(a, b *record) int {
		for _, k := range keys {
			name, dir, _ := strings.Cut(k, "@")
			x, _ := m.text(a, name)
			y, _ := m.text(b, name)
			c := less(ev.field(name), x, y)
			if strings.EqualFold(dir, "D") {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	return nil
}

func (x *exchange) orderKeys() []string {
	var keys []string
	if x.env != nil {
		keys = strings.FieldsFunc(x.env.attrs["order"], func(r rune) bool { return r == '\n' || r == ',' })
	}
	if len(keys) == 0 {
		keys = slices.Clone(x.r.URL.Query()["order"])
	}
	if x.s.modes.habits.has(OrderReversed) {
		for i, k := range keys {
			switch name, letter, _ := strings.Cut(k, "@"); strings.ToUpper(letter) {
			case "A":
				keys[i] = name + "@D"
			case "D":
				keys[i] = name + "@A"
			}
		}
	}
	if name := x.param("sort"); len(keys) == 0 && name != "" {
		dir := "@A"
		if strings.EqualFold(x.param("dir"), "DESC") {
			dir = "@D"
		}
		keys = []string{name + dir}
	}
	return keys
}
