package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// What this binary knows of the top level; everything else is carried along untouched.
var (
	rowFields   = fieldNames(reflect.TypeFor[Row]())
	eventFields = fieldNames(reflect.TypeFor[Event]())
	metaFields  = fieldNames(reflect.TypeFor[Meta]())
	marksFields = fieldNames(reflect.TypeFor[Marks]())
)

func fieldNames(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			names[fold(name)] = true
		}
	}
	return names
}

// fold matches names as encoding/json does, without regard to case; else "State" would be both known and unknown.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// encode writes v and the unknown fields that came with it. HTML escapes are off: a body must stay as it was sent.
func encode(v any, extra map[string]json.RawMessage, known map[string]bool) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if known[fold(name)] {
			continue
		}
		if !json.Valid(extra[name]) {
			return nil, fmt.Errorf("unknown field %q does not hold JSON", name)
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		out = out[:len(out)-1]
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, key...), ':'), extra[name]...), '}')
	}
	return out, nil
}

// decode reads v, which must be empty, and returns the fields that it does not know. The usual value has none, and is
// parsed once.
func decode[T any](data []byte, v *T, known map[string]bool) (map[string]json.RawMessage, error) {
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if strict.Decode(v) == nil {
		if _, err := strict.Token(); errors.Is(err, io.EOF) {
			return nil, nil
		}
	}
	*v = *new(T)
	if err := json.Unmarshal(data, v); err != nil {
		*v = *new(T)
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return known[fold(name)] })
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// Marshal writes a row with its unknown fields as the ledger stores it. It refuses a row of a newer format.
func (r *Row) Marshal() ([]byte, error) {
	if r.Format > Format {
		return nil, fmt.Errorf("row %s has format %d: %w", r.ID, r.Format, ErrNewer)
	}
	data, err := encode(r, r.Extra, rowFields)
	if err != nil {
		return nil, fmt.Errorf("writing row %s: %w", r.ID, err)
	}
	return data, nil
}

// Unmarshal reads a stored row. For a row of a newer format it returns ErrNewer and only what names the document; such a
// row must not be written back.
func Unmarshal(data []byte) (Row, error) {
	var r Row
	extra, err := decode(data, &r, rowFields)
	if err != nil {
		// A newer format may differ in anything, so that reading it as ours fails.
		var head struct {
			Format int `json:"format"`
		}
		if json.Unmarshal(data, &head) == nil && head.Format > Format {
			r.Format = head.Format
		}
	}
	switch {
	case r.Format > Format:
		return newerRow(data, r.Format)
	case err != nil:
		return Row{}, fmt.Errorf("reading a row: %w: %w", ErrDamaged, err)
	}
	r.Extra, r.Was = extra, r.State
	return r, nil
}

// newerRow reads only texts, one by one: of a newer format nothing can be taken for granted.
func newerRow(data []byte, format int) (Row, error) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(data, &fields) // parsed once already; without fields the row is just nameless
	text := func(name string) string {
		var s string
		if json.Unmarshal(fields[name], &s) != nil {
			return ""
		}
		return s
	}
	r := Row{
		Format: format, ID: ID(text("id")), Evidence: text("evidence"), Source: text("source"), Key: text("key"),
		State: State(text("state")), Number: text("number"),
	}
	return r, fmt.Errorf("row %s has format %d: %w", r.ID, format, ErrNewer)
}

func (e *Event) marshal() ([]byte, error) {
	data, err := encode(e, e.Extra, eventFields)
	if err != nil {
		return nil, fmt.Errorf("writing event %d: %w", e.N, err)
	}
	return data, nil
}

func unmarshalEvent(data []byte) (Event, error) {
	var e Event
	extra, err := decode(data, &e, eventFields)
	if err != nil {
		return Event{}, fmt.Errorf("reading an event: %w: %w", ErrDamaged, err)
	}
	e.Extra = extra
	return e, nil
}
