package verify

import (
	"context"
	"fmt"
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
	why     string // of an invalid look
	at      time.Time
	records []flexi.Record // those that carry one of the identifiers asked for
	seen    sighting       // whose they are; set by Engine.lookUp
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
	report func(evidence string, err error) // how a read ended, for the gate
	asks   chan ask

	mu       sync.Mutex
	controls map[string]control
	had      map[string]bool      // evidences of which we know that they have, or had, a record
	sent     map[string][]string  // ids of records that we made before this start
	bare     map[string]time.Time // since when such an evidence shows none
	distrust time.Duration        // how long that is not believed
}

func newLooker(erp Reader, f *fence, m *marks, now func() time.Time, called func(string), report func(string, error)) *looker {
	return &looker{
		erp: erp, fence: f, marks: m, now: now, called: called, report: report, asks: make(chan ask), controls: map[string]control{},
		had: map[string]bool{}, sent: map[string][]string{}, bare: map[string]time.Time{}, distrust: 15 * time.Minute,
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
			tell(ctx, full, evidence)
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
				tell(ctx, done, evidence)
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

func tell(ctx context.Context, to chan<- string, evidence string) {
	select {
	case to <- evidence:
	case <-ctx.Done():
	}
}

func (l *looker) answer(ctx context.Context, evidence string, pack []ask) {
	for try := 0; ; try++ {
		records, why := l.request(ctx, evidence, pack)
		// The evidence stopped being empty while we looked: ask again, now with a control.
		if why == notEmptyAnyMore && try < 3 {
			continue
		}
		at := l.now()
		for _, a := range pack {
			ans := answer{valid: why == "", why: why, at: at, doubtful: l.doubtful(evidence)}
			if ans.valid {
				for _, r := range records {
					if a.q.names(r) {
						ans.records = append(ans.records, r)
					}
				}
			}
			a.reply <- ans
		}
		return
	}
}

const notEmptyAnyMore = "the evidence stopped being empty during the look"

// request is one look on the wire; why says in words what makes it invalid.
func (l *looker) request(ctx context.Context, evidence string, pack []ask) (records []flexi.Record, why string) {
	ctl, err := l.control(ctx, evidence)
	if err != nil {
		return nil, "no control record: " + err.Error()
	}
	var parts []flexi.Filter
	fields := []string{"id", "kod", "external-ids", "lastUpdate"}
	seen := map[string]bool{}
	for _, a := range pack {
		for _, f := range a.q.filters() {
			if s := f.String(); !seen[s] {
				seen[s] = true
				parts = append(parts, f)
			}
		}
		fields = append(fields, a.q.fields...)
	}
	if ctl.id != "" {
		parts = append(parts, flexi.IDEq(ctl.id))
	}
	parts = append(parts, l.witnesses(evidence)...)
	l.called("lookup")
	known := l.marks.known()
	page, err := l.erp.List(ctx, flexi.Query{
		Evidence: evidence, Filter: flexi.Or(parts...), Fields: mergeFields(fields), Lookup: true, Limit: 0, GlobalVersion: true,
	})
	if err == nil {
		l.marks.version(page.GlobalVersion, known)
	}
	l.report(evidence, err)
	if err != nil {
		return nil, err.Error()
	}
	if page.RowCount != len(page.Records) {
		return nil, fmt.Sprintf("%d rows where Flexi counts %d", len(page.Records), page.RowCount)
	}
	if ctl.id != "" && !slices.ContainsFunc(page.Records, func(r flexi.Record) bool { return r.ID() == ctl.id }) {
		l.forget(evidence)
		return nil, "the control record " + ctl.id + " did not come back: rights lost, or an old copy was read"
	}
	if ctl.empty {
		l.forget(evidence)
		if ctl, err = l.control(ctx, evidence); err != nil {
			return nil, "no control record: " + err.Error()
		} else if !ctl.empty {
			return nil, notEmptyAnyMore
		}
	}
	for _, r := range page.Records {
		l.fence.saw(evidence, r)
	}
	return page.Records, ""
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
