package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"flexid/verify"
	"flexid/verify/ledger"
)

// DecideRequest is the body of a decision about several documents. Either Documents names them, or Filter finds them; what
// is found is decided by the revision at which it was found. Who wants to see before he decides asks with DryRun and sends
// what came back as Documents.
type DecideRequest struct {
	By        string       `json:"by"`
	Why       string       `json:"why,omitempty"`
	Documents []Target     `json:"documents,omitempty"`
	Filter    *QueueFilter `json:"filter,omitempty"`
	DryRun    bool         `json:"dry_run,omitempty"` // nothing is decided
	// Count is how many the filter must find, or nothing is decided; required with Filter unless DryRun.
	Count *int `json:"count,omitempty"`
}

// Target is one document that is decided. Address is evidence/[source:]key as a person writes it; without it the three
// fields count. Revision 0 takes the row as it is.
type Target struct {
	Address  string `json:"address,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	Source   string `json:"source,omitempty"`
	Key      string `json:"key,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
}

// QueueFilter chooses from the queue as the parameters of GET /queue do.
type QueueFilter struct {
	State    []string `json:"state,omitempty"`
	Reason   []string `json:"reason,omitempty"`
	Evidence string   `json:"evidence,omitempty"`
	Number   string   `json:"number,omitempty"`
	Cause    string   `json:"cause,omitempty"`
	From     string   `json:"from,omitempty"`
	To       string   `json:"to,omitempty"`
	Source   *string  `json:"source,omitempty"` // "" = without a source
}

// Values are the same as parameters.
func (q QueueFilter) Values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{"evidence": q.Evidence, "number": q.Number, "cause": q.Cause, "from": q.From, "to": q.To} {
		if text != "" {
			v.Set(name, text)
		}
	}
	for _, s := range q.State {
		v.Add("state", s)
	}
	for _, s := range q.Reason {
		v.Add("reason", s)
	}
	if q.Source != nil {
		v.Set("source", *q.Source)
	}
	return v
}

// Decided is what became of one document of a DecideRequest.
type Decided struct {
	Row
	Revision uint64 `json:"revision"` // of the row as it was seen
	Result   string `json:"result"`
	Text     string `json:"text,omitempty"` // why not
}

// Results of a decision about one document.
const (
	ResultDone    = "done"
	ResultWould   = "would"   // dry run: it is offered
	ResultRefused = "refused" // it makes no sense for this document; see the text
	ResultChanged = "changed" // the document is another one than was seen: look again
	ResultLater   = "later"   // Flexi or NATS does not answer, or an attempt may still take effect
	ResultMissing = "missing" // no such document
	ResultFailed  = "failed"
)

const (
	maxBulkBody = 8 << 20
	bulkWorkers = 32 // each mostly waits for a look, and looks share requests
	tiredAfter  = 64 // outcomes in a row that say "later" for want of Flexi or NATS
	bulkPause   = 5 * time.Minute
)

func (s *Server) decideMany(w http.ResponseWriter, r *http.Request) error {
	b, err := s.backend()
	if err != nil {
		return err
	}
	what := verify.What(r.PathValue("decision"))
	if err := knownDecision(what); err != nil {
		return err
	}
	var q DecideRequest
	if err := readBody(w, r, maxBulkBody, &q); err != nil {
		return err
	}
	act := Act{By: q.By, Why: q.Why}
	if !q.DryRun {
		if act, err = checkAct(act); err != nil {
			return err
		}
		if what != verify.DecideLook {
			if err := needWhy(act); err != nil {
				return err
			}
		}
	}
	seen, err := s.targets(r.Context(), b, what, &q)
	if err != nil {
		return err
	}
	w.Header().Set(HeaderMatched, strconv.Itoa(len(seen)))
	out := newRows(w, r)
	if q.DryRun {
		for i := range seen {
			out.row(seen[i])
		}
		return out.end()
	}
	limit := http.NewResponseController(w)
	for d := range s.decideAll(r.Context(), b.Decider, verify.Decision{What: what, By: act.By, Why: act.Why}, seen) {
		_ = limit.SetWriteDeadline(time.Now().Add(bulkPause)) // not every writer has one; then the server's own limit counts
		out.row(d)
		_ = limit.Flush()
	}
	return out.end()
}

