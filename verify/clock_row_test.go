package verify

import (
	"testing"
	"time"

	"flexid/verify/ledger"
)

// TestSetBack: what a process that starts after the clock was set back makes of a row.
func TestSetBack(t *testing.T) {
	s := Settings{System: "s", Company: "c", Instance: "i", Run: "r"}
	s.defaults()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) time.Time { return now.Add(d) }
	const day = 24 * time.Hour
	for _, c := range []struct {
		name  string
		row   ledger.Row
		want  ledger.Row
		moved bool
	}{
		{"as it should be", ledger.Row{Updated: in(-time.Minute), Due: in(time.Hour), Quiet: in(10 * time.Minute), Late: []time.Time{in(time.Hour), in(day)}},
			ledger.Row{Updated: in(-time.Minute), Due: in(time.Hour), Quiet: in(10 * time.Minute), Late: []time.Time{in(time.Hour), in(day)}}, false},
		{"another machine's clock is a little ahead", ledger.Row{Updated: in(30 * time.Second), Due: in(time.Minute)},
			ledger.Row{Updated: in(30 * time.Second), Due: in(time.Minute)}, false},
		{"a day back", ledger.Row{Updated: in(day), Due: in(day + time.Minute), ReadBack: in(day + time.Minute), Late: []time.Time{in(2 * day)}, Work: &ledger.Work{FirstTry: in(day - time.Hour)}},
			ledger.Row{Updated: now, Due: in(time.Minute), ReadBack: in(time.Minute), Late: []time.Time{in(day)}, Work: &ledger.Work{FirstTry: in(-time.Hour)}}, true},
		{"a settle time counts its full length", ledger.Row{Updated: in(day), Quiet: in(day + 5*time.Minute), Work: &ledger.Work{Ended: in(day - 10*time.Minute), Settle: in(day + 5*time.Minute)}},
			ledger.Row{Updated: now, Quiet: in(15 * time.Minute), Work: &ledger.Work{Ended: now, Settle: in(15 * time.Minute)}}, true},
		{"ten minutes back: it ends when it should at the latest", ledger.Row{Updated: in(9 * time.Minute), Quiet: in(14 * time.Minute), Work: &ledger.Work{Ended: in(-time.Minute), Settle: in(14 * time.Minute)}},
			ledger.Row{Updated: now, Quiet: in(14 * time.Minute), Work: &ledger.Work{Ended: in(-time.Minute), Settle: in(14 * time.Minute)}}, true},
		{"written since: the lengths tell", ledger.Row{Updated: in(-time.Minute), Due: in(365 * day), ReadBack: in(day), Late: []time.Time{in(day), in(40 * day)}, Work: &ledger.Work{FirstTry: in(day)}},
			ledger.Row{Updated: in(-time.Minute), Due: in(2 * time.Hour), ReadBack: in(75 * time.Second), Late: []time.Time{in(day), in(day + time.Minute)}, Work: &ledger.Work{FirstTry: now}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.row.Work == nil {
				c.row.Work, c.want.Work = &ledger.Work{}, &ledger.Work{}
			}
			if moved := setBack(&c.row, s, now); moved != c.moved {
				t.Errorf("moved: %v", moved)
			}
			got, _ := instants(&c.row)
			want, _ := instants(&c.want)
			for i := range got {
				if !got[i].Equal(*want[i]) {
					t.Errorf("instant %d is %s, want %s", i, got[i], want[i])
				}
			}
			if setBack(&c.row, s, now) {
				t.Error("it is moved again")
			}
		})
	}
}

func TestAcceptanceComesAfterThoseBefore(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, before := range map[string]time.Time{"never accepted": {}, "an hour ago": now.Add(-time.Hour), "the clock was set back a year": now.AddDate(1, 0, 0), "at the same moment": now} {
		if at := acceptedAt(now, before, time.Time{}); !at.After(before) || before.Before(now) && !at.Equal(now) {
			t.Errorf("%s: %s", name, at)
		}
	}
}
