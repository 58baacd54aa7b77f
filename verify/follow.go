package verify

import (
	"time"

	"flexid/verify/ledger"
)

// lull is how long a change waits at least for word from a worker of ours.
const lull = 100 * time.Millisecond

// follower feeds the scheduler from the ledger's watch. Nearly all changes are our own: the worker that stored one shows it to
// the scheduler, but the watch is often quicker than the server's answer to that worker. Reading each row for that reason would
// cost more than all else that becomes of it here. So a change waits a little, and its row is read only if the scheduler has not
// seen it by then. That makes nothing late: what another replica wrote is left alone for much longer (afterOthers).
type follower struct {
	*Engine
	live           bool // every row that was there has been read
	younger, older held // the older ones are read at the next tick, the younger ones at the one after it
	tick           *time.Timer
}

// held are changes that wait, the last one of each row.
type held map[ledger.ID]ledger.Change

// follow works until the watch ends.
func (e *Engine) follow(changes <-chan ledger.Change) {
	f := follower{Engine: e, younger: held{}, older: held{}, tick: time.NewTimer(lull)}
	defer f.tick.Stop()
	for {
		select {
		case c, open := <-changes:
			if !open {
				return
			}
			f.take(c)
		case <-f.tick.C:
			f.age()
		}
	}
}

// take takes in one change of the watch.
func (f *follower) take(c ledger.Change) {
	switch {
	case c.Ready:
		f.live = true
		f.scheduler.scanDone()
		f.readyOnce.Do(func() { close(f.ready) })
		f.evidences.ready()
	case c.Resync:
		// The bucket may have been restored: lower revisions than before are then the truth.
		f.live = false
		clear(f.younger)
		clear(f.older)
		f.scheduler.resync()
		f.evidences.reset()
	case c.Err != nil:
		f.evidences.reset()
		f.ledgerTrouble(c.Err)
	case c.Deleted:
		f.o.Log.Error().Str("row", string(c.ID)).Msg("a row was deleted by hand: what it said about sent documents is lost")
		delete(f.younger, c.ID)
		delete(f.older, c.ID)
		f.scheduler.forget(c.ID)
		f.fence.forget(c.ID)
	case c.ID == "" || f.live && f.scheduler.has(c.ID, c.Revision):
	case f.live:
		f.evidences.meet(c.Evidence()) // this cannot wait: whoever asks hears which evidences have no document, see evidences
		f.keep(c)
	default:
		f.read(c)
	}
	f.evidences.shown(c.Revision)
}

func (f *follower) keep(c ledger.Change) {
	f.scheduler.hears(c.ID)
	if len(f.younger)+len(f.older) == 0 {
		f.tick.Reset(lull)
	}
	if _, waits := f.older[c.ID]; waits { // what changes all the time must not wait for ever
		f.older[c.ID] = c
		return
	}
	f.younger[c.ID] = c
}

// age reads what has waited long enough.
func (f *follower) age() {
	for id, c := range f.older {
		if !f.scheduler.has(id, c.Revision) {
			f.read(c)
		}
	}
	clear(f.older)
	f.younger, f.older = f.older, f.younger
	if len(f.older) > 0 {
		f.tick.Reset(lull)
	}
}

// read takes over what a row says that was there at our start, or that another replica wrote since.
func (f *follower) read(c ledger.Change) {
	row, err := c.Row()
	f.evidences.meet(row.Evidence)
	if err != nil {
		f.scheduler.cannotRead(c.ID)
		f.o.Log.Error().Err(err).Str("row", string(c.ID)).Msg("a row cannot be read: it is left alone")
		return
	}
	if !f.live { // later the control pages tell
		f.remember(&row)
	}
	moved := f.present(&row)
	due := f.due(&row)
	if moved && !due.IsZero() && row.State != ledger.Sending {
		due = f.o.Now() // to be stored as it counts now
	}
	if f.live && !due.IsZero() && row.State != ledger.Sending {
		// Another replica wrote this and is at it: come after it, or both would look and only one could claim.
		due = later(due, f.o.Now().Add(afterOthers))
	}
	f.put(&row, due, false)
}
