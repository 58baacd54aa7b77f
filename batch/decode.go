package batch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexid/flexi"
	"flexid/verify"
)

// MaxEvent is the size of the largest body of an event, bytes.
const MaxEvent = 512 << 10

// maxName is the length of the longest key and event id, bytes.
const maxName = 255

// UnknownEvidence stands in an event whose evidence cannot be read.
const UnknownEvidence = "unknown"

// Decoder reads messages. The zero value reads the subjects of the default prefix.
type Decoder struct {
	Prefix string         // first token of our subjects; "" = flexi
	System string         // the system part of our external ids: bodies may not name such ids
	Zone   *time.Location // in which a moment in datVyst becomes a day; nil leaves the day as it is written
	Source string         // of events of a file that name none
}

// Decode reads one message of the intake stream or of the inbox. It never fails: see Event.Problem.
func (d Decoder) Decode(m Message) verify.Event {
	if source, ok := sourceOf(d.Prefix, m.Subject); ok {
		return d.delivery(source, m)
	}
	r := &reader{system: d.System, zone: d.Zone, op: flexi.Create, doc: Unmarked(m.Data), event: verify.Event{
		EventID:  fmt.Sprintf("%s:%d:%d", m.Stream, m.Seq, m.Time.UnixNano()),
		Evidence: UnknownEvidence, Received: m.Received, Subject: m.Subject,
		Stream: m.Stream, Seq: m.Seq, StreamTime: m.Time,
	}}
	head := readHeader(m.Header)
	r.subject(d.Prefix, m.Subject)
	r.header(head)
	if len(m.Data) > MaxEvent {
		r.fail("the event has %d bytes, more than the %d that one may have", len(m.Data), MaxEvent)
	} else {
		r.unwrap(head)
	}
	r.ownID(head)
	return r.finish(m.Data)
}

// reader is one message while it is being read. The first problem counts: later ones follow from it.
type reader struct {
	system    string
	zone      *time.Location
	event     verify.Event
	op        flexi.Op // the default, until one is given
	ops       []given
	keys      []given
	doc       []byte
	problem   string
	file      bool // it is an event of a file: what to do about it is another thing than with a message
	delivered bool // it came through a webhook, whose source is known

	last struct { // what object was asked about
		doc     []byte
		fields  map[string]json.RawMessage
		problem string
	}
}

// given is a value and where it stood.
type given struct{ where, value string }

func (r *reader) fail(format string, args ...any) {
	if r.problem == "" {
		r.problem = fmt.Sprintf(format, args...)
	}
}

// subject reads <prefix>.push.<evidence>[.<key>].
func (r *reader) subject(prefix, subject string) {
	if prefix == "" {
		prefix = "flexi"
	}
	rest, ok := strings.CutPrefix(subject, prefix+".push.")
	if !ok {
		r.fail("the subject %s does not begin with %s.push.", quote(subject), prefix)
		return
	}
	evidence, key, hasKey := strings.Cut(rest, ".")
	r.evidence("the subject", evidence)
	switch {
	case strings.Contains(key, "."):
		r.fail("the subject has several tokens after the evidence: a key with dots goes into the header Flexid-Key")
	case hasKey:
		r.key("the subject", key)
	}
}

func (r *reader) evidence(where, evidence string) {
	if !isEvidence(evidence) {
		r.fail("%s names the evidence %s: an evidence is written like faktura-vydana", where, quote(evidence))
		return
	}
	r.event.Evidence = evidence
}

func isEvidence(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 100
}

// header reads our own headers.
func (r *reader) header(head header) {
	if op := r.one(head, "Flexid-Op"); op != "" {
		r.ops = append(r.ops, given{"header Flexid-Op", op})
	}
	r.source("header Flexid-Source", r.one(head, "Flexid-Source"))
	r.key("header Flexid-Key", r.one(head, "Flexid-Key"))
	r.version("header Flexid-Version", r.one(head, "Flexid-Version"))
	if len(head[strings.ToLower(headEventID)]) == 0 {
		r.eventID("header Nats-Msg-Id", r.one(head, "Nats-Msg-Id"))
	}
}

