package push

import (
	"encoding/json"
	"regexp"
	"strings"

	"flexid/flexi"
)

// words say which events must not overtake each other: those of one document, and those of which one refers to the other (an
// invoice that gets in before its partner is rejected). They leave evidence and system out: a reference does not name its
// evidence, and to wait once too often costs a moment.
type words struct{ names, refs []string }

var referred = regexp.MustCompile(`"(code|ext):(?:[^"\\]|\\.)*"`)

func wordsOf(e *Entry) (w words) {
	w.names = append(w.names, keyWord(string(flexi.NewExternalID("x", "", e.Key))))
	for _, evidence := range []string{e.Evidence, ""} { // a payable has kod beside the supplier's number
		if n, ok, err := flexi.NumberOf(evidence, e.Body); err == nil && ok {
			w.names = append(w.names, numberWord(n.Value))
		}
	}
	for _, raw := range referred.FindAll(e.Body, -1) {
		var ref string
		if json.Unmarshal(raw, &ref) != nil {
			continue // it stands inside a text
		}
		if code, ok := strings.CutPrefix(ref, "code:"); ok {
			w.refs = append(w.refs, numberWord(code))
		} else {
			w.refs = append(w.refs, keyWord(ref))
		}
	}
	return w
}

// keyWord is the key in an external id, as it was sent or hashed.
func keyWord(ext string) string { return "key " + flexi.ExternalID(ext).Key() }

// numberWord compares numbers more loosely than any evidence does.
func numberWord(number string) string {
	return "number " + strings.ToUpper(flexi.NormaliseNumber("", number))
}

// held are the words of the events under way, with how many hold them.
type held struct{ names, refs map[string]int }

func newHeld() held { return held{map[string]int{}, map[string]int{}} }

func (h held) add(w words, n int) {
	count(h.names, w.names, n)
	count(h.refs, w.refs, n)
}

func count(in map[string]int, words []string, n int) {
	for _, word := range words {
		if in[word] += n; in[word] == 0 {
			delete(in, word)
		}
	}
}

// meets says whether an event under way must be in the stream before one with these words is sent.
func (h held) meets(w words) bool {
	for _, name := range w.names {
		if h.names[name] > 0 || h.refs[name] > 0 {
			return true
		}
	}
	for _, ref := range w.refs {
		if h.names[ref] > 0 {
			return true
		}
	}
	return false
}
