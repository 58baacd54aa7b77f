package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// Marks keeps how far the company's books were seen. Met by *ledger.Ledger.
type Marks interface {
	Marks(ctx context.Context) (ledger.Marks, uint64, error)
	SetMarks(ctx context.Context, m ledger.Marks, revision uint64) error
}

// marks is the memory of ledger.Marks: raised by everything that Flexi shows, stored every few seconds.
type marks struct {
	mu      sync.Mutex
	now     ledger.Marks
	dirty   bool
	fell    bool
	checked bool // Flexi was asked since the start
}

// higher compares Flexi ids as the numbers that they are.
func higher(a, b string) string {
	if len(a) > len(b) || len(a) == len(b) && a > b {
		return a
	}
	return b
}

// known is the highest @globalVersion seen so far.
func (m *marks) known() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now.Version
}

// version takes note of a @globalVersion; it never falls at a server that was not restored. before is what was known when
// the read began: answers of reads that run side by side arrive in any order.
func (m *marks) version(v, before int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checked = true
	if v > 0 && v < before && before <= m.now.Version {
		m.fell = true
	}
	if v > m.now.Version {
		m.now.Version, m.dirty = v, true
	}
}

// restored reports that the version fell, once for each read that showed it: it stays below the highest one until a person
// accepts that.
func (m *marks) restored() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	fell := m.fell
	m.fell = false
	return fell
}

// raise takes note of a Flexi id; "" only that the evidence was looked at.
func (m *marks) raise(evidence, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, ok := m.now.Tops[evidence]
	if ok && higher(have, id) == have {
		return
	}
	if m.now.Tops == nil {
		m.now.Tops = map[string]string{}
	}
	m.now.Tops[evidence], m.dirty = id, true
}

// top is the highest Flexi id of the evidence that was seen, "" if none, and when the company was accepted that showed it.
func (m *marks) top(evidence string) seenTop {
	m.mu.Lock()
	defer m.mu.Unlock()
	return seenTop{m.now.Tops[evidence], m.now.Accepted}
}

// seenTop is a highest id with the acceptance since which it counts.
type seenTop struct {
	id    string
	since time.Time
}

func (m *marks) era() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now.Era
}

func (m *marks) accepted() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now.Accepted
}

// unchecked says that the books were seen before this start, and nobody has asked since.
func (m *marks) unchecked() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.checked && m.now.Version > 0
}

// merge joins what is stored with what we saw. A later acceptance makes everything from before it void. accepted is that
// somebody else's is later than ours, store that ours knows more.
func (m *marks) merge(stored ledger.Marks) (all ledger.Marks, accepted, store bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if stored.Accepted.After(m.now.Accepted) || stored.Era > m.now.Era {
		m.now, m.dirty, m.fell = stored.Clone(), false, false
		return m.now.Clone(), true, false
	}
	if m.now.Accepted.After(stored.Accepted) || m.now.Era > stored.Era {
		return m.now.Clone(), false, true
	}
	m.now.Version = max(m.now.Version, stored.Version)
	for evidence, id := range stored.Tops {
		if m.now.Tops == nil {
			m.now.Tops = map[string]string{}
		}
		m.now.Tops[evidence] = higher(m.now.Tops[evidence], id)
	}
	m.now.Extra = maps.Clone(stored.Extra)
	return m.now.Clone(), false, m.dirty
}

// set begins anew from an acceptance.
func (m *marks) set(now ledger.Marks) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now, m.dirty, m.fell = now, false, false
}

func (m *marks) stored() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirty = false
}

// syncMarks stores what we saw and takes over what others did.
func (e *Engine) syncMarks(ctx context.Context) error {
	stored, rev, err := e.o.Ledger.Marks(ctx)
	if err != nil {
		return fmt.Errorf("reading how far the books were seen: %w", e.storeError(err))
	}
	era := e.marks.era()
	all, accepted, store := e.marks.merge(stored)
	if accepted {
		e.startOver(all.Era != era)
	}
	if !store {
		return nil
	}
	e.marks.stored()
	err = e.o.Ledger.SetMarks(ctx, all, rev)
	if err == nil {
		return nil
	}
	e.marks.unsaved() // in a quiet time nothing else would have them stored
	var conflict *ledger.ConflictError
	if errors.As(err, &conflict) {
		return nil
	}
	return fmt.Errorf("storing how far the books were seen: %w", e.storeError(err))
}

