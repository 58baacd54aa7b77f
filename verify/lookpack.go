package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexid/flexi"
)

// This file finds out why a look is invalid. An ERP that is away is looked at again later. One that answers, and will answer so
// again, must not be asked for ever in silence: either no document of the evidence can be looked up (its manner of answering
// lists), then its writes stop and a person hears of it, or some documents of the pack spoil it, then the pack is split.

// failure is why a look is invalid, "" as why for a valid one.
type failure struct {
	why   string
	unfit bool  // Flexi answered, and will answer the same question so again
	size  bool  // a question about fewer documents may do
	retry bool  // the evidence stopped being empty during the look
	all   bool  // of an unfit one: it is not about the documents asked for
	sick  error // the server failed: it may be ill, or choke on this question
}

const (
	spoiledMost  = 3                // documents that cannot be looked up, one after the other: it is not them
	sizeKept     = time.Hour        // how long looks stay smaller after an answer that was too large
	troubleMost  = 30 * time.Second // how long a look may fail while others do not before that is said
	triesOfEmpty = 3
)

// answer asks about a pack and replies to everyone in it.
func (l *looker) answer(ctx context.Context, evidence string, pack []ask) {
	for _, part := range l.parts(evidence, pack) {
		l.look(ctx, evidence, part)
	}
}

// parts are the requests for a pack: one for all, as far as answers are not too large; those that spoiled one before go alone.
func (l *looker) parts(evidence string, pack []ask) (parts [][]ask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := lookPack
	if s := l.sizes[evidence]; s.most > 0 && l.now().Sub(s.since) < sizeKept {
		most = s.most
	}
	var rest []ask
	for _, a := range pack {
		if l.spoilers[a.q.name()] {
			parts = append(parts, []ask{a})
			continue
		}
		if rest = append(rest, a); len(rest) == most {
			parts, rest = append(parts, rest), nil
		}
	}
	if len(rest) > 0 {
		parts = append(parts, rest)
	}
	return parts
}

// name tells a document's questions from those of others.
func (q question) name() string {
	if len(q.exts) == 0 {
		return q.evidence + "/" + q.id
	}
	return q.evidence + "/" + string(q.exts[0])
}

// look asks about one part of a pack, finds out what is wrong where the answer is invalid, and replies to everyone in it.
func (l *looker) look(ctx context.Context, evidence string, pack []ask) {
	var records []flexi.Record
	f := failure{retry: true}
	for try := 0; f.retry && try <= triesOfEmpty; try++ {
		records, f = l.request(ctx, evidence, pack)
	}
	switch {
	case f.why == "":
		l.fit(evidence, pack)
	case f.sick == nil && !f.unfit:
	case f.all:
		l.lookable(evidence, f.why)
	case !l.answersAtAll(ctx, evidence, &f):
		if f.unfit {
			l.lookable(evidence, f.why)
		}
	case len(pack) > 1:
		l.split(ctx, evidence, pack, f)
		return
	case f.unfit || l.lasts(pack[0].q.name()):
		f.unfit = true
		l.spoils(evidence, pack[0].q, f.why)
	}
	l.reply(evidence, pack, records, f)
}

// noControl is the failure where the page that shows a control record could not be had.
func (l *looker) noControl(err error) failure {
	_, unfit := flexi.Unfit(err)
	return failure{why: "no control record: " + err.Error(), unfit: unfit, all: unfit}
}

// failed sorts an error of a look. What is about the server as a whole is for admission.
func (l *looker) failed(evidence string, err error) failure {
	size, unfit := flexi.Unfit(err)
	var e *flexi.Error
	switch {
	case unfit:
		return failure{why: err.Error(), unfit: true, size: size}
	case errors.As(err, &e) && e.Status >= 500:
		return failure{why: err.Error(), sick: err, size: true}
	}
	l.report(evidence, err)
	return failure{why: err.Error()}
}

// lasts says whether something has been so for longer than a passing trouble.
func (l *looker) lasts(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, ok := l.lost[what]
	if !ok {
		since = l.now()
		l.lost[what] = since
	}
	return l.now().Sub(since) >= troubleMost
}

