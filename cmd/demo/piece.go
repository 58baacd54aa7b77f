package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"

	"flexid/batch"
	"flexid/flexi"
	"flexid/testdata"
)

// piece is what is going to happen: events in order, and what goes wrong with which.
type piece struct {
	events    []*event
	documents []*document
	conflict  *event // published only after a person has edited its document
}

// event is one logical write: one message that asks for one change.
type event struct {
	doc    *document
	op     flexi.Op
	key    string // as published; "" where the sender leaves it to flexid
	body   json.RawMessage
	id     string  // Flexid-Event-Id
	mishap *mishap // of its first send; nil = none
}

// document is what all events with one key are about.
type document struct {
	evidence, key string
	number        string // as sent, "" where Flexi draws it
	ext           string
	want          map[string]string // plain fields as they shall stand in the end
	rows          int
	refused       bool // Flexi refuses it, so it must not be there
}

// The two documents with a part of their own.
const (
	refusedKey  = "FV26-0127"
	conflictKey = "FV26-0101"
)

// sample is one file of testdata.
type sample struct {
	Evidence string         `json:"evidence"`
	Op       string         `json:"op"`
	Key      string         `json:"key,omitempty"`
	Document map[string]any `json:"document"`
}

// compose takes the samples again and again, with new numbers each time, until there are as many documents as asked for,
// then draws what goes wrong.
func compose(docs int, seed uint64) (*piece, error) {
	samples, err := readSamples(testdata.Invoices())
	if err != nil {
		return nil, err
	}
	p := &piece{}
	known := map[string]*document{}
	for round := 1; len(p.documents) < docs; round++ {
		for _, s := range samples {
			if err := p.add(s, round, docs, known); err != nil {
				return nil, err
			}
		}
	}
	p.drawMishaps(rand.New(rand.NewPCG(seed, seed)))
	return p, nil
}

func readSamples(folder fs.FS) ([]sample, error) {
	names, err := fs.Glob(folder, "*.json")
	if err != nil {
		return nil, fmt.Errorf("sample documents: %w", err)
	}
	samples := make([]sample, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("sample document: %w", err)
		}
		var s sample
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("sample document %s: %w", name, err)
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// add puts one sample into the piece. Partners and the refused document come once; a document is left out when there are
// enough, and then its changes are too.
func (p *piece) add(s sample, round, docs int, known map[string]*document) error {
	once := s.Evidence == "adresar" || s.Key == refusedKey
	if once && round > 1 {
		return nil
	}
	ev, doc, err := read(s.inRound(round))
	if err != nil {
		return err
	}
	at := doc.evidence + "/" + doc.key
	if known[at] == nil {
		if ev.op != flexi.Create || len(p.documents) >= docs && !doc.vital() {
			return nil
		}
		known[at] = doc
		p.documents = append(p.documents, doc)
	}
	p.append(ev, known[at])
	if doc.key == conflictKey && ev.op == flexi.Create {
		p.conflict = known[at].correction()
	}
	return nil
}

// vital documents take part in the smallest piece too.
func (d *document) vital() bool { return d.key == refusedKey || d.key == conflictKey }

func (p *piece) append(ev *event, doc *document) {
	ev.doc, ev.id = doc, fmt.Sprintf("demo-%d", len(p.events)+1)
	doc.apply(ev)
	p.events = append(p.events, ev)
}

// inRound gives a sample other numbers, so that its copies are other documents.
func (s sample) inRound(round int) sample {
	if round == 1 {
		return s
	}
	tail := fmt.Sprintf("-%d", round)
	fields := make(map[string]any, len(s.Document))
	for name, v := range s.Document {
		text, _ := v.(string)
		switch name {
		case "kod", "cisDosle":
			v = text + tail
		case "varSym":
			v = fmt.Sprintf("%d%s", round, text)
		}
		fields[name] = v
	}
	s.Document = fields
	if s.Key != "" {
		s.Key += tail
	}
	return s
}

// read takes the sample through flexid's own decoder, which says what key a document without one has.
func read(s sample) (*event, *document, error) {
	line, err := json.Marshal(s)
	if err != nil {
		return nil, nil, fmt.Errorf("sample document %s: %w", s.Key, err)
	}
	decoded := batch.Decoder{System: system}.DecodeFileEvent(line, "")
	if decoded.Problem != "" {
		return nil, nil, fmt.Errorf("sample document %s: %s", s.Key, decoded.Problem)
	}
	doc := &document{
		evidence: decoded.Evidence, key: decoded.Key, refused: s.Key == refusedKey, want: map[string]string{},
		ext: flexi.NewExternalID(system, "", decoded.Key).String(),
	}
	number, has, err := flexi.NumberOf(doc.evidence, decoded.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("sample document %s: %w", s.Key, err)
	}
	if has {
		doc.number = number.Value
		if number.Pair {
			doc.number = number.Partner + "/" + number.Value // as the books have it
		}
	}
	return &event{op: decoded.Op, key: s.Key, body: decoded.Body}, doc, nil
}

// apply notes how the document shall look after the event. References are left out: they are shown by other names.
func (d *document) apply(ev *event) {
	if ev.op == flexi.Storno {
		d.want["storno"] = "true"
		return
	}
	var fields map[string]any
	_ = json.Unmarshal(ev.body, &fields) // the decoder has read it
	for name, v := range fields {
		switch v := v.(type) {
		case string:
			if !strings.HasPrefix(v, "code:") {
				d.want[name] = v
			}
		case []any:
			d.rows = len(v)
		}
	}
}

// personText is what the person writes.
const personText = "Servis kotelny, únor 2026 (sleva dohodnuta po telefonu)"

// correction is an update that knows nothing of the person's edit, so what the person wrote must stay.
func (d *document) correction() *event {
	d.want["popis"] = personText
	return &event{doc: d, op: flexi.Update, key: d.key, id: "demo-correction", body: json.RawMessage(`{"popis":"Servis kotelny, únor a březen 2026"}`)}
}

// all is every event, the late one too.
func (p *piece) all() []*event { return append(p.events[:len(p.events):len(p.events)], p.conflict) }
