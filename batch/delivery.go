package batch

import (
	"strings"

	"flexid/flexi"
	"flexid/verify"
)

// Headers of a delivery in the inbox. They are all that is kept of the request beside its body: its own headers hold
// secrets.
const (
	headEventID  = "Flexid-Event-Id" // the sender's id of the event
	headDelivery = "Flexid-Delivery" // ours, where the sender gave none
	headEvidence = "Flexid-Evidence" // the body is a document of it; without it the body is an event
	headProblem  = "Flexid-Problem"  // why the delivery must not take effect
)

// delivery reads a message of the inbox, whose subject is <prefix>.in.<source>.<hash>. Nothing is taken from a header but
// what the receiver has authenticated and put there.
//
// The event id is the source's name and the sender's id: two sources may both count from 1.
func (d Decoder) delivery(source string, m Message) verify.Event {
	r := &reader{delivered: true, system: d.System, zone: d.Zone, op: flexi.Upsert, doc: Unmarked(m.Data), event: verify.Event{
		EventID: m.Subject, Source: source, Evidence: UnknownEvidence, Received: m.Received, Subject: m.Subject,
		Stream: m.Stream, Seq: m.Seq, StreamTime: m.Time,
	}}
	head := readHeader(m.Header)
	if id := r.one(head, headDelivery); id != "" {
		r.event.EventID = source + " " + id
	}
	if id := r.one(head, headEventID); id != "" {
		r.event.EventID, r.event.Given = source+" "+id, true
	}
	if problem := r.one(head, headProblem); problem != "" {
		r.fail("%s", problem)
	}
	if len(m.Data) > MaxEvent {
		r.fail("the delivery has %d bytes, more than the %d that an event may have", len(m.Data), MaxEvent)
		return r.finish(m.Data)
	}
	if evidence := r.one(head, headEvidence); evidence != "" {
		r.op = flexi.Create
		r.evidence("the path", evidence)
		if op := r.one(head, "Flexid-Op"); op != "" {
			r.ops = append(r.ops, given{"header Flexid-Op", op})
		}
		r.key("header Flexid-Key", r.one(head, "Flexid-Key"))
		r.version("header Flexid-Version", r.one(head, "Flexid-Version"))
	} else {
		r.signedEvent()
	}
	return r.finish(m.Data)
}

// sourceOf gives the source of an inbox subject.
func sourceOf(prefix, subject string) (source string, ok bool) {
	if prefix == "" {
		prefix = "flexi"
	}
	rest, ok := strings.CutPrefix(subject, prefix+".in.")
	source, _, found := strings.Cut(rest, ".")
	return source, ok && found && source != ""
}

// signedEvent reads {"evidence":…,"op":…,"key":…,"version":…,"document":{…}}. A bare document is not taken: nothing that
// is signed would say what it is.
func (r *reader) signedEvent() {
	fields, problem := r.object(r.doc)
	if problem != "" {
		r.fail("%s", problem)
		return
	}
	if _, ok := fields["document"]; !ok {
		r.fail(`the body is not an event: send {"evidence":…,"op":…,"key":…,"document":{…}}`)
		return
	}
	evidence := ""
	r.fileEvent(fields, &evidence)
	if evidence == "" {
		r.fail("the event names no evidence")
		return
	}
	r.evidence("the event", evidence)
}
