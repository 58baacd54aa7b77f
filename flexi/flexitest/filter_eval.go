package flexitest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"golang.org/x/text/unicode/norm"
)

func lower(s string) string { return strings.ToLower(s) }

// matcher judges records of one evidence; all of it needs Server.mu.
type matcher struct {
	s    *Server
	user string
	// blind leaves numeric ids unseen: the lie of a look-up whose control is missing.
	blind bool
}

// check refuses names that the evidence does not have before anything is judged: an unknown name must not look like an
// empty list.
func (m *matcher) check(e *evidence, n *node) error {
	switch n.op {
	case "all":
		return nil
	case "and", "or":
		if err := m.check(e, n.left); err != nil {
			return err
		}
		return m.check(e, n.right)
	case "not":
		return m.check(e, n.left)
	}
	name, rest, dotted := strings.Cut(n.field, ".")
	f := e.field(name)
	if f == nil {
		return fmt.Errorf("vlastnost '%s' evidence '%s' neexistuje", n.field, e.path)
	}
	if dotted {
		to := m.s.catalog.byPath[f.to]
		if to == nil || to.field(rest) == nil {
			return fmt.Errorf("vlastnost '%s' evidence '%s' neexistuje", n.field, e.path)
		}
	}
	return nil
}

func (m *matcher) match(r *record, n *node) bool {
	switch n.op {
	case "all":
		return true
	case "and":
		return m.match(r, n.left) && m.match(r, n.right)
	case "or":
		return m.match(r, n.left) || m.match(r, n.right)
	case "not":
		return !m.match(r, n.left)
	}
	name := n.field
	if first, rest, dotted := strings.Cut(n.field, "."); dotted {
		to, _ := r.fields[first].(ref)
		if r = m.s.store.get(to.to, to.id); r == nil {
			return false
		}
		name = rest
	}
	return m.compare(r, name, n)
}

func (m *matcher) compare(r *record, name string, n *node) bool {
	f := r.ev.field(name)
	text, isSet := m.text(r, name)
	switch n.op {
	case "is null", "is empty":
		return !isSet || text == ""
	case "is not null", "is not empty":
		return isSet && text != ""
	case "is true", "is false":
		return isSet && text == n.op[3:]
	case "is not true", "is not false":
		return text != n.op[7:]
	case "eq", "in":
		return slices.ContainsFunc(n.args, func(a token) bool { return m.equal(r, f, a) })
	case "neq":
		return isSet && text != "" && !m.equal(r, f, n.args[0])
	}
	if !isSet || text == "" {
		return false // as in SQL: nothing compares with what is not there
	}
	return m.order(f, text, n)
}

func (m *matcher) order(f *field, text string, n *node) bool {
	a := m.literal(f, n.args[0])
	switch n.op {
	case "like":
		return strings.Contains(strings.ToLower(text), strings.ToLower(a))
	case "like similar":
		return strings.Contains(plain(text), plain(a))
	case "begins":
		return strings.HasPrefix(strings.ToLower(text), strings.ToLower(a))
	case "begins similar":
		return strings.HasPrefix(plain(text), plain(a))
	case "ends", "ends similar":
		return strings.HasSuffix(plain(text), plain(a))
	case "lt":
		return less(f, text, a) < 0
	case "lte":
		return less(f, text, a) <= 0
	case "gt":
		return less(f, text, a) > 0
	case "gte":
		return less(f, text, a) >= 0
	case "between":
		return less(f, text, a) >= 0 && less(f, text, m.literal(f, n.args[1])) <= 0
	}
	return false
}

// text is the value that comparisons see.
func (m *matcher) text(r *record, name string) (string, bool) {
	switch name {
	case "id":
		return strconv.FormatInt(r.id, 10), true
	case "lastUpdate":
		return r.updated.UTC().Format(time.RFC3339Nano), true
	case "createdDate":
		return r.created.UTC().Format(time.RFC3339Nano), true
	case "external-ids":
		return strings.Join(r.ext, ","), len(r.ext) > 0
	}
	switch v := r.fields[name].(type) {
	case string:
		return v, v != ""
	case ref:
		return v.text, true
	}
	return "", false
}

func (m *matcher) equal(r *record, f *field, a token) bool {
	want := m.literal(f, a)
	switch {
	case f.name == "id":
		if m.blind && isNumber(want) {
			return false
		}
		return m.named(r, want)
	case f.name == "external-ids":
		return slices.Contains(r.ext, want)
	case f.name == "stitky":
		return slices.Contains(strings.Split(r.text("stitky"), ","), strings.ToUpper(strings.TrimPrefix(want, "code:")))
	case f.kind == "relation":
		v, _ := r.fields[f.name].(ref)
		if v.id == 0 {
			return v.text != "" && v.text == want
		}
		target := m.s.store.get(v.to, v.id)
		return target != nil && m.named(target, want)
	}
	text, ok := m.text(r, f.name)
	return ok && less(f, text, want) == 0
}

// named says whether the identifier names this record. Records are compared by id: r may be an earlier state.
func (m *matcher) named(r *record, ident string) bool {
	if id, err := strconv.ParseInt(ident, 10, 64); err == nil {
		return id == r.id
	}
	return slices.ContainsFunc(m.s.store.find(r.ev, ident), func(o *record) bool { return o.id == r.id })
}

// literal is a value of the filter in the field's own writing.
func (m *matcher) literal(f *field, a token) string {
	now := m.s.now().In(m.s.zone)
	if a.kind == tWord {
		switch a.text {
		case "now()":
			if f.kind == "date" {
				return now.Format(time.DateOnly)
			}
			return now.UTC().Format(time.RFC3339Nano)
		case "currentYear()":
			return strconv.Itoa(now.Year())
		case "me()":
			return "code:" + m.user
		}
	}
	switch {
	case f.upper && f.kind == "string":
		return strings.ToUpper(a.text)
	case f.kind == "date" && len(a.text) > 10:
		return a.text[:10]
	case f.kind == "datetime":
		return m.instant(a.text)
	}
	return a.text
}

func (m *matcher) instant(s string) string {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, m.s.zone); err == nil {
			return t.UTC().Format(time.RFC3339Nano)
		}
	}
	return s
}

// less orders two values by the kind of the field.
func less(f *field, a, b string) int {
	switch f.kind {
	case "numeric", "integer":
		x, errX := decimal.NewFromString(a)
		y, errY := decimal.NewFromString(b)
		if errX == nil && errY == nil && max(x.Exponent(), y.Exponent()) < 100 && min(x.Exponent(), y.Exponent()) > -100 {
			return x.Cmp(y)
		}
	case "datetime":
		x, errX := time.Parse(time.RFC3339Nano, a)
		y, errY := time.Parse(time.RFC3339Nano, b)
		if errX == nil && errY == nil {
			return x.Compare(y)
		}
	}
	return strings.Compare(a, b)
}

// plain drops case and accents.
func plain(s string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(strings.ToLower(s)) {
		if r < 0x300 || r > 0x36f {
			b.WriteRune(r)
		}
	}
	return b.String()
}
