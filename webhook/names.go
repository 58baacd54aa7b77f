package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// maxDepth bounds the memory that brackets alone can take.
const maxDepth = 64

// singleNames refuses JSON in which an object holds a name twice: one reader takes the first, the next the last, and the
// document that was checked would not be the one that is sent. Other faults of the JSON are found by who reads it.
func singleNames(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var open []map[string]bool // names so far; nil = a list
	isName := false
	for {
		t, err := d.Token()
		if err != nil {
			return nil
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if len(open) == maxDepth {
				return refuse(http.StatusUnprocessableEntity, reasonContent, "the JSON is nested deeper than "+strconv.Itoa(maxDepth)+" levels")
			}
			var names map[string]bool
			if t == json.Delim('{') {
				names = map[string]bool{}
			}
			open, isName = append(open, names), names != nil
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if isName {
				name, _ := t.(string)
				if names := open[len(open)-1]; names[name] {
					return refuse(http.StatusUnprocessableEntity, reasonContent, "the JSON has the name "+shown(name)+" twice in one object")
				} else {
					names[name] = true
				}
				isName = false
				continue
			}
		}
		isName = len(open) > 0 && open[len(open)-1] != nil
	}
}

// shown quotes a name of the sender's, shortened.
func shown(s string) string {
	if runes := []rune(s); len(runes) > 60 {
		s = string(runes[:60]) + "…"
	}
	return strconv.Quote(s)
}
