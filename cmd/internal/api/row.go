package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// Row is one line of `docs list`, and the head of every story. Its names are a contract with scripts.
type Row struct {
	Evidence string    `json:"evidence"`
	Source   string    `json:"source"`
	Key      string    `json:"key"`
	Number   string    `json:"number"`
	State    string    `json:"state"`
	Reason   string    `json:"reason"`
	Cause    string    `json:"cause"`
	Sends    int       `json:"sends"`
	FlexiID  string    `json:"flexi_id"`
	Updated  time.Time `json:"updated"`

	SenderKey string `json:"sender_key,omitempty"` // of an event that could not be stored under it
}

// RowOf is the list view of a ledger row.
func RowOf(r *ledger.Row) Row {
	out := Row{
		Evidence: r.Evidence, Source: r.Source, Key: r.Key, Number: r.Number,
		State: string(r.State), Reason: string(r.Reason), Cause: r.Cause,
		Sends: r.Sends, FlexiID: r.FlexiID, Updated: r.Updated.UTC(),
	}
	if r.Aside != nil {
		out.SenderKey = r.Aside.Key
	}
	return out
}

// Filter chooses rows. The zero value lets everything pass, 100 rows of it.
type Filter struct {
	States           []string // states, or "open" = not final
	Reasons          []string
	Evidence, Number string
	Key              string
	From, To         string // document date, YYYY-MM-DD, both included
	Source, Cause    string
	Limit            int // 0 = all
	hasSource        bool
}

// DefaultLimit is how many rows a list shows when nobody says otherwise.
const DefaultLimit = 100

// maxSorted bounds the memory of a list that is sorted; a longer one comes in the order of the store.
const maxSorted = 10_000

func listParameters() []string {
	return []string{"state", "reason", "evidence", "key", "number", "from", "to", "source", "cause", "limit", "format"}
}

// ParseFilter reads the query of /documents. A parameter nobody knows is an error: a misspelt filter would otherwise
// show everything and look like an answer.
func ParseFilter(q url.Values) (Filter, error) {
	f := Filter{Limit: DefaultLimit, Evidence: q.Get("evidence"), Key: q.Get("key"), Number: verify.FoldNumber(q.Get("number")), From: q.Get("from"),
		To: q.Get("to"), Source: q.Get("source"), Cause: q.Get("cause"), hasSource: q.Has("source")}
	for name := range q {
		if !slices.Contains(listParameters(), name) {
			return f, fmt.Errorf("parameter %q is not one of %s", name, strings.Join(listParameters(), ", "))
		}
	}
	for _, list := range q["state"] {
		for _, state := range strings.Split(list, ",") {
			if err := checkState(state); err != nil {
				return f, err
			}
			f.States = append(f.States, state)
		}
	}
	for _, list := range q["reason"] {
		for _, reason := range strings.Split(list, ",") {
			if !slices.Contains(Reasons(), reason) {
				return f, fmt.Errorf("reason %q is not one of %s", reason, strings.Join(Reasons(), ", "))
			}
			f.Reasons = append(f.Reasons, reason)
		}
	}
	if !slices.Contains(flexi.Causes(), flexi.Cause(f.Cause)) && f.Cause != "" {
		return f, fmt.Errorf("cause %q is not one of %s", f.Cause, strings.Join(causes(), ", "))
	}
	for name, v := range map[string]string{"from": f.From, "to": f.To} {
		if _, err := time.Parse(time.DateOnly, v); v != "" && err != nil {
			return f, fmt.Errorf("%s is a document date such as 2026-01-31, not %q", name, v)
		}
	}
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return f, fmt.Errorf("limit is a number from 0 (all) up, not %q", v)
		}
		f.Limit = n
	}
	return f, nil
}

// States are the words of the filter by state, open meaning not final.
func States() []string {
	return []string{"open", string(ledger.Queued), string(ledger.Sending), string(ledger.Maybe), string(ledger.Confirmed),
		string(ledger.Parked), string(ledger.Dropped)}
}

// Reasons are the words of the filter by reason.
func Reasons() []string {
	return []string{string(ledger.Waiting), string(ledger.Behind), string(ledger.Blocked), string(ledger.WaitsFor), string(ledger.Adopted),
		string(ledger.Repeated), string(ledger.Superseded), string(ledger.Rejected), string(ledger.Conflict), string(ledger.Duplicate),
		string(ledger.Unknown), string(ledger.Unreadable), string(ledger.IDReused)}
}

func causes() []string {
	var all []string
	for _, c := range flexi.Causes() {
		all = append(all, string(c))
	}
	return all
}

func checkState(s string) error {
	if slices.Contains(States(), s) {
		return nil
	}
	return fmt.Errorf("state %q is not one of %s", s, strings.Join(States(), ", "))
}

// Match says whether the filter lets a row pass. A row without a document date is outside every span of dates.
func (f Filter) Match(r *ledger.Row) bool {
	return f.matchState(r) &&
		(len(f.Reasons) == 0 || slices.Contains(f.Reasons, string(r.Reason))) &&
		(f.Key == "" || f.Key == r.Key || flexi.NormaliseNumber(r.Evidence, f.Key) == r.Key) &&
		(f.Evidence == "" || f.Evidence == r.Evidence) &&
		(f.Number == "" || f.Number == verify.FoldNumber(r.Number)) &&
		(!f.hasSource && f.Source == "" || f.Source == r.Source) &&
		(f.Cause == "" || f.Cause == r.Cause) &&
		(f.From == "" || r.Date >= f.From) &&
		(f.To == "" || r.Date != "" && r.Date <= f.To)
}

func (f Filter) matchState(r *ledger.Row) bool { return f.allowsState(r.State, r.Reason) }

func (f Filter) allowsState(state ledger.State, reason ledger.Reason) bool {
	if len(f.States) == 0 {
		return true
	}
	for _, s := range f.States {
		if s == string(state) || s == "open" && !ledger.Final(state, reason) {
			return true
		}
	}
	return false
}

// allows says whether documents that stand so may match.
func (f Filter) allows(s verify.Standing) bool {
	return f.allowsState(s.State, s.Reason) && (len(f.Reasons) == 0 || slices.Contains(f.Reasons, string(s.Reason)))
}
