package batch

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	"flexid/flexi"
)

// unwrap takes a document out of its CloudEvent, if it is in one: structured (one JSON object with everything), binary
// (attributes in headers), or structured without any header, as older senders over NATS do.
func (r *reader) unwrap(head header) {
	contentType := mediaType(r.one(head, "Content-Type"))
	switch {
	case contentType == "application/cloudevents+json":
		r.structured(true)
	case strings.HasPrefix(contentType, "application/cloudevents"):
		r.fail("header Content-Type is %s: send one CloudEvent as application/cloudevents+json", quote(contentType))
	case len(head["ce-specversion"]) > 0 || len(head["ce-type"]) > 0:
		r.binary(head)
	default:
		r.structured(false)
	}
}

func mediaType(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

func (r *reader) binary(head header) {
	attributes := map[string]string{}
	for name := range head {
		attribute, ok := strings.CutPrefix(name, "ce-")
		if !ok {
			continue
		}
		value, err := url.PathUnescape(r.one(head, name))
		if err != nil {
			r.fail("header %s is not percent-encoded as CloudEvents ask for", name)
			continue
		}
		attributes[attribute] = value
	}
	r.attributes(attributes, "header ce-")
}

// structured reads the body as a CloudEvent: because it says so (declared), or because it looks like one.
func (r *reader) structured(declared bool) {
	fields, problem := r.object(r.doc)
	if _, looks := fields["specversion"]; !declared && !looks {
		return
	}
	if problem != "" {
		r.fail("%s", problem)
		return
	}
	if twice := repeated(r.doc); twice != "" {
		r.fail("the CloudEvent has %s twice", quote(twice))
		return
	}
	attributes := map[string]string{}
	for _, name := range []string{"specversion", "type", "source", "id", "subject", "datacontenttype"} {
		raw, ok := fields[name]
		if !ok || string(raw) == "null" {
			continue
		}
		var value string
		if json.Unmarshal(raw, &value) != nil {
			r.fail("%s of the CloudEvent is not a string", name)
		}
		attributes[name] = value
	}
	r.attributes(attributes, "CloudEvent attribute ")
	r.data(fields)
}

func (r *reader) data(fields map[string]json.RawMessage) {
	data, plain := fields["data"]
	encoded, binary := fields["data_base64"]
	if r.doc = data; string(data) == "null" {
		r.doc = nil
	}
	if plain && binary {
		r.fail("the CloudEvent has both data and data_base64")
	}
	if !binary {
		return
	}
	var text string
	decoded, err := []byte(nil), json.Unmarshal(encoded, &text)
	if err == nil {
		decoded, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil {
		r.fail("data_base64 of the CloudEvent is not base64")
	}
	r.doc = Unmarked(decoded)
}

// attributes takes what an event needs. The attribute source is part of the event id alone: it names a system, not one of
// our webhook sources, and must not change the document's identity.
func (r *reader) attributes(a map[string]string, where string) {
	for _, name := range []string{"specversion", "type", "source", "id"} {
		if a[name] == "" {
			r.fail("%s%s is missing", where, name)
		}
	}
	if a["specversion"] != "" && a["specversion"] != "1.0" {
		r.fail("%sspecversion is %s: only 1.0 is understood", where, quote(a["specversion"]))
	}
	if kind := mediaType(a["datacontenttype"]); kind != "" && kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		r.fail("%sdatacontenttype is %s: the document must be JSON", where, quote(kind))
	}
	r.key(where+"subject", a["subject"])
	if a["source"] != "" && a["id"] != "" {
		// A blank in source would make "a b"+"c" and "a"+"b c" one id.
		r.eventID(where+"source and id", strings.ReplaceAll(a["source"], " ", "%20")+" "+a["id"])
	}
	r.typeOp(a["type"], where)
}

// typeOp reads the operation at the end of a type. A type that ends otherwise is only refused when nothing else says the
// operation: many senders cannot change their types.
func (r *reader) typeOp(typ, where string) {
	if typ == "" {
		return
	}
	word := typ[strings.LastIndex(typ, ".")+1:]
	switch word {
	case "create", "update", "upsert", "storno", "delete":
		r.ops = append(r.ops, given{where + "type", word})
	default:
		if len(r.ops) == 0 {
			r.fail("%stype is %s: it must end in create, update, upsert, storno or delete, or send header Flexid-Op", where, quote(typ))
		}
	}
}

// repeated gives the first name that an object holds twice at its top; a decoder would silently keep the last.
func repeated(doc []byte) string {
	name, _, _ := flexi.RepeatedName(doc, 1)
	return name
}
