package daemon

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"flexid/cmd/internal/api"
	"flexid/cmd/internal/quota"
	"flexid/flexi"
	"flexid/verify"
)

// standing is how the daemon stands, for health, status and metrics. Safe for concurrent use.
type standing struct {
	started time.Time

	mu        sync.Mutex
	phase     string
	api       string      // its address
	address   string      // of NATS
	connected func() bool // nil before the first connection
	broken    func() (why, remedy string)
	ledger    string // its id
	noLedger  *api.Trouble
	givenUp   string // what a person went on without, since this start
	intake    *api.Trouble
	room      *api.Trouble // nil = there is room
	engine    *verify.Engine
	quota     *quota.Quota
	checked   *api.Check
	client    *flexi.Client
}

func (s *standing) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *standing) setPhase(p string)         { s.set(func() { s.phase = p }) }
func (s *standing) reach(address string)      { s.set(func() { s.address = address }) }
func (s *standing) connection(is func() bool) { s.set(func() { s.connected = is }) }
func (s *standing) embedded(broken func() (why, remedy string)) {
	s.set(func() { s.broken = broken })
}
func (s *standing) setLedger(id string)         { s.set(func() { s.ledger, s.noLedger = id, nil }) }
func (s *standing) setNoLedger(t api.Trouble)   { s.set(func() { s.noLedger = &t }) }
func (s *standing) setGivenUp(text string)      { s.set(func() { s.givenUp = text }) }
func (s *standing) setIntake(t *api.Trouble)    { s.set(func() { s.intake = t }) }
func (s *standing) setRoom(t *api.Trouble)      { s.set(func() { s.room = t }) }
func (s *standing) setAPI(url string)           { s.set(func() { s.api = url }) }
func (s *standing) setChecked(c api.Check)      { s.set(func() { s.checked = &c }) }
func (s *standing) setQuota(q *quota.Quota)     { s.set(func() { s.quota = q }) }
func (s *standing) setClient(c *flexi.Client)   { s.set(func() { s.client = c }) }
func (s *standing) setEngine(e *verify.Engine)  { s.set(func() { s.engine = e }) }
func (s *standing) running() (e *verify.Engine) { s.set(func() { e = s.engine }); return e }

// refused tells whether the ERP asked for patience, nil if it did not.
func (s *standing) refused() *api.Refused {
	var c *flexi.Client
	s.set(func() { c = s.client })
	if c == nil {
		return nil
	}
	throttle := c.Throttle()
	if !throttle.Throttled {
		return nil
	}
	return &api.Refused{Until: throttle.Until.UTC(), Reason: throttle.Reason, Waiting: throttle.Waiting}
}

// lost says that the ledger is gone.
func (s *standing) lost() (is bool) { s.set(func() { is = s.noLedger != nil }); return is }

func (s *standing) about() api.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return api.Info{Started: s.started.UTC(), Phase: s.phase, NATS: s.address, Ledger: s.ledger, GivenUp: s.givenUp, Checked: s.checked}
}

// Status is the engine's, empty while none runs.
func (s *standing) Status() verify.Status {
	if e := s.running(); e != nil {
		return e.Status()
	}
	return verify.Status{}
}

// troubles are the reasons for not being ready. The ERP is not asked about: intake goes on without it.
func (s *standing) troubles() []api.Trouble {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []api.Trouble
	if s.broken != nil {
		if why, remedy := s.broken(); why != "" {
			all = append(all, api.Trouble{Part: api.PartDisk, Text: "NATS cannot write: " + why, Remedy: remedy})
		}
	}
	switch {
	case s.connected == nil:
		return []api.Trouble{{Part: api.PartNATS, Text: s.phase, Remedy: "see that the NATS server runs, and check FLEXID_NATS_URL and the login"}}
	case !s.connected():
		all = append(all, api.Trouble{Part: api.PartNATS, Text: "NATS at " + s.address + " is gone", Remedy: "see that the NATS server runs; flexid connects by itself"})
	}
	switch {
	case s.noLedger != nil:
		all = append(all, *s.noLedger)
	case s.engine == nil:
		all = append(all, api.Trouble{Part: api.PartStart, Text: s.phase})
	case s.room != nil:
		all = append(all, *s.room)
	case s.intake != nil:
		all = append(all, *s.intake)
	}
	return all
}

// statusText is how the daemon stands, in a line for the service manager: "running" must not stand there while nothing is
// sent.
func (d *daemon) statusText() string {
	var address, phase string
	d.standing.set(func() { address, phase = d.standing.api, d.standing.phase })
	if phase == "stopping" {
		return phase
	}
	text := "running"
	if t := d.standing.troubles(); len(t) > 0 {
		text = "not ready: " + t[0].Text
	} else {
		st := d.standing.Status()
		for _, g := range st.Stops {
			if g.Open {
				continue
			}
			what := "all evidences"
			if g.Evidence != "" {
				what = g.Evidence
			}
			text = fmt.Sprintf("writes stopped for %s (%s): %s; %d documents wait", what, g.Reason, g.Text, st.Waiting)
			break
		}
	}
	if address != "" {
		text += "; API at " + address
	}
	return strings.Join(strings.Fields(text), " ") // a line break would begin another message
}
