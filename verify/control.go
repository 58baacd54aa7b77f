package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexid/flexi"
)

// control is a record that an unfiltered page of one showed; a look that does not bring it back along is no look, because
// lost rights or a stale copy would show "absent" as well.
type control struct {
	id    string
	empty bool // the page showed that the evidence has no record
	at    time.Time
}

// control is at most a minute old; an empty evidence is asked about each time.
func (l *looker) control(ctx context.Context, evidence string) (control, error) {
	l.mu.Lock()
	c, ok := l.controls[evidence]
	l.mu.Unlock()
	if ok && !c.empty && l.now().Sub(c.at) < 50*time.Second {
		return c, nil
	}
	l.called("lookup")
	known := l.marks.known()
	page, err := l.erp.List(ctx, flexi.Query{
		Evidence: evidence, Fields: []string{"id", "external-ids"}, Limit: 1, Order: flexi.NewestFirst, Lookup: true, GlobalVersion: true,
	})
	if err != nil {
		if _, unfit := flexi.Unfit(err); !unfit {
			l.report(evidence, err)
		}
		return control{}, err
	}
	c = control{at: l.now(), empty: len(page.Records) == 0}
	if !c.empty {
		c.id = page.Records[0].ID()
		l.fence.saw(evidence, page.Records[0])
	} else if page.RowCount > 0 {
		return control{}, fmt.Errorf("an empty page where Flexi counts %d", page.RowCount)
	}
	l.marks.raise(evidence, c.id)
	l.marks.version(page.GlobalVersion, known)
	l.report(evidence, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.controls[evidence] = c
	if !c.empty {
		l.had[evidence] = true
		delete(l.bare, evidence)
		return c, nil
	}
	if !l.had[evidence] {
		return c, nil
	}
	since, ok := l.bare[evidence]
	if !ok {
		since = c.at
		l.bare[evidence] = since
	}
	if c.at.Sub(since) < l.distrust {
		return control{}, fmt.Errorf("%s shows no record at all, though it had some: rights lost? believed only after %s", evidence, l.distrust)
	}
	return c, nil
}

// witnesses are asked for along with a look while nothing is known of the evidence's fence: records of ours from before
// this start. In a quiet evidence nobody else would settle that question.
func (l *looker) witnesses(evidence string) (parts []flexi.Filter) {
	if l.fence.of(evidence) != fenceUnknown {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.sent[evidence] {
		parts = append(parts, flexi.IDEq(id))
	}
	return parts
}

// mostWitnesses bounds how many are asked for: some may have been adopted or deleted since.
const mostWitnesses = 5

// knows takes note that the evidence has a record of ours, and of its id if we made it.
func (l *looker) knows(evidence, sent string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.had[evidence] = true
	if ids := l.sent[evidence]; sent != "" && !slices.Contains(ids, sent) {
		ids = append(ids, sent)
		l.sent[evidence] = ids[max(0, len(ids)-mostWitnesses):]
	}
}

// met says whether the evidence is known to have, or have had, a record.
func (l *looker) met(evidence string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.had[evidence]
}

// gone says that we deleted a record, so that none at all is no surprise.
func (l *looker) gone(evidence string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.had, evidence)
	delete(l.bare, evidence)
}

// doubtful says that an evidence that had records shows none. That ends: a person may have deleted the last one, and a create in
// doubt must not wait for ever for a record that never comes back. Were it our rights that are lost, the fence would refuse the
// second record all the same.
func (l *looker) doubtful(evidence string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, bare := l.bare[evidence]
	return bare && l.now().Sub(since) < 12*l.distrust
}

func (l *looker) forget(evidence string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.controls[evidence] = control{empty: true}
}

// reset forgets what earlier pages showed: the books were set back, or are another company's.
func (l *looker) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.controls)
	clear(l.had)
	clear(l.sent)
	clear(l.bare)
}
