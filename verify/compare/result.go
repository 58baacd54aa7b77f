package compare

import (
	"strings"
	"unicode/utf8"
)

// Bounds of what a Result holds: it is stored in a ledger row of limited size, and a document of a thousand rows may
// differ in every one of them.
const (
	maxText    = 200 // runes of a field, a value or a reason
	maxEntries = 20  // entries of each list
)

// Difference is one field on which sent and found do not agree. Texts are cut at 200 runes. A field of a row is written
// with its path, counted from 0 as it was sent: "polozkyFaktury[2].cenaMj".
type Difference struct {
	Field string `json:"field"`
	Sent  string `json:"sent"`
	Found string `json:"found"`
}

// Result is what Compare found, in the order of field names and rows. Each list ends after 20 entries.
type Result struct {
	Differ  []Difference `json:"differ,omitempty"`  // fields that decide and do not agree
	Noted   []Difference `json:"noted,omitempty"`   // free texts that differ
	Skipped []string     `json:"skipped,omitempty"` // fields not compared, with why: "firma: ext:X:1 could not be resolved"
	More    int          `json:"more,omitempty"`    // entries left out of the three lists
}

// Equal reports whether the record is the document of a create. ours: the record stands under our own external id; free
// texts that a person may have polished since do not count then.
//
// It must not decide whether an update took effect: an update of nothing but a note would count as done while the old
// note stands. Use Shown there.
func (r Result) Equal(ours bool) bool {
	return len(r.Differ) == 0 && (ours || len(r.Noted) == 0)
}

// Shown reports whether every field sent is proved to be in the record, free texts too and nothing skipped. Only then is
// an update needless or done.
func (r Result) Shown() bool {
	return len(r.Differ) == 0 && len(r.Noted) == 0 && len(r.Skipped) == 0
}

func (r *Result) differ(d Difference) {
	if len(r.Differ) == maxEntries {
		r.More++
		return
	}
	r.Differ = append(r.Differ, d.clipped())
}

func (r *Result) note(d Difference) {
	if len(r.Noted) == maxEntries {
		r.More++
		return
	}
	r.Noted = append(r.Noted, d.clipped())
}

func (r *Result) skip(field, why string) {
	if len(r.Skipped) == maxEntries {
		r.More++
		return
	}
	r.Skipped = append(r.Skipped, clip(field+": "+why))
}

func (d Difference) clipped() Difference {
	return Difference{Field: clip(d.Field), Sent: clip(d.Sent), Found: clip(d.Found)}
}

func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	return string([]rune(s)[:maxText-1]) + "…"
}
