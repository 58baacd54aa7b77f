package flexitest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"
)

// fieldError is one refusal in the ERP's words, about one field of one record.
type fieldError struct {
	message, field, value, code string
}

func invalid(field, code, format string, args ...any) *fieldError {
	return &fieldError{field: field, code: code, message: fmt.Sprintf(format, args...)}
}

// scalar is the text of a JSON scalar: clients write 1, "1" and true alike.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// parse makes the canonical text of a plain value; relations are resolved by the transaction.
func (f *field) parse(v any) (string, *fieldError) {
	text, ok := scalar(v)
	if !ok {
		return "", invalid(f.name, "PROP", "Hodnota pole '%s' není platná.", f.title)
	}
	if text == "" {
		return "", nil
	}
	out, err := f.canonical(text)
	if err != nil {
		err.value = text
	}
	return out, err
}

func (f *field) canonical(text string) (string, *fieldError) {
	switch f.kind {
	case "numeric":
		return f.number(strings.TrimSpace(text))
	case "integer":
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return "", invalid(f.name, "PROP", "Hodnota '%s' pole '%s' není celé číslo.", text, f.title)
		}
		return strconv.FormatInt(n, 10), nil
	case "logic":
		switch strings.ToLower(text) {
		case "true", "1":
			return "true", nil
		case "false", "0":
			return "false", nil
		}
		return "", invalid(f.name, "PROP", "Hodnota '%s' pole '%s' není logická hodnota.", text, f.title)
	case "date":
		return f.day(text)
	case "select":
		for _, v := range f.values {
			if v == text {
				return text, nil
			}
		}
		return "", invalid(f.name, "PROP", "Hodnota '%s' pole '%s' není povolena.", text, f.title)
	}
	return f.string(text)
}

func (f *field) string(text string) (string, *fieldError) {
	if f.upper {
		text = strings.ToUpper(text)
	}
	if f.lower {
		text = strings.ToLower(text)
	}
	if f.maxLength > 0 && utf8.RuneCountInString(text) > f.maxLength {
		return "", invalid(f.name, "INVALID", "Pole '%s' nesmí být delší než %d znaků.", f.title, f.maxLength)
	}
	return text, nil
}

func (f *field) number(text string) (string, *fieldError) {
	// The exponent is bounded first: the decimal library would happily build a number with a million digits.
	d, err := decimal.NewFromString(text)
	if err != nil || len(text) > 40 || d.Exponent() > 30 || d.Exponent() < -30 {
		return "", invalid(f.name, "PROP", "Hodnota '%s' pole '%s' není číslo.", text, f.title)
	}
	if f.digits > 0 {
		d = d.Round(int32(f.decimal))
		if d.Abs().GreaterThanOrEqual(decimal.New(1, int32(f.digits-f.decimal))) {
			return "", invalid(f.name, "INVALID", "Hodnota pole '%s' je příliš velká.", f.title)
		}
	}
	return d.String(), nil
}

func (f *field) day(text string) (string, *fieldError) {
	if len(text) >= 10 {
		rest := text[10:]
		if rest == "" || rest[0] == '+' || rest[0] == '-' || rest[0] == 'Z' || rest[0] == 'T' {
			if _, err := time.Parse(time.DateOnly, text[:10]); err == nil {
				return text[:10], nil
			}
		}
	}
	return "", invalid(f.name, "PROP", "Hodnota '%s' pole '%s' není datum.", text, f.title)
}

// number reads a stored numeric; what is not set counts as nothing.
func number(v any) decimal.Decimal {
	s, _ := v.(string)
	d, err := decimal.NewFromString(s)
	if err != nil {
		return decimal.Zero
	}
	return d
}
