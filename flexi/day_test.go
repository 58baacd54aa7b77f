package flexi_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"flexid/flexi"
)

func TestDay(t *testing.T) {
	prague, err := time.LoadLocation("Europe/Prague")
	if err != nil {
		t.Fatal(err)
	}
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, text string
		zone       *time.Location
		want       string // "" = no date
	}{
		{"a date", "2026-02-28", prague, "2026-02-28"},
		{"a date as Flexi writes it", "2026-03-01+01:00", prague, "2026-03-01"},
		{"a date with Z", "2026-03-01Z", prague, "2026-03-01"},
		{"a moment late in the evening", "2026-02-28T23:30:00Z", prague, "2026-03-01"},
		{"with a fraction", "2026-02-28T23:30:00.123456Z", prague, "2026-03-01"},
		{"without seconds", "2026-02-28T23:30Z", prague, "2026-03-01"},
		{"with a blank and small letters", "2026-02-28 23:30:00z", prague, "2026-03-01"},
		{"with an offset", "2026-02-28T18:30:00-05:00", prague, "2026-03-01"},
		{"with an offset without a colon", "2026-02-28T18:30:00-0500", prague, "2026-03-01"},
		{"with an offset of hours alone", "2026-02-28T18:30:00-05", prague, "2026-03-01"},
		{"before midnight there, too", "2026-02-28T22:59:59Z", prague, "2026-02-28"},
		{"midnight there", "2026-02-28T23:00:00Z", prague, "2026-03-01"},
		{"in summer", "2026-06-30T22:00:00Z", prague, "2026-07-01"},
		{"midnight with its own offset", "2026-03-01T00:00:00+01:00", prague, "2026-03-01"},
		{"midnight with an offset far from here", "2026-03-01T00:00:00+14:00", prague, "2026-03-01"},
		{"midnight with Z, west of it", "2026-03-01T00:00:00Z", newYork, "2026-03-01"},
		{"no zone", "2026-02-28T23:30:00", prague, "2026-02-28"},
		{"nobody says where we are", "2026-02-28T23:30:00Z", nil, "2026-02-28"},
		{"over New Year", "2025-12-31T23:00:01Z", prague, "2026-01-01"},
		{"a time that is none keeps the day", "2026-02-28T99:99", prague, "2026-02-28"},
		{"a day that is none", "2026-02-30T23:30:00Z", prague, ""},
		{"words", "yesterday", prague, ""},
		{"longer words", "2026-02-28x23:30", prague, ""},
		{"nothing", "", prague, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := flexi.Day(tc.text, tc.zone)
			if ok != (tc.want != "") || ok && got != tc.want {
				t.Errorf("%q, %v; want %q", got, ok, tc.want)
			}
		})
	}
}

func FuzzDay(f *testing.F) {
	f.Add("2026-02-28T23:30:00Z")
	f.Add("2026-03-01+01:00")
	f.Fuzz(func(t *testing.T, text string) {
		day, ok := flexi.Day(text, time.FixedZone("", 3600))
		if !ok {
			return
		}
		if again, ok := flexi.Day(day, time.UTC); !ok || again != day {
			t.Errorf("the day %q of %q is no day itself: %q, %v", day, text, again, ok)
		}
	})
}
