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

// quoting is how a quote stands inside a string; no source tells it.
type quoting uint8

const (
	quoteEscaped quoting = iota // behind a back-slash, as clients write it
	quoteDoubled                // twice; a back-slash is itself
	quoteNever                  // not at all; a back-slash is itself
)

// quoting needs Server.mu.
func (s *Server) quoting() quoting {
	switch h := s.modes.habits; {
	case h.has(QuotesDoubled):
		return quoteDoubled
	case h.has(QuotesPlain):
		return quoteNever
	}
	return quoteEscaped
}

// lexFilter cuts a filter into words. Strings are quoted with ' or ".
func lexFilter(s string, how quoting) ([]token, error) {
	var out []token
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case unicode.IsSpace(r):
			i += size
		case r == '\'' || r == '"':
			text, n, err := lexString(s[i:], how)
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

func lexString(s string, how quoting) (text string, n int, err error) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && how == quoteEscaped:
			i++
			if i == len(s) {
				return "", 0, fmt.Errorf("neukončený řetězec")
			}
			b.WriteByte(s[i])
		case s[i] == quote && how == quoteDoubled && i+1 < len(s) && s[i+1] == quote:
			i++
			b.WriteByte(quote)
		case s[i] == quote:
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
