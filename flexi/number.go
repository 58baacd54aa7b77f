package flexi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Number is the document number that people look a document up by.
type Number struct {
	Value   string // normalised
	Pair    bool   // only the pair of Partner and Value identifies the document
	Partner string // the field firma as it was sent, of a pair
	Field   string // the field that holds it: kod or cisDosle
}

// NumberField is the field that holds the number in an evidence. Payables carry the supplier's number, which is unique
// only together with the partner.
func NumberField(evidence string) (field string, pair bool) {
	switch evidence {
	case "faktura-prijata", "zavazek":
		return "cisDosle", true
	}
	return "kod", false
}

// MaxNumber is the length of the number's column in characters.
func MaxNumber(evidence string) int {
	if _, pair := NumberField(evidence); pair {
		return 40
	}
	if evidence == "cenik" {
		return 64
	}
	return 20
}

// NormaliseNumber is the form in which numbers are compared: NFC, trimmed, and upper case where the ERP turns the column
// into upper case itself.
func NormaliseNumber(evidence, s string) string {
	s = strings.TrimSpace(norm.NFC.String(s))
	if field, _ := NumberField(evidence); field == "kod" && evidence != "uzivatel" {
		s = norm.NFC.String(strings.ToUpper(s))
	}
	return s
}

// NumberOf reads the number out of a body. The result is false when the body has none, or has a payable's number without
// a reference to one partner. A number that does not fit its column, or is no text, is an error. The number of a payable
// holds within one year only: see YearOf.
func NumberOf(evidence string, body json.RawMessage) (Number, bool, error) {
	m := object(body)
	if m == nil {
		return Number{}, false, errors.New("number: the body is not a JSON object")
	}
	return NumberIn(evidence, m)
}

// NumberIn is NumberOf for a body that is decoded.
func NumberIn(evidence string, m map[string]json.RawMessage) (Number, bool, error) {
	n := Number{}
	n.Field, n.Pair = NumberField(evidence)
	value, err := scalar(m, n.Field)
	if err != nil {
		return Number{}, false, err
	}
	n.Value = NormaliseNumber(evidence, value)
	if most := MaxNumber(evidence); utf8.RuneCountInString(n.Value) > most {
		return Number{}, false, fmt.Errorf("number: %s %q is longer than %d characters", n.Field, n.Value, most)
	}
	if n.Pair {
		kod, err := scalar(m, "kod")
		if err != nil {
			return Number{}, false, err
		}
		if most := MaxNumber(""); utf8.RuneCountInString(NormaliseNumber("", kod)) > most {
			return Number{}, false, fmt.Errorf("number: kod %q is longer than %d characters", kod, most)
		}
		if n.Partner, err = scalar(m, "firma"); err != nil {
			return Number{}, false, err
		}
		n.Partner = strings.TrimSpace(n.Partner)
		if !namesOne(n.Partner) {
			return Number{}, false, nil
		}
	}
	return n, n.Value != "", nil
}

// namesOne: the text is a reference to one record (an id, or code:, ext:, in: and their like), not a name in free text.
func namesOne(reference string) bool {
	kind, value, found := strings.Cut(reference, ":")
	if !found {
		return reference != "" && strings.Trim(reference, "0123456789") == ""
	}
	return strings.TrimSpace(value) != "" && kind != "" && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == ""
}

// scalar is the text of a field that must be a string or a number; "" when it is absent or null.
func scalar(m map[string]json.RawMessage, field string) (string, error) {
	raw, ok := m[field]
	if !ok || string(raw) == "null" {
		return "", nil
	}
	if s := text(raw); s != "" || string(raw) == `""` {
		return s, nil
	}
	return "", fmt.Errorf("number: %s is neither a string nor a number", field)
}
