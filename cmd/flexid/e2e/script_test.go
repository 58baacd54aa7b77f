//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"flexid/flexi"
)

// Evidences of the script.
const (
	issued   = "faktura-vydana"
	received = "faktura-prijata"
	partners = "adresar"
)

// event is one message to publish.
type event struct {
	id   string
	op   string
	body map[string]any
	msg  *nats.Msg
}

// document is one document of a script with its events in order, and what must become of it.
type document struct {
	evidence, key, ext string
	kind               string
	events             []event
	want               []string // standings it may end in; several where the order of two senders decides

	// After the last effective event; content nil means that no record may be there.
	content map[string]any
	storno  bool
	words   string // what the reason must hold when it is parked
	cause   string
}

func (d *document) address() string { return d.evidence + "/" + d.key }

// clean documents meet no fault: what is asserted about them hangs on the number of their writes.
func (d *document) clean() bool { return d.kind == "invalid" || d.kind == "corrected" }

// script is everything that is published in one run.
type script struct {
	rnd       *rand.Rand
	prefix    string
	documents []*document
	edited    []*document // changed by hand between their two events
	order     []*event    // of all others, in the order of publishing
	changes   int
}

// newScript makes n documents. Of the events 40 % are changes; 20 % of the documents are numbered by the server, 20 % are
// received invoices, 5 % are invalid.
func newScript(prefix string, n int, seed uint64) *script {
	s := &script{rnd: rand.New(rand.NewPCG(seed, 7)), prefix: prefix}
	for i := range n {
		switch {
		case i%20 == 3:
			s.invalid(i)
		case i%100 == 8:
			s.typed(i, true)
		case i%100 == 18:
			s.typed(i, false)
		case i%50 == 28:
			s.edit(i)
		case i%100 == 36, i%100 == 56:
			s.shared(i)
		case i%100 == 38, i%100 == 58: // the second sender of the number
		case i%5 == 1:
			s.drawn(i)
		case i%5 == 2:
			s.received(i)
		default:
			s.invoice(i)
		}
	}
	s.change(n * 2 / 3)
	s.shuffle()
	return s
}

func (s *script) add(evidence, key, kind string) *document {
	d := &document{evidence: evidence, key: key, kind: kind, want: []string{"confirmed"}, content: map[string]any{}}
	d.ext = string(flexi.NewExternalID("FLEXID", "", key))
	s.documents = append(s.documents, d)
	return d
}

func (s *script) number(i int) string { return fmt.Sprintf("%s-%05d", s.prefix, i) }

func partner(i int) string {
	return []string{"code:NOVAK", "code:SVOBODA", "code:DVORAK", "code:PAPIR"}[i%4]
}

// fields is the content of a document; i makes it differ from others.
func fields(i int, kod string) map[string]any {
	f := map[string]any{
		"typDokl": "code:FAKTURA", "firma": partner(i), "datVyst": fmt.Sprintf("2026-%02d-%02d", 1+i%9, 1+i%28),
		"varSym": fmt.Sprint(2026000000 + i), "cisObj": "v1", "popis": fmt.Sprintf("dodávka č. %d", i),
		"polozkyFaktury": []any{
			map[string]any{"nazev": "Práce technika", "mnozMj": fmt.Sprint(1 + i%5), "cenaMj": "850.00", "typSzbDphK": "typSzbDph.dphZakl"},
			map[string]any{"nazev": "Kabel síťový", "mnozMj": "2", "cenaMj": fmt.Sprintf("%d.50", 90+i%9), "typSzbDphK": "typSzbDph.dphZakl"},
		},
	}
	if kod != "" {
		f["kod"] = kod
	}
	return f
}

// push appends an event to a document. Both forms of the subject are used for the same document, by turns.
func (s *script) push(d *document, op string, body map[string]any) {
	n := len(d.events) + 1
	e := event{id: fmt.Sprintf("%s#%d", d.address(), n), op: op, body: body}
	e.msg = nats.NewMsg("flexi.push." + d.evidence)
	e.msg.Header.Set(nats.MsgIdHdr, e.id)
	if op != "create" || n > 1 {
		e.msg.Header.Set("Flexid-Op", op)
	}
	token := !strings.ContainsAny(d.key, "./: ")
	switch {
	case d.kind == "keyless" && op == "create": // the number is the key
	case token && (n+len(d.key)+int(d.key[len(d.key)-1]))%2 == 0:
		e.msg.Subject += "." + d.key
	default:
		e.msg.Header.Set("Flexid-Key", d.key)
	}
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			panic(err) // a map of strings
		}
		e.msg.Data = raw
	}
	d.events = append(d.events, e)
	switch op {
	case "create":
		d.content, d.storno = maps.Clone(body), false
	case "update":
		maps.Copy(d.content, body)
	case "storno":
		d.storno = true
	case "delete":
		d.content = nil
	}
}

func (s *script) invoice(i int) {
	kind := "invoice"
	if i%3 == 0 {
		kind = "keyless"
	}
	d := s.add(issued, s.number(i), kind)
	s.push(d, "create", fields(i, d.key))
}

// drawn leaves the number to the server.
func (s *script) drawn(i int) {
	d := s.add(issued, fmt.Sprintf("objednavka-%s-%d", s.prefix, i), "drawn")
	s.push(d, "create", fields(i, ""))
}

// received invoices: three in a row share the supplier's number across partners. Some have no key but partner and number.
func (s *script) received(i int) {
	number := fmt.Sprintf("DOD/%s/%d", s.prefix, i/15)
	key, kind := fmt.Sprintf("prijata-%s-%d", s.prefix, i), "received"
	if i%4 == 2 {
		key, kind = partner(i/5)+"/2026/"+number, "keyless"
	}
	d := s.add(received, key, kind)
	f := fields(i, "")
	f["firma"], f["cisDosle"] = partner(i/5), number
	s.push(d, "create", f)
}

