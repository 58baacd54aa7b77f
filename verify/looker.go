package verify

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"flexid/flexi"
)

// A look carries at most this many documents in one request, and waits this long for company.
const (
	lookPack   = 100
	lookLinger = 3 * time.Millisecond
)

// question asks what Flexi shows of one document: by every external id that was sent, by number and by Flexi id.
type question struct {
	evidence string
	exts     []flexi.ExternalID
	number   string // normalised; "" = the ERP draws it and has not told it yet
	partner  string // Flexi id of the partner, for numbers that are pairs
	id       string // Flexi id
	fields   []string
}

// answer is one look. Only a valid one counts: an invalid one proves nothing and uses nothing up.
type answer struct {
	valid   bool
	why     string    // of an invalid look
	since   time.Time // of an invalid look: the first of them in a row
	unfit   bool      // Flexi was asked and will answer so again
	alone   bool      // of this document alone: others of the evidence can be looked up
	at      time.Time
	records []flexi.Record // those that carry one of the identifiers asked for
	matches matches        // whose they are; set by Engine.lookUp
	// doubtful: the evidence shows no record at all, though it had some. It may have been emptied, or our rights are lost: no
	// proof for a resend.
	doubtful bool
}

type ask struct {
	q     question
	reply chan answer
}

// looker packs looks of the same evidence into one list request and proves each answer by a control record.
type looker struct {
	erp    Reader
	fence  *fence
	marks  *marks
	now    func() time.Time
	called func(kind string)
	report func(evidence string, err error) // how a read ended, for admission
	asks   chan ask

	mu       sync.Mutex
	controls map[string]control
	had      map[string]bool      // evidences of which we know that they have, or had, a record
	sent     map[string][]string  // ids of records that we made before this start
	bare     map[string]time.Time // since when such an evidence shows none
	distrust time.Duration        // how long that is not believed

	lookable func(evidence, why string) // an evidence can be looked up, or cannot and why
	sizes    map[string]lookSize        // after an answer that was too large
	spoilers map[string]bool            // documents whose questions spoil a pack
	streak   map[string]map[string]bool // documents that cannot be looked up since the last valid look
	since    map[string]time.Time       // when the invalid looks of a document began
	lost     map[string]time.Time       // since when a question gets no answer while others do
}

func newLooker(erp Reader, f *fence, m *marks, now func() time.Time, called func(string), report func(string, error)) *looker {
	return &looker{
		erp: erp, fence: f, marks: m, now: now, called: called, report: report, asks: make(chan ask), controls: map[string]control{},
		had: map[string]bool{}, sent: map[string][]string{}, bare: map[string]time.Time{}, distrust: 15 * time.Minute,
		lookable: func(string, string) {}, sizes: map[string]lookSize{}, spoilers: map[string]bool{}, streak: map[string]map[string]bool{},
		lost: map[string]time.Time{}, since: map[string]time.Time{},
	}
}