// ownID reads the event's id as our own header gives it. It counts before all others: Nats-Msg-Id also steers the server,
// and a gateway may put a CloudEvent's id of its own around an event.
func (r *reader) ownID(head header) {
	r.eventID("header "+headEventID, r.one(head, headEventID))
}

// one gives the only value of a header.
func (r *reader) one(head header, name string) string {
	values := head[strings.ToLower(name)]
	for _, value := range values {
		if value != values[0] {
			r.fail("header %s is given twice and differs: %s and %s", name, quote(values[0]), quote(value))
			return ""
		}
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// source takes the name of a webhook source, by which a file or a message is about that source's document. A delivery is
// about its own source's: another one in it would let a sender write to documents that are not his.
func (r *reader) source(where, source string) {
	switch {
	case source == "" || source == r.event.Source:
	case !IsSource(source):
		r.fail("the source in %s is %s: a source is written with small letters, digits and -, at most 20 of them", where, quote(source))
	case r.delivered:
		r.fail("%s names the source %s, but the delivery came from %s", where, quote(source), quote(r.event.Source))
	default:
		r.event.Source = source
	}
}

// IsSource holds for what the name of a webhook source may be: one token of a subject, of an external id and of a path.
func IsSource(name string) bool { return isEvidence(name) && name[0] != '-' && len(name) <= 20 }

func (r *reader) key(where, key string) {
	if key = normal(key); key == "" {
		return
	}
	if problem := badName(key); problem != "" {
		r.fail("the key in %s %s", where, problem)
		return
	}
	r.keys = append(r.keys, given{where, key})
}

func (r *reader) version(where, version string) {
	if version == "" {
		return
	}
	if !isVersion(version) {
		r.fail("the version in %s is %s: it must be a whole number or a time such as 2026-11-30T08:15:00Z", where, quote(version))
		return
	}
	r.event.Version = version
}

func (r *reader) eventID(where, id string) {
	if id == "" {
		return
	}
	if problem := badName(id); problem != "" {
		r.fail("the event id in %s %s", where, problem)
		return
	}
	r.event.EventID, r.event.Given = id, true
}

// finish decides operation and key, checks the document, and makes the event.
func (r *reader) finish(raw []byte) verify.Event {
	r.decideOp()
	key := r.decideKey()
	number := r.document()
	if key == "" && len(r.keys) == 0 {
		key, r.event.Derived = number, number != ""
	}
	if key == "" && len(r.keys) == 0 {
		r.fail("the document could not be looked up: %s", r.wanted())
	}
	r.event.Key, r.event.Op = key, r.op
	if r.problem != "" {
		r.event.Problem, r.event.Raw = r.problem, bytes.Clone(raw)
		return r.event
	}
	r.event.Body = bytes.Clone(r.doc)
	return r.event
}

func (r *reader) wanted() string {
	give := "send header Flexid-Key"
	if r.file {
		give = "write key into the event"
	}
	if _, pair := flexi.NumberField(r.event.Evidence); pair {
		return "it has no key, and not all of cisDosle, a reference to the partner in firma (code:, ext: or an id) and a day in datVyst; " + give
	}
	return "it has no key and no number; " + give + ", or kod in the document"
}

func (r *reader) decideOp() {
	for _, g := range r.ops {
		op, err := flexi.ParseOp(g.value)
		if err != nil {
			r.fail("%s: %s", g.where, err)
			return
		}
		if g != r.ops[0] && g.value != r.ops[0].value {
			r.fail("the operation is given twice and differs: %s says %s, %s says %s",
				r.ops[0].where, quote(r.ops[0].value), g.where, quote(g.value))
			return
		}
		r.op = op
	}
}

// decideKey gives the key that was said outside the document; none if several were said.
func (r *reader) decideKey() string {
	for _, g := range r.keys {
		if g.value != r.keys[0].value {
			r.fail("the key is given twice and differs: %s says %s, %s says %s",
				r.keys[0].where, quote(r.keys[0].value), g.where, quote(g.value))
			return ""
		}
	}
	if len(r.keys) == 0 {
		return ""
	}
	return r.keys[0].value
}

// quote shows a foreign value in a sentence, shortened.
func quote(s string) string {
	if runes := []rune(s); len(runes) > 60 {
		s = string(runes[:60]) + "…"
	}
	return strconv.Quote(s)
}
