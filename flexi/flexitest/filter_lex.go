package flexitest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tEnd tokenKind = iota
	tWord
	tString
	tNumber
	tOp // = == <> != < <= > >= ( ) ,
)

type token struct {
	kind tokenKind
	text string
}

func (t token) is(words ...string) bool {
	if t.kind != tWord {
		return false
	}
	for _, w := range words {
		if strings.EqualFold(t.text, w) {
			return true
		}
	}
	return false
}

func (t token) op(s string) bool { return t.kind == tOp && t.text == s }

// lexFilter cuts a filter into words. Strings are quoted with ' or ", inside which a back-slash takes the next character
// as it is.
func lexFilter(s string) ([]token, error) {
	var out []token
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case unicode.IsSpace(r):
			i += size
		case r == '\'' || r == '"':
			text, n, err := lexString(s[i:])
			if err != nil {
				return nil, err
			}
			out = append(out, token{tString, text})
			i += n
		case strings.ContainsRune("(),", r):
			out = append(out, token{tOp, string(r)})
			i++
		case strings.ContainsRune("=<>!", r):
			n := 1
			if i+1 < len(s) && strings.ContainsRune("=>", rune(s[i+1])) {
				n = 2
			}
			op := s[i : i+n]
			if !strings.Contains(" = == <> != < <= > >= ", " "+op+" ") {
				return nil, fmt.Errorf("neznámý operátor '%s'", op)
			}
			out = append(out, token{tOp, op})
			i += n
		default:
			n := wordLength(s[i:])
			if n == 0 {
				return nil, fmt.Errorf("neočekávaný znak '%c'", r)
			}
			kind := tWord
			if c := s[i]; c >= '0' && c <= '9' || c == '-' || c == '+' {
				kind = tNumber
			}
			out = append(out, token{kind, s[i : i+n]})
			i += n
		}
	}
	return append(out, token{kind: tEnd}), nil
}

func lexString(s string) (text string, n int, err error) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
			if i == len(s) {
				return "", 0, fmt.Errorf("neukončený řetězec")
			}
			b.WriteByte(s[i])
		case quote:
			return b.String(), i + 1, nil
		default:
			b.WriteByte(s[i])
		}
	}
	return "", 0, fmt.Errorf("neukončený řetězec")
}

// wordLength covers names (also dotted and with a hyphen), numbers and dates.
func wordLength(s string) int {
	for i, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.-+:", r) {
			return i
		}
	}
	return len(s)
}