// split asks about each half, unless so many documents failed alone already that it cannot be them.
func (l *looker) split(ctx context.Context, evidence string, pack []ask, f failure) {
	half := len(pack) / 2
	if f.size {
		l.mu.Lock()
		l.sizes[evidence] = lookSize{max(half, 1), l.now()}
		l.mu.Unlock()
	}
	l.look(ctx, evidence, pack[:half])
	if l.spoiled(evidence) >= spoiledMost {
		l.reply(evidence, pack[half:], nil, f)
		return
	}
	l.look(ctx, evidence, pack[half:])
}

// lookSize is how many documents a look of an evidence asks about at most.
type lookSize struct {
	most  int
	since time.Time
}

// answersAtAll asks the same with the control record alone. Where that fails too, no document can be looked up, and f says so.
func (l *looker) answersAtAll(ctx context.Context, evidence string, f *failure) bool {
	l.mu.Lock()
	id := l.controls[evidence].id
	l.mu.Unlock()
	if id == "" {
		id = "0" // of an empty evidence: no record, and a count that says so
	}
	l.called("lookup")
	page, err := l.erp.List(ctx, flexi.Query{Evidence: evidence, Filter: flexi.Or(flexi.IDEq(id)), Fields: []string{"id"}, Lookup: true})
	switch size, unfit := flexi.Unfit(err); {
	case err == nil && page.RowCount == len(page.Records):
		return true
	case err == nil:
		*f = failure{why: miscounted(page), unfit: true}
	default:
		if !unfit {
			l.report(evidence, err)
		}
		*f = failure{why: err.Error(), unfit: unfit, size: size}
	}
	return false
}

func miscounted(page flexi.Page) string {
	if page.RowCount < 0 {
		return "Flexi does not say how many rows there are (add-row-count has no effect)"
	}
	return fmt.Sprintf("%d rows where Flexi counts %d", len(page.Records), page.RowCount)
}

// spoils notes a document that cannot be looked up while its evidence can. Several in a row are no accident.
func (l *looker) spoils(evidence string, q question, why string) {
	l.mu.Lock()
	l.spoilers[q.name()] = true
	if l.streak[evidence] == nil {
		l.streak[evidence] = map[string]bool{}
	}
	l.streak[evidence][q.name()] = true
	n := len(l.streak[evidence])
	l.mu.Unlock()
	if n >= spoiledMost {
		l.lookable(evidence, why)
	}
}

func (l *looker) spoiled(evidence string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.streak[evidence])
}

// fit notes a valid look.
func (l *looker) fit(evidence string, pack []ask) {
	l.mu.Lock()
	delete(l.lost, evidence)
	delete(l.streak, evidence)
	for _, a := range pack {
		delete(l.spoilers, a.q.name())
		delete(l.lost, a.q.name())
		delete(l.since, a.q.name())
	}
	l.mu.Unlock()
	l.lookable(evidence, "")
}

// controlLost is the failure where the control record did not come back. Once that is an old copy or a right just lost; when it
// goes on, nothing can be looked up.
func (l *looker) controlLost(evidence, id string) failure {
	l.forget(evidence)
	why := "the control record " + id + " did not come back: rights lost, or an old copy was read"
	lasts := l.lasts(evidence)
	return failure{why: why, unfit: lasts, all: lasts}
}

// failing is since when the looks of a document were invalid.
func (l *looker) failing(name string, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, ok := l.since[name]
	if !ok {
		since = now
		l.since[name] = since
	}
	return since
}

// reply gives everyone in a pack the records that carry one of the identifiers he asked for.
func (l *looker) reply(evidence string, pack []ask, records []flexi.Record, f failure) {
	at := l.now()
	alone := f.unfit && len(pack) == 1 && l.spoiled(evidence) < spoiledMost
	for _, a := range pack {
		ans := answer{valid: f.why == "", why: f.why, unfit: f.unfit, alone: alone, at: at, doubtful: l.doubtful(evidence)}
		if ans.valid {
			for _, r := range records {
				if a.q.names(r) {
					ans.records = append(ans.records, r)
				}
			}
		}
		if !ans.valid {
			ans.since = l.failing(a.q.name(), at)
		}
		a.reply <- ans
	}
}
