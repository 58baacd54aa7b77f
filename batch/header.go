package batch

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// header holds values by lower-case name: NATS keeps the case that a sender used, and senders use all of them.
type header map[string][]string

func readHeader(raw map[string][]string) header {
	head := make(header, len(raw))
	for name, values := range raw {
		name = strings.ToLower(name)
		for _, value := range values {
			head[name] = append(head[name], strings.TrimSpace(value))
		}
	}
	return head
}

// normal makes equal what a person would call the same key.
func normal(key string) string { return strings.TrimSpace(norm.NFC.String(key)) }

// badName says why a key or an event id is not taken; "" when it is.
func badName(s string) string {
	if !utf8.ValidString(s) {
		return "is not UTF-8"
	}
	if len(s) > maxName {
		return "has " + strconv.Itoa(len(s)) + " bytes, more than the " + strconv.Itoa(maxName) + " it may have"
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "holds a control character: " + quote(s)
	}
	return ""
}

// mostVersion bounds a version, bytes: the row of the document keeps it, and both zeros before a number and digits behind the
// seconds may be as many as one likes.
const mostVersion = 64

// isVersion holds for what versions are compared by: whole numbers with each other, times with each other.
func isVersion(s string) bool {
	if len(s) > mostVersion {
		return false
	}
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		return s[0] != '+'
	}
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}
