package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"flexid/config/statedir"
	"flexid/verify/ledger"
)

// noteEvery is how often the state directory is told what the ledger holds.
const noteEvery = time.Minute

// noteDocuments keeps what the ledger holds beside its id, until ctx ends and once more then: when the ledger is gone, that is
// all there is to say what is missing.
func (c *core) noteDocuments(ctx context.Context) {
	select {
	case <-c.engine.Ready(): // before, not all of it was read
	case <-ctx.Done():
		return
	}
	for more := true; more; {
		more = sleep(ctx, noteEvery)
		c.d.noteKnown(c.engine.Status().Documents, c.d.noteTaken(nil))
	}
}

// noteTaken adds how far streams were taken, and gives how far that is by all that was noted.
func (d *daemon) noteTaken(cursors map[string]uint64) map[string]uint64 {
	d.takenMu.Lock()
	defer d.takenMu.Unlock()
	for name, seq := range cursors {
		if d.taken == nil {
			d.taken = map[string]uint64{}
		}
		d.taken[name] = max(d.taken[name], seq)
	}
	return maps.Clone(d.taken)
}

// mayBeTaken is up to which message a stream may have been taken by a ledger that is gone: all of it, unless this process saw how
// far that was, at most ledgerPause before the loss. What another replica took in that moment is looked up in Flexi like all else,
// and its external id refuses a second record.
func (d *daemon) mayBeTaken(c ledger.Cursor) uint64 {
	if taken, ok := d.noteTaken(nil)[c.Stream]; ok && d.known.Streams[c.Stream].Equal(c.Made) {
		return min(taken, c.Replayed)
	}
	return c.Replayed
}

// forgetTaken: a person accepted what is there, and it is taken from its beginning.
func (d *daemon) forgetTaken(name string) {
	d.takenMu.Lock()
	defer d.takenMu.Unlock()
	delete(d.taken, name)
}

func (d *daemon) noteKnown(documents map[string]int, taken map[string]uint64) {
	if maps.Equal(documents, d.known.Documents) && maps.Equal(taken, d.known.Taken) {
		return
	}
	d.known.Documents, d.known.Taken, d.known.Noted = documents, taken, d.now().UTC()
	if err := statedir.WriteKnown(d.cfg.StateDir, d.cfg.NATS.Prefix, d.known); err != nil {
		d.log.Warn().Err(err).Msg("what the ledger holds could not be noted")
	}
}

// describeLost says what is missing when a person goes on without it.
func describeLost(what string, k statedir.Known) string {
	text := what
	if k.Ledger != "" {
		text += "; the ledger of before was " + k.Ledger
	}
	total := 0
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(k.Documents)) {
		if n := k.Documents[state]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if total == 0 {
		return text + "; what it held is not known"
	}
	return text + fmt.Sprintf("; on %s it held %d documents (%s). If the ledger is gone, what was sent of them can only be seen in Flexi: "+
		"each is looked up before its next write; those that waited, were in doubt or parked have to be sent again",
		k.Noted.UTC().Format(time.RFC3339), total, strings.Join(parts, ", "))
}
