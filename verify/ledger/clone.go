package ledger

import (
	"maps"
	"slices"
)

// Clone copies a row so deeply that no change of one shows in the other.
func (r *Row) Clone() Row {
	c := *r
	c.Numbers = slices.Clone(r.Numbers)
	c.Last = pointTo(r.Last)
	c.Base = slices.Clone(r.Base)
	c.Known = pointTo(r.Known)
	c.Work = r.Work.clone()
	c.Redo = slices.Clone(r.Redo)
	c.Refused = slices.Clone(r.Refused)
	for i := range c.Refused {
		c.Refused[i].Version, c.Refused[i].Fields = pointTo(c.Refused[i].Version), slices.Clone(c.Refused[i].Fields)
	}
	if c.Dropped = pointTo(r.Dropped); c.Dropped != nil {
		c.Dropped.Version = pointTo(c.Dropped.Version)
	}
	c.Seen = maps.Clone(r.Seen)
	c.Lease = pointTo(r.Lease)
	c.Aside = pointTo(r.Aside)
	c.Late = slices.Clone(r.Late)
	c.ToNotify = slices.Clone(r.ToNotify)
	c.Parkings = slices.Clone(r.Parkings)
	c.Extra = maps.Clone(r.Extra) // raw values are never changed in place
	return c
}

func pointTo[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func (w *Work) clone() *Work {
	c := pointTo(w)
	if c == nil {
		return nil
	}
	c.Version, c.Fields = pointTo(w.Version), slices.Clone(w.Fields)
	c.Before = maps.Clone(w.Before)
	c.Refused = pointTo(w.Refused)
	c.Reject = w.Reject.clone()
	c.End = pointTo(w.End)
	c.Mates = slices.Clone(w.Mates)
	c.Story = w.Story.clone()
	return c
}

func (s Story) clone() Story {
	s.Attempts = slices.Clone(s.Attempts)
	for i := range s.Attempts {
		s.Attempts[i].Errors = slices.Clone(s.Attempts[i].Errors)
		s.Attempts[i].Requests = slices.Clone(s.Attempts[i].Requests)
	}
	s.Looks = slices.Clone(s.Looks)
	for i := range s.Looks {
		s.Looks[i].Found = slices.Clone(s.Looks[i].Found)
		s.Looks[i].Ours = slices.Clone(s.Looks[i].Ours)
	}
	s.Decisions = slices.Clone(s.Decisions)
	s.Problem = s.Problem.clone()
	s.Days = maps.Clone(s.Days)
	return s
}

func (p *Problem) clone() *Problem {
	c := pointTo(p)
	if c == nil {
		return nil
	}
	c.Errors = slices.Clone(p.Errors)
	c.Differ = slices.Clone(p.Differ)
	return c
}
