package compare

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"flexid/flexi"
)

// isCollection reports whether a field is a collection of rows by its name: polozkyFaktury, skladovePolozky, …
func isCollection(name string) bool {
	return strings.HasPrefix(name, "polozky") || strings.HasSuffix(name, "Polozky")
}

// isRows reports whether a value is rows: by its name, or because records are inside.
func isRows(name string, raw json.RawMessage) bool { return isCollection(name) || hasObjects(raw) }

func hasObjects(raw json.RawMessage) bool {
	if _, ok := scalar(raw); ok {
		return false
	}
	raw = bytes.TrimSpace(raw)
	return raw[0] == '{' || bytes.HasPrefix(bytes.TrimSpace(raw[1:]), []byte("{"))
}

// rowsOf reads a collection. An empty one may come wrapped, and a wrapper is no row.
func rowsOf(r flexi.Record, name string) []flexi.Record {
	rows := r.Rows(name)
	if len(rows) != 1 || len(rows[0]) != 1 {
		return rows
	}
	for key, in := range rows[0] {
		if strings.HasSuffix(key, "-polozka") && empty(in) {
			return nil
		}
	}
	return rows
}

// shownRows finds a collection in a record. Flexi takes rows under one name and may show them under another
// (polozkyDokladu, polozkyFaktury); a name that was sent on its own account is not taken for another's.
func shownRows(p pair, name string) (as string, ok bool) {
	if _, ok := p.found[name]; ok {
		return name, true
	}
	if !isCollection(name) {
		return "", false
	}
	for _, other := range slices.Sorted(maps.Keys(p.found)) {
		_, sent := p.sent[other]
		if !sent && isField(other) && isCollection(other) {
			return other, true
		}
	}
	return "", false
}

func (w *walk) rows(ctx context.Context, at scope, name string, p pair) {
	field := at.path + name
	sent := orderRows(rowsOf(p.sent, name))
	as, ok := shownRows(p, name)
	switch {
	case !ok && len(sent) > 0:
		w.result.skip(field, "not shown by Flexi")
		return
	case !ok:
		return
	case at.depth >= maxDepth || (!empty(p.found[as]) && !hasObjects(p.found[as])):
		w.result.skip(field, "a list or a nested record cannot be compared")
		return
	}
	found := orderRows(rowsOf(p.found, as))
	if len(sent) != len(found) {
		w.result.differ(Difference{field, count(len(sent)), count(len(found))})
		return
	}
	for i, row := range sent {
		inner := scope{fmt.Sprintf("%s[%d].", field, row.index), w.rowProps(name, as), at.depth + 1}
		w.record(ctx, inner, row.Record, found[i].Record)
	}
}

func (c Comparer) rowProps(names ...string) *flexi.Properties {
	for _, name := range names {
		if p := c.Items[name]; p != nil {
			return p
		}
	}
	return nil
}

func count(n int) string { return fmt.Sprintf("rows: %d", n) }

// row is a row and its place before ordering.
type row struct {
	flexi.Record
	index int
}

// orderRows puts rows in the order people see: by cisRad, then by Flexi id, each only if all rows have it. Sent rows
// mostly have neither and keep their order.
func orderRows(records []flexi.Record) []row {
	rows := make([]row, len(records))
	for i, r := range records {
		rows[i] = row{r, i}
	}
	places, ids := rowNumbers(rows, "cisRad"), rowNumbers(rows, "id")
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(compareAt(places, a, b), compareAt(ids, a, b))
	})
	return rows
}

func rowNumbers(rows []row, field string) []decimal.Decimal {
	numbers := make([]decimal.Decimal, len(rows))
	for i, r := range rows {
		text, _ := scalar(r.Record[field])
		d, ok := parseDecimal(text)
		if !ok {
			return nil
		}
		numbers[i] = d
	}
	return numbers
}

func compareAt(numbers []decimal.Decimal, a, b row) int {
	if numbers == nil {
		return 0
	}
	return numbers[a.index].Cmp(numbers[b.index])
}
