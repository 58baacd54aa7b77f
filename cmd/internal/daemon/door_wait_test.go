package daemon

import (
	"context"
	"testing"

	"flexid/verify/ledger"
)

// shelf is a ledger of one row.
type shelf struct {
	row    ledger.Row
	events map[int]ledger.Event
}

func (s shelf) Get(_ context.Context, id ledger.ID) (ledger.Row, error) {
	if id != s.row.ID {
		return ledger.Row{}, ledger.ErrNoRow
	}
	return s.row, nil
}

func (s shelf) Event(_ context.Context, _ ledger.ID, n int) (ledger.Event, error) {
	return s.events[n], nil
}

func (s shelf) AsideEvent(_ context.Context, eventID string) ([]ledger.ID, error) {
	if eventID == "aside" {
		return []ledger.ID{s.row.ID}, nil
	}
	return nil, nil
}

// TestWaitJudgesItsOwnEvent: what another event of the document is at does not change what became of the one waited for.
func TestWaitJudgesItsOwnEvent(t *testing.T) {
	confirmed := &ledger.End{State: ledger.Confirmed, Sends: 1}
	one, two := ledger.Event{N: 1, EventID: "one"}, ledger.Event{N: 2, EventID: "two"}
	kept := one
	kept.State, kept.Sends = ledger.Confirmed, 1
	for name, c := range map[string]struct {
		row    ledger.Row
		events map[int]ledger.Event
		state  ledger.State
		over   bool
		event  string
	}{
		"alone, over": {ledger.Row{State: ledger.Confirmed, Head: 1, Tail: 1, Work: &ledger.Work{N: 1, Final: true, End: confirmed}},
			map[int]ledger.Event{1: one}, ledger.Confirmed, true, "one"},
		"over, and the next one appended": {ledger.Row{State: ledger.Queued, Head: 1, Tail: 2, Work: &ledger.Work{N: 1, Final: true, End: confirmed}},
			map[int]ledger.Event{1: one, 2: two}, ledger.Confirmed, true, "one"},
		"over, and the next one begun": {ledger.Row{State: ledger.Sending, Head: 2, Tail: 2, Work: &ledger.Work{N: 2}},
			map[int]ledger.Event{1: kept, 2: two}, ledger.Confirmed, true, "one"},
		"appended behind one that is over": {ledger.Row{State: ledger.Queued, Head: 1, Tail: 2, Work: &ledger.Work{N: 1, Final: true, End: confirmed}},
			map[int]ledger.Event{1: one, 2: two}, ledger.Queued, false, "two"},
		"behind one that is parked": {ledger.Row{State: ledger.Parked, Reason: ledger.Conflict, Head: 1, Tail: 2, Work: &ledger.Work{N: 1}},
			map[int]ledger.Event{1: one, 2: two}, ledger.Queued, false, "two"},
		"set aside": {ledger.Row{State: ledger.Parked, Reason: ledger.Unreadable, Head: 1, Tail: 1, Aside: &ledger.Aside{Key: "K"},
			Work: &ledger.Work{N: 1, Final: true, End: &ledger.End{State: ledger.Parked, Reason: ledger.Unreadable}}},
			map[int]ledger.Event{1: {N: 1, EventID: "aside"}}, ledger.Parked, true, "aside"},
	} {
		t.Run(name, func(t *testing.T) {
			c.row.ID = "the row"
			asked := c.row.ID
			if c.row.Aside != nil {
				asked = "the document it names"
			}
			told, over := outcome(t.Context(), shelf{c.row, c.events}, asked, c.event)
			if told.State != c.state || over != c.over || told.EventID != c.event {
				t.Errorf("%s is %s, over %v; want %s, %v", told.EventID, told.State, over, c.state, c.over)
			}
		})
	}
}