// unsaved notes that what was to be stored was not.
func (m *marks) unsaved() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirty = true
}

// startOver forgets what was read of the books before a person accepted them as they are now.
func (e *Engine) startOver(other bool) {
	e.looker.reset()
	e.metadata.reset()
	if other {
		e.fence.reset()
	}
}

const restoredRemedy = "check what is missing in Flexi, then `flexid company accept --restored` (`--new` if it is another company)"

// Restored stops all writes because the books lie below what was seen of them, unless a person has accepted that meanwhile,
// perhaps at another replica. since is the acceptance that the observation builds on.
func (e *Engine) Restored(since time.Time, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), stopsEvery)
	defer cancel()
	if err := e.syncMarks(ctx); err != nil {
		e.o.Log.Warn().Err(err).Msg("whether somebody accepted the company meanwhile is not known")
	}
	if e.marks.accepted().After(since) {
		return
	}
	e.StopFor("restored", text, restoredRemedy)
}

// noteVersion stops the writes when the version of all changes fell.
func (e *Engine) noteVersion() {
	since := e.marks.accepted()
	if e.marks.restored() {
		e.Restored(since, "Flexi's version of all changes is lower than it was: it was restored from a backup")
	}
}

// noteCreated compares the id of a new record with those that were there before its request was claimed.
func (e *Engine) noteCreated(ctx context.Context, row *ledger.Row, s jobResult) {
	if row.State != ledger.Confirmed || row.Work.Write != flexi.Create || len(s.res.Docs) == 0 || s.res.Docs[0].FlexiID == "" {
		return
	}
	id, doc := s.res.Docs[0].FlexiID, Address{row.Evidence, row.Source, row.Key}
	if s.top.id != "" && higher(s.top.id, id) == s.top.id {
		e.Restored(s.top.since, fmt.Sprintf("Flexi gave the new document %s the id %s, though it had %s before: it was restored from a backup", doc, id, s.top.id))
		return
	}
	e.marks.raise(row.Evidence, id)
	other, err := e.holderOfID(ctx, row, id)
	if err != nil {
		e.o.Log.Warn().Err(err).Str("document", doc.String()).Msg("whether another document has the same Flexi id is not known")
	}
	if other != nil {
		e.Restored(e.marks.accepted(), fmt.Sprintf("Flexi gave the new document %s the id %s, which is that of %s: it was restored from a backup",
			doc, id, Address{other.Evidence, other.Source, other.Key}))
	}
}

// checkBooks asks Flexi once after a start how far the books are, also if no document comes: they may have been restored
// while nobody ran.
func (e *Engine) checkBooks(ctx context.Context) {
	select {
	case <-e.ready:
	case <-ctx.Done():
		return
	}
	for pause := e.o.Settings.Probe; e.marks.unchecked(); pause = min(2*pause, 5*time.Minute) {
		evidence := e.marks.anEvidence()
		if evidence == "" {
			return
		}
		if _, err := e.looker.control(ctx, evidence); err == nil {
			return
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// anEvidence is one that was looked at before, "" if none.
func (m *marks) anEvidence() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if names := slices.Sorted(maps.Keys(m.now.Tops)); len(names) > 0 {
		return names[0]
	}
	return ""
}

// forgetOld takes out of a row, in memory, what it says about an earlier company's books: ids, effects, numbers, what
// follow-ups were due. Its history and its events stay.
func (e *Engine) forgetOld(row *ledger.Row) {
	era := e.marks.era()
	if row.Era >= era {
		return
	}
	row.Era = era
	row.Last, row.Base, row.Known, row.FlexiID, row.Marked, row.Numbers = nil, nil, nil, "", false, nil
	row.ReadBack, row.Late, row.Refused, row.Dropped = time.Time{}, nil, nil, nil
	if w := row.Work; w != nil && !w.Final {
		w.Target, w.Partner, w.Adopt = "", "", ""
		w.Before, w.BeforeU, w.BeforeT = nil, "", time.Time{}
		w.Absences, w.LastAbs = 0, time.Time{}
	}
}
