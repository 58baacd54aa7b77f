package compare

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"flexid/flexi"
)

// The types of Flexi's metadata that are compared in their own way.
const (
	typeNumeric  = "numeric"
	typeInteger  = "integer"
	typeDate     = "date"
	typeDatetime = "datetime"
	typeLogic    = "logic"
	typeRelation = "relation"
	typeString   = "string"
)

// scalar returns the text of a JSON string, number or truth value; nothing at all (null, [], {}) is "". ok is false for
// a list or an object with something in it.
func scalar(raw json.RawMessage) (text string, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "", true
	}
	switch raw[0] {
	case '"':
		return flexi.ParseString(raw)
	case '[', '{':
		return "", len(bytes.TrimSpace(raw[1:])) <= 1
	case 'n':
		return "", true
	}
	return string(raw), true
}

func empty(raw json.RawMessage) bool {
	text, ok := scalar(raw)
	return ok && strings.TrimSpace(text) == ""
}

// sameValue compares two texts by the type of their field, as Flexi keeps it. A text that is not of its type is compared as
// text: a value that we cannot read must not become equal to one that we can.
func (c Comparer) sameValue(p flexi.Property, sent, found string) bool {
	switch p.Type {
	case "":
		return sameUntyped(p, sent, found)
	case typeDatetime:
		if same, ok := sameMoment(sent, found); ok {
			return same
		}
	case typeDate:
		if day, ok := flexi.Day(sent, c.Zone); ok {
			sent = day
		}
	case typeNumeric:
		if a, ok := parseDecimal(sent); ok {
			if b, ok := parseDecimal(found); ok {
				return sameNumber(a, b, p.Decimals)
			}
		}
	}
	return canonical(p, sent) == canonical(p, found)
}

// sameNumber compares what was sent with what Flexi kept of it: a number is equal when it is equal after rounding to the
// field's decimals. Binary floats come with many more than that. Of a number that lies in the middle of two it is not known
// which one Flexi takes, so either will do. Where the metadata do not tell the decimals (0), only a number with more of them
// than any field keeps is rounded, to either of what fields keep.
func sameNumber(sent, found decimal.Decimal, decimals int) bool {
	if sent.Equal(found) {
		return true
	}
	if decimals <= 0 {
		return moreThanKept(sent) && (sameNumber(sent, found, manyKept) || sameNumber(sent, found, fewKept))
	}
	places := int32(min(decimals, maxDecimals))
	if sent.Round(places).Equal(found.Round(places)) {
		return true
	}
	half := decimal.New(5, -places-1)
	return found.Round(places).Equal(found) && sent.Sub(found).Abs().Equal(half)
}

// Decimals that Flexi keeps of a number: of money, and of unit prices, amounts and rates (all of the fields in its published
// metadata keep one or the other).
const (
	fewKept  = 2
	manyKept = 6
)

// moreThanKept: a number with so many decimals is a binary float that no field keeps as it is.
func moreThanKept(d decimal.Decimal) bool { return !d.Round(manyKept).Equal(d) }

// maxDecimals bounds what metadata may say: the library would write out a million digits.
const maxDecimals = 30

// sameUntyped compares values of a field that the metadata do not have.
func sameUntyped(p flexi.Property, sent, found string) bool {
	if identityText(p.Name) {
		return canonical(flexi.Property{Name: p.Name, Type: typeString, UpperCase: p.Name == "kod"}, sent) ==
			canonical(flexi.Property{Name: p.Name, Type: typeString, UpperCase: p.Name == "kod"}, found)
	}
	if a, ok := parseDecimal(sent); ok {
		if b, ok := parseDecimal(found); ok {
			return sameNumber(a, b, 0)
		}
	}
	if a, ok := parseLogic(sent); ok {
		if b, ok := parseLogic(found); ok {
			return a == b
		}
	}
	if same, ok := sameMoment(sent, found); ok {
		return same
	}
	return plain(sent) == plain(found)
}

// canonical returns the one spelling that all equal values of a field have.
func canonical(p flexi.Property, text string) string {
	switch p.Type {
	case typeNumeric, typeInteger:
		if d, ok := parseDecimal(text); ok {
			return d.String()
		}
	case typeDate:
		if d, ok := flexi.Day(text, nil); ok {
			return d
		}
	case typeDatetime:
		if t, zoned, ok := parseMoment(text); ok && zoned {
			return t.UTC().Format(time.RFC3339Nano)
		} else if ok {
			return t.Format("2006-01-02T15:04:05.999999999")
		}
	case typeLogic:
		if b, ok := parseLogic(text); ok {
			return b
		}
	case typeString:
		if p.UpperCase {
			return upper(text)
		}
	}
	return plain(text)
}

// clearedAs reports whether found is how Flexi shows a field of this type after it was cleared: a column of money or a
// check box cannot be empty.
func clearedAs(p flexi.Property, found string) bool {
	switch p.Type {
	case typeNumeric, typeInteger:
		d, ok := parseDecimal(found)
		return ok && d.IsZero()
	case typeLogic:
		b, ok := parseLogic(found)
		return ok && b == "false"
	}
	return false
}

// parseDecimal reads a number. The library refuses exponents that would take minutes to write out.
func parseDecimal(text string) (decimal.Decimal, bool) {
	d, err := decimal.NewFromString(strings.TrimSpace(text))
	return d, err == nil
}

func parseLogic(text string) (string, bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "1":
		return "true", true
	case "false", "0":
		return "false", true
	}
	return "", false
}
