package quota

import (
	"testing"
	"time"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestDayOf(t *testing.T) {
	for name, tc := range map[string]struct {
		now, zone, day string
		reset          time.Duration
		length         time.Duration
	}{
		"an ordinary day":       {"2026-11-30T12:00:00Z", "Europe/Prague", "2026-11-30", 0, 24 * time.Hour},
		"the reset itself":      {"2026-11-29T23:00:00Z", "Europe/Prague", "2026-11-30", 0, 24 * time.Hour},
		"a moment before":       {"2026-11-29T22:59:59Z", "Europe/Prague", "2026-11-29", 0, 24 * time.Hour},
		"before a later reset":  {"2026-11-30T04:59:00Z", "Europe/Prague", "2026-11-29", 6 * time.Hour, 24 * time.Hour},
		"spring":                {"2026-03-29T10:00:00Z", "Europe/Prague", "2026-03-29", 0, 23 * time.Hour},
		"autumn":                {"2026-10-25T10:00:00Z", "Europe/Prague", "2026-10-25", 0, 25 * time.Hour},
		"spring, in the jump":   {"2026-03-29T10:00:00Z", "Europe/Prague", "2026-03-29", 150 * time.Minute, 23 * time.Hour},
		"another zone":          {"2026-11-30T12:00:00Z", "Pacific/Auckland", "2026-12-01", 0, 24 * time.Hour},
		"midnight in the jump":  {"2026-09-06T12:00:00Z", "America/Santiago", "2026-09-06", 0, 23 * time.Hour},
		"a day that never was":  {"2011-12-31T12:00:00Z", "Pacific/Apia", "2012-01-01", 0, 24 * time.Hour},
		"UTC, last second":      {"2026-12-31T23:59:59Z", "UTC", "2026-12-31", 0, 24 * time.Hour},
		"reset a minute before": {"2026-12-31T23:59:59Z", "UTC", "2026-12-31", 24*time.Hour - time.Minute, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, tc.now)
			if err != nil {
				t.Fatal(err)
			}
			d := dayOf(now, tc.reset, zone(t, tc.zone))
			if d.name != tc.day || d.end.Sub(d.begin) != tc.length || now.Before(d.begin) || !now.Before(d.end) {
				t.Errorf("%s: %s to %s (%s)", d.name, d.begin, d.end, d.end.Sub(d.begin))
			}
		})
	}
	if got := (day{name: "2026-03-01"}).before(8); got != "2026-02-21" {
		t.Error(got)
	}
}

// FuzzDayOf: every moment lies in exactly one day, days follow each other, and a name stands for one day only.
func FuzzDayOf(f *testing.F) {
	zones := []string{"Europe/Prague", "UTC", "America/Santiago", "Pacific/Apia", "Pacific/Auckland", "America/New_York", "Asia/Tehran"}
	f.Add(int64(1774747800), 150, 0) // the night of the jump in spring
	f.Add(int64(1792890000), 150, 0) // and in autumn
	f.Add(int64(1757131200), 0, 2)
	f.Fuzz(func(t *testing.T, unix int64, minutes, which int) {
		loc := zone(t, zones[uint(which)%uint(len(zones))])
		reset := time.Duration(uint(minutes)%1440) * time.Minute
		now := time.Unix(int64(uint64(unix)%4e9), 0)
		d := dayOf(now, reset, loc)
		next := dayOf(d.end, reset, loc)
		last := dayOf(d.end.Add(-time.Nanosecond), reset, loc)
		switch {
		case now.Before(d.begin) || !now.Before(d.end):
			t.Errorf("%s is not in %s to %s", now, d.begin, d.end)
		case last.name != d.name || !last.begin.Equal(d.begin) || !last.end.Equal(d.end):
			t.Errorf("the last moment of %+v is in %+v", d, last)
		case !next.begin.Equal(d.end) || next.name <= d.name:
			t.Errorf("%+v is followed by %+v", d, next)
		}
	})
}
