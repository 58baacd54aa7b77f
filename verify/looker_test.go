package verify

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"
)

// pages is a Reader that answers lists from a script, the last page for ever.
type pages struct {
	Reader
	list []flexi.Page
}

func (p *pages) List(context.Context, flexi.Query) (flexi.Page, error) {
	page := p.list[0]
	if len(p.list) > 1 {
		p.list = p.list[1:]
	}
	return page, nil
}

func record(id, kod string) flexi.Record {
	return flexi.Record{"id": json.RawMessage(`"` + id + `"`), "kod": json.RawMessage(`"` + kod + `"`)}
}

// TestLookValidity: which answers count as a look.
func TestLookValidity(t *testing.T) {
	control := flexi.Page{Records: []flexi.Record{record("9", "Z")}, RowCount: 9}
	for _, c := range []struct {
		name  string
		look  flexi.Page
		valid bool
		found int
	}{
		{"control and document", flexi.Page{Records: []flexi.Record{record("9", "Z"), record("1", "A")}, RowCount: 2}, true, 1},
		{"control alone", flexi.Page{Records: []flexi.Record{record("9", "Z")}, RowCount: 1}, true, 0},
		{"no control", flexi.Page{Records: []flexi.Record{record("1", "A")}, RowCount: 1}, false, 0},
		{"nothing", flexi.Page{}, false, 0},
		{"fewer rows than counted", flexi.Page{Records: []flexi.Record{record("9", "Z")}, RowCount: 2}, false, 0},
		{"more rows than counted", flexi.Page{Records: []flexi.Record{record("9", "Z"), record("1", "A")}, RowCount: 1}, false, 0},
		{"the filter was ignored", flexi.Page{Records: []flexi.Record{record("9", "Z"), record("5", "B")}, RowCount: 2}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLooker(&pages{list: []flexi.Page{control, c.look}}, newFence("FLEXID"), &marks{}, time.Now, func(string) {}, func(string, error) {})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { l.run(ctx); close(ended) }()
				ans, err := l.ask(ctx, question{evidence: "faktura-vydana", exts: []flexi.ExternalID{"ext:FLEXID:A"}, number: "A"})
				if err != nil || ans.valid != c.valid || len(ans.records) != c.found {
					t.Errorf("valid %v (%s), %d records, error %v", ans.valid, ans.why, len(ans.records), err)
				}
				cancel()
				<-ended
			})
		})
	}
}
