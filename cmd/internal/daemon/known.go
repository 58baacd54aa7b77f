package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"flexid/config/statedir"
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
		c.d.noteKnown(c.engine.Status().Documents)
	}
}

func (d *daemon) noteKnown(documents map[string]int) {
	if maps.Equal(documents, d.known.Documents) {
		return
	}
	d.known.Documents, d.known.Noted = documents, d.now().UTC()
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
