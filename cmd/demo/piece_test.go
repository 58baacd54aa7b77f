package main

import (
	"testing"

	"flexid/flexi"
	"flexid/testdata"
)

func TestSamplesAreReadable(t *testing.T) {
	samples, err := readSamples(testdata.Invoices())
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string]bool{}
	count := map[string]int{}
	for _, s := range samples {
		ev, doc, err := read(s)
		if err != nil {
			t.Error(err)
			continue
		}
		at := doc.evidence + "/" + doc.key
		if created := ev.op == flexi.Create; created == documents[at] {
			t.Errorf("%s of %s: created before: %v", ev.op, at, documents[at])
		}
		documents[at] = true
		count[doc.evidence+" "+string(ev.op)]++
	}
	for what, least := range map[string]int{
		"faktura-vydana create": 25, "faktura-prijata create": 10, "adresar create": 4, "faktura-vydana update": 4,
		"faktura-prijata update": 2, "faktura-vydana storno": 2,
	} {
		if count[what] < least {
			t.Errorf("%d of %s, want %d", count[what], what, least)
		}
	}
}

func TestCompose(t *testing.T) {
	tests := map[string]struct{ docs, want int }{
		"the smallest takes both documents with a part of their own": {1, 3},
		"few":               {10, 11},
		"every sample once": {41, 41},
		"several rounds":    {200, 200},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := compose(tt.docs, 1)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.documents) != tt.want {
				t.Errorf("%d documents, want %d", len(p.documents), tt.want)
			}
			if p.conflict == nil || p.conflict.doc.key != conflictKey {
				t.Error("nobody meets the person")
			}
			numbers, refused := map[string]bool{}, 0
			for _, d := range p.documents {
				at := d.evidence + "/" + d.number
				if d.number != "" && d.evidence != "faktura-prijata" && numbers[at] {
					t.Errorf("number %s twice", at)
				}
				numbers[at] = true
				if d.refused {
					refused++
				}
			}
			if refused != 1 {
				t.Errorf("%d documents will be refused", refused)
			}
		})
	}
}

// TestOneSeedOneScript: a run that went wrong must be repeatable.
func TestOneSeedOneScript(t *testing.T) {
	script := func(seed uint64) (all string) {
		p, err := compose(200, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range p.events {
			name := "-"
			if ev.mishap != nil {
				name = ev.mishap.name
			}
			all += ev.doc.key + " " + name + "\n"
		}
		return all
	}
	first, second := script(3), script(3)
	if first != second {
		t.Error("two scripts of one seed differ")
	}
	if first == script(4) {
		t.Error("the seed decides nothing")
	}
}

func TestEveryMishapHappens(t *testing.T) {
	p, err := compose(42, 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, ev := range p.all() {
		if ev.mishap == nil {
			continue
		}
		seen[ev.mishap.name]++
		if ev.doc.vital() || ev.doc.evidence == "adresar" {
			t.Errorf("%s of %s goes wrong", ev.op, ev.doc.key)
		}
	}
	for _, m := range mishaps() {
		if seen[m.name] == 0 {
			t.Errorf("%q never happens", m.name)
		}
	}
}

func TestTwoUpdatesAreToldApart(t *testing.T) {
	p, err := compose(42, 1)
	if err != nil {
		t.Fatal(err)
	}
	var updates []*event
	for _, ev := range p.events {
		if ev.doc.key == "FV26-0110" && ev.op == flexi.Update {
			updates = append(updates, ev)
		}
	}
	if len(updates) != 2 {
		t.Fatalf("%d updates of FV26-0110", len(updates))
	}
	request := []byte(`{"winstrom":{"@version":"1.0","faktura-vydana":[{"id":"7","@create":"fail",` +
		`"datSplat":"2026-04-03","poznam":"Splatnost prodloužena po dohodě."}]}}`)
	if !updates[0].changes(request) || updates[1].changes(request) {
		t.Errorf("first %v, second %v", updates[0].changes(request), updates[1].changes(request))
	}
	if updates[0].changes([]byte(`{"winstrom":`)) || updates[0].changes(nil) {
		t.Error("half a request is taken for an update")
	}
}
