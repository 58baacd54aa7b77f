package flexitest

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Lie is how reads deceive.
type Lie uint8

// The lies of a look-up.
const (
	Honest      Lie = iota
	LostRights      // lists are empty, as for a user who may not see the records; the answer is still 200
	OnlySome        // records with an odd id are left out
	Stale           // what was committed within the given age does not show yet
	LoseControl     // records that are asked for by their numeric id are left out
)

// modes are the standing ways in which the server differs from a healthy one.
type modes struct {
	down        bool
	downEpoch   int
	slow        time.Duration
	slowEach    time.Duration
	lie         Lie
	lieAge      time.Duration
	hide        func(Record) bool
	ignoreFence bool
	dropExt     bool
	usedNumbers bool
	noWrites    bool // no licence for writing
	noRequestID bool
	nameless    bool // errors name no record
	forbidden   map[string]bool
	periods     [][2]string
	columns     map[string][]string
	manners
	questions
	habits habits
}

func newModes(o Options) modes {
	return modes{usedNumbers: o.AllowUsedNumbers, forbidden: map[string]bool{}, columns: map[string][]string{}, manners: newManners()}
}

func (m *modes) locked(day string) bool {
	return day != "" && slices.ContainsFunc(m.periods, func(p [2]string) bool { return p[0] <= day && day <= p[1] })
}

func (m *modes) dropsColumn(ev, column string) bool { return slices.Contains(m.columns[ev], column) }

func (s *Server) setMode(set func(*modes)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(&s.modes)
}

// SetDown takes the server down: the port is closed, live connections are cut. SetDown(false) brings it back to the same
// address.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setDown(down)
}

func (s *Server) setDown(down bool) {
	s.modes.downEpoch++
	if s.closed || s.modes.down == down {
		return
	}
	s.modes.down = down
	if !down {
		if s.addr != "" {
			if err := s.listen(s.addr); err != nil {
				panic("flexitest: the port was taken while the server was down: " + err.Error())
			}
		}
		return
	}
	if s.tcp != nil {
		_ = s.tcp.Close()
	}
	for c := range s.conns {
		abort(c)
	}
}

// DownFor takes the server down and brings it back after d, unless SetDown or DownFor is called in between.
func (s *Server) DownFor(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.setDown(true)
	epoch := s.modes.downEpoch
	s.wg.Go(func() {
		if !s.pause(context.Background(), d) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.modes.downEpoch == epoch {
			s.setDown(false)
		}
	})
}

// Slow makes every request wait d before the server looks at it.
func (s *Server) Slow(d time.Duration) { s.setMode(func(m *modes) { m.slow = d }) }

// SlowDocuments makes a write wait d longer for each document that it names.
func (s *Server) SlowDocuments(d time.Duration) { s.setMode(func(m *modes) { m.slowEach = d }) }

// LookLies makes reads of records deceive; age is used by Stale only.
func (s *Server) LookLies(l Lie, age time.Duration) {
	s.setMode(func(m *modes) { m.lie, m.lieAge = l, age })
}

// HideWhen leaves records out of every read for which hide says so; nil ends it. hide must not call the server.
func (s *Server) HideWhen(hide func(Record) bool) { s.setMode(func(m *modes) { m.hide = hide }) }

// IgnoreFence makes the server take "@update":"fail" for "ok", so that a second create changes the first record.
func (s *Server) IgnoreFence(on bool) { s.setMode(func(m *modes) { m.ignoreFence = on }) }

// DropExternalIDs makes the server lose external ids of writes without a word.
func (s *Server) DropExternalIDs(on bool) { s.setMode(func(m *modes) { m.dropExt = on }) }

// AllowUsedNumbers switches the uniqueness of document numbers off.
func (s *Server) AllowUsedNumbers(on bool) { s.setMode(func(m *modes) { m.usedNumbers = on }) }

// OmitRequestIDs makes answers leave out which record of a request an id belongs to.
func (s *Server) OmitRequestIDs(on bool) { s.setMode(func(m *modes) { m.noRequestID = on }) }

// NamelessErrors makes refusals leave out which record of a request they are about.
func (s *Server) NamelessErrors(on bool) { s.setMode(func(m *modes) { m.nameless = on }) }

// SetLicence says whether the licence covers writing. Without it writes are 402 and reads of records 404.
func (s *Server) SetLicence(write bool) { s.setMode(func(m *modes) { m.noWrites = !write }) }

// SetRight says whether the user has rights to an evidence; without them everything there is 403.
func (s *Server) SetRight(evidence string, has bool) {
	s.setMode(func(m *modes) { m.forbidden[evidence] = !has })
}

// ReadOnlyColumns names fields that the user may not write: they are dropped without a word. No names end it. Rows have
// their own evidence, e.g. faktura-vydana-polozka.
func (s *Server) ReadOnlyColumns(evidence string, columns ...string) {
	s.setMode(func(m *modes) {
		m.columns = maps.Clone(m.columns)
		m.columns[evidence] = columns
	})
}

// LockPeriod locks all documents dated from to to, inclusive (YYYY-MM-DD).
func (s *Server) LockPeriod(from, to string) {
	s.setMode(func(m *modes) { m.periods = append(m.periods, [2]string{from, to}) })
}

// UnlockPeriods removes all period locks.
func (s *Server) UnlockPeriods() { s.setMode(func(m *modes) { m.periods = nil }) }

// SetPassword changes the password of Options.User; sessions end.
func (s *Server) SetPassword(password string) { s.AddUser(s.opt.User, password) }

// AddUser adds a user or changes the password of one.
func (s *Server) AddUser(name, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[name] = password
	s.endSessions(name)
}

// MakeStale makes the context of a user stale: writes are refused with a bare message until the user is logged out.
func (s *Server) MakeStale(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale[user] = true
}
