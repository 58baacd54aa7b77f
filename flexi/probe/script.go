package probe

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// kind is what happens to one request.
type kind uint8

const (
	status  kind = iota // an answer with a status
	stale               // 400 with only a message
	html                // a page behind a 200
	half                // half of a healthy answer
	reset               // the connection is reset instead of an answer
	hangUp              // the connection ends in order instead of an answer
	silence             // nothing, until somebody leaves
)

// step is what happens to one request, or to several in a row.
type step struct {
	kind       kind
	status     int
	commit     bool   // a write counts as done although the answer does not say so
	retryAfter string // value of the header, "" = none
	times      int    // 0 = for ever
}

// Script is what a Server does to the requests it gets, in order of arrival. The zero Script answers all healthily.
type Script struct {
	text  string
	steps []step
}

// The bounds of a script, so that a slip of the keyboard is an error and no load test.
const (
	maxSteps = 1000
	maxTimes = 1_000_000
)

// ScriptError is a script that cannot be read.
type ScriptError struct{ Step, Why string }

func (e *ScriptError) Error() string { return fmt.Sprintf("script step %q: %s", e.Step, e.Why) }

// ParseScript reads steps separated by commas; see the package for the words. Errors are a *ScriptError.
func ParseScript(s string) (Script, error) {
	words := strings.Split(s, ",")
	if len(words) > maxSteps {
		return Script{}, &ScriptError{Step: strconv.Itoa(len(words)) + " steps", Why: "more than " + strconv.Itoa(maxSteps)}
	}
	out := Script{text: s}
	for i, word := range words {
		st, err := parseStep(strings.TrimSpace(word))
		if err != nil {
			return Script{}, err
		}
		if st.times == 0 && i < len(words)-1 {
			return Script{}, &ScriptError{Step: word, Why: "happens for ever, so nothing can come after it"}
		}
		out.steps = append(out.steps, st)
	}
	return out, nil
}

// String is the script as it was written.
func (s Script) String() string { return s.text }

func parseStep(word string) (step, error) {
	fail := func(why string) (step, error) { return step{}, &ScriptError{Step: word, Why: why} }
	st := step{times: 1}
	what, times, repeated := strings.Cut(word, "*")
	if repeated {
		st.times = 0
		if times != "" {
			n, ok := digits(times, maxTimes)
			if !ok || n == 0 {
				return fail("after * stands nothing (for ever) or how often, at most " + strconv.Itoa(maxTimes))
			}
			st.times = n
		}
	}
	what, after, told := strings.Cut(what, ":")
	if told {
		if after == "" || strings.ContainsFunc(after, func(r rune) bool { return r < ' ' || r > '~' }) {
			return fail("after : stands the value of Retry-After")
		}
		st.retryAfter = after
	}
	what, st.commit = strings.CutPrefix(what, "commit")
	switch what {
	case "stale":
		st.kind, st.status = stale, http.StatusBadRequest
	case "html":
		st.kind, st.status = html, http.StatusOK
	case "half":
		st.kind, st.status = half, http.StatusOK
	case "reset":
		st.kind = reset
	case "close":
		st.kind = hangUp
	case "silence":
		st.kind = silence
	default:
		n, ok := digits(what, 599)
		if !ok || n < 200 {
			return fail("not a status from 200 to 599 and not one of stale, html, half, reset, close, silence")
		}
		st.status = n
	}
	if told && st.status == 0 {
		return fail("without an answer there is no Retry-After")
	}
	return st, nil
}

// digits reads a number without sign; most bounds it.
func digits(s string, most int) (int, bool) {
	if s == "" || len(s) > 7 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= most
}
