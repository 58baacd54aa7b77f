package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fields returns what a look must ask for to compare a document: the names of its fields, sorted, and collections as
// "polozkyFaktury(cenaMj,cisRad,id,nazev)" with all fields of all its rows. Identifiers and attributes are left out, and
// names that could not stand in a query: such a field is later listed as not shown. No body asks for nothing.
func Fields(sent json.RawMessage) ([]string, error) {
	return fields(sent, true)
}

// FieldNames is Fields with plain names.
func FieldNames(sent json.RawMessage) ([]string, error) {
	return fields(sent, false)
}

func fields(sent json.RawMessage, inner bool) ([]string, error) {
	if len(sent) == 0 {
		return nil, nil
	}
	doc, err := decode(sent)
	if err != nil {
		return nil, fmt.Errorf("list the fields: %w", err)
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if !isField(name) || !askable(name) {
			continue
		}
		if inner && isRows(name, doc[name]) {
			ask := map[string]bool{"id": true, "cisRad": true}
			for _, row := range rowsOf(doc, name) {
				for field := range row {
					if isField(field) && askable(field) {
						ask[field] = true
					}
				}
			}
			name += "(" + joined(ask) + ")"
		}
		names = append(names, name)
	}
	return names, nil
}

// askable keeps a name from breaking out of detail=custom:a,b(c).
func askable(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}
