package webhook

import (
	"net/http"
	"strconv"

	"flexid/flexi"
)

// maxDepth bounds the memory that brackets alone can take.
const maxDepth = 64

// singleNames refuses JSON in which an object holds a name twice: one reader takes the first, the next the last, and the
// document that was checked would not be the one that is sent. Other faults of the JSON are found by who reads it.
func singleNames(body []byte) error {
	name, twice, deeper := flexi.RepeatedName(body, maxDepth)
	switch {
	case twice:
		return refuse(http.StatusUnprocessableEntity, reasonContent, "the JSON has the name "+shown(name)+" twice in one object")
	case deeper:
		return refuse(http.StatusUnprocessableEntity, reasonContent, "the JSON is nested deeper than "+strconv.Itoa(maxDepth)+" levels")
	}
	return nil
}

// shown quotes a name of the sender's, shortened.
func shown(s string) string {
	if runes := []rune(s); len(runes) > 60 {
		s = string(runes[:60]) + "…"
	}
	return strconv.Quote(s)
}
