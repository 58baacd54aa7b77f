package flexi

import (
	"strings"
	"time"
)

// zoned are the ways in which senders write a moment: a day, a time and a zone.
var zoned = []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00"}

// Day is the day that a text in a date field means. A moment (a time with Z or an offset) is the day that it is in zone: at
// 23:30 UTC on the last of February it is March in Prague, and another month for the tax office. A time without a zone keeps
// its day, so does a midnight with an offset of its own (a day, as many programs write it), and a date, whatever stands
// behind it: Flexi itself writes 2026-03-01+01:00. A nil zone leaves the day of a moment as it is written. ok is false when
// the text does not begin with a date.
func Day(text string, zone *time.Location) (day string, ok bool) {
	text = strings.TrimSpace(text)
	if t, is := moment(text); is && zone != nil {
		if t.Hour() != 0 || t.Minute() != 0 || t.Second() != 0 || t.Nanosecond() != 0 {
			t = t.In(zone)
		}
		return t.Format(time.DateOnly), true
	}
	if len(text) > len(time.DateOnly) {
		if strings.IndexByte("Tt +-Z", text[len(time.DateOnly)]) < 0 {
			return "", false
		}
		text = text[:len(time.DateOnly)]
	}
	_, err := time.Parse(time.DateOnly, text)
	return text, err == nil
}

func moment(text string) (time.Time, bool) {
	if len(text) <= len(time.DateOnly) {
		return time.Time{}, false
	}
	// A blank or a small t for T, and a small z for Z, are common.
	rest := strings.ToUpper(text[len(time.DateOnly):])
	if rest[0] == ' ' {
		rest = "T" + strings.TrimSpace(rest)
	}
	for _, layout := range zoned {
		if t, err := time.Parse(layout, text[:len(time.DateOnly)]+rest); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
