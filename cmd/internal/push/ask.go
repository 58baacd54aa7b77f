package push

import (
	"context"
	"fmt"

	"flexid/cmd/internal/api"
	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// Daemon answers about documents; the API's client meets it.
type Daemon interface {
	// Maybes gives every document that is a maybe now.
	Maybes(ctx context.Context, each func(api.Row)) error
	// Story gives one document; ok is false when the daemon does not know it (yet).
	Story(ctx context.Context, a verify.Address) (s api.Story, ok bool, err error)
	// Stopped says why documents of the evidences are not sent now, "" when they are.
	Stopped(ctx context.Context, evidences map[string]bool) (string, error)
}

// asked is how many stragglers one round asks about: each is a request.
const asked = 50

// askSome asks about the next events that are not over, in turn. Usually there is nothing to learn, since flexi.done has
// told all; a result that it lost would otherwise be waited for in vain.
func (r *runner) askSome(ctx context.Context, most int) error {
	if r.o.Daemon == nil {
		return nil
	}
	n := r.o.Spool.Len()
	for range n {
		if most == 0 || ctx.Err() != nil {
			break
		}
		i := r.next % n
		r.next = i + 1
		o, over, _, err := r.o.Spool.Standing(i)
		if err != nil {
			return err
		}
		if over || o == Unsent {
			continue
		}
		most--
		if err := r.ask(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) ask(ctx context.Context, i int) error {
	e, err := r.o.Spool.Entry(i)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, ok, err := r.o.Daemon.Story(ctx, e.address())
	if err != nil {
		return fmt.Errorf("asking the daemon about %s: %w", e.address(), err)
	}
	if !ok {
		return nil // intake has not come to it
	}
	if r.found(i, &s) {
		return nil
	}
	for _, row := range s.Aside { // what could not be stored under its key lies elsewhere
		a := verify.Address{Evidence: row.Evidence, Source: row.Source, Key: row.Key}
		s, ok, err := r.o.Daemon.Story(ctx, a)
		if err != nil {
			return fmt.Errorf("asking the daemon about %s: %w", a, err)
		}
		if ok && r.found(i, &s) {
			return nil
		}
	}
	return nil
}

// found notes what a story tells about the ith event; false where it tells nothing.
func (r *runner) found(i int, s *api.Story) bool {
	id, is := eventID(r.o.Run, i), false
	for _, ev := range s.Events {
		if ev.EventID == id {
			r.note(i, resultOf(s, &ev))
			is = true
		}
	}
	return is
}

func resultOf(s *api.Story, ev *api.StoryEvent) Result {
	out := Result{State: ledger.State(ev.State), Reason: ledger.Reason(ev.Reason), Cause: ev.Cause, Number: ev.Number, Sends: ev.Sends,
		FlexiID: s.FlexiID, Updated: s.Updated}
	if out.Reason == ledger.Behind && s.State == string(ledger.Parked) && !ledger.Final(ledger.Parked, ledger.Reason(s.Reason)) {
		out.Held = true
		out.Errors = []flexi.Message{{Text: "waits behind an earlier event of this document, which a person has to decide: flexid maybe show " +
			verify.Address{Evidence: s.Evidence, Source: s.Source, Key: s.Key}.String()}}
		return out
	}
	if p := ev.Problem; p != nil && out.State != ledger.Confirmed {
		if out.Errors = p.Errors; len(out.Errors) == 0 {
			out.Errors = []flexi.Message{{Text: p.Text}}
		}
	}
	return out
}

// askMaybes tells the maybes from what merely waits, for the report: flexi.done tells a maybe only when it ends. Maybes are
// few, since a row of them trips the breaker, so asking for all of them stays cheap however long the input is.
func (r *runner) askMaybes(ctx context.Context) error {
	if r.o.Daemon == nil {
		return nil
	}
	doubtful := map[verify.Address]bool{}
	err := r.o.Daemon.Maybes(ctx, func(row api.Row) {
		doubtful[verify.Address{Evidence: row.Evidence, Source: row.Source, Key: row.Key}] = true
	})
	if err != nil || len(doubtful) == 0 {
		return err
	}
	for i := range r.o.Spool.Len() {
		o, over, _, err := r.o.Spool.Standing(i)
		if err != nil {
			return err
		}
		if over || o == Unsent {
			continue
		}
		e, err := r.o.Spool.Entry(i)
		if err != nil {
			return err
		}
		if doubtful[e.address()] {
			if err := r.ask(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}
