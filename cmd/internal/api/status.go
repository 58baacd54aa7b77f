package api

import (
	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// Names of parts.
const (
	PartERP    = "erp"
	PartNATS   = "nats"
	PartDisk   = "disk" // of the embedded NATS
	PartLedger = "ledger"
	PartIntake = "intake"
	PartStart  = "start"
)

// Part is one thing that flexid needs, and how it is.
type Part struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok, down, unknown
	Text   string `json:"text,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Wait is how many documents wait for the same thing.
type Wait struct {
	State     string `json:"state"`
	Reason    string `json:"reason"`
	Cause     string `json:"cause"`
	Documents int    `json:"documents"`
	Who       string `json:"who"`  // operator, flexid, or sender
	Text      string `json:"text"` // what for
	Do        string `json:"do"`   // the next step, "" = none
}

// parts says of each part how it is. What was not asked yet is unknown: "ok" must not be a guess.
func parts(st *Status) []Part {
	state := map[string]Part{}
	for _, t := range st.Troubles {
		name := t.Part
		switch name {
		case PartDisk:
			name = PartNATS
		case PartStart:
			name = PartLedger
		}
		if _, have := state[name]; !have {
			state[name] = Part{Name: name, State: "down", Text: t.Text, Remedy: t.Remedy}
		}
	}
	state[PartERP] = erpPart(st)
	all := make([]Part, 0, 4)
	for _, name := range []string{PartERP, PartNATS, PartLedger, PartIntake} {
		p, have := state[name]
		if !have {
			p = Part{Name: name, State: "ok"}
			_, without := state[PartNATS]
			_, unopened := state[PartLedger]
			if name != PartNATS && without || name == PartIntake && unopened {
				p.State = "unknown" // it lies behind what is down
			}
		}
		all = append(all, p)
	}
	return all
}

func erpPart(st *Status) Part {
	p := Part{Name: PartERP, State: "unknown"}
	if st.Checked != nil {
		p.State, p.Text = "ok", ""
		if st.Checked.Text != "" {
			p.State, p.Text, p.Remedy = "down", st.Checked.Text, "`flexid doctor` says what to do"
		}
	}
	if st.Engine == nil {
		return p
	}
	for _, g := range st.Engine.Stops {
		switch g.Reason {
		case "outage", "login", "licence", "company", "restored":
			if !g.Open && g.Evidence == "" {
				return Part{Name: PartERP, State: "down", Text: g.Reason + ": " + g.Text, Remedy: g.Remedy}
			}
		}
	}
	return p
}

// stopped says whether something keeps documents from being sent.
func stopped(st *Status) bool {
	if !st.Ready || st.Engine == nil {
		return true
	}
	for _, g := range st.Engine.Stops {
		if !g.Open {
			return true
		}
	}
	return false
}

// waits says what waits for whom; documents that are over wait for nobody.
func waits(e *verify.Status) []Wait {
	all := []Wait{}
	if e == nil {
		return all
	}
	for _, s := range e.Standings {
		w := Wait{State: string(s.State), Reason: string(s.Reason), Cause: s.Cause, Documents: s.Documents, Who: OwnerFlexid}
		switch s.State {
		case ledger.Confirmed, ledger.Dropped:
			continue
		case ledger.Sending:
			w.Text = "is being sent"
		default:
			w.Text = sentence(&ledger.Row{State: s.State, Reason: s.Reason})
		}
		switch {
		case s.State == ledger.Parked:
			chosen := "--reason " + w.Reason
			if s.Cause != "" {
				w.Text = flexi.Cause(s.Cause).Hint("en")
				chosen += " --cause " + s.Cause
			}
			w.Who, w.Do = OwnerOperator, "`flexid maybe list "+chosen+"` shows them"
			if s.Reason == ledger.Rejected {
				w.Do += "; once it is put right in Flexi: `flexid maybe resend " + chosen + "`"
			}
		case s.State == ledger.Queued && s.Reason == ledger.Blocked && needsYou(e.Stops):
			w.Who, w.Do = OwnerOperator, "see the stops"
		}
		all = append(all, w)
	}
	return all
}

func needsYou(stops []verify.Stop) bool {
	for _, g := range stops {
		if !g.Open && g.NeedsYou {
			return true
		}
	}
	return false
}