// invalid documents are rejected by the ERP; every second one is sent again, corrected, under the same key.
func (s *script) invalid(i int) {
	d := s.add(issued, s.number(i), "invalid")
	f := fields(i, d.key)
	switch i / 20 % 3 {
	case 0:
		f["firma"], d.cause = "code:NEZNAMY", "partner_missing"
	case 1:
		f["sumCelkem"], d.cause = "1.00", "sum_differs"
	default:
		delete(f, "varSym")
		d.cause = "varsym_missing"
	}
	d.want = []string{"parked(rejected)"}
	s.push(d, "create", f)
	d.content = nil
	if i/20%2 == 1 {
		d.kind, d.want, d.cause = "corrected", []string{"confirmed"}, ""
		s.push(d, "create", fields(i, d.key))
	}
}

// typed documents were typed by a person before their event comes: equal ones are adopted, others are a conflict.
func (s *script) typed(i int, equal bool) {
	d := s.add(issued, s.number(i), "typed-equal")
	s.push(d, "create", fields(i, d.key))
	d.want = []string{"confirmed(adopted)"}
	if !equal {
		d.kind, d.want, d.words = "typed-other", []string{"parked(conflict)"}, "is not as this event says"
		d.content = fields(i, d.key)
		d.content["cisObj"] = "rukou"
	}
}

// edit documents are changed by a person between create and update, in a field that both carry.
func (s *script) edit(i int) {
	d := s.add(issued, s.number(i), "edited")
	s.push(d, "create", fields(i, d.key))
	s.push(d, "update", map[string]any{"cisObj": "v2"})
	d.want, d.words = []string{"parked(conflict)"}, "record"
	d.content["cisObj"] = "rukou"
	s.edited = append(s.edited, d)
}

// shared numbers: two senders, one number; who comes second is parked and told whose number it is.
func (s *script) shared(i int) {
	for _, sender := range []string{"eshop", "sklad"} {
		d := s.add(issued, fmt.Sprintf("%s-%s-%d", sender, s.prefix, i), "shared")
		s.push(d, "create", fields(i, s.number(i)))
		d.want, d.words = []string{"confirmed", "parked(duplicate)"}, "belongs to document"
	}
}

// change adds n updates, stornos and deletes.
func (s *script) change(n int) {
	patterns := [][]string{
		{"update"}, {"update", "update"}, {"storno"}, {"update", "update", "storno"}, {"delete"}, {"update", "rows"},
		{"update", "delete"}, {"rows", "update", "update"}, {"delete", "create"}, {"update", "storno"},
	}
	n -= len(s.edited)
	s.changes = len(s.edited)
	for i := 0; n > 0; i = (i + 1) % len(s.documents) {
		d := s.documents[i]
		switch d.kind {
		case "invoice", "keyless", "drawn", "received":
		default:
			continue
		}
		if len(d.events) > 1 {
			return // everything has been through
		}
		for _, op := range patterns[s.rnd.IntN(len(patterns))] {
			s.changeOne(d, op)
			n--
			s.changes++
		}
	}
}

func (s *script) changeOne(d *document, op string) {
	v := fmt.Sprintf("v%d", len(d.events)+1)
	switch op {
	case "update":
		s.push(d, "update", map[string]any{"cisObj": v, "popis": "změna " + v})
	case "rows":
		s.push(d, "update", map[string]any{"cisObj": v, "polozkyFaktury": []any{
			map[string]any{"nazev": "Oprava " + v, "mnozMj": "1", "cenaMj": "1234.50", "typSzbDphK": "typSzbDph.dphZakl"},
		}})
	case "create":
		again := maps.Clone(d.events[0].body)
		again["cisObj"] = v
		s.push(d, "create", again)
	case "storno":
		s.push(d, op, nil)
	case "delete":
		s.push(d, op, map[string]any{})
	}
}

// shuffle mixes the events of all documents; those of one document stay in order.
func (s *script) shuffle() {
	var lots []int
	next := make([]int, len(s.documents))
	for i, d := range s.documents {
		if d.kind == "edited" {
			continue
		}
		for range d.events {
			lots = append(lots, i)
		}
	}
	s.rnd.Shuffle(len(lots), func(i, j int) { lots[i], lots[j] = lots[j], lots[i] })
	for _, i := range lots {
		s.order = append(s.order, &s.documents[i].events[next[i]])
		next[i]++
	}
}

func (s *script) events() (n int) {
	for _, d := range s.documents {
		n += len(d.events)
	}
	return n
}

func TestScriptIsAsPromised(t *testing.T) {
	s := newScript("T", 1000, 1)
	kinds, keys := map[string]int{}, map[string]bool{}
	for _, d := range s.documents {
		kinds[d.kind]++
		if d.evidence == received {
			kinds["of received"]++
		}
		if keys[d.address()] {
			t.Errorf("key %s twice", d.address())
		}
		keys[d.address()] = true
	}
	within := func(what string, got, low, high int) {
		if got < low || got > high {
			t.Errorf("%s: %d, want %d to %d", what, got, low, high)
		}
	}
	within("documents", len(s.documents), 1000, 1000)
	within("changes in 1000 events", 1000*s.changes/s.events(), 380, 420)
	within("numbered by the server", kinds["drawn"], 180, 200)
	within("received invoices", kinds["of received"], 180, 200)
	within("invalid", kinds["invalid"]+kinds["corrected"], 50, 50)
}
