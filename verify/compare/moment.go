package compare

import (
	"strings"
	"time"
)

// parseMoment reads a date with or without a time, with or without a zone. Fractions of a second may have any length.
func parseMoment(text string) (t time.Time, zoned, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) > len(time.DateOnly) && text[len(time.DateOnly)] == ' ' {
		text = text[:len(time.DateOnly)] + "T" + text[len(time.DateOnly)+1:]
	}
	for _, layout := range []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02Z07:00",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true, true
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, false, true
		}
	}
	return time.Time{}, false, false
}

// sameMoment compares instants where both sides have a zone, else what a clock on the wall shows: the server's zone is
// not ours to guess. ok is false if a side is no moment.
func sameMoment(sent, found string) (same, ok bool) {
	a, aZoned, okA := parseMoment(sent)
	b, bZoned, okB := parseMoment(found)
	if !okA || !okB {
		return false, false
	}
	if aZoned && bZoned {
		return a.Equal(b), true
	}
	return wall(a).Equal(wall(b)), true
}

func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}
