package flexi

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"sort"
	"strconv"
	"strings"
)

// The ERP writes numbers and booleans as strings in one version and natively in another, lists of one as objects, and
// empty lists as "". These readers take all of it and never fail: what cannot be read is absent.

const bom = "\xef\xbb\xbf"

// object reads a JSON object; nil for anything else.
func object(raw json.RawMessage) map[string]json.RawMessage {
	return ParseRecord(bytes.TrimSpace(raw))
}

// elements reads a list: the elements of an array, or the one value that is not an array. Null, "" and nothing are empty.
func elements(raw json.RawMessage) []json.RawMessage {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0, bytes.Equal(raw, []byte("null")), bytes.Equal(raw, []byte(`""`)):
		return nil
	case raw[0] != '[':
		return []json.RawMessage{raw}
	}
	list, _ := ParseList(raw)
	return list
}

// objects reads a list of objects and leaves out what is none.
func objects(raw json.RawMessage) []map[string]json.RawMessage {
	var out []map[string]json.RawMessage
	for _, e := range elements(raw) {
		if m := object(e); m != nil {
			out = append(out, m)
		}
	}
	return out
}

// inner takes a list that may be wrapped in one key, as XML habits leave it: {"error":[…]} or […].
func inner(raw json.RawMessage, key string) json.RawMessage {
	if m := object(raw); m != nil {
		if in, ok := m[key]; ok {
			return in
		}
	}
	return raw
}

// text reads a string, number or boolean as text; "" for null, objects and arrays.
func text(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		s, _ := ParseString(raw)
		return s
	case '{', '[', 'n':
		return ""
	}
	return string(raw)
}

// number reads a whole number, also one in a string, with an exponent or with zero decimals.
func number(raw json.RawMessage) (int64, bool) {
	s := strings.TrimSpace(text(raw))
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// truth reads a boolean in the spellings that the ERP uses; known is false for anything else.
func truth(raw json.RawMessage) (value, known bool) {
	switch strings.ToLower(strings.TrimSpace(text(raw))) {
	case "true", "ok", "1":
		return true, true
	case "false", "failed", "0":
		return false, true
	}
	return false, false
}

// isTrue is truth for metadata, where absent means no.
func isTrue(raw json.RawMessage) bool {
	v, _ := truth(raw)
	return v
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// root reads a whole answer as an object and takes the value of key out of it. Bytes after the object, or none of them,
// are errors: half an answer must not pass for a whole one.
func root(body []byte, key string) (json.RawMessage, error) {
	body = bytes.TrimPrefix(body, []byte(bom))
	m := ParseRecord(body)
	if m == nil {
		var all json.RawMessage
		if err := json.Unmarshal(body, &all); err != nil {
			return nil, err
		}
		return nil, errors.New("not a JSON object")
	}
	in, ok := m[key]
	if !ok {
		return nil, errors.New("no " + key + " in it")
	}
	return in, nil
}
