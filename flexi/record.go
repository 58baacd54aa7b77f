package flexi

import (
	"encoding/json"
	"strings"
)

// Record is one record of an answer, in the ERP's own fields. Values are read with its methods, which take the string
// and the native form alike.
type Record map[string]json.RawMessage

// ID is the Flexi id, "" without one.
func (r Record) ID() string {
	for _, e := range elements(r["id"]) {
		if s := text(e); isDigits(s) {
			return s
		}
	}
	return ""
}

// ExternalIDs are the identifiers besides the Flexi id: ext:…, and in changes also code:….
func (r Record) ExternalIDs() []string {
	var out []string
	for _, field := range []string{"external-ids", "id"} {
		for _, e := range elements(r[field]) {
			if s := text(e); strings.Contains(s, ":") {
				out = append(out, s)
			}
		}
	}
	return out
}

// HasExternalID reports whether the record carries e.
func (r Record) HasExternalID(e ExternalID) bool {
	for _, id := range r.ExternalIDs() {
		if id == string(e) {
			return true
		}
	}
	return false
}

// Text is the value of a field as text; "" for an absent, null or composite one.
func (r Record) Text(field string) string { return text(r[field]) }

// Has reports whether the answer carries the field at all. A column that our user may not read is absent, not empty.
func (r Record) Has(field string) bool {
	_, ok := r[field]
	return ok
}

// Rows are the records of a nested collection, whether it came as a list, as one object, or wrapped in the name of the
// row's evidence.
func (r Record) Rows(field string) []Record {
	raw := r[field]
	if m := object(raw); len(m) == 1 {
		for _, in := range m {
			if list := elements(in); len(list) > 0 && object(list[0]) != nil {
				raw = in
			}
		}
	}
	var out []Record
	for _, m := range objects(raw) {
		out = append(out, Record(m))
	}
	return out
}

// Ref is a relation as the answer shows it: the code ("code:CZK", or whatever identifier it carries) and the Flexi id
// from the companion field@ref; either may be "".
func (r Record) Ref(field string) (code, id string) {
	code = text(r[field])
	ref, _, _ := strings.Cut(text(r[field+"@ref"]), "?")
	ref = ref[strings.LastIndexByte(ref, '/')+1:]
	ref, _, _ = strings.Cut(ref, ".")
	if isDigits(ref) {
		id = ref
	}
	if id == "" && isDigits(code) {
		id = code
	}
	return code, id
}
