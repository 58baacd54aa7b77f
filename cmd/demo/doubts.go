package main

import (
	"fmt"

	"flexid/cmd/internal/api"
	"flexid/flexi"
	"flexid/verify/ledger"
)

// doubt is an event of which at least one send ended without a known outcome.
type doubt struct {
	document string
	op       flexi.Op
	because  string
	sends    int // that may have taken effect, or did
	looks    int
	found    bool // confirmed by a look, without another send
	ended    string
}

// parked is a document that a person has to look at.
type parked struct {
	document, reason, cause, text, todo string
}

// add takes over what the daemon tells about a document: what was in doubt, and what a person has to look at.
func (t *tally) add(s *api.Story) {
	address := s.Evidence + "/" + s.Key
	for _, ev := range s.Events {
		d := doubt{document: address, op: ev.Op, ended: ev.State}
		last := ""
		for _, a := range s.Attempts {
			if a.Event != ev.N {
				continue
			}
			last = a.Outcome
			if last == flexi.Maybe.String() || last == flexi.Accepted.String() {
				d.sends++
			}
			if last == flexi.Maybe.String() && d.because == "" {
				d.because = because(a)
			}
		}
		for _, l := range s.Looks {
			if l.Event == ev.N && l.Why == "settle" {
				d.looks++
			}
		}
		if d.because != "" {
			d.found = last == flexi.Maybe.String() && ev.State == string(ledger.Confirmed)
			t.doubts = append(t.doubts, d)
		}
	}
	if s.State == string(ledger.Parked) {
		t.parked = append(t.parked, parkedOf(s))
	}
}

// because is why the outcome of an attempt was not known.
func because(a api.StoryAttempt) string {
	if n := len(a.Requests); n > 0 && a.Requests[n-1].Status != 0 {
		return fmt.Sprintf("answer %d", a.Requests[n-1].Status)
	}
	return "no answer"
}

func parkedOf(s *api.Story) parked {
	p := parked{document: s.Evidence + "/" + s.Key, reason: s.Reason, cause: s.Cause}
	if s.Problem != nil {
		p.text = s.Problem.Text
		for _, m := range s.Problem.Errors {
			if m.Text != p.text {
				p.text += "; Flexi: " + m.Text
			}
		}
		for _, d := range s.Problem.Differ {
			p.text += fmt.Sprintf("; %s: sent %q, Flexi shows %q", d.Field, d.Sent, d.Found)
		}
	}
	p.todo = "flexid docs show " + p.document
	if s.Reason == string(ledger.Rejected) && s.Cause != "" {
		p.todo = flexi.Cause(s.Cause).Hint("en")
	}
	if s.Reason == string(ledger.Conflict) {
		p.todo = "compare both sides, then `flexid maybe confirm` (keep Flexi's) or `flexid maybe resend` (put the event's)"
	}
	return p
}
