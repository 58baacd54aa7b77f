package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexid/flexi/flexitest"
	"flexid/verify/ledger"

	"github.com/shopspring/decimal"
)

// tally is how it went. What stands in the books was counted in the books; what the daemon tells is only shown.
type tally struct {
	took      time.Duration
	documents int
	logical   int // events published: each asks for one change
	wire      int // write requests that reached the ERP
	reads     int

	duplicates int
	lost       int
	wrong      []string // documents that do not look as they should

	byMishap []mishapTally
	doubts   []doubt
	parked   []parked
	peer     peer
}

func (t *tally) good() bool { return t.duplicates == 0 && t.lost == 0 && len(t.wrong) == 0 }

// mishapTally is what one kind of mishap led to.
type mishapTally struct {
	name         string
	events, wire int
	duplicates   int
	peer         peer
}

// count asks the daemon for the story of every document, and the books for the truth.
func (s *stage) count(ctx context.Context, p *piece) (*tally, error) {
	t := &tally{documents: len(p.documents), logical: len(p.all()), wire: s.erp.Count(flexitest.Write), reads: s.erp.Count(flexitest.Read)}
	shown := map[*document]bool{}
	for _, d := range p.documents {
		story, err := s.api.story(ctx, d)
		if err != nil {
			return nil, err
		}
		shown[d] = story.State == string(ledger.Parked)
		t.add(&story)
	}
	b := newBooks(s.erp, p.evidences())
	t.audit(p, s.erp, b, s.before, func(d *document) bool { return shown[d] })
	t.addMishaps(p, s.erp.Requests(), b)
	for _, ev := range p.all() {
		t.peer.add(ev)
	}
	return t, nil
}

// audit compares the books with what was asked for. before is how many records there were; parked says whether a person
// was told about a document, since what is neither in the books nor shown to anybody is lost.
func (t *tally) audit(p *piece, erp *flexitest.Server, b *books, before int, parked func(*document) bool) {
	found, hidden := 0, 0
	for _, d := range p.documents {
		records := b.of(d)
		found += min(1, len(records))
		if len(records) == 0 && !parked(d) {
			t.lost++
		}
		if d.refused && len(records) > 0 {
			t.wrong = append(t.wrong, d.evidence+"/"+d.key+": it is in Flexi although it was to be refused")
		} else if len(records) == 1 {
			if differs := d.compare(records[0]); differs != "" {
				t.wrong = append(t.wrong, d.evidence+"/"+d.key+": "+differs)
			}
			// Committed twice and merged or deleted since: the damage was done although one record is left.
			hidden += max(0, erp.Commits(d.evidence+"/"+d.ext)-1)
		}
	}
	// A record that belongs to no document of ours is one too many as well.
	t.duplicates = b.total - before - found + hidden
}

// books is a look into all records that the piece can have made.
type books struct {
	byExt, byNumber map[string][]flexitest.Record
	total           int
}

func newBooks(erp *flexitest.Server, evidences []string) *books {
	b := &books{byExt: map[string][]flexitest.Record{}, byNumber: map[string][]flexitest.Record{}}
	for _, evidence := range evidences {
		for _, r := range erp.Records(evidence) {
			b.total++
			for _, ext := range r.ExternalIDs {
				b.byExt[evidence+"/"+ext] = append(b.byExt[evidence+"/"+ext], r)
			}
			at := evidence + "/" + numberOf(r)
			b.byNumber[at] = append(b.byNumber[at], r)
		}
	}
	return b
}

// numberOf is what people look a record up by, the pair of partner and number for payables.
func numberOf(r flexitest.Record) string {
	if r.Evidence == "faktura-prijata" {
		return fmt.Sprint(r.Fields["firma"], "/", r.Fields["cisDosle"])
	}
	return r.Number
}

// of is the records that are this document, by either identity.
func (b *books) of(d *document) []flexitest.Record {
	all := slices.Clone(b.byExt[d.evidence+"/"+d.ext])
	if d.number == "" {
		return all
	}
	for _, r := range b.byNumber[d.evidence+"/"+d.number] {
		if !slices.ContainsFunc(all, func(x flexitest.Record) bool { return x.ID == r.ID }) {
			all = append(all, r)
		}
	}
	return all
}

// compare says what in a record is not as the events want it.
func (d *document) compare(r flexitest.Record) string {
	var differs []string
	for name, want := range d.want {
		if shown := fmt.Sprint(r.Fields[name]); !same(want, shown) {
			differs = append(differs, fmt.Sprintf("%s is %q, not %q", name, shown, want))
		}
	}
	if rows, _ := r.Fields["polozkyFaktury"].([]map[string]any); len(rows) != d.rows {
		differs = append(differs, fmt.Sprintf("%d rows, not %d", len(rows), d.rows))
	}
	slices.Sort(differs)
	return strings.Join(differs, "; ")
}

// same compares as the field's type would: the ERP writes numbers with its own decimals, and dates with a zone.
func same(want, shown string) bool {
	if want == shown || len(want) == len(time.DateOnly) && strings.HasPrefix(shown, want) {
		return true
	}
	a, errA := decimal.NewFromString(want)
	b, errB := decimal.NewFromString(shown)
	return errA == nil && errB == nil && a.Equal(b)
}

// addMishaps counts per kind what the script did to flexid, and what it would have done to the peer.
func (t *tally) addMishaps(p *piece, requests []flexitest.Request, b *books) {
	for _, kind := range mishaps() {
		m := mishapTally{name: kind.name}
		for _, ev := range p.events {
			if ev.mishap == nil || ev.mishap.name != kind.name {
				continue
			}
			m.events++
			for _, r := range requests {
				if r.Kind == flexitest.Write && ev.matches(r) {
					m.wire++
				}
			}
			m.duplicates += max(0, len(b.of(ev.doc))-1)
			m.peer.add(ev)
		}
		t.byMishap = append(t.byMishap, m)
	}
}