// ask waits for the answer to one question. The error is ctx's.
func (l *looker) ask(ctx context.Context, q question) (answer, error) {
	a := ask{q, make(chan answer, 1)}
	select {
	case l.asks <- a:
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	select {
	case ans := <-a.reply:
		return ans, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// run collects questions per evidence until ctx ends. One request an evidence is under way at a time: what comes meanwhile
// goes along with the next one.
func (l *looker) run(ctx context.Context) {
	var requests sync.WaitGroup
	defer requests.Wait()
	waiting := map[string][]ask{}
	busy := map[string]bool{}
	full, done := make(chan string), make(chan string)
	linger := func(evidence string) {
		busy[evidence] = true
		requests.Go(func() {
			t := time.NewTimer(lookLinger)
			defer t.Stop()
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
			sendTo(ctx, full, evidence)
		})
	}
	for {
		select {
		case a := <-l.asks:
			waiting[a.q.evidence] = append(waiting[a.q.evidence], a)
			if !busy[a.q.evidence] {
				linger(a.q.evidence)
			}
		case evidence := <-full:
			n := min(len(waiting[evidence]), lookPack)
			pack := waiting[evidence][:n:n]
			waiting[evidence] = waiting[evidence][n:]
			requests.Go(func() {
				l.answer(ctx, evidence, pack)
				sendTo(ctx, done, evidence)
			})
		case evidence := <-done:
			if busy[evidence] = false; len(waiting[evidence]) > 0 {
				linger(evidence)
			}
		case <-ctx.Done():
			return
		}
	}
}

func sendTo(ctx context.Context, to chan<- string, evidence string) {
	select {
	case to <- evidence:
	case <-ctx.Done():
	}
}

// request is one look on the wire.
func (l *looker) request(ctx context.Context, evidence string, pack []ask) (records []flexi.Record, f failure) {
	ctl, err := l.control(ctx, evidence)
	if err != nil {
		return nil, l.noControl(err)
	}
	l.called("lookup")
	known := l.marks.known()
	page, err := l.erp.List(ctx, flexi.Query{
		Evidence: evidence, Filter: flexi.Or(l.filters(evidence, ctl, pack)...), Fields: fieldsOf(pack), Lookup: true, Limit: 0, GlobalVersion: true,
	})
	if err == nil {
		l.marks.version(page.GlobalVersion, known)
	}
	switch {
	case err != nil:
		return nil, l.failed(evidence, err)
	case page.RowCount != len(page.Records):
		return nil, failure{why: miscounted(page), unfit: true, size: true}
	}
	l.report(evidence, nil)
	if ctl.id != "" && !slices.ContainsFunc(page.Records, func(r flexi.Record) bool { return r.ID() == ctl.id }) {
		return nil, l.controlLost(evidence, ctl.id)
	}
	if ctl.empty {
		l.forget(evidence)
		if ctl, err = l.control(ctx, evidence); err != nil {
			return nil, l.noControl(err)
		} else if !ctl.empty {
			return nil, failure{why: "the evidence stopped being empty during the look", retry: true}
		}
	}
	for _, r := range page.Records {
		l.fence.saw(evidence, r)
	}
	return page.Records, failure{}
}

// filters select what a pack asks about, the control and the witnesses.
func (l *looker) filters(evidence string, ctl control, pack []ask) (parts []flexi.Filter) {
	seen := map[string]bool{}
	for _, a := range pack {
		for _, f := range a.q.filters() {
			if s := f.String(); !seen[s] {
				seen[s] = true
				parts = append(parts, f)
			}
		}
	}
	if ctl.id != "" {
		parts = append(parts, flexi.IDEq(ctl.id))
	}
	return append(parts, l.witnesses(evidence)...)
}

func fieldsOf(pack []ask) []string {
	fields := []string{"id", "kod", "external-ids", "lastUpdate"}
	for _, a := range pack {
		fields = append(fields, a.q.fields...)
	}
	return mergeFields(fields)
}

func (q question) filters() []flexi.Filter {
	var fs []flexi.Filter
	for _, x := range q.exts {
		fs = append(fs, flexi.ExtEq(x))
	}
	for _, n := range q.spellings() {
		field, _ := flexi.NumberField(q.evidence)
		fs = append(fs, flexi.Eq(field, n))
	}
	if q.id != "" {
		fs = append(fs, flexi.IDEq(q.id))
	}
	return fs
}

// names says whether a record carries one of the identifiers asked for. The server's filter is not trusted: a filter that
// it ignores would bring strangers.
func (q question) names(r flexi.Record) bool {
	if q.id != "" && r.ID() == q.id {
		return true
	}
	for _, x := range r.ExternalIDs() {
		if slices.Contains(q.exts, flexi.ExternalID(x)) {
			return true
		}
	}
	return q.number != "" && q.numbered(r)
}

// spellings are the ways in which the number may be written. A supplier's number keeps its letter case, and one that differs
// in it alone is hardly another document.
func (q question) spellings() []string {
	if q.number == "" {
		return nil
	}
	n := []string{q.number}
	if _, pair := flexi.NumberField(q.evidence); pair {
		for _, s := range []string{strings.ToUpper(q.number), strings.ToLower(q.number)} {
			if !slices.Contains(n, s) {
				n = append(n, s)
			}
		}
	}
	return n
}

func (q question) numbered(r flexi.Record) bool {
	field, pair := flexi.NumberField(q.evidence)
	number := flexi.NormaliseNumber(q.evidence, r.Text(field))
	if number != q.number && !(pair && strings.EqualFold(number, q.number)) {
		return false
	}
	if !pair {
		return true
	}
	_, id := r.Ref("firma")
	return q.partner != "" && id == q.partner
}

// mergeFields joins the fields that several documents ask for; row collections are united by their inner fields.
func mergeFields(fields []string) []string {
	var names []string
	inner := map[string][]string{}
	for _, f := range fields {
		name, rest, rows := strings.Cut(f, "(")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		if rows {
			for _, x := range strings.Split(strings.TrimSuffix(rest, ")"), ",") {
				if !slices.Contains(inner[name], x) {
					inner[name] = append(inner[name], x)
				}
			}
		}
	}
	for i, n := range names {
		if in := inner[n]; len(in) > 0 {
			names[i] = n + "(" + strings.Join(in, ",") + ")"
		}
	}
	return names
}
