package verify

import (
	"time"

	"flexid/verify/ledger"
)

// This file keeps waits their length whatever is done to the machine's clock. A row stores instants of the wall clock, which
// people and NTP set. So each process turns what it reads into instants of its own monotonic clock, the first time it sees
// them, and judges by these: a clock that is set while it runs ends nothing early and holds nothing up. For a process that
// starts after the clock was set back the row is moved to the present once.

// clockSlack is how far the clocks of two machines may differ without a row being moved.
const clockSlack = time.Minute

// instants are the times of a row by which something is judged, in an order that stays. The last two say when Flexi was read.
func instants(row *ledger.Row) (all []*time.Time, reads int) {
	w := row.Work
	if w == nil {
		w = &ledger.Work{}
	}
	all = []*time.Time{&w.LastAbs, &w.BeforeT, &row.Due, &row.ReadBack, &row.Quiet, &w.FirstTry, &w.Ended, &w.Settle, &row.Updated}
	for i := range row.Late {
		all = append(all, &row.Late[i])
	}
	return all, 2
}

// setBack moves a row to the present that was written later than now: the clock was set back since. What was left of each
// wait when the row was written is left of it now. The settle time counts its full length from now, because a request may
// still be on its way as long as that. It reports whether the row has changed.
func setBack(row *ledger.Row, s Settings, now time.Time) bool {
	changed := false
	end := func(t *time.Time, length time.Duration) {
		if t.Sub(now) > length+clockSlack {
			*t = now.Add(length)
			changed = true
		}
	}
	longest := max(s.SettleNoAnswer, s.SettleServerError, s.SettleProxy)
	if w := row.Work; w != nil {
		longest = max(longest, w.Settle.Sub(w.Ended))
		if length := w.Settle.Sub(w.Ended); length >= 0 && !w.Settle.IsZero() && w.Ended.Sub(now) > clockSlack {
			w.Ended, w.Settle = now, now.Add(length)
			changed = true
		}
	}
	quiet := row.Quiet
	end(&quiet, longest)
	if back := row.Updated.Sub(now); back > clockSlack {
		ended, settle := time.Time{}, time.Time{}
		if row.Work != nil {
			ended, settle = row.Work.Ended, row.Work.Settle
		}
		all, _ := instants(row)
		for _, t := range all {
			if !t.IsZero() {
				*t = t.Add(-back)
			}
		}
		if row.Work != nil {
			row.Work.Ended, row.Work.Settle = ended, settle
		}
		changed = true
	}
	row.Quiet = quiet
	// Something else may have written the row since, so that only the lengths tell.
	end(&row.Due, max(2*time.Hour, unknownEvery, 2*s.Looks[len(s.Looks)-1], 2*longest))
	end(&row.ReadBack, s.ReadBack+s.ReadBack/4)
	for i := range row.Late {
		end(&row.Late[i], s.LateLooks[len(s.LateLooks)-1]+time.Minute)
	}
	if w := row.Work; w != nil {
		end(&w.FirstTry, 0)
		end(&w.Ended, 0)
	}
	return changed
}

// present makes a row that was just read one of this process: its waits count on our clock. It reports whether the row was
// moved and has to be stored.
func (e *Engine) present(row *ledger.Row) bool {
	stored := walls(row)
	moved := setBack(row, e.o.Settings, e.o.Now())
	e.scheduler.toMonotonic(row, stored, e.o.Settings.Fresh, e.o.Now())
	return moved
}

// express writes the instants of a row by the wall clock as it is set now, before the row is stored: what is on our clock may
// come from before somebody set the other one.
func (e *Engine) express(row *ledger.Row) {
	now := e.o.Now()
	all, _ := instants(row)
	for _, t := range all {
		if t.IsZero() || !monotonic(*t) {
			continue
		}
		if as := now.Add(t.Sub(now)); as.Round(0).Sub(t.Round(0)).Abs() > clockSlack {
			*t = as
		}
	}
}

// walls are the instants of a row as it is stored.
func walls(row *ledger.Row) (at []int64) {
	all, _ := instants(row)
	for _, t := range all {
		at = append(at, t.UnixNano())
	}
	return at
}

// wall is what the machine's clock will show at an instant of ours, as far as is known now.
func (e *Engine) wall(t time.Time) time.Time {
	now := e.o.Now()
	return now.Round(0).Add(t.Sub(now))
}

// localTimes are the instants of a row as this process knows them, on its own monotonic clock.
type localTimes struct {
	revision uint64
	at       []instant
}

type instant struct {
	stored int64     // as the row says, by some wall clock
	at     time.Time // with a monotonic reading of ours
}

// toMonotonic turns the instants of a row into those of our monotonic clock. A look at Flexi that another process made, or that
// we cannot date any more, counts as too old to build a write upon. With a clock that has no monotonic reading, such as virtual
// time has, nothing could be dated, and no write would ever leave: there the wall clock is believed.
func (sc *scheduler) toMonotonic(row *ledger.Row, stored []int64, fresh time.Duration, now time.Time) {
	if !monotonic(now) {
		return
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	known := sc.times[row.ID]
	if row.Revision < known.revision {
		known = localTimes{} // the watch runs behind: good for this once
	}
	all, reads := instants(row)
	seen := localTimes{row.Revision, make([]instant, len(all))}
	some := false
	for i, t := range all {
		if t.IsZero() {
			continue
		}
		switch {
		case monotonic(*t):
		case i < len(known.at) && known.at[i].stored == stored[i]:
			*t = known.at[i].at
		case i < reads:
			*t = now.Add(-2 * fresh)
		default:
			*t = now.Add(t.Sub(now))
		}
		seen.at[i] = instant{stored[i], *t}
		some = some || t != &row.Updated
	}
	switch {
	case row.Revision < sc.times[row.ID].revision:
	case some:
		sc.times[row.ID] = seen
	default:
		delete(sc.times, row.ID)
	}
}

// monotonic says whether a time was read from the clock of this process: what comes from the store has the wall clock only.
func monotonic(t time.Time) bool { return t != t.Round(0) }