// targets finds the documents of a request, each with whether the decision is offered for it.
func (s *Server) targets(ctx context.Context, b *Backend, what verify.What, q *DecideRequest) ([]Decided, error) {
	switch {
	case q.Filter == nil && len(q.Documents) == 0:
		return nil, newProblem(http.StatusUnprocessableEntity, "no document is named", `send "documents" or "filter"`)
	case q.Filter != nil && len(q.Documents) > 0:
		return nil, newProblem(http.StatusUnprocessableEntity, `"documents" and "filter" are both sent`, "send one of them")
	case q.Filter == nil:
		seen := make([]Decided, 0, len(q.Documents))
		for i := range q.Documents {
			d, err := s.target(ctx, b, what, &q.Documents[i])
			if err != nil {
				return nil, err
			}
			seen = append(seen, d)
		}
		return seen, nil
	}
	f, err := ParseFilter(q.Filter.Values())
	if err != nil {
		return nil, newProblem(http.StatusBadRequest, err.Error(), "")
	}
	items, matched, err := s.waiting(ctx, b, f)
	if err != nil {
		return nil, err
	}
	if len(items) < matched {
		return nil, newProblem(http.StatusUnprocessableEntity, fmt.Sprintf("%d documents match, more than the %d of one decision", matched, maxQueue),
			"choose fewer, by evidence or document date")
	}
	seen := make([]Decided, 0, len(items))
	offered := 0
	for i := range items {
		d := Decided{Row: items[i].Row, Revision: items[i].Revision, Result: ResultWould}
		if !slices.Contains(items[i].Can, string(what)) {
			d.Result, d.Text = ResultRefused, notOffered(what, items[i].Can)
		} else {
			offered++
		}
		seen = append(seen, d)
	}
	if !q.DryRun && (q.Count == nil || *q.Count != offered) {
		return nil, newProblem(http.StatusConflict, fmt.Sprintf("%d documents match", offered),
			`nothing was changed; send "count" with that number, or "dry_run" to see them`)
	}
	return seen, nil
}

func notOffered(what verify.What, can []string) string {
	return fmt.Sprintf("%s is not offered for it, but %s", what, listed(can))
}

func listed(words []string) string {
	text := ""
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			text += " and "
		default:
			text += ", "
		}
		text += w
	}
	if text == "" {
		return "nothing yet"
	}
	return text
}

func (s *Server) target(ctx context.Context, b *Backend, what verify.What, t *Target) (Decided, error) {
	a := verify.Address{Evidence: t.Evidence, Source: t.Source, Key: t.Key}
	d := Decided{Row: Row{Evidence: t.Evidence, Source: t.Source, Key: t.Key}, Revision: t.Revision}
	if t.Address != "" {
		found, err := s.find(ctx, b.Ledger, t.Address)
		var missing *verify.NotFoundError
		if errors.As(err, &missing) {
			a := missing.Address
			return Decided{Row: Row{Evidence: a.Evidence, Source: a.Source, Key: a.Key}, Result: ResultMissing, Text: err.Error()}, nil
		}
		if err != nil {
			return d, err
		}
		a = found
	}
	row, err := b.Ledger.Get(ctx, s.rowID(a))
	switch {
	case errors.Is(err, ledger.ErrNoRow):
		d.Result, d.Text = ResultMissing, (&verify.NotFoundError{Address: a}).Error()
		return d, nil
	case err != nil:
		return d, err
	}
	d.Row = RowOf(&row)
	switch d.Revision {
	case 0:
		d.Revision = row.Revision
	case row.Revision:
	default:
		d.Result, d.Text = ResultChanged, "it changed since it was listed: look at it and decide again"
		return d, nil
	}
	d.Result = ResultWould
	if can := b.Decider.Choices(&row); !slices.Contains(can, what) {
		words := make([]string, len(can))
		for i := range can {
			words[i] = string(can[i])
		}
		d.Result, d.Text = ResultRefused, notOffered(what, words)
	}
	return d, nil
}

// decideAll carries a decision out on what was seen, several documents at a time, and gives each result as it comes.
// Where Flexi or NATS does not answer, the rest is left alone: each would wait for as long.
func (s *Server) decideAll(ctx context.Context, by Decider, d verify.Decision, seen []Decided) <-chan Decided {
	out := make(chan Decided)
	var next, tired atomic.Int64
	next.Store(-1)
	var workers sync.WaitGroup
	for range min(bulkWorkers, len(seen)) {
		workers.Go(func() {
			for i := int(next.Add(1)); i < len(seen); i = int(next.Add(1)) {
				x := seen[i]
				switch {
				case x.Result != ResultWould:
				case tired.Load() >= tiredAfter:
					x.Result, x.Text = ResultLater, "left alone, since those before could not be decided either: see `flexid status`, then decide again"
				default:
					s.decideOne(ctx, by, d, &x, &tired)
				}
				select {
				case out <- x:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	go func() { // ends with the workers
		workers.Wait()
		close(out)
	}()
	return out
}

func (s *Server) decideOne(ctx context.Context, by Decider, d verify.Decision, x *Decided, tired *atomic.Int64) {
	a := verify.Address{Evidence: x.Evidence, Source: x.Source, Key: x.Key}
	d.Revision = x.Revision
	row, err := by.Decide(ctx, a, d)
	var said *verify.DecisionError
	if err == nil || errors.As(err, &said) {
		tired.Store(0)
	}
	if err == nil {
		s.o.Log.Info().Str("document", a.String()).Str("decision", string(d.What)).Str("by", d.By).Str("why", d.Why).Msg("decision taken")
		x.Row, x.Result = RowOf(&row), ResultDone
		return
	}
	p := problemOf(err)
	x.Text = p.Detail
	switch {
	case said != nil && said.Changed:
		x.Result = ResultChanged
	case p.Retry:
		x.Result = ResultLater
	case p.Status == http.StatusNotFound:
		x.Result = ResultMissing
	case said != nil:
		x.Result = ResultRefused
	default:
		x.Result = ResultFailed
	}
	if said == nil {
		tired.Add(1)
	}
}
