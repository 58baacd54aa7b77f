package ledger

import (
	"strings"
	"unicode/utf8"

	"flexid/flexi"
)

// Limits of a stored row, in bytes. Each leaves room for what has to be stored after it: a row that took an event can be
// claimed, and a claimed one can take its outcome.
const (
	maxRow   = 32 << 10 // a row never has more
	cutAt    = 24 << 10 // from here on the middle of the history is left out; a claim has no more even so
	mostBare = 8 << 10  // without the work on its current event, for a row that takes an event
)

// limits are those of a store that takes values up to payload bytes; 0 = it takes all.
func limits(payload int64) (most, claim, bare int) {
	most, claim, bare = maxRow, cutAt, mostBare
	if payload > 0 && payload < maxRow {
		most, claim, bare = int(payload), int(payload*3/4), int(payload/4)
	}
	return most, claim, bare
}

// bare checks that a row which takes an event can still be claimed: what is not history cannot be cut then.
func (r *Row) bare(limit int) error {
	if len(r.Numbers) < 100 && len(r.Key) <= 1024 && limit >= mostBare {
		return nil // far below, without writing it out
	}
	row := *r
	row.Work = nil
	data, err := row.Marshal()
	if err != nil {
		return err
	}
	if len(data) > limit {
		return &TooLargeError{Key: rowKey(r.ID), Bytes: len(data), Limit: limit}
	}
	return nil
}

// cut says how much of a history is kept: entries at both ends, bytes per text, errors and requests per attempt.
type cut struct{ first, last, text, list int }

// fit writes the row; if it is larger than a claim may be, it first leaves out the middle of its story, more and more. More
// than most bytes are an error. It replaces what it cuts and never changes slices that a copy of the row may share.
func (r *Row) fit(claim, most int) ([]byte, error) {
	data, err := r.Marshal()
	if err != nil || len(data) <= claim {
		return data, err
	}
	steps := []cut{{10, 20, 1000, 10}, {10, 20, 400, 4}, {5, 10, 200, 2}, {2, 4, 100, 1}}
	for _, c := range steps {
		if r.Work == nil {
			break
		}
		work := *r.Work
		work.Story = c.story(work.Story)
		work.Reject = c.problem(work.Reject)
		r.Work = &work
		if data, err = r.Marshal(); err != nil || len(data) <= claim {
			return data, err
		}
	}
	if len(data) > most {
		return nil, &TooLargeError{Key: rowKey(r.ID), Bytes: len(data), Limit: most}
	}
	return data, nil
}

func (c cut) story(s Story) Story {
	s.Attempts = middle(c, s.Attempts, &s.Cut)
	s.Looks = middle(c, s.Looks, &s.Cut)
	s.Decisions = middle(c, s.Decisions, &s.Cut)
	s.Problem = c.problem(s.Problem)
	for i := range s.Attempts {
		a := &s.Attempts[i]
		a.Text = short(a.Text, c.text)
		a.Errors = c.messages(a.Errors)
		a.Requests = c.requests(a.Requests)
	}
	for i := range s.Looks {
		l := &s.Looks[i]
		l.Text = short(l.Text, c.text)
		l.Found, l.Ours = ends(l.Found, c.list), ends(l.Ours, c.list)
	}
	for i := range s.Decisions {
		d := &s.Decisions[i]
		d.Why, d.Result = short(d.Why, c.text), short(d.Result, c.text)
	}
	return s
}

// middle returns a new slice without the middle and counts what it left out.
func middle[T any](c cut, list []T, left *int) []T {
	n := len(list) - c.first - c.last
	if n <= 0 {
		return append([]T(nil), list...)
	}
	*left += n
	return append(append([]T(nil), list[:c.first]...), list[c.first+n:]...)
}

// ends keeps the first n and the last n entries; the last request or error is the one that decided.
func ends[T any](list []T, n int) []T {
	var left int
	return middle(cut{first: n, last: n}, list, &left)
}

func (c cut) messages(list []flexi.Message) []flexi.Message {
	list = ends(list, c.list)
	for i := range list {
		m := &list[i]
		m.Text, m.Value = short(m.Text, c.text), short(m.Value, c.text)
		m.For, m.Path, m.Code = short(m.For, c.text), short(m.Path, c.text), short(m.Code, c.text)
	}
	return list
}

func (c cut) requests(list []flexi.Request) []flexi.Request {
	list = ends(list, c.list)
	for i := range list {
		list[i].URL, list[i].Error = short(list[i].URL, c.text), short(list[i].Error, c.text)
	}
	return list
}

func (c cut) problem(p *Problem) *Problem {
	if p == nil {
		return nil
	}
	out := *p
	out.Text = short(p.Text, 2*c.text)
	out.Errors = c.messages(p.Errors)
	out.Differ = ends(p.Differ, c.list)
	for i := range out.Differ {
		d := &out.Differ[i]
		d.Field, d.Sent, d.Found = short(d.Field, c.text), short(d.Sent, c.text), short(d.Found, c.text)
	}
	return &out
}

// short cuts a text to n bytes at a rune's border.
func short(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	s = strings.TrimSuffix(s, mark)
	for n -= len(mark); n > 0 && !utf8.RuneStart(s[n]); n-- {
	}
	return s[:n] + mark
}
