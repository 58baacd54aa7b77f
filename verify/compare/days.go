package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexid/flexi"
)

// Days returns the document with every time in a date field turned into its day in c.Zone, and which fields that were
// (polozkyFaktury[0].datum: 2026-03-01), nil when nothing had to be turned: then the document comes back as it is. Flexi
// would cut the time off and book a document of the last evening of a month in the wrong one. Only fields of which the
// metadata say that they are dates are touched.
func (c Comparer) Days(sent json.RawMessage) (json.RawMessage, map[string]string, error) {
	if len(bytes.TrimSpace(sent)) == 0 {
		return sent, nil, nil
	}
	d := days{Comparer: c, turned: map[string]string{}}
	d.day = d.ofDate
	out, err := d.record(sent, scope{props: c.Props})
	if err != nil {
		return nil, nil, fmt.Errorf("turn times into days: %w", err)
	}
	if len(d.turned) == 0 {
		return sent, nil, nil
	}
	return out, d.turned, nil
}

// WithDays is the document as it was sent: with the days that Days told, which needs no metadata.
func WithDays(sent json.RawMessage, turned map[string]string) json.RawMessage {
	if len(turned) == 0 {
		return sent
	}
	d := days{turned: map[string]string{}}
	d.day = func(path string, _ flexi.Property, _ json.RawMessage) (string, bool) {
		day, ok := turned[path]
		return day, ok
	}
	out, err := d.record(sent, scope{})
	if err != nil {
		return sent
	}
	return out
}

// days is one walk through a document that is being rewritten.
type days struct {
	Comparer
	day    func(path string, p flexi.Property, raw json.RawMessage) (string, bool)
	turned map[string]string
}

func (d *days) record(raw json.RawMessage, at scope) (json.RawMessage, error) {
	doc := flexi.ParseRecord(raw)
	if doc == nil {
		if err := json.Unmarshal(raw, &doc); err != nil { // which has the words for it
			return nil, err
		}
	}
	before := len(d.turned)
	for name, value := range doc {
		if !isField(name) {
			continue
		}
		if isRows(name, value) {
			rows := scope{path: at.path + name, props: d.rowProps(name), depth: at.depth + 1}
			out, err := d.rows(value, rows)
			if err != nil {
				return nil, err
			}
			doc[name] = out
			continue
		}
		if day, ok := d.day(at.path+name, at.prop(name), value); ok {
			d.turned[at.path+name] = day
			doc[name] = json.RawMessage(strconv.Quote(day))
		}
	}
	if len(d.turned) == before {
		return raw, nil
	}
	return marshal(doc)
}

// rows turns a list of rows, a single one, and either of them wrapped under the name of their evidence.
func (d *days) rows(raw json.RawMessage, at scope) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if at.depth > maxDepth || len(raw) == 0 {
		return raw, nil
	}
	before := len(d.turned)
	switch raw[0] {
	case '{':
		wrapper := flexi.ParseRecord(raw)
		for name, in := range wrapper {
			if len(wrapper) == 1 && strings.HasSuffix(name, "-polozka") {
				out, err := d.rows(in, at)
				if err != nil || len(d.turned) == before {
					return raw, err
				}
				return marshal(map[string]json.RawMessage{name: out})
			}
		}
		at.path += "[0]."
		return d.record(raw, at)
	case '[':
		list, _ := flexi.ParseList(raw)
		for i, row := range list {
			if !hasObjects(row) {
				continue
			}
			inner := at
			inner.path = fmt.Sprintf("%s[%d].", at.path, i)
			out, err := d.record(row, inner)
			if err != nil {
				return nil, err
			}
			list[i] = out
		}
		if len(d.turned) == before {
			return raw, nil
		}
		return marshal(list)
	}
	return raw, nil
}

// ofDate is the day of a time in a date field; ok is false where nothing has to be turned.
func (d *days) ofDate(_ string, p flexi.Property, raw json.RawMessage) (day string, ok bool) {
	text, isText := scalar(raw)
	text = strings.TrimSpace(text)
	if p.Type != typeDate || !isText || len(text) <= len(time.DateOnly) || !strings.ContainsRune("Tt ", rune(text[len(time.DateOnly)])) {
		return "", false // a date, with or without the zone that Flexi writes behind it
	}
	return flexi.Day(text, d.Zone) // of what is no date Flexi says what is wrong with it
}

// marshal writes JSON as it was read: & and < stay what they are.
func marshal(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}
