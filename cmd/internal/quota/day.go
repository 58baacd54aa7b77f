package quota

import "time"

// day is one day of the budget, from one reset to the next.
type day struct {
	name       string // the date on which it begins, in the zone of the reset
	begin, end time.Time
}

// dayOf is the day that a moment belongs to. Its end is the begin of the next one, computed the same way: days follow each
// other without gap or overlap also where the clock jumps, and have 23 to 25 hours then.
func dayOf(now time.Time, reset time.Duration, zone *time.Location) day {
	local := now.In(zone)
	at := func(offset int) time.Time {
		return clock(local.Year(), local.Month(), local.Day()+offset, int(reset/time.Minute), zone)
	}
	offset := 1
	for at(offset).After(now) {
		offset--
	}
	begin := at(offset)
	date := time.Date(local.Year(), local.Month(), local.Day()+offset, 12, 0, 0, 0, time.UTC)
	return day{name: date.Format(time.DateOnly), begin: begin, end: at(offset + 1)}
}

// clock is a time of day on a date. One that a jump of the clock leaves out is as long after midnight as it would have been:
// later than the jump, since a budget that begins anew too early is overdrawn.
func clock(year int, month time.Month, dayOfMonth, minutes int, zone *time.Location) time.Time {
	t := time.Date(year, month, dayOfMonth, 0, minutes, 0, 0, zone)
	want := time.Date(year, month, dayOfMonth, 0, minutes, 0, 0, time.UTC)
	_, offset := t.Zone()
	if shown := t.Add(time.Duration(offset) * time.Second); shown.Before(want) {
		t = t.Add(want.Sub(shown))
	}
	return t
}

// before is the name of a day some days earlier.
func (d day) before(days int) string {
	date, _ := time.Parse(time.DateOnly, d.name)
	return date.AddDate(0, 0, -days).Format(time.DateOnly)
}
