package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// Story is everything that is known about one document, oldest first in every list.
type Story struct {
	Row
	ExternalID string `json:"external_id"`
	Partner    string `json:"partner,omitempty"`
	Amount     string `json:"amount,omitempty"`
	Currency   string `json:"currency,omitempty"`
	Date       string `json:"date,omitempty"`
	Owner      string `json:"owner,omitempty"`

	Problem *ledger.Problem `json:"problem,omitempty"` // why it stands where it stands
	Next    time.Time       `json:"next,omitzero"`     // when flexid does something about it by itself
	Settled time.Time       `json:"settled,omitzero"`  // before it, an absence proves nothing and no decision takes effect

	Waits    string   `json:"waits,omitempty"` // what for, while it is not over
	Who      string   `json:"who,omitempty"`   // has to act; see Item.Owner
	Can      []string `json:"can,omitempty"`   // decisions; see Item
	Revision uint64   `json:"revision"`

	Events    []StoryEvent    `json:"events"`
	Attempts  []StoryAttempt  `json:"attempts"`
	Looks     []StoryLook     `json:"looks"`
	Decisions []StoryDecision `json:"decisions"`
	Sent      json.RawMessage `json:"sent"`              // the document of the shown event, as it was sent: a time in a date field is its day
	Found     *Found          `json:"found"`             // what the last look that found something showed
	Cut       int             `json:"cut,omitempty"`     // entries the ledger has left out of the middle
	Earlier   int             `json:"earlier,omitempty"` // events older than the ones shown
	Aside     []Row           `json:"aside,omitempty"`   // events of it that could not be stored here
}

// StoryEvent is one event of the document.
type StoryEvent struct {
	N        int             `json:"n"`
	EventID  string          `json:"event_id"`
	Op       flexi.Op        `json:"op"`
	Version  string          `json:"version,omitempty"`
	Received time.Time       `json:"received"`
	Subject  string          `json:"subject,omitempty"`
	Number   string          `json:"number,omitempty"`
	State    string          `json:"state"`
	Reason   string          `json:"reason,omitempty"`
	Cause    string          `json:"cause,omitempty"`
	Sends    int             `json:"sends"`
	Done     time.Time       `json:"done,omitzero"`
	Problem  *ledger.Problem `json:"problem,omitempty"`
}

// StoryAttempt is an attempt with the event it belongs to.
type StoryAttempt struct {
	Event int `json:"event"`
	ledger.Attempt
	Requests []flexi.Request `json:"requests"` // of the wire, in order
}

// StoryLook is a look with the event it belongs to.
type StoryLook struct {
	Event int `json:"event"`
	ledger.Look
}

// StoryDecision is a person's act with the event it belongs to.
type StoryDecision struct {
	Event int `json:"event"`
	ledger.Decision
}

// Found is what Flexi showed.
type Found struct {
	Time     time.Time           `json:"time,omitzero"`
	FlexiIDs []string            `json:"flexi_ids"`
	Verdict  string              `json:"verdict,omitempty"`
	Differ   []ledger.Difference `json:"differ,omitempty"` // fields on which sent and found do not agree
}

// maxEvents bounds one story: a document that is changed every minute for a year would not fit an answer.
const maxEvents = 500

// ReadStory puts a row and its events together. An event whose body has been cleared away is shown with what is left.
func ReadStory(ctx context.Context, l Ledger, id ledger.ID) (Story, error) {
	row, err := l.Get(ctx, id)
	if err != nil {
		return Story{}, fmt.Errorf("reading the document: %w", err)
	}
	s := Story{
		Row: RowOf(&row), ExternalID: string(row.Ext), Partner: row.Partner, Amount: row.Amount, Currency: row.Currency,
		Date: row.Date, Owner: row.Owner, Next: row.Due.UTC(), Settled: row.Quiet.UTC(),
		Events: []StoryEvent{}, Attempts: []StoryAttempt{}, Looks: []StoryLook{}, Decisions: []StoryDecision{},
	}
	first := max(1, row.Tail-maxEvents+1)
	s.Earlier = first - 1
	for n := first; n <= row.Tail; n++ {
		ev, err := l.Event(ctx, id, n)
		if errors.Is(err, ledger.ErrNoEvent) {
			s.Cut++
			continue
		}
		if err != nil {
			return Story{}, fmt.Errorf("reading event %d: %w", n, err)
		}
		s.add(&row, ev)
		if ev.N == row.Shown() {
			if s.Sent, err = verify.Document(ctx, l, id, &ev); errors.Is(err, ledger.ErrNoEvent) {
				s.Sent = ev.Body
			} else if err != nil {
				return Story{}, err
			}
			if story := storyOf(&row, &ev); story != nil {
				s.Sent = verify.AsSent(s.Sent, story)
			}
		}
	}
	s.Found = s.found()
	s.Aside, err = asideOf(ctx, l, id)
	return s, err
}

func (s *Story) add(row *ledger.Row, ev ledger.Event) {
	at := row.Standing(&ev)
	out := StoryEvent{N: ev.N, EventID: ev.EventID, Op: ev.Op, Received: ev.Received.UTC(), Subject: ev.Subject, Number: ev.Number,
		State: string(at.State), Reason: string(at.Reason), Cause: at.Cause, Sends: at.Sends, Done: at.At.UTC(), Problem: ev.Problem}
	if ev.Version != nil {
		out.Version = ev.Version.Text
	}
	if story := storyOf(row, &ev); story != nil {
		s.tell(ev.N, story)
		if story.Problem != nil {
			out.Problem = story.Problem
		}
	}
	if ev.N == row.Shown() {
		s.Problem = out.Problem
	}
	s.Events = append(s.Events, out)
}

// storyOf is what is known of an event, nil if nothing. Of the current one it is in the row; a copy at the event is older.
func storyOf(row *ledger.Row, ev *ledger.Event) *ledger.Story {
	if row.Work != nil && row.Work.N == ev.N {
		return &row.Work.Story
	}
	return ev.Story
}

func (s *Story) tell(n int, story *ledger.Story) {
	for _, a := range story.Attempts {
		a.Claimed, a.Ended = a.Claimed.UTC(), a.Ended.UTC()
		requests := append([]flexi.Request{}, a.Requests...)
		for i := range requests {
			requests[i].Time = requests[i].Time.UTC()
		}
		s.Attempts = append(s.Attempts, StoryAttempt{Event: n, Attempt: a, Requests: requests})
	}
	for _, l := range story.Looks {
		l.Time = l.Time.UTC()
		s.Looks = append(s.Looks, StoryLook{Event: n, Look: l})
	}
	for _, d := range story.Decisions {
		d.Time = d.Time.UTC()
		s.Decisions = append(s.Decisions, StoryDecision{Event: n, Decision: d})
	}
	s.Cut += story.Cut
}

func (s *Story) found() *Found {
	var f *Found
	for _, l := range s.Looks {
		if len(l.Found) > 0 {
			f = &Found{Time: l.Time, FlexiIDs: l.Found, Verdict: l.Verdict}
		}
	}
	if f == nil && s.FlexiID != "" {
		f = &Found{FlexiIDs: []string{s.FlexiID}}
	}
	if s.Problem != nil && len(s.Problem.Differ) > 0 {
		if f == nil {
			f = &Found{FlexiIDs: []string{}}
		}
		f.Differ = s.Problem.Differ
	}
	return f
}
