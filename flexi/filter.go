package flexi

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Filter selects records of a list. It is made by the functions of this file only, so that a value cannot become part of
// the expression. The zero Filter selects all.
type Filter struct {
	expr string
	err  error
}

var filterField = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// Eq selects records whose field has this value. The ERP does not document how it reads a quote inside a string, so a
// value with one kind of quote is wrapped in the other; only a value with both kinds, or with a back-slash, is escaped.
// Whoever asks must judge the rows by what they carry, not by having been selected.
func Eq(field, value string) Filter {
	switch {
	case !filterField.MatchString(field):
		return Filter{err: fmt.Errorf("filter: %q is not a field name", field)}
	case !utf8.ValidString(value):
		return Filter{err: fmt.Errorf("filter: value of %s is not UTF-8", field)}
	}
	return Filter{expr: field + "=" + quote(value)}
}

// IDEq selects the record with this Flexi id. Anything but digits is an error: it would be read as another identifier.
func IDEq(flexiID string) Filter {
	if !isDigits(flexiID) {
		return Filter{err: fmt.Errorf("filter: %q is not a Flexi id", flexiID)}
	}
	return Filter{expr: "id=" + flexiID}
}

// ExtEq selects the record that carries this external id.
func ExtEq(e ExternalID) Filter {
	if !e.Valid() {
		return Filter{err: fmt.Errorf("filter: %q is not an external id", string(e))}
	}
	return Filter{expr: "id=" + quote(string(e))}
}

// Or selects what any of the filters selects. None at all, or one that selects everything, is an error: a look-up built
// from an empty list must not read the whole table.
func Or(fs ...Filter) Filter {
	if len(fs) == 0 {
		return Filter{err: errors.New("filter: nothing to choose from")}
	}
	return join(" or ", fs)
}

// And selects what all of the filters select; filters that select everything do not count.
func And(fs ...Filter) Filter {
	var some []Filter
	for _, f := range fs {
		if f.expr != "" || f.err != nil {
			some = append(some, f)
		}
	}
	if len(some) == 0 {
		return Filter{}
	}
	return join(" and ", some)
}

func join(word string, fs []Filter) Filter {
	parts := make([]string, 0, len(fs))
	for _, f := range fs {
		switch {
		case f.err != nil:
			return f
		case f.expr == "":
			return Filter{err: errors.New("filter: one of the alternatives selects everything")}
		}
		parts = append(parts, f.expr)
	}
	if len(parts) == 1 {
		return Filter{expr: parts[0]}
	}
	return Filter{expr: "(" + strings.Join(parts, word) + ")"}
}

// String is the expression in parentheses, "" for the Filter that selects all.
func (f Filter) String() string {
	if f.expr == "" || strings.HasPrefix(f.expr, "(") {
		return f.expr
	}
	return "(" + f.expr + ")"
}

// Err is what was wrong with the parts; List returns it without asking the ERP.
func (f Filter) Err() error { return f.err }

func isDigits(s string) bool {
	if s == "" || len(s) > 18 {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}
