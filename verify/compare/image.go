package compare

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"flexid/flexi"
)

const (
	hashPrefix = "sha256:"
	maxImage   = 120 // bytes of a value that is kept as it is
)

// Image returns the before-image of a record: each field asked for and the one spelling of its value; rows and long
// values as "sha256:…". Two images of the same fields are equal exactly if none of these fields and rows changed.
// fields are names as of Fields or FieldNames; with the former only the listed fields of the rows count. A relation is
// the record it names, so renaming a partner changes nothing. An absent field is as an empty one.
func (c Comparer) Image(fields []string, found flexi.Record) map[string]string {
	image := make(map[string]string, len(fields))
	for _, f := range fields {
		name, list, _ := strings.Cut(f, "(")
		var only []string
		if list = strings.TrimSuffix(list, ")"); list != "" {
			only = strings.Split(list, ",")
		}
		image[name] = short(c.picture(scope{props: c.Props}, name, only, found))
	}
	return image
}

// picture is the one spelling of a field; only limits the fields of rows.
func (c Comparer) picture(at scope, name string, only []string, found flexi.Record) string {
	as, isShown := shownRows(pair{found: found}, name)
	raw := found[as]
	prop := at.prop(name)
	switch {
	case !isShown:
		return ""
	case name == labelsField:
		return joined(labelsOf(raw))
	case hasObjects(raw) && at.depth < maxDepth:
		rows := scope{props: c.rowProps(name, as), depth: at.depth + 1}
		return c.rowsPicture(rows, only, rowsOf(found, as))
	}
	text, ok := scalar(raw)
	switch {
	case !ok:
		return compact(raw)
	case isRelation(prop, text, found):
		return referencePicture(referenceOf(found, name))
	}
	return canonical(prop, text)
}

func (c Comparer) rowsPicture(at scope, only []string, records []flexi.Record) string {
	if len(records) == 0 {
		return ""
	}
	var all [][][2]string
	for _, row := range orderRows(records) {
		names := only
		if names == nil {
			names = slices.Sorted(maps.Keys(row.Record))
		}
		var cells [][2]string
		for _, name := range names {
			if !strings.Contains(name, "@") {
				cells = append(cells, [2]string{name, c.picture(at, name, nil, row.Record)})
			}
		}
		all = append(all, cells)
	}
	// Strings always marshal.
	text, _ := json.Marshal(all)
	return string(text)
}

func referencePicture(r reference) string {
	if r.id != "" {
		return r.id
	}
	return upper(r.value)
}

// compact gives equal JSON one spelling: keys sorted, numbers as they are.
func compact(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(raw)
	}
	// What was just decoded always marshals.
	text, _ := json.Marshal(v)
	return string(text)
}

// short hashes rows, what is long, and what would pass for a hash.
func short(s string) string {
	if len(s) <= maxImage && !strings.HasPrefix(s, hashPrefix) && !strings.HasPrefix(s, "[") {
		return s
	}
	return hashed(s)
}

func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hashPrefix + hex.EncodeToString(sum[:])
}
